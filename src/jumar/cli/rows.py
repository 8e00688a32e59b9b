"""One iteration as a row of the terminal's table, and the lines that end a run."""

from __future__ import annotations

import shlex
from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path

from jumar.cli.common import DEFAULT_ROOT, shown_path
from jumar.loop.events import LATEST
from jumar.loop.outcome import LoopOutcome
from jumar.model import IterationRecord
from jumar.model.stopping import LIMIT_REASONS, REQUESTED_REASONS
from jumar.ranking.confirmed import Certainty
from jumar.report.decided import decided_document, decided_words
from jumar.report.figures import relaxed_text, runner_up_text
from jumar.report.money import spent_money
from jumar.report.rows import compared_with, trajectory_row
from jumar.report.spending import failures_text, going_on
from jumar.text import cut, escape, points

__all__ = ["COLUMNS", "Past", "closing_lines", "row_cells", "sure_lines"]

COLUMNS: tuple[str, ...] = ("it", "score", "Δ", "checks", "cost", "time", "")
_MINUS = "\N{MINUS SIGN}"
_REASON = 100


def signed(value: float) -> str:
    """Return a difference of points with its sign, the minus as a minus sign."""
    return "0" if abs(value) < 0.05 else f"{value:+.1f}".replace("-", _MINUS)


def row_cells(
    record: IterationRecord,
    previous: IterationRecord | None,
    best: int | None,
    weights: Mapping[str, float],
    *,
    refused: int = 0,
) -> tuple[str, ...]:
    """Return the cells of one iteration in the order of :data:`COLUMNS`; a failed one says why."""
    row = trajectory_row(record, previous, best=best, weights=weights, refused=refused)
    return (*row.cells[:-1], row.said(cut(escape(record.status_reason), _REASON) if record.status != "ok" else ""))


class Past:
    """What a display knows of the iterations so far: the latest, all that were the running best, and refusals by a provider."""

    def __init__(self) -> None:
        self._latest: deque[IterationRecord] = deque(maxlen=LATEST)  # a night has ten thousand
        self._bests: dict[int, IterationRecord] = {}
        self._refused: Counter[int] = Counter()

    @property
    def latest(self) -> tuple[IterationRecord, ...]:
        """The last of them, in the order in which they were recorded."""
        return tuple(self._latest)

    def add(self, record: IterationRecord, best: int | None) -> None:
        """Take one more; ``best`` is the running best now."""
        self._latest.append(record)
        if best == record.iteration_number:
            self._bests[record.iteration_number] = record

    def refuse(self, iteration: int) -> None:
        """Note that the provider refused ``iteration``."""
        self._refused[iteration] += 1

    def cells(self, record: IterationRecord, best: int | None, weights: Mapping[str, float]) -> tuple[str, ...]:
        """Return :func:`row_cells` of a record that was added."""
        known = {**self._bests, **{one.iteration_number: one for one in self._latest}}
        earlier = [number for number in known if number < record.iteration_number]
        before = known[max(earlier)] if earlier else None
        previous = compared_with(record, before, known)
        return row_cells(record, previous, best, weights, refused=self._refused[record.iteration_number])


def closing_lines(outcome: LoopOutcome) -> list[str]:
    """Return what the terminal shows when a run has ended: why, what was chosen, where it is."""
    lines = [f"stopped   {escape(outcome.stop.detail)}"]
    if outcome.spend.cost_usd != 0 or outcome.budget.max_cost_usd is not None:
        lines.append(f"spent     {spent_money(outcome.spend, outcome.budget)}")
    lines += _trouble(outcome)
    selection = outcome.selection
    if selection is None:
        lines.append("chosen    nothing: no iteration has a valid score; `jumar show` says why for each")
        return lines
    interrupted = outcome.stop.reason in REQUESTED_REASONS
    parts = [f"iteration {selection.selected_iteration}, {points(selection.quality_score)}"]
    if selection.runner_up is not None and selection.margin is not None:
        tied = outcome.certainty is not None and selection.runner_up in outcome.certainty.tied
        parts.append(runner_up_text(selection.runner_up, selection.margin, tied=tied))
    if selection.fallback is not None:
        parts.append(relaxed_text(selection.fallback))
    if selection.below_start:
        parts.append("below the start's score, but verified")
    parts.append(_whereabouts(outcome, interrupted=interrupted))
    lines.append(f"{'best now' if interrupted else 'chosen  '}  {' · '.join(parts)}")
    decided = decided_document(outcome.chosen)
    if decided is not None:
        lines.append(f"auto      {escape(decided_words(decided))}")
    lines += sure_lines(outcome.certainty)
    if not interrupted:
        lines.append(f"output    {shown_path(outcome.output)}")
    lines.append(f"report    {shown_path(outcome.directory / 'selection-report.md')}")
    return lines


def _trouble(outcome: LoopOutcome) -> list[str]:
    """Return what went wrong, and what it takes to go on after a limit; nothing for a run that did nothing."""
    if outcome.already_finished:
        return []
    lines = [f"failures  {failures_text(outcome.failures)}"] if outcome.failures else []
    passes = 0 if outcome.selection is None else outcome.selection.final_iteration
    way = going_on(outcome.stop.reason, outcome.spend, passes) if outcome.stop.reason in LIMIT_REASONS else None
    return [*lines, *([] if way is None else [f"go on     {way}"])]


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
