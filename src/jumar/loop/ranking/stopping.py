"""When a loop ends: a pure function of all its iterations, its rules and the time it used.

Nothing is remembered between two calls, so a loop that was killed and resumed decides as one that was not. Trend rules see
valid scores only, iteration 0 (the state before the loop) being the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from jumar.core.text import escape, plural, points
from jumar.errors import ScoreError
from jumar.model.ordering import best_of_batches, difference, in_order, is_finite, shown, valid_points, valid_score
from jumar.model.records import NO_EFFECT, IterationView
from jumar.model.selection import StopDecision, StopRules, TrendRule

DEFAULT_PLATEAU: Final = TrendRule(window=2, delta=5.0)
DEFAULT_DECLINE: Final = TrendRule(window=2, delta=0.0)
DEFAULT_OSCILLATION: Final = TrendRule(window=3, delta=1.0)
DEFAULT_DIMINISHING: Final = TrendRule(window=2, delta=5.0)


class KnownTrend(NamedTuple):
    """A trend rule that is only switched on, and the smallest window that does not end every loop at once."""

    default: TrendRule
    smallest_window: int


TRENDS: Final[Mapping[str, KnownTrend]] = {
    "diminishing_returns": KnownTrend(DEFAULT_DIMINISHING, 1),
    "plateau": KnownTrend(DEFAULT_PLATEAU, 2),  # one score is always a plateau
    "decline": KnownTrend(DEFAULT_DECLINE, 1),
    "oscillation": KnownTrend(DEFAULT_OSCILLATION, 2),  # one step always alternates
}
"""The trend rules by their field of :class:`jumar.model.selection.StopRules`."""

_PERFECT: Final = 100.0
_WORDS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def check_rules(rules: StopRules) -> None:
    """Raise :class:`jumar.errors.ScoreError` for a rule that can't mean anything.

    ``target`` must be 0–100; ``max_iterations`` 0 or more; ``max_seconds`` and every ``delta`` finite and not negative;
    ``consecutive_failures`` and the windows of ``decline`` and ``diminishing_returns`` 1 or more; those of ``plateau`` and
    ``oscillation`` 2 or more.
    """
    _at_least("max_iterations", rules.max_iterations, 0, whole=True)
    _at_least("consecutive_failures", rules.consecutive_failures, 1, whole=True)
    if rules.max_seconds is not None:
        _at_least("max_seconds", rules.max_seconds, 0)
    if rules.target is not None:
        _at_least("target", rules.target, 0)
        if rules.target > 100:
            raise ScoreError(f"target is {shown(rules.target)}: scores end at 100")
    for name, (_, smallest) in TRENDS.items():
        rule: TrendRule | None = getattr(rules, name)
        if rule is not None:
            _at_least(f"{name}.window", rule.window, smallest, whole=True)
            _at_least(f"{name}.delta", rule.delta, 0)


def _at_least(name: str, value: object, least: int, *, whole: bool = False) -> None:
    if not is_finite(value) or value < least or (whole and not isinstance(value, int)):
        raise ScoreError(f"{name} is {shown(value)}: give a {'whole ' if whole else ''}number that is {least} or more")


def evaluate_stop(views: Iterable[IterationView], rules: StopRules, *, seconds: float) -> StopDecision | None:
    """Return why the loop ends now, or None to go on.

    ``views`` are all iterations so far, iteration 0 (the start, which is no iteration) included if there is one; ``seconds`` is
    what the loop's attempts took in all. Of several rules that hold, the first in this order gives the reason: completed,
    target, converged, blocked, consecutive_failures, max_iterations, max_seconds, decline, oscillation, plateau,
    diminishing_returns.

    Of a batch of parallel candidates any may complete, reach the target or be blocked; trends go from batch to batch, by the best
    score of each.

    Errors: :class:`jumar.errors.ScoreError` for a number twice, for ``seconds`` that are negative or not finite, and as
    :func:`check_rules`.
    """
    check_rules(rules)
    _at_least("seconds", seconds, 0)
    history = in_order(views)
    passes = [view for view in history if view.number > 0]
    return (
        _completed(passes, rules.target)
        or _target(history, rules)
        or (_converged(passes) if rules.converged else None)
        or _blocked(passes)
        or _consecutive_failures(passes, rules.consecutive_failures)
        or _max_iterations(len(passes), rules.max_iterations)
        or _max_seconds(seconds, rules.max_seconds)
        or _trend(history, rules)
    )


def _trend(history: Sequence[IterationView], rules: StopRules) -> StopDecision | None:
    if not (rules.decline or rules.oscillation or rules.plateau or rules.diminishing_returns):
        return None
    scores = _scores(history)
    return (
        _decline(scores, rules.decline)
        or _oscillation(scores, rules.oscillation)
        or _plateau(scores, rules.plateau, from_start=_from_start(history))
        or _diminishing_returns(scores, rules.diminishing_returns)
    )


def _scores(history: Sequence[IterationView]) -> list[float]:
    """Return the valid scores in order; of candidates that were made side by side, the best."""
    return [point.score for point in valid_points(best_of_batches(history))]


def _latest(passes: Sequence[IterationView]) -> list[IterationView]:
    """Return the last iteration, with its batch where it has one."""
    if not passes or passes[-1].batch is None:
        return list(passes[-1:])
    return [view for view in passes if view.batch == passes[-1].batch]


def _completed(passes: Sequence[IterationView], target: float | None) -> StopDecision | None:
    """The generator's word counts when somebody agrees: the checks where there are any, and the score where a target is set."""
    for view in _latest(passes):
        score = valid_score(view)
        if not view.completed or view.verification == "failed" or score is None or (target is not None and score < target):
            continue
        if target is None and view.verification != "passed":
            continue
        agreed = "and the checks pass" if view.verification == "passed" else "and the score reaches the target"
        return StopDecision(
            reason="completed", detail=f"the generator says it is done {agreed} (iteration {view.number}, {points(score)} points)"
        )
    return None


