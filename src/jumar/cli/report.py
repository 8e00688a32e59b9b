"""``jumar report``: the whole story of a loop as a document."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jumar.cli.common import (
    json_option,
    loop_argument,
    open_loop,
    print_json,
    print_text,
    quiet_option,
    refresh_if_free,
    root_option,
)
from jumar.cli.state import report_of
from jumar.errors import UsageError
from jumar.files import as_write_error, replace_file
from jumar.text import escape

if TYPE_CHECKING:
    from jumar.report.read import LoopReport

__all__ = ["FORMATS", "report_command"]

FORMATS = ("md", "json", "csv", "html", "junit")
_SUFFIXES = {".md": "md", ".json": "json", ".csv": "csv", ".html": "html", ".htm": "html", ".xml": "junit"}

_EPILOG = """\b
Examples:
  jumar report readme-polish
  jumar report readme-polish -o report.html       the format follows the name
  jumar report readme-polish --format csv > passes.csv"""


@click.command("report", epilog=_EPILOG)
@loop_argument
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: the file's suffix with -o, else md.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write here, not to stdout."
)
@root_option
@json_option
@quiet_option
def report_command(loop: str, form: str | None, output: Path | None, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Print a loop's report: summary, quality table, why this one was chosen, degradation, recommendations.

    --json is --format json; with -o, stdout then says in JSON what was written.
    """
    if as_json and output is None and form not in {None, "json"}:
        raise UsageError(f"--json and --format {form} are two documents for one stdout; write one of them to a file with -o")
    if form is None and output is not None and output.suffix.lower() not in {"", *_SUFFIXES}:
        known = ", ".join(_SUFFIXES)
        raise UsageError(f"-o {escape(output.name)}: its format cannot be told from the name ({known}); say it with --format")
    if output is not None and not output.absolute().parent.is_dir():
        raise UsageError(f"-o {escape(str(output))}: the folder {escape(str(output.parent))} does not exist")
    chosen = form or (_SUFFIXES.get(output.suffix.lower(), "md") if output is not None else "json" if as_json else "md")
    store = open_loop(root, loop)
    text = renderer(chosen)(report_of(store))
    refresh_if_free(store)
    data = text.encode("utf-8", "backslashreplace")
    if output is None:
        if chosen == "md":
            print_text(text.removesuffix("\n"))
        else:
            # formats for programs are UTF-8 whatever the terminal speaks; their renderings hold no control characters
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        return 0
    with as_write_error("write", output):
        replace_file(output, data)
    if as_json:
        print_json({"loop_id": store.loop_id, "format": chosen, "output": str(output.absolute()), "bytes": len(data)})
    elif not quiet:
        print_text(f"wrote {escape(str(output))} ({chosen}, {len(data):,} bytes)")
    return 0


def renderer(form: str) -> Callable[[LoopReport], str]:
    """Return the function that renders a report as ``form``; only that one is imported."""
    if form == "json":
        from jumar.report.json_export import render_json

        return render_json
    if form == "csv":
        from jumar.report.csv_export import render_csv

        return render_csv
    if form == "html":
        from jumar.report.html import render_html

        return render_html
    if form == "junit":
        from jumar.report.junit import render_junit

        return render_junit
    from jumar.report.markdown import render_markdown

    return render_markdown
