"""One iteration as a row of the terminal's table, and the lines that end a run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from jumar.cli.common import DEFAULT_ROOT, shown_path
from jumar.loop.outcome import LoopOutcome
from jumar.model import IterationRecord
from jumar.model.stopping import REQUESTED_REASONS
from jumar.ranking.confirmed import Certainty
from jumar.report.rows import trajectory_row
from jumar.text import escape, points

__all__ = ["COLUMNS", "closing_lines", "row_cells", "sure_lines"]

COLUMNS: tuple[str, ...] = ("it", "score", "Δ", "checks", "cost", "time", "")
_MINUS = "\N{MINUS SIGN}"
_REASON = 100


def signed(value: float) -> str:
    """Return a difference of points with its sign, the minus as a minus sign."""
    return "0" if abs(value) < 0.05 else f"{value:+.1f}".replace("-", _MINUS)


def row_cells(
    record: IterationRecord, previous: IterationRecord | None, best: int | None, weights: Mapping[str, float]
) -> tuple[str, ...]:
    """Return the cells of one iteration in the order of :data:`COLUMNS`; a failed one says why."""
    row = trajectory_row(record, previous, best=best, weights=weights)
    why = f": {escape(record.status_reason)[:_REASON]}" if record.status != "ok" and record.status_reason else ""
    return (*row.cells[:-1], row.note + why)


def closing_lines(outcome: LoopOutcome) -> list[str]:
    """Return what the terminal shows when a run has ended: why, what was chosen, where it is."""
    lines = [f"stopped   {escape(outcome.stop.detail)}"]
    selection = outcome.selection
    if selection is None:
        lines.append("chosen    nothing: no iteration has a valid score; `jumar show` says why for each")
        return lines
    interrupted = outcome.stop.reason in REQUESTED_REASONS
    parts = [f"iteration {selection.selected_iteration}, {points(selection.quality_score)}"]
    if selection.runner_up is not None and selection.margin is not None:
        tied = outcome.certainty is not None and selection.runner_up in outcome.certainty.tied
        parts.append(f"runner-up {selection.runner_up}, {signed(-selection.margin)}{', within the noise' if tied else ''}")
    if selection.fallback is not None:
        parts.append(f"relaxed: {selection.fallback}")
    if selection.below_start:
        parts.append("below the start's score, but verified")
    parts.append(_whereabouts(outcome, interrupted=interrupted))
    lines.append(f"{'best now' if interrupted else 'chosen  '}  {' · '.join(parts)}")
    lines += sure_lines(outcome.certainty)
    if not interrupted:
        lines.append(f"output    {shown_path(outcome.output)}")
    lines.append(f"report    {shown_path(outcome.directory / 'selection-report.md')}")
    return lines


def sure_lines(found: Certainty | None) -> list[str]:
    """Return what confirmed the choice, or why nothing did; no line where nothing was tried."""
    if found is None:
        return []
    lines: list[str] = []
    if found.confirmed is not None:
        by = "the hold-out" if found.confirmed.by == "holdout" else "one more reading"
        parts = [f"{points(found.confirmed.score)} by {by}"]
        if found.optimism is not None:
            interval = "" if found.optimism_width is None else f" ± {points(found.optimism_width)}"
            parts.append(f"optimism of the selection {signed(found.optimism)}{interval}")
        lines.append(f"confirmed {' · '.join(parts)}")
    return [*lines, *(f"unsure    {escape(problem)}" for problem in found.problems)]


def _whereabouts(outcome: LoopOutcome, *, interrupted: bool) -> str:
    if interrupted:
        return f"run the same command to go on, or take it as it is: {_apply(outcome)}"
    if outcome.applied is not None:
        return f"restored into the work tree (undo: {_apply(outcome)} --undo)"
    if outcome.apply_problem is not None:
        return f"NOT in the work tree: {escape(outcome.apply_problem)}"
    if outcome.already_finished:
        return "nothing was run"
    if outcome.writes_back:
        return "it is what the work tree holds"
    return f"{_apply(outcome)} puts it into {shown_path(outcome.workdir)}"


def _apply(outcome: LoopOutcome) -> str:
    """Return the command that can be typed here: a loop outside of the usual root is named by its path."""
    usual = outcome.directory.parent.parent == Path.cwd() / DEFAULT_ROOT
    return f"jumar apply {shlex.quote(outcome.loop_id if usual else shown_path(outcome.directory))}"
