"""One row an iteration, as the terminal and the page show it: number, score, change, checks, cost, time, note."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jumar.model import IterationRecord
from jumar.report.figures import UNKNOWN, dollars, duration
from jumar.report.read import LoopReport
from jumar.text import escape

__all__ = ["TrajectoryRow", "trajectory_row", "trajectory_rows"]

_MINUS = "−"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryRow:
    """The columns ``it, score, Δ, checks, cost, time, note`` as text safe for a terminal; the flags are for colours."""

    number: int
    it: str
    score: str
    delta: str
    checks: str
    cost: str
    time: str
    note: str
    chosen: bool = False
    best: bool = False
    invalid: bool = False
    failed: bool = False

    @property
    def cells(self) -> tuple[str, str, str, str, str, str, str]:
        """The seven columns in order."""
        return (self.it, self.score, self.delta, self.checks, self.cost, self.time, self.note)


def trajectory_rows(report: LoopReport) -> tuple[TrajectoryRow, ...]:
    """Return a row for every record, iteration 0 first. The chosen one is marked, and the best one where they differ."""
    best = report.leaders[-1] if report.leaders else None
    previous: IterationRecord | None = None
    rows: list[TrajectoryRow] = []
    for record in report.records:
        rows.append(trajectory_row(record, previous, best=best, chosen=report.chosen, weights=report.weights))
        previous = record
    return tuple(rows)


def trajectory_row(
    record: IterationRecord,
    previous: IterationRecord | None,
    *,
    best: int | None,
    chosen: int | None = None,
    weights: Mapping[str, float] | None = None,
) -> TrajectoryRow:
    """Return one row. ``previous`` is the record before it, ``best`` the running best, ``chosen`` None while the loop still runs.

    ``weights`` decide which dimension's fall is named when the score fell; none: all count the same.
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
