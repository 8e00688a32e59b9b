"""``jumar cases show``: a run's cases and their iterations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from jumar.cases.report import CaseReport, ChainReport, load_run
from jumar.cases.report.render import to_json
from jumar.cases.report.words import (
    Cell,
    case_lines,
    cost_text,
    failure_lines,
    handover_sentence,
    matrix,
    origin_text,
    stopped_text,
    value_text,
)
from jumar.cases.run_store import RunReader
from jumar.cli.cases import iteration_number, open_run, run_argument
from jumar.cli.common import json_option, print_json, print_line, print_text, quiet_option, root_option, shown_path
from jumar.cli.terminal.output import Column, TableRow, print_table, print_title
from jumar.core.lock import who_holds
from jumar.core.rendering.figures import UNKNOWN, duration
from jumar.core.text import escape, plural

_EPILOG = """\b
Examples:
  jumar cases show nightly
  jumar cases show .jumar/runs/run_nightly --json

RUN is an id below --root, its unique beginning, or a run's directory."""


@click.command("show", epilog=_EPILOG)
@run_argument
@root_option
@json_option
@quiet_option
def show_command(run: str, root: Path, *, as_json: bool, quiet: bool) -> int:
    """Show a run's cases: the score of each iteration, the best (★), what was carried (→), and how each case ended.

    An iteration that was never made is a dot; one that failed says so.
    """
    reader = open_run(root, run)
    report = load_run(reader)
    if as_json:
        print_json(_document(report))
        return 0
    _print(report, quiet=quiet)
    if not quiet and _is_left(reader, report):
        print_line("resume", f"jumar cases run --resume --run-id {escape(reader.run_id)}; nobody works on it now")
    return 0


def _is_left(reader: RunReader, report: ChainReport) -> bool:
    """Return whether a case has not ended, and no process holds the run or one of its cases."""
    locks = [reader.paths.lock, *(reader.case(case.number).paths.lock for case in report.cases)]
    return any(case.end is None for case in report.cases) and not any(who_holds(lock) is not None for lock in locks)


def _document(report: ChainReport) -> dict[str, Any]:
    whole = to_json(report)
    return {
        name: whole[name] for name in ("run_id", "run_dir", "created_at", "order", "tie_breaks", "max_iters", "spend", "cases")
    }


def _print(report: ChainReport, *, quiet: bool) -> None:
    if not quiet:
        made = sum(len(case.iterations) for case in report.cases)
        spent = [plural(len(report.cases), "case"), plural(made, "iteration"), duration(report.paid.seconds)]
        cost = cost_text(report.paid)
        print_title(f"jumar cases show · {report.run_id}", " · ".join([*spent, *([] if cost == UNKNOWN else [cost])]))
    _print_cases(report)
    if quiet:
        return
    print_text("")
    for case in report.cases:
        print_line(f"case {case.number}", f"{escape(case_lines(report, case)[0])}.")
        for number, reason in failure_lines(case):
            print_line("", f"iteration {number}: {escape(reason)}")
        if case.record is not None and case.record.not_carried is not None:
            print_line("", f"Not carried: {escape(case.record.not_carried)}.")
    for handed in report.handovers:
        print_line("carried", escape(handover_sentence(report, handed)))
    print_line("run", shown_path(Path(report.directory)))


_WIDEST = 20  # iterations across; beyond that only the best and the last are shown


def _print_cases(report: ChainReport) -> None:
    """Print the matrix of cases and iterations by the first key of the order, with what each started from and how it ended."""
    across = report.columns if report.columns <= _WIDEST else 0
    columns = [Column(name="case"), *(Column(name=f"it {number}") for number in range(1, across + 1))]
    columns += [Column(name="best", right=True), Column(name="last", right=True)]
    columns += [Column(name="ended"), Column(name="started from", fold=True)]
    print_table(columns, [_row(report, case, cells[:across]) for case, cells in matrix(report)])


def _row(report: ChainReport, case: CaseReport, cells: Sequence[Cell]) -> TableRow:
    texts = (
        f"{case.number} {case.case_id}" if case.case_id != f"case{case.number}" else f"{case.number}",
        *(_cell_text(report, cell) for cell in cells),
        iteration_number(case.best),
        iteration_number(case.last),
        stopped_text(case),
        origin_text(case.origin),
    )
    return TableRow(cells=texts, style="red" if case.iterations and case.best is None else "")


def _cell_text(report: ChainReport, cell: Cell) -> str:
    if cell.state != "ok":
        return "·" if cell.state == "absent" else cell.word
    return f"{'★' if cell.best else ''}{'→' if cell.handovers else ''}{value_text(cell.values.get(report.keys[0]))}"