def _blocked(passes: Sequence[IterationView]) -> StopDecision | None:
    for view in _latest(passes):
        if view.failure == "blocked":
            said = view.blocked or "it did not say why"
            return StopDecision(reason="blocked", detail=f"the generator cannot go on (iteration {view.number}): {escape(said)}")
    return None


def _target(history: Sequence[IterationView], rules: StopRules) -> StopDecision | None:
    """Whoever tampered reaches nothing; nor does what a check refused, unless the score alone is asked for."""
    target = rules.target
    if target is None:
        return None
    for view in history:
        score = valid_score(view)
        counts = view.verification != "failed" or (rules.target_unverified and not view.tampered)
        if score is not None and score >= target and counts:
            where = "the start" if view.number == 0 else f"iteration {view.number}"
            if view.verification == "passed" and score >= _PERFECT:
                return StopDecision(reason="target", detail=f"every check passes, and the score is 100 ({where})")
            return StopDecision(reason="target", detail=f"target {points(target)} reached by {where} ({points(score)})")
    return None


def _converged(passes: Sequence[IterationView]) -> StopDecision | None:
    """An iteration that its checks refused converges on nothing: good items that fail are not what was asked for."""
    for view in _latest(passes):
        score = valid_score(view)
        if view.converged and score is not None and view.verification != "failed":
            at = f"iteration {view.number}, {points(score)} points"
            detail = f"the cheap judge tracks the expensive one, and the items are good ({at})"
            return StopDecision(reason="converged", detail=detail)
    return None


def _consecutive_failures(passes: Sequence[IterationView], most: int) -> StopDecision | None:
    """An interrupted iteration says nothing about the generator: it neither counts nor ends the row."""
    row: list[IterationView] = []
    for view in reversed(passes):
        if view.status == "interrupted":
            continue
        if valid_score(view) is not None and view.failure not in NO_EFFECT:
            break
        row.append(view)
    if len(row) < most:
        return None
    last = (row[0].failure or ("invalid_score" if row[0].status == "ok" else row[0].status)).replace("_", " ")
    failed = "1 iteration" if len(row) == 1 else f"{len(row):,} iterations"
    return StopDecision(reason="consecutive_failures", detail=f"{failed} failed in a row; the last: {last}")


