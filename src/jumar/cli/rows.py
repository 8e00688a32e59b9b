"""One iteration as a row of the terminal's table, and the lines that end a run."""

from __future__ import annotations

from jumar.loop.outcome import LoopOutcome
from jumar.model import IterationRecord
from jumar.text import escape, points

__all__ = ["COLUMNS", "closing_lines", "duration", "money", "row_cells"]

COLUMNS: tuple[str, ...] = ("it", "score", "Δ", "checks", "cost", "time", "")
_MINUS = "\N{MINUS SIGN}"
_MINUTE = 60
_HOUR = 3600
_NOTED_DROP = 0.03  # a dimension that fell by three points of a hundred is worth a word


def money(value: float | None) -> str:
    """Return dollars with cents, ``—`` when unknown."""
    return "—" if value is None else f"${value:,.2f}" if value >= 0.01 or value == 0 else f"${value:.4f}"


def duration(seconds: float | None) -> str:
    """Return ``0.4s``, ``31s``, ``1m 31s``, ``2h 05m``."""
    if seconds is None:
        return "—"
    if seconds < 10:
        return f"{seconds:.1f}s"
    if seconds < _MINUTE:
        return f"{seconds:.0f}s"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)}m {int(seconds % _MINUTE):02d}s"
    return f"{int(seconds // _HOUR)}h {int(seconds % _HOUR // _MINUTE):02d}m"


def signed(value: float) -> str:
    """Return a difference of points with its sign, the minus as a minus sign."""
    return f"{value:+.1f}".replace("-", _MINUS)


def row_cells(record: IterationRecord, previous: IterationRecord | None, best: int | None) -> tuple[str, ...]:
    """Return the cells of one iteration in the order of :data:`COLUMNS`."""
    score = "—" if record.quality_score is None else f"{record.quality_score:.1f}"
    delta = "" if record.quality_delta is None else signed(record.quality_delta)
    milliseconds = record.execution_time_ms
    return (
        str(record.iteration_number),
        score,
        delta,
        _checks(record),
        money(record.token_cost_usd),
        duration(None if milliseconds is None else milliseconds / 1000),
        _note(record, previous, best),
    )


def _checks(record: IterationRecord) -> str:
    if not record.checks:
        return "—"
    passed = sum(check.passed for check in record.checks)
    return f"{passed}/{len(record.checks)}{' ✓' if passed == len(record.checks) else ''}"


def _note(record: IterationRecord, previous: IterationRecord | None, best: int | None) -> str:
    notes: list[str] = []
    if record.iteration_number == 0:
        notes.append("start")
    if record.status != "ok":
        notes.append(escape(f"{record.status.replace('_', ' ')}: {record.status_reason}"[:100]))
    elif record.iteration_number == best:
        notes.append("★ best")
    elif previous is not None and record.iteration_number > 0:
        notes += _largest_drop(record, previous)
    return " · ".join(notes)


def _largest_drop(record: IterationRecord, previous: IterationRecord) -> list[str]:
    drops = [
        (previous.dimensions[name] - value, name) for name, value in record.dimensions.items() if name in previous.dimensions
    ]
    if not drops or max(drops)[0] < _NOTED_DROP:
        return []
    drop, name = max(drops)
    return [f"{escape(name)} {signed(-100 * drop)}"]


def closing_lines(outcome: LoopOutcome) -> list[str]:
    """Return what the terminal shows when a run has ended: why, what was chosen, where it is."""
    lines = [f"stopped   {escape(outcome.stop.detail)}"]
    selection = outcome.selection
    if selection is None:
        lines.append("chosen    nothing: no iteration has a valid score; `jumar show` says why for each")
        return lines
    interrupted = outcome.stop.reason in {"interrupted", "terminated"}
    parts = [f"iteration {selection.selected_iteration}, {points(selection.quality_score)}"]
    if selection.runner_up is not None and selection.margin is not None:
        parts.append(f"runner-up {selection.runner_up}, {signed(-selection.margin)}")
    if selection.fallback is not None:
        parts.append(f"relaxed: {selection.fallback}")
    if selection.below_start:
        parts.append("below the start's score, but verified")
    parts.append(_whereabouts(outcome, interrupted=interrupted))
    lines.append(f"{'best now' if interrupted else 'chosen  '}  {' · '.join(parts)}")
    if not interrupted:
        lines.append(f"output    {escape(str(outcome.output))}")
    lines.append(f"report    {escape(str(outcome.directory / 'selection-report.md'))}")
    return lines


def _whereabouts(outcome: LoopOutcome, *, interrupted: bool) -> str:
    if interrupted:
        return f"`jumar run` goes on, `jumar apply {outcome.loop_id}` takes it as it is"
    if outcome.applied is not None:
        return f"restored into the work tree (undo: jumar apply {outcome.loop_id} --undo)"
    if outcome.apply_problem is not None:
        return f"NOT in the work tree: {escape(outcome.apply_problem)}"
    if outcome.already_finished:
        return "nothing was run"
    if outcome.writes_back:
        return "it is what the work tree holds"
    return f"jumar apply {outcome.loop_id} puts it into {escape(str(outcome.workdir))}"
