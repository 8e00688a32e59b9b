"""One row an iteration, as the terminal and the page show it: number, score, change, checks, cost, time, note."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jumar.model import IterationRecord
from jumar.report.figures import UNKNOWN, dollars, duration
from jumar.report.read import LoopReport
from jumar.text import cut, escape

__all__ = ["TrajectoryRow", "compared_with", "trajectory_row", "trajectory_rows"]

_MINUS = "−"
_SAID = 120  # characters of what somebody said in a remark


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryRow:
    """The columns ``it, score, Δ, checks, cost, time, note`` as text safe for a terminal; the flags are for colours.

    ``remarks`` are what else is to be known of the pass: without effect, refused, not verified. They stand behind the note.
    """

    number: int
    it: str
    score: str
    delta: str
    checks: str
    cost: str
    time: str
    note: str
    remarks: tuple[str, ...] = ()
    chosen: bool = False
    best: bool = False
    invalid: bool = False
    failed: bool = False

    @property
    def cells(self) -> tuple[str, str, str, str, str, str, str]:
        """The seven columns in order."""
        return (self.it, self.score, self.delta, self.checks, self.cost, self.time, self.said())

    def said(self, why: str = "") -> str:
        """Return the last column, with why the pass failed behind the note."""
        lead = f"{self.note}: {why}" if why and self.note else why or self.note
        return " · ".join(part for part in (lead, *self.remarks) if part)


def trajectory_rows(report: LoopReport) -> tuple[TrajectoryRow, ...]:
    """Return a row for every record, iteration 0 first. The chosen one is marked, and the best one where they differ."""
    best = report.leaders[-1] if report.leaders else None
    before: IterationRecord | None = None
    known = {record.iteration_number: record for record in report.records}
    rows: list[TrajectoryRow] = []
    for record in report.records:
        previous = compared_with(record, before, known)
        refused = report.beside.refused.get(record.iteration_number, 0)
        rows.append(trajectory_row(record, previous, best=best, chosen=report.chosen, weights=report.weights, refused=refused))
        before = record
    return tuple(rows)


def compared_with(
    record: IterationRecord, before: IterationRecord | None, known: Mapping[int, IterationRecord]
) -> IterationRecord | None:
    """Return the record that ``record`` is compared with, as its ``quality_delta`` is; None when there is none among ``known``.

    A parallel candidate is compared with its parent; any other with the one ``before`` it, or with its parent where that one has
    no score.
    """
    if record.batch is None and before is not None and before.quality_score is not None:
        return before
    return before if record.parent is None else known.get(record.parent)


def trajectory_row(
    record: IterationRecord,
    previous: IterationRecord | None,
    *,
    best: int | None,
    chosen: int | None = None,
    weights: Mapping[str, float] | None = None,
    refused: int = 0,
) -> TrajectoryRow:
    """Return one row. ``best`` is the running best, ``chosen`` None while the loop still runs.

    ``previous`` is what :func:`compared_with` returns. ``weights`` decide which dimension's fall is named when the score fell;
    none: all count the same. ``refused`` is how often its provider refused it.
    """
    number = record.iteration_number
    invalid = record.quality_score is None or record.status != "ok"
    return TrajectoryRow(
        number=number,
        it=str(number),
        score=UNKNOWN if record.quality_score is None else f"{record.quality_score:.1f}",
        delta="" if record.quality_delta is None else _signed(record.quality_delta),
        checks=checks_cell(record),
        cost=dollars(record.token_cost_usd, places=2),
        time=duration(None if record.execution_time_ms is None else record.execution_time_ms / 1000),
        note=_note(record, previous, best=best, chosen=chosen, weights=weights or {}),
        remarks=_remarks(record, refused),
        chosen=number == chosen,
        best=number == best,
        invalid=invalid,
        failed=record.verification_status == "failed",
    )


def _signed(value: float) -> str:
    shown = f"{value:+.1f}".replace("-", _MINUS)
    return "0.0" if shown in {"+0.0", f"{_MINUS}0.0"} else shown


def checks_cell(record: IterationRecord) -> str:
    """Return ``2/3``, ``3/3 ✓``, or ``✓``, ``✗``, ``—`` where only the verdict is known."""
    if not record.checks:
        return {"passed": "✓", "failed": "✗", "skipped": UNKNOWN}[record.verification_status]
    passed = sum(check.passed and check.broken is None for check in record.checks)
    mark = " ✓" if record.verification_status == "passed" else ""
    return f"{passed}/{len(record.checks)}{mark}"


def _note(
    record: IterationRecord,
    previous: IterationRecord | None,
    *,
    best: int | None,
    chosen: int | None,
    weights: Mapping[str, float],
) -> str:
    number = record.iteration_number
    parts = ["start"] if number == 0 else []
    if number == best and chosen in {None, number}:
        parts.append("★ best")
    elif number == chosen:
        parts.append("★ chosen")
    elif number == best:
        parts.append("highest score")
    if record.status != "ok":
        parts.append(record.status.replace("_", " "))
    elif len(parts) == 0 and previous is not None and record.quality_delta is not None and record.quality_delta < 0:
        parts += _largest_fall(record, previous, weights)
    return escape(" · ".join(parts))


def _remarks(record: IterationRecord, refused: int) -> tuple[str, ...]:
    """What a person should know of the pass besides its score."""
    found: list[str] = []
    if record.failure in {"changed_nothing", "produced_nothing"}:
        found.append(record.failure.replace("_", " "))
    elif record.failure == "blocked":
        why = record.usage.blocked or ""
        found.append(f"blocked: {cut(why, _SAID)}" if why and why not in record.status_reason else "blocked")
    if refused:
        found.append(f"rate-limited {refused}×")
    if len(record.tampering) > 0:
        more = f" (and {len(record.tampering) - 1} more)" if len(record.tampering) > 1 else ""
        found.append(f"not verified: {cut(record.tampering[0], _SAID)}{more}")
    elif record.analysis.completed and record.verification_status == "failed":
        found.append("says it is done; the checks disagree")
    return tuple(escape(remark) for remark in found)


def _largest_fall(record: IterationRecord, previous: IterationRecord, weights: Mapping[str, float]) -> list[str]:
    """The dimension that took most from the score, with its own change on 0–100."""
    falls = [
        (weights.get(name, 1.0) * (value - previous.dimensions[name]), value - previous.dimensions[name], name)
        for name, value in record.dimensions.items()
        if name in previous.dimensions
    ]
    if not falls:
        return []
    weighted, change, name = min(falls, key=lambda fall: fall[0])
    return [f"{name} {_signed(change * 100)}"] if weighted < 0 else []
