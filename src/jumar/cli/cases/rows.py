"""Tables of cases on the terminal."""

from __future__ import annotations

from jumar.cases.records import CaseIteration
from jumar.cases.report.read import CaseReport, ChainReport
from jumar.cases.report.words import STATE_WORDS, cell_state, origin_text, stopped_text, value_text
from jumar.cli.terminal.tabular import Column, Row, print_table
from jumar.core.rendering.figures import UNKNOWN

__all__ = ["print_cases", "print_choices"]

_WIDEST = 20  # iterations across; beyond that only the best and the last are shown


def print_choices(report: ChainReport) -> None:
    """Print a line a case: best, last, and what the best scored; what the last scored is said below the table."""
    columns = [Column(name="case", right=True), Column(name="best", right=True), Column(name="last", right=True)]
    columns += [Column(name=name, right=True) for name in report.keys]
    columns += [Column(name="started from", fold=True)]
    rows: list[Row] = []
    for case in report.cases:
        cells = (
            f"{case.number}",
            _number(None if case.best is None else case.best.number),
            _number(None if case.last is None else case.last.number),
            *_values(report, case.best),
            origin_text(case.origin),
        )
        rows.append(Row(cells=cells, style="red" if case.best is None else ""))
    print_table(columns, rows)


def _values(report: ChainReport, one: CaseIteration | None) -> list[str]:
    return [value_text(None if one is None else one.values.get(name)) for name in report.keys]


def print_cases(report: ChainReport) -> None:
    """Print the matrix of cases and iterations by the first key of the order, with what each started from and how it ended."""
    across = range(1, report.columns + 1) if report.columns <= _WIDEST else ()
    columns = [Column(name="case"), *(Column(name=f"it {number}") for number in across)]
    columns += [Column(name="best", right=True), Column(name="last", right=True)]
    columns += [Column(name="ended"), Column(name="started from", fold=True)]
    rows = [_row(report, case, across) for case in report.cases]
    print_table(columns, rows)


def _row(report: ChainReport, case: CaseReport, across: range | tuple[()]) -> Row:
    cells = (
        f"{case.number} {case.case_id}" if case.case_id != f"case{case.number}" else f"{case.number}",
        *(_cell(report, case, number) for number in across),
        _number(None if case.best is None else case.best.number),
        _number(None if case.last is None else case.last.number),
        stopped_text(case),
        origin_text(case.origin),
    )
    return Row(cells=cells, style="red" if case.iterations and case.best is None else "")


def _cell(report: ChainReport, case: CaseReport, number: int) -> str:
    state, found = cell_state(case, number), case.iteration(number)
    if state == "absent":
        return "·"
    if found is None or state != "ok":
        return STATE_WORDS[state]
    marks = ("★" if case.best is not None and case.best.number == number else "") + (
        "→" if any(one.source == case.number and one.carried == number for one in report.handovers) else ""
    )
    return f"{marks}{value_text(found.values.get(report.keys[0]))}"


def _number(number: int | None) -> str:
    return UNKNOWN if number is None else str(number)