def _max_iterations(done: int, most: int) -> StopDecision | None:
    if done < most:
        return None
    return StopDecision(reason="max_iterations", detail=f"{done:,} of {plural(most, 'iteration')} done")


def _max_seconds(seconds: float, most: float | None) -> StopDecision | None:
    if most is None or seconds < most:
        return None
    return StopDecision(reason="max_seconds", detail=f"{_amount(seconds)} of {_amount(most)} seconds used")


def _steps(scores: Sequence[float], window: int) -> list[float] | None:
    """Return the last ``window`` steps from score to score, or None when there are fewer."""
    if len(scores) <= window:
        return None
    return [difference(after, before) for before, after in pairwise(scores[-window - 1 :])]


def _decline(scores: Sequence[float], rule: TrendRule | None) -> StopDecision | None:
    steps = _steps(scores, rule.window) if rule else None
    if rule is None or steps is None or any(step >= 0 for step in steps):
        return None
    lost = difference(scores[-rule.window - 1], scores[-1])
    if lost < rule.delta:
        return None
    return StopDecision(reason="decline", detail=f"decline: {_count(rule.window, 'step')} down in a row, {_points(lost)} in all")


def _oscillation(scores: Sequence[float], rule: TrendRule | None) -> StopDecision | None:
    steps = _steps(scores, rule.window) if rule else None
    if rule is None or steps is None or any(abs(step) < rule.delta for step in steps):
        return None
    if any(before * after >= 0 for before, after in pairwise(steps)):
        return None
    if max(scores[-rule.window :]) > max(scores[: -rule.window]):
        return None
    swings = _count(rule.window, "swing")
    return StopDecision(reason="oscillation", detail=f"oscillation: {swings} of at least {_points(rule.delta)} and no new best")


def _from_start(history: Sequence[IterationView]) -> bool:
    """Whether the first valid score is that of iteration 0."""
    return bool(history) and history[0].number == 0 and valid_score(history[0]) is not None


def _plateau(scores: Sequence[float], rule: TrendRule | None, *, from_start: bool) -> StopDecision | None:
    if rule is None or len(scores) < rule.window:
        return None
    last = scores[-rule.window :]
    if difference(max(last), min(last)) > rule.delta:
        return None
    if rule.window > 2 and all(difference(after, before) < 0 for before, after in pairwise(last)):
        return None  # it only falls: that is a decline, whatever its size
    counted = _count(rule.window, "iteration")
    if from_start and len(scores) == rule.window:
        counted = f"the start and {_count(rule.window - 1, 'iteration')}"
    return StopDecision(reason="plateau", detail=f"plateau: {counted} within {_points(rule.delta)}")


def _diminishing_returns(scores: Sequence[float], rule: TrendRule | None) -> StopDecision | None:
    steps = _steps(scores, rule.window) if rule else None
    if rule is None or steps is None or any(abs(step) >= rule.delta for step in steps):
        return None
    return StopDecision(
        reason="diminishing_returns",
        detail=f"diminishing returns: {_count(rule.window, 'step')} in a row below {_points(rule.delta)}",
    )


def _count(number: int, noun: str) -> str:
    """Return ``two iterations``; from eleven on the number in digits."""
    word = _WORDS[number] if number < len(_WORDS) else f"{number:,}"
    return f"{word} {noun}" if number == 1 else f"{word} {noun}s"


def _amount(seconds: float) -> str:
    """Return ``seconds`` rounded: whole tenths from one second on, three digits below."""
    return points(seconds) if seconds >= 1 else f"{seconds:.3g}"


def _points(size: float) -> str:
    shown_size = points(size)
    return f"{shown_size} point" if shown_size == "1" else f"{shown_size} points"
