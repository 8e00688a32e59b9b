"""``jumar learn report``: the whole story of a learning run as a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jumar.cli.common import json_option, quiet_option
from jumar.cli.learn.status import output_argument
from jumar.cli.terminal.output import choose_format, write_document

if TYPE_CHECKING:
    from jumar.learning.report.view import LearningReport

FORMATS = ("markdown", "json", "html")
_SUFFIXES = {".md": "markdown", ".json": "json", ".html": "html", ".htm": "html"}

_EPILOG = """\b
Examples:
  jumar learn report outputs/
  jumar learn report outputs/ -o report.html        the format follows the name"""


@click.command("report", epilog=_EPILOG)
@output_argument
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: the file's suffix with -o, else markdown.")
@click.option(
    "-o", "--output", "target", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write here, not to stdout."
)
@json_option
@quiet_option
def report_command(output: Path, form: str | None, target: Path | None, *, as_json: bool, quiet: bool) -> int:
    """Print a learning run's report: the verdict, the course of the figures, every decision with its reason, the set.

    DIR is the --output of `jumar learn`. --json is --format json; with -o, stdout then says in JSON what was written.
    """
    from jumar.learning.run.read import read_report

    chosen = choose_format(form, target, _SUFFIXES, default="markdown", as_json=as_json)
    report = read_report(output)
    text = _rendered(report, chosen)
    write_document(text, target, chosen, of={"run": str(output)}, for_people="markdown", as_json=as_json, quiet=quiet)
    return 0


def _rendered(report: LearningReport, form: str) -> str:
    if form == "json":
        from jumar.learning.report.document import render_json as render
    elif form == "html":
        from jumar.learning.report.html import render_html as render
    else:
        from jumar.learning.report.markdown import render_markdown as render
    return render(report)
