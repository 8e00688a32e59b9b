"""``jumar export``: one row an iteration, for pandas, Polars and what reads Parquet."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cli.common import loop_argument, open_loop, standard_options
from jumar.cli.terminal.output import choose_format, write_file
from jumar.core.text import escape
from jumar.errors import UsageError
from jumar.loop.report.dataframe import SUFFIXES, need_format, render_rows
from jumar.loop.report.read import load_report

_EPILOG = """\b
Examples:
  jumar export -o runs.parquet    of the loop that runs, else of the newest; needs jumar[parquet]
  jumar export readme-polish -o readme-polish.csv
  jumar export -o runs.json"""


@click.command("export", epilog=_EPILOG)
@loop_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    required=True,
    help="Write here; its suffix says how: .csv, .parquet or .json.",
)
@standard_options
def export_command(loop: str | None, output: Path, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Write a loop as a table, one row an iteration: score, dimensions, tests, cost, times, changes, note.

    The columns and their types are the same for every loop; its dimensions follow. What is not known is empty, never 0.
    """
    if output.suffix.lower() not in SUFFIXES:
        raise UsageError(f"-o {escape(output.name)}: give the file a name that ends in {', '.join(SUFFIXES)}")
    form = choose_format(None, output, SUFFIXES, default="", as_json=as_json)
    need_format(form)
    store = open_loop(root, loop, tell=not (quiet or as_json))
    data = render_rows(form, store, load_report(store))
    write_file(data, output, form, of={"loop_id": store.loop_id}, as_json=as_json, quiet=quiet)
    return 0
