"""A chain of cases as one self-contained page; see :mod:`jumar.core.rendering.html`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jumar.cases.report.markdown import told_in_full
from jumar.cases.report.read import CaseReport, ChainReport, Handover
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
    values_text,
)
from jumar.core.rendering.figures import UNKNOWN, count, duration
from jumar.core.rendering.html import block, render_page
from jumar.core.text import plural
from jumar.core.version import __version__

__all__ = ["MOST_ARROWS", "render_html"]

MOST_ARROWS: Final = 60
"""Of more cases than this no arrows are drawn between the rows; each row says what its case started from all the same."""

_MOST_SENTENCES: Final = 50
_MOST_FAILURES: Final = 200
_OPEN: Final = 6
_TINTS: Final = 5
_TAIL: Final = 4000
_TIES: Final = {"earlier_iter": "the earlier", "smaller_diff": "the smaller diff"}
_SIGNS: Final = {"failed": "✗", "invalid": "!", "pending": "…"}


def render_html(report: ChainReport) -> str:
    """Return the page as HTML. Of many cases the matrix has all, the texts those in which something went wrong."""
    return render_page("cases.html.j2", _page(report), styles=("report.css", "cases.css"))


def _page(report: ChainReport) -> Mapping[str, Any]:
    poisoned = report.poisoned
    others = [one for one in report.handovers if not one.poisoned]
    failures = [(case, number, said) for case in report.cases for number, said in failure_lines(case)]
    told = told_in_full(report)
    return {
        "name": report_name(report),
        "lead": lead(report),
        "good": any(case.best is not None for case in report.cases),
        "warning": f"{plural(len(poisoned), 'case')} started from something worse than what was there." if poisoned else "",
        "facts": _facts(report),
        "key_names": ", ".join(report.keys),
        "numbers": list(range(1, report.columns + 1)),
        "arrows": len(report.cases) <= MOST_ARROWS,
        "rows": _rows(report),
        "legend": _legend(report),
        "poisoned": [_poisoned(report, one) for one in poisoned[:_MOST_SENTENCES]],
        "carried": [handover_sentence(report, one) for one in others[:_MOST_SENTENCES]],
        "carried_left_out": f"{max(0, len(poisoned) - _MOST_SENTENCES) + max(0, len(others) - _MOST_SENTENCES):,}",
        "told": [_told(report, case, is_open=len(report.cases) <= _OPEN) for case in told],
        "told_left_out": f"{len(report.cases) - len(told):,}" if len(told) < len(report.cases) else "",
        "failures": [_failure(case, number, said) for case, number, said in failures[:_MOST_FAILURES]],
        "failures_left_out": f"{len(failures) - _MOST_FAILURES:,}" if len(failures) > _MOST_FAILURES else "",
        "footer": _footer(report),
    }


def _facts(report: ChainReport) -> list[dict[str, str]]:
    made = [one for case in report.cases for one in case.iterations]
    unscored = sum(one.status != "ok" for one in made)
    ties = ", then ".join(_TIES[name] for name in report.order.tie_breaks) or _TIES["earlier_iter"]
    handed, poisoned = len(report.handovers), len(report.poisoned)
    without = sum(case.best is None for case in report.cases)
    paid = report.paid
    cost, _, note = cost_text(paid).partition(" (")
    return [
        _fact("Cases", f"{len(report.cases):,}", f"{without:,} without a best" if without else "each with a best"),
        _fact("Iterations", f"{len(made):,}", f"{unscored:,} without a usable score" if unscored else "all with a usable score"),
        _fact("Carried forward", f"{handed:,}", f"{poisoned:,} worse than the best" if poisoned else "" if handed else "nothing"),
        _fact("Order", ", ".join(report.order.words), f"between equals: {ties}"),
        _fact("Time", duration(paid.seconds), plural(paid.step_runs, "step run") if paid.step_runs else "not recorded"),
        _fact("Cost", cost, note.rstrip(")") or (_tokens(report) if paid.cost_usd is not None else "not reported")),
    ]


def _tokens(report: ChainReport) -> str:
    return "tokens not reported" if report.paid.tokens is None else f"{count(report.paid.tokens)} tokens"


def _fact(name: str, value: str, small: str = "") -> dict[str, str]:
    return {"name": name, "value": value, "small": small}


# -------------------------------------------------------------------------------------------------------- the matrix


def _rows(report: ChainReport) -> list[dict[str, Any]]:
    tint = _Tint(report)
    arrows = len(report.cases) <= MOST_ARROWS
    handed: dict[int, list[Handover]] = {}
    for one in report.handovers:
        handed.setdefault(one.source, []).append(one)
    poisoned = {one.target for one in report.poisoned}
    return [
        {
            "case": f"{case.number}",
            "id": "" if case.case_id == f"case{case.number}" else case.case_id,
            "cells": [_cell(report, case, number, tint, handed.get(case.number, [])) for number in _columns(report)],
            "origin": origin_text(case.origin),
            "poisoned": case.number in poisoned,
            "behind": [(key, signed_text(case.behind.get(key))) for key in report.keys] if case.behind else [],
            "ended": stopped_text(case),
            "time": duration(case.paid.seconds),
            "cost": cost_text(case.paid).partition(" (")[0],
            "arrows": _arrows(report, case, handed.get(case.number, [])) if arrows else [],
        }
        for case in report.cases
    ]


def _columns(report: ChainReport) -> range:
    return range(1, report.columns + 1)


class _Tint:
    """How strong a cell is coloured: by the first key of the order, from the worst to the best value of all cases."""

    def __init__(self, report: ChainReport) -> None:
        self._key = report.order.keys[0]
        made = (one for case in report.cases for one in case.iterations if one.status == "ok")
        values = [value for one in made if (value := one.values.get(self._key.name)) is not None]
        self._low, self._high = min(values, default=0.0), max(values, default=0.0)

    def of(self, value: float | None) -> int:
        if value is None or self._high == self._low:
            return _TINTS // 2
        share = (value - self._low) / (self._high - self._low)
        return round((share if self._key.direction == "max" else 1 - share) * (_TINTS - 1))


def _cell(report: ChainReport, case: CaseReport, number: int, tint: _Tint, handed: Sequence[Handover]) -> dict[str, Any]:
    state, found = cell_state(case, number), case.iteration(number)
    best = case.best is not None and case.best.number == number
    targets = [one.target for one in handed if one.carried == number]
    said = STATE_WORDS[state] if found is None or state != "ok" else values_text(found.values, report.keys)
    notes = [*(["best"] if best else []), *([f"carried into {_into(targets)}"] if targets else [])]
    if found is not None and found.reason:
        said = f"{said}: {found.reason}"
    return {
        "state": state,
        "title": f"case {case.number}, iteration {number}: {said}{''.join(f'; {note}' for note in notes)}",
        "best": best,
        "carried": bool(targets),
        "tint": tint.of(found.values.get(report.keys[0])) if found is not None and state == "ok" else None,
        "sign": _SIGNS.get(state, ""),
        "word": STATE_WORDS[state],
        "value": value_text(found.values.get(report.keys[0])) if found is not None else "",
        "rest": " · ".join(value_text(found.values.get(key)) for key in report.keys[1:]) if found is not None else "",
    }


def _into(targets: Sequence[int]) -> str:
    if len(targets) == 1:
        return f"case {targets[0]}"
    return f"cases {', '.join(map(str, targets[:-1]))} and {targets[-1]}"


def _arrows(report: ChainReport, case: CaseReport, handed: Sequence[Handover]) -> list[dict[str, str]]:
    """What stands between a row and the next one, by column; empty when the case handed nothing on."""
    if not handed:
        return []
    found: list[dict[str, str]] = []
    carried = {one.carried for one in handed}
    worse = {one.carried for one in handed if one.poisoned}
    best = None if case.best is None else case.best.number
    last = None if case.last is None else case.last.number
    for number in _columns(report):
        text, kind = "", ""
        if number in carried:
            targets = [one.target for one in handed if one.carried == number]
            text, kind = f"↓ into {_into(targets)}", "worse" if number in worse else "down"
        elif number == best and worse:
            text, kind = "★ not carried", "missed"
        elif number == last and case.behind and any(case.behind.get(key) != 0 for key in report.keys):
            text, kind = "last, not carried", "spared"
        found.append({"text": text, "kind": kind})
    return found


def _legend(report: ChainReport) -> list[tuple[str, str, str]]:
    """The signs that the matrix has, with what they mean: kind, sign, words."""
    states = {cell_state(case, number) for case in report.cases for number in _columns(report)}
    known: list[tuple[str, str, str]] = [("best", "★", "best")]
    if report.handovers:
        known.append(("down", "↓", "carried into a later case"))
    known += [
        (state, _SIGNS.get(state, "·"), STATE_WORDS[state]) for state in ("invalid", "failed", "pending") if state in states
    ]
    return [*known, ("absent", "", STATE_WORDS["absent"])] if "absent" in states else known


# ---------------------------------------------------------------------------------------------------------- the texts


def _poisoned(report: ChainReport, handed: Handover) -> dict[str, Any]:
    source, target = report.case(handed.source), report.case(handed.target)
    given, best = source.iteration(handed.carried), source.best
    reached = (
        ""
        if target.best is None
        else f"Case {target.number} then reached {values_text(target.best.values, report.keys)} at best."
    )
    return {
        "what": f"Case {handed.source} → case {handed.target}",
        "which": f"iteration {handed.carried} instead of {handed.best}",
        "rows": [
            (
                key,
                value_text(None if given is None else given.values.get(key)),
                value_text(best.values.get(key)),
                signed_text(handed.lost.get(key)),
            )
            for key in report.keys
            if best is not None
        ],
        "carried": f"{handed.carried}",
        "best": f"{handed.best}",
        "then": reached,
    }


def _told(report: ChainReport, case: CaseReport, *, is_open: bool) -> dict[str, Any]:
    best = case.best
    short = "no best" if best is None else f"iteration {best.number}: {values_text(best.values, report.keys)}"
    name = f"Case {case.number}" if case.case_id == f"case{case.number}" else f"Case {case.number}, {case.case_id}"
    return {"name": name, "short": short, "open": is_open, "lines": case_lines(report, case)}


def _failure(case: CaseReport, number: int, said: str) -> dict[str, Any]:
    found = case.iteration(number)
    tails = [step.output_tail for step in found.steps if step.outcome != "ok" and step.output_tail.strip()] if found else []
    return {
        "where": f"Case {case.number}, iteration {number}",
        "said": said,
        "tail": block(tails[-1][-_TAIL:]) if tails else "",
    }


def _footer(report: ChainReport) -> str:
    begun = "" if report.created_at is None else f", begun {report.created_at}"
    return f"jumar {__version__} · {plural(len(report.cases), 'case')}{begun}, read from {report.directory or UNKNOWN}"
