"""``jumar cases replay``: which iterations a selection would have chosen, from judge's files that are there already."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cases.report import ChainReport
from jumar.cases.report.render import replay_document
from jumar.cases.report.words import case_lines, handover_sentence, origin_text, value_text
from jumar.cli.cases import complete_directory, iteration_number, order_options, run_directory, selection
from jumar.cli.common import json_option, print_json, print_line, print_text, quiet_option, root_option
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.text import escape
from jumar.errors import NothingEvaluatedError

_EPILOG = """\b
Examples:
  jumar cases replay recorded
  jumar cases replay recorded --best-order overall,accuracy --json
  jumar cases replay recorded --key cost=usage.cost --best-order accuracy,-cost

Exit code: 0, or 12 when no case has an iteration with a usable score."""


@click.command("replay", epilog=_EPILOG)
@click.argument("directory", metavar="DIR", shell_complete=complete_directory)
@order_options
@root_option
@json_option
@quiet_option
def replay_command(
    directory: str,
    best_order: str | None,
    best_tiebreak: str | None,
    keys: tuple[str, ...],
    root: Path,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    """Say which iteration of each case would have been selected, and what the last one was.

    DIR holds recorded iterations (iter_0001/judge/*.json) at any depth; the id of a run does too. Nothing is written, nothing is
    run.
    """
    named = Path(directory) if Path(directory).is_dir() else run_directory(root, directory)
    report = selection(named, best_order, best_tiebreak, keys)()
    if as_json:
        print_json(replay_document(report))
    else:
        _print(report, quiet=quiet)
    if any(case.best is not None for case in report.cases):
        return 0
    print_text("jumar: no case has an iteration with a usable score", err=True)
    return NothingEvaluatedError.exit_code


def _print(report: ChainReport, *, quiet: bool) -> None:
    _print_choices(report)
    if quiet:
        return
    print_text("")
    for case in report.cases:
        best, *rest = case_lines(report, case)
        last = next((line for line in rest if line.startswith("The last")), "")
        print_line(f"case {case.number}", f"{escape(best)}{f'. {escape(last)}' if last else ''}.")
    for handed in report.handovers:
        if handed.poisoned:
            print_line("carried", escape(handover_sentence(report, handed)))


def _print_choices(report: ChainReport) -> None:
    """Print a line a case: best, last, and what the best scored; what the last scored is said below the table."""
    columns = [Column(name="case", right=True), Column(name="best", right=True), Column(name="last", right=True)]
    columns += [Column(name=name, right=True) for name in report.keys]
    columns += [Column(name="started from", fold=True)]
    rows: list[TableRow] = []
    for case in report.cases:
        cells = (
            f"{case.number}",
            iteration_number(case.best),
            iteration_number(case.last),
            *(value_text(None if case.best is None else case.best.values.get(name)) for name in report.keys),
            origin_text(case.origin),
        )
        rows.append(TableRow(cells=cells, style="red" if case.best is None else ""))
    print_table(columns, rows)
