"""``jumar cases list``: the runs of cases that there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jumar.cases.layout import list_runs
from jumar.cases.run_store import RunReader
from jumar.cli.common import json_option, print_json, print_text, quiet_option, root_option
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.text import escape
from jumar.errors import StoreDamagedError
from jumar.loop.store.layout import runs_directory

_EPILOG = """\b
Examples:
  jumar cases list
  jumar cases list --root project/.jumar --json"""


@click.command("list", epilog=_EPILOG)
@root_option
@json_option
@quiet_option
def list_command(root: Path, *, as_json: bool, quiet: bool) -> None:
    """List the runs of cases below the root, newest first."""
    directory = runs_directory(root)
    runs = sorted(
        (_summary(directory, run_id) for run_id in list_runs(directory)), key=lambda run: run["created_at"], reverse=True
    )
    if as_json:
        print_json({"runs": runs})
    elif runs:
        columns = [Column(name="run"), Column(name="state"), Column(name="cases", right=True), Column(name="begun")]
        print_table(columns, [TableRow(cells=_cells(run)) for run in runs])
    elif not quiet:
        print_text(f"no runs of cases in {escape(str(directory))}; `jumar cases run` makes one, `jumar list` shows loops")


def _summary(directory: Path, run_id: str) -> dict[str, Any]:
    path = directory / f"run_{run_id}"
    summary: dict[str, Any] = {"run_id": run_id, "run_dir": str(path.absolute()), "created_at": "", "cases": 0, "ended": 0}
    try:
        run = RunReader(path)
        ended = sum(run.case(number).end() is not None for number in run.case_ids)
    except StoreDamagedError as error:
        return {**summary, "damaged": str(error)}
    return {**summary, "created_at": run.created_at, "cases": len(run.case_ids), "ended": ended}


def _cells(run: dict[str, Any]) -> tuple[str, ...]:
    if "damaged" in run:
        return run["run_id"], "damaged: jumar cases verify", "", ""
    state = "ended" if run["ended"] == run["cases"] else "unfinished"
    return run["run_id"], state, f"{run['ended']} of {run['cases']}", run["created_at"]
