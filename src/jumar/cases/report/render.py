"""A chain of cases as JSON, as markdown and as one self-contained page. The templates hold the words, this module what they show.

Scores in JSON carry the names of ``best.json``; unknown is None.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from jumar.cases.records import CaseIteration, shown_ranking
from jumar.cases.report import CaseReport, ChainReport, Handover, Origin, words
from jumar.cases.report.words import STATE_WORDS, Cell, case_lines, cell_state, handover_sentence
from jumar.core import __version__
from jumar.core.codec import FORMAT
from jumar.core.rendering import figures
from jumar.core.rendering.html import DOCUMENT, Layout, block, render_page, render_text

MOST_ARROWS: Final = 60
"""Of more cases than this no arrows are drawn between the rows; each row says what its case started from all the same."""

MOST_IN_FULL: Final = 50
"""Of more cases than this, only those are told in full that failed somewhere, lost something or were handed something worse."""

_PACKAGE: Final = "jumar.cases.report"
_MOST_FAILURES: Final = 200
_MOST_SENTENCES: Final = 50
_TINTS: Final = 5
_TAIL: Final = 4000


def render_json(report: ChainReport) -> str:
    """Return :func:`to_json` as strict JSON (ASCII, no NaN) that ends with a line feed."""
    return json.dumps(to_json(report), allow_nan=False, indent=2) + "\n"


def to_json(report: ChainReport) -> dict[str, Any]:
    """Return everything that the other renderings are made from."""
    return {
        "format": FORMAT,
        "run_id": report.run_id,
        "run_dir": report.directory,
        "created_at": report.created_at,
        "order": list(report.order.words),
        "tie_breaks": list(report.order.tie_breaks),
        "max_iters": report.planned,
        "spend": asdict(report.paid),
        "cases": [case_document(report, case) for case in report.cases],
        "handovers": [_handover(report, handover) for handover in report.handovers],
        "config": dict(report.config),
    }


def case_document(report: ChainReport, case: CaseReport) -> dict[str, Any]:
    """Return one case with all its records. ``best_iter`` is that of its ``best.json``, once there is one."""
    choice = _choice(report, case)
    by_order = {name: choice.pop(name) for name in ("runner_up", "margin", "decided_by", "explanation")}
    by_order = {"best_iter": choice["best_iter"], "ranking": choice["ranking"], **by_order}
    if case.record is not None:
        choice |= {"best_iter": case.record.best_iter, "ranking": shown_ranking(case.record.values)}
    return {
        **choice,
        "by_order": by_order,
        "case_id": case.case_id,
        "selected_by": None if case.record is None else case.record.selected_by,
        "not_evaluated": [n for n in range(1, report.columns + 1) if cell_state(case, n) == "absent"],
        "pending": case.pending,
        "spend": asdict(case.paid),
        "rationale": case_lines(report, case),
        "iterations": [iteration.to_json() for iteration in case.iterations],
        "inputs": None if case.inputs is None else case.inputs.to_json(),
        "best": None if case.record is None else case.record.to_json(),
        "stopped_by": None if case.end is None else case.end.stopped_by,
        "end": None if case.end is None else case.end.to_json(),
    }


def replay_document(report: ChainReport) -> dict[str, Any]:
    """Return what a selection would have chosen in each case, and what the last iteration was."""
    return {
        "cases": [
            {**_choice(report, case), "iterations": [_iteration(iteration) for iteration in case.iterations]}
            for case in report.cases
        ]
    }


def _choice(report: ChainReport, case: CaseReport) -> dict[str, Any]:
    best, last, ranking = case.best, case.last, case.ranking
    return {
        "case": case.number,
        "best_iter": None if best is None else best.number,
        "last_iter": None if last is None else last.number,
        "ranking": None if best is None else shown_ranking(best.values),
        "last_ranking": None if last is None else shown_ranking(last.values),
        "order": list(report.order.words),
        "runner_up": ranking.runner_up,
        "margin": ranking.margin,
        "decided_by": ranking.decided_by,
        "explanation": ranking.explanation,
        "best_minus_last": shown_ranking(case.behind),
        "carried_from": _origin(case.origin),
        "started_from": case.origin.kind,
        "invalid": [{"iteration": view.number, "reason": view.reason} for view in ranking.invalid],
    }


def _origin(origin: Origin) -> Mapping[str, Any] | None:
    if origin.kind != "carried":
        return None
    return {
        "case": origin.case,
        "iter": origin.iteration,
        "selected_by": origin.selected_by,
        "roles": list(origin.roles),
        "by_hash": origin.by_hash,
    }


def _iteration(iteration: CaseIteration) -> dict[str, Any]:
    return {
        "iteration": iteration.number,
        "status": iteration.status,
        "reason": iteration.reason,
        "ranking": shown_ranking(iteration.values),
        "diff": iteration.diff,
    }


def _handover(report: ChainReport, handover: Handover) -> dict[str, Any]:
    return {
        "from_case": handover.source,
        "to_case": handover.target,
        "carried_iter": handover.carried,
        "best_iter": handover.best,
        "last_iter": handover.last,
        "best_minus_carried": shown_ranking(handover.lost),
        "poisoned": handover.poisoned,
        "sentence": handover_sentence(report, handover),
    }


def render_markdown(report: ChainReport) -> str:
    """Return the report as markdown, ending with a line feed. Names inside cannot change its structure."""
    return render_text("cases.md.j2", _page(report), package=_PACKAGE)


def render_html(report: ChainReport, layout: Layout = DOCUMENT) -> str:
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
    return render_page("cases.html.j2", page, package=_PACKAGE, styles=("report.css", "cases.css"), layout=layout)


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
