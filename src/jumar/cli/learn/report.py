"""``jumar learn report``: the whole story of a learning run as a document."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cli.common import json_option, quiet_option
from jumar.cli.learn.status import output_argument
from jumar.cli.terminal.output import choose_format, write_document

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
    from jumar.learning.report.render import render_html, render_json, render_markdown
    from jumar.learning.run.read import read_report

    chosen = choose_format(form, target, _SUFFIXES, default="markdown", as_json=as_json)
    text = {"json": render_json, "html": render_html, "markdown": render_markdown}[chosen](read_report(output))
    write_document(text, target, chosen, of={"run": str(output)}, for_people="markdown", as_json=as_json, quiet=quiet)
    return 0
