"""``jumar report``: the whole story of a loop as a document."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jumar.cli.common import (
    json_option,
    loop_argument,
    open_loop,
    quiet_option,
    refresh_if_free,
    root_option,
)
from jumar.cli.documents import choose_format, write_document
from jumar.cli.state import report_of

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
    chosen = choose_format(form, output, _SUFFIXES, default="md", as_json=as_json)
    store = open_loop(root, loop)
    text = renderer(chosen)(report_of(store))
    refresh_if_free(store)
    write_document(text, output, chosen, of={"loop_id": store.loop_id}, for_people="md", as_json=as_json, quiet=quiet)
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
