"""``jumar report``: the whole story of a loop as a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import click

from jumar.cli.common import loop_argument, open_loop, print_line, refresh_if_free, standard_options
from jumar.cli.terminal.output import choose_format, new_page, show_page, write_document
from jumar.core.redaction import current
from jumar.core.rendering.html import redacted
from jumar.errors import UsageError
from jumar.loop.report import export, page
from jumar.loop.report.changes import changes_of
from jumar.loop.report.read import LoopReport, load_report
from jumar.loop.store.loop_store import LoopStore

_FORMATS: Final[Mapping[str, tuple[Callable[[LoopReport, LoopStore], str], tuple[str, ...]]]] = {
    "md": (lambda report, _: page.render_markdown(report), (".md",)),
    "json": (lambda report, _: export.render_json(report), (".json",)),
    "csv": (lambda report, _: export.render_csv(report), (".csv",)),
    "html": (lambda report, store: page.render_html(report, changes=changes_of(store, report)), (".html", ".htm")),
    "junit": (lambda report, _: export.render_junit(report), (".xml",)),
}
"""What writes a format, and the suffixes of its files."""

_SUFFIXES: Final = {suffix: form for form, (_, suffixes) in _FORMATS.items() for suffix in suffixes}

_EPILOG = """\b
Examples:
  jumar report                    of the loop that runs, else of the newest
  jumar report --open             the whole story as a page
  jumar report -o report.html     the format follows the name
  jumar report readme-polish --format csv > iterations.csv"""


@click.command("report", epilog=_EPILOG)
@loop_argument
@click.option("--format", "form", type=click.Choice(list(_FORMATS)), help="Default: the file's suffix with -o, else md.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write here, not to stdout."
)
@click.option("--open", "opened", is_flag=True, help="Show it as a page in the browser; written to -o, else a temporary file.")
@standard_options
def report_command(
    loop: str | None, form: str | None, output: Path | None, root: Path, *, opened: bool, as_json: bool, quiet: bool
) -> int:
    """Print a loop's report: summary, quality table, why this one was selected, degradation, recommendations.

    --json is --format json; with -o, stdout then says in JSON what was written.
    """
    if opened and form not in {None, "html"}:
        raise UsageError(f"--open shows a page, and --format {form} is none; leave one of them out")
    if opened and output is None:
        output, form = new_page(), "html"
    chosen = choose_format("html" if opened else form, output, _SUFFIXES, default="md", as_json=as_json)
    store = open_loop(root, loop)
    text = _FORMATS[chosen][0](load_report(store), store)
    if chosen != "json":  # there names of files lead to them
        text = redacted(text) if chosen == "html" else current().redact(text)
    refresh_if_free(store)
    write_document(text, output, chosen, of={"loop_id": store.loop_id}, for_people="md", as_json=as_json, quiet=quiet)
    if opened and output is not None and not show_page(output) and not quiet:
        print_line("note", "no browser could be started here; open the file in one", err=True)
    return 0
