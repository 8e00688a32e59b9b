"""A chain of cases as markdown: the matrix, what was carried where, why each best is the best, what failed."""

from __future__ import annotations

from typing import Final

from jumar.cases.report.read import CaseReport, ChainReport
from jumar.cases.report.words import (
    STATE_WORDS,
    case_lines,
    cell_state,
    cost_text,
    failure_lines,
    handover_sentence,
    lead,
    origin_text,
    report_name,
    signed_text,
    stopped_text,
    value_text,
)
from jumar.core.rendering.figures import UNKNOWN, duration
from jumar.core.rendering.markdown import inline, row
from jumar.core.text import plural

__all__ = ["MOST_IN_FULL", "render_markdown", "told_in_full"]

MOST_IN_FULL: Final = 50
"""Of more cases than this, only those are told in full that failed somewhere, lost something or were handed something worse."""

_MOST_FAILURES: Final = 200


def render_markdown(report: ChainReport) -> str:
    """Return the report, ending with a line feed. Names inside cannot change its structure."""
    sections = [_head(report), _matrix(report), _carried(report), _rationale(report), _failures(report)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _head(report: ChainReport) -> list[str]:
    made = sum(len(case.iterations) for case in report.cases)
    ties = ", ".join(report.order.tie_breaks) or "earlier_iter"
    lines = [
        f"# Case report: {inline(report_name(report))}",
        "",
        f"{lead(report)}{_poison_lead(report)}",
        "",
        row(("Metric", "Value")),
        "|--------|-------|",
        row(("Cases", f"{len(report.cases):,}")),
        row(("Iterations", f"{made:,}")),
        row(("Order", inline(f"{', '.join(report.order.words)}; between equals {ties}"))),
        row(("Time", duration(report.paid.seconds))),
        row(("Cost", cost_text(report.paid))),
    ]
    return lines if report.created_at is None else [*lines, row(("Begun", inline(report.created_at)))]


def _poison_lead(report: ChainReport) -> str:
    count = len(report.poisoned)
    return f" {plural(count, 'case')} started from something worse than what was there." if count else ""


def _matrix(report: ChainReport) -> list[str]:
    numbers = range(1, report.columns + 1)
    keys = " / ".join(inline(name) for name in report.keys)
    columns = (
        "Case",
        *(str(number) for number in numbers),
        "Best",
        "Last",
        "Best − last",
        "Started from",
        "Ended",
        "Time",
        "Cost",
    )
    return [
        "## Cases and iterations",
        "",
        f"Each cell has {keys}. ★ best, → carried into a later case, ✗ failed, ! no usable score, · not evaluated.",
        "",
        row(columns),
        "|" + "---|" * len(columns),
        *(_case_row(report, case, numbers) for case in report.cases),
    ]


def _case_row(report: ChainReport, case: CaseReport, numbers: range) -> str:
    name = f"{case.number}" if case.case_id == f"case{case.number}" else f"{case.number} {inline(case.case_id)}"
    behind = " / ".join(signed_text(case.behind.get(key)) for key in report.keys) if case.behind else UNKNOWN
    return row(
        (
            name,
            *(_cell(report, case, number) for number in numbers),
            UNKNOWN if case.best is None else str(case.best.number),
            UNKNOWN if case.last is None else str(case.last.number),
            behind,
            origin_text(case.origin),
            stopped_text(case),
            duration(case.paid.seconds),
            cost_text(case.paid),
        )
    )


def _cell(report: ChainReport, case: CaseReport, number: int) -> str:
    state, found = cell_state(case, number), case.iteration(number)
    carried = any(one.source == case.number and one.carried == number for one in report.handovers)
    marks = ("★ " if case.best is not None and case.best.number == number else "") + ("→ " if carried else "")
    if state == "ok" and found is not None:
        return marks + " / ".join(value_text(found.values.get(key)) for key in report.keys)
    sign = {"failed": "✗", "invalid": "!", "pending": "…"}.get(state)
    return "·" if sign is None else f"{marks}{sign} {STATE_WORDS[state]}"


def _carried(report: ChainReport) -> list[str]:
    lines = ["## What was carried", ""]
    if not report.handovers:
        return [*lines, "Nothing was carried from one case into another."]
    poisoned = [f"- {inline(handover_sentence(report, one))}" for one in report.poisoned]
    others = [f"- {inline(handover_sentence(report, one))}" for one in report.handovers if not one.poisoned]
    if poisoned:
        lines += ["### Poisoned carry-over", "", *poisoned]
    if poisoned and others:
        lines += ["", "### The best was carried", ""]
    return lines + others


def _rationale(report: ChainReport) -> list[str]:
    shown = told_in_full(report)
    lines = ["## Why these"]
    if len(shown) < len(report.cases):
        lines += ["", f"{len(shown):,} of {plural(len(report.cases), 'case')}: those in which something went wrong or was lost."]
    for case in shown:
        lines += ["", f"### Case {case.number}", "", *(f"- {inline(line)}" for line in case_lines(report, case))]
    return lines


def told_in_full(report: ChainReport) -> list[CaseReport]:
    """Return the cases that a report tells in full: all of a few, of many those in which something went wrong."""
    if len(report.cases) <= MOST_IN_FULL:
        return list(report.cases)
    concerned = {number for one in report.poisoned for number in (one.source, one.target)}
    return [case for case in report.cases if case.ranking.invalid or case.number in concerned][:MOST_IN_FULL]


def _failures(report: ChainReport) -> list[str]:
    found = [(case.number, number, said) for case in report.cases for number, said in failure_lines(case)]
    if not found:
        return []
    lines = ["## What failed", ""]
    lines += [f"- Case {case}, iteration {number}: {inline(said)}" for case, number, said in found[:_MOST_FAILURES]]
    rest = len(found) - _MOST_FAILURES
    return [*lines, f"- … and {rest:,} more; the JSON report has all of them"] if rest > 0 else lines
