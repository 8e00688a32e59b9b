"""Which iteration is selected, by one of three modes, and what had to be relaxed when nothing satisfied the mode.

Each mode is one total order over the valid iterations; the first one is selected and the second is the runner-up. Scores decide
as they are; only the margin is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from jumar.core.given import superlative
from jumar.core.text import nearest, percent, plural
from jumar.errors import ConfigError, NothingEvaluatedError, ScoreError
from jumar.model.ordering import difference, in_order, invalid_reason, is_finite, shown, valid_points, valid_score
from jumar.model.records import IterationView
from jumar.model.selection import DEFAULT_CRITERIA, MODES, SelectionCriteria, SelectionResult


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A valid view as a mode sees it. ``relaxed`` are the rules that it breaks, in the order in which they are given up."""

    view: IterationView
    score: float
    place: tuple[float, ...]
    relaxed: tuple[str, ...]


def check_criteria(criteria: SelectionCriteria) -> None:
    """Raise :class:`jumar.errors.ConfigError` for an unknown mode, :class:`jumar.errors.ScoreError` for a threshold off 0–100."""
    if criteria.mode not in MODES:
        raise ConfigError(f"unknown mode {shown(criteria.mode)}{nearest(criteria.mode, MODES)}; known are: {', '.join(MODES)}")
    threshold = criteria.threshold
    if threshold is not None and not (is_finite(threshold) and 0 <= threshold <= 100):
        raise ScoreError(f"the threshold is {shown(threshold)}: give a number of 0–100, or none")


def choose(
    views: Iterable[IterationView],
    criteria: SelectionCriteria = DEFAULT_CRITERIA,
    *,
    among: Collection[int] | None = None,
    keep: int | None = None,
    note: str = "",
) -> SelectionResult:
    """Return the selected iteration, why, and by what margin over which runner-up.

    Invalid views are never selected; they count only as the final iteration. When no view satisfies the mode, its rules are
    given up one by one, and ``fallback`` names those that were: first the threshold, then verification, in
    "highest_quality_verified"; first verification, then the threshold, in "most_recent_above_threshold". A rule once given up
    stays given up.

    ``among`` are the numbers that may be selected or be the runner-up, None for all. ``keep`` is one of them that is selected
    although another is first; ``note`` then is the reason, and otherwise goes behind it.

    Errors: :class:`jumar.errors.NothingEvaluatedError` when no view is valid, :class:`jumar.errors.ScoreError` when a number
    is there twice, and as :func:`check_criteria`.
    """
    history = in_order(views)
    candidates = [candidate for candidate in _candidates(history, criteria) if among is None or candidate.view.number in among]
    if not candidates:
        raise NothingEvaluatedError(_nothing(history))
    best = next((candidate for candidate in candidates if candidate.view.number == keep), candidates[0])
    others = [candidate for candidate in candidates if candidate is not best]
    final = history[-1]
    final_quality = valid_score(final)
    start = valid_score(history[0]) if history[0].number == 0 else None
    runner_up = others[0] if others else None
    return SelectionResult(
        selected_iteration=best.view.number,
        quality_score=best.score,
        reason=_reason(best, criteria, note) if best is candidates[0] else _kept(best, criteria, note),
        final_iteration=final.number,
        final_quality=final_quality,
        degradation_detected=final_quality is not None and best.score > final_quality,
        meets_threshold=None if criteria.threshold is None else not best.relaxed,
        fallback=", ".join(best.relaxed) or None,
        runner_up=runner_up.view.number if runner_up else None,
        margin=difference(best.score, runner_up.score) if runner_up else None,
        below_start=start is not None and best.score < start,
    )


def peers(views: Iterable[IterationView], criteria: SelectionCriteria = DEFAULT_CRITERIA) -> tuple[IterationView, ...]:
    """Return the views that only their score keeps from being selected, the first one first: those that break no other rules.

    In the mode that goes by recency that is the selected one alone. Empty when no view is valid. Errors: as :func:`ordered`.
    """
    candidates = _candidates(in_order(views), criteria)
    if criteria.mode == "most_recent_above_threshold":
        candidates = candidates[:1]
    return tuple(candidate.view for candidate in candidates if candidate.relaxed == candidates[0].relaxed)


def ordered(views: Iterable[IterationView], criteria: SelectionCriteria = DEFAULT_CRITERIA) -> tuple[IterationView, ...]:
    """Return the valid views, the one to choose first; empty when none is valid. Errors: as :func:`choose`, but for that case."""
    return tuple(candidate.view for candidate in _candidates(in_order(views), criteria))


