"""A chain of cases as markdown and as one self-contained page. The templates hold the words, this module what they show."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from jumar.cases.report import words
from jumar.cases.report.read import CaseReport, ChainReport
from jumar.cases.report.words import STATE_WORDS, Cell
from jumar.core.rendering import figures
from jumar.core.rendering.html import block, render_page, render_text
from jumar.core.version import __version__

__all__ = ["MOST_ARROWS", "MOST_IN_FULL", "render_html", "render_markdown"]

MOST_ARROWS: Final = 60
"""Of more cases than this no arrows are drawn between the rows; each row says what its case started from all the same."""

MOST_IN_FULL: Final = 50
"""Of more cases than this, only those are told in full that failed somewhere, lost something or were handed something worse."""

_PACKAGE: Final = "jumar.cases.report"
_MOST_FAILURES: Final = 200
_MOST_SENTENCES: Final = 50
_TINTS: Final = 5
_TAIL: Final = 4000


def render_markdown(report: ChainReport) -> str:
    """Return the report as markdown, ending with a line feed. Names inside cannot change its structure."""
    return render_text("cases.md.j2", _page(report), package=_PACKAGE)


def render_html(report: ChainReport) -> str:
    """Return the page as HTML. Of many cases the matrix has all, the texts those in which something went wrong."""
    page = _page(report)
    page |= {
        "title": functools.partial(_title, report),
        "tint": _tint(report),
        "arrow": functools.partial(_arrow, report),
        "arrows": len(report.cases) <= MOST_ARROWS,
        "tail": _tail,
        "signs": {cell.state: cell.sign for _, cells in page["matrix"] for cell in cells},
        "poisoned": {handover.target for handover in report.poisoned},
        "most_sentences": _MOST_SENTENCES,
    }
    return render_page("cases.html.j2", page, package=_PACKAGE, styles=("report.css", "cases.css"))


def _page(report: ChainReport) -> dict[str, Any]:
    failures = [(case, number, reason) for case in report.cases for number, reason in words.failure_lines(case)]
    return {
        "report": report,
        "words": words,
        "figures": figures,
        "version": __version__,
        "made": [iteration for case in report.cases for iteration in case.iterations],
        "matrix": words.matrix(report),
        "others": [handover for handover in report.handovers if not handover.poisoned],
        "told": _told_in_full(report),
        "failures": failures[:_MOST_FAILURES],
        "failures_left_out": max(0, len(failures) - _MOST_FAILURES),
    }


def _told_in_full(report: ChainReport) -> list[CaseReport]:
    """Return the cases that a report tells in full: all of a few, of many those in which something went wrong."""
    if len(report.cases) <= MOST_IN_FULL:
        return list(report.cases)
    concerned = {number for handover in report.poisoned for number in (handover.source, handover.target)}
    return [case for case in report.cases if case.ranking.invalid or case.number in concerned][:MOST_IN_FULL]


def _tint(report: ChainReport) -> Callable[[Cell], int]:
    """Return how strong a cell is coloured: by the first key of the order, from the worst to the best value of all cases."""
    key = report.order.keys[0]
    made = (iteration for case in report.cases for iteration in case.iterations if iteration.status == "ok")
    values = [value for iteration in made if (value := iteration.values.get(key.name)) is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)

    def tint(cell: Cell) -> int:
        value = cell.values.get(key.name)
        if value is None or high == low:
            return _TINTS // 2
        share = (value - low) / (high - low)
        return round((share if key.direction == "max" else 1 - share) * (_TINTS - 1))

    return tint


def _title(report: ChainReport, cell: Cell) -> str:
    text = words.values_text(cell.values, report.keys) if cell.state == "ok" else STATE_WORDS[cell.state]
    if cell.iteration is not None and cell.iteration.reason:
        text = f"{text}: {cell.iteration.reason}"
    return text + ("; best" if cell.best else "") + (f"; carried into {_into(cell)}" if cell.handovers else "")


def _into(cell: Cell) -> str:
    """Return which cases an iteration was carried into."""
    *before, last = (str(handover.target) for handover in cell.handovers)
    return f"cases {', '.join(before)} and {last}" if before else f"case {last}"


def _arrow(report: ChainReport, case: CaseReport, cells: list[Cell], cell: Cell) -> tuple[str, str]:
    """Return what stands below a cell and its kind, where the case handed something on; two empty texts for nothing."""
    if cell.handovers:
        worse = any(handover.poisoned for handover in cell.handovers)
        return f"↓ into {_into(cell)}", "worse" if worse else "down"
    if cell.best and any(handover.poisoned for each in cells for handover in each.handovers):
        return "★ not carried", "missed"
    is_last = case.last is not None and cell.number == case.last.number
    if is_last and case.behind and any(case.behind.get(key) != 0 for key in report.keys):
        return "last, not carried", "spared"
    return "", ""


def _tail(case: CaseReport, number: int) -> str:
    """Return the end of what the last step that failed printed, empty when it printed nothing."""
    iteration = case.iteration(number)
    failed = [step.output_tail for step in iteration.steps if step.outcome != "ok"] if iteration else []
    tails = [tail for tail in failed if tail.strip()]
    return block(tails[-1][-_TAIL:]) if tails else ""
