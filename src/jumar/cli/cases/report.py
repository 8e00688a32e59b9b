"""``jumar cases report``: the whole story of a run, or of a recording, as a document."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cases.report import ChainReport, load_run
from jumar.cases.report.render import render_html, render_json, render_markdown
from jumar.cases.run_store import RunReader
from jumar.cli.cases import order_options, run_argument, run_directory, selection
from jumar.cli.common import json_option, quiet_option, root_option
from jumar.cli.terminal.output import choose_format, write_document
from jumar.core.text import escape
from jumar.errors import UsageError

_RENDERERS = {"markdown": render_markdown, "html": render_html, "json": render_json}
FORMATS = tuple(_RENDERERS)
_SUFFIXES = {".md": "markdown", ".html": "html", ".htm": "html", ".json": "json"}

_EPILOG = """\b
Examples:
  jumar cases report nightly
  jumar cases report nightly -o report.html        the format follows the name
  jumar cases report ./recorded --best-order overall -o report.html

RUN is an id below --root, its unique beginning, or a directory: a run's, or one of recorded iterations (iter_0001/judge/*.json);
the --best options and --key are for those."""


@click.command("report", epilog=_EPILOG)
@run_argument
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: the file's suffix with -o, else markdown.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write here, not to stdout."
)
@order_options
@root_option
@json_option
@quiet_option
def report_command(
    run: str,
    form: str | None,
    output: Path | None,
    best_order: str | None,
    best_tiebreak: str | None,
    keys: tuple[str, ...],
    root: Path,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    """Print a run's report: the matrix of cases and iterations, what was carried where, and why each best is the best.

    --json is --format json; with -o, stdout then says in JSON what was written.
    """
    chosen = choose_format(form, output, _SUFFIXES, default="markdown", as_json=as_json)
    text = _RENDERERS[chosen](_report(run_directory(root, run), best_order, best_tiebreak, keys))
    write_document(text, output, chosen, of={"run": run}, for_people="markdown", as_json=as_json, quiet=quiet)
    return 0


def _report(directory: Path, best_order: str | None, best_tiebreak: str | None, keys: tuple[str, ...]) -> ChainReport:
    if (directory / "run.json").exists():
        given = [
            name for name, value in (("--best-order", best_order), ("--best-tiebreak", best_tiebreak), ("--key", keys)) if value
        ]
        if given:
            raise UsageError(
                f"{' and '.join(given)}: a run is reported by the order that it was made with; "
                f"`jumar cases replay {escape(str(directory))}` shows what another one would choose"
            )
        return load_run(RunReader(directory))
    return selection(directory, best_order, best_tiebreak, keys)()