def leader(views: Iterable[IterationView], criteria: SelectionCriteria) -> IterationView | None:
    """Return the best so far as ``criteria`` mean it: the one to choose now, the noise apart; None when no view is valid.

    So an iteration that fails its checks is not the best where another passes them. In the mode that goes by recency, in which
    every iteration would be, it is :func:`running_best`. Errors: as of :func:`ordered`.
    """
    if criteria.mode == "most_recent_above_threshold":
        return running_best(views)
    points = valid_points(in_order(views))
    best = min((_candidate(*point, criteria) for point in points), key=lambda candidate: candidate.place, default=None)
    return None if best is None else best.view


def running_best(views: Iterable[IterationView]) -> IterationView | None:
    """Return the view with the highest valid score, the earlier one between equals; None when no view is valid.

    Verification and threshold don't matter here. Errors: :class:`jumar.errors.ScoreError` when a number is there twice.
    """
    best: IterationView | None = None
    highest = -math.inf
    for view in in_order(views):
        score = valid_score(view)
        if score is not None and score > highest:
            best, highest = view, score
    return best


def _candidates(history: Iterable[IterationView], criteria: SelectionCriteria) -> list[_Candidate]:
    check_criteria(criteria)
    return sorted((_candidate(*point, criteria) for point in valid_points(history)), key=lambda candidate: candidate.place)


def _candidate(view: IterationView, score: float, criteria: SelectionCriteria) -> _Candidate:
    reached = criteria.threshold is None or score >= criteria.threshold
    passed = view.verification == "passed"
    threshold = () if criteria.threshold is None else ("threshold",)
    relaxed: tuple[str, ...]
    place: tuple[float, ...]
    if criteria.mode == "highest_quality":
        relaxed = () if reached else threshold
        place = (-score, view.number)
    elif criteria.mode == "highest_quality_verified":
        relaxed = (*threshold, "verification") if not passed else () if reached else threshold
        place = (not passed, -score, view.number)
    else:
        verification = ("verification",) if criteria.require_verification else ()
        relaxed = (*verification, "threshold") if not reached else () if passed else verification
        place = (len(relaxed) if reached else 2, -view.number)
    return _Candidate(view=view, score=score, place=place, relaxed=relaxed)


def _kept(best: _Candidate, criteria: SelectionCriteria, note: str) -> str:
    """Return why one is selected that is not the highest: what it is within the noise of, and what was relaxed all the same."""
    lacks = f"; relaxed: {', '.join(best.relaxed)}" if best.relaxed else ""
    return f"{note[:1].upper()}{note[1:]}, {_apart(best.score, criteria.threshold)}{lacks}"


def _reason(best: _Candidate, criteria: SelectionCriteria, note: str = "") -> str:
    return f"{_rule(best, criteria)}; {note}" if note else _rule(best, criteria)


def _rule(best: _Candidate, criteria: SelectionCriteria) -> str:
    score = _apart(best.score, criteria.threshold)
    missed = "" if "threshold" not in best.relaxed else f" (none reaches {percent(criteria.threshold)})"
    if criteria.mode == "highest_quality":
        return f"{superlative(best.score, 'quality score')}{missed}: {score}"
    if criteria.mode == "highest_quality_verified":
        unverified = "verification" in best.relaxed
        return (
            f"Highest quality (no verified iterations): {score}" if unverified else f"Highest verified quality{missed}: {score}"
        )
    if "threshold" in best.relaxed:
        return f"Most recent (none above threshold {percent(criteria.threshold)}): {score}"
    above = "" if criteria.threshold is None else f" above threshold ({percent(criteria.threshold)})"
    return f"Most recent{above}{', not verified' if best.relaxed else ''}: {score}"


def _apart(score: float, threshold: float | None) -> str:
    """Return ``score`` for people, with more decimals where rounding would make a missed threshold look reached."""
    if threshold is None or score >= threshold or percent(score) != percent(threshold):
        return percent(score)
    return f"{score:.4f}%"


def _nothing(history: tuple[IterationView, ...]) -> str:
    if not history:
        return "there is no iteration to choose from: record one first"
    last = history[-1]
    return f"none of {plural(len(history), 'iteration')} has a valid score; the last, {last.number}: {invalid_reason(last)}"
