"""Where quality fell, what may have caused it, and where going on stopped paying.

Steps run from one valid score to the next; iterations without one are passed over, except in :func:`detect_diminishing_returns`.
A step counts when it is more than the noise of its scorers. Two standard errors of a difference are the limit: some 95 % of the
differences between two equal candidates are smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from jumar.core.given import Given
from jumar.core.text import escape, percent
from jumar.errors import NotFoundError, ScoreError
from jumar.model.ordering import Point, best_of_batches, difference, in_order, is_finite, shown, valid_points, valid_score
from jumar.model.records import IterationView
from jumar.model.selection import Degradation, DiminishingReturns

_LIMIT: Final = 2.0


class Errors(NamedTuple):
    """Standard errors of a score, in points of 0–100, and of its dimensions, in 0–1."""

    score: float
    dimensions: Mapping[str, float]


_NONE: Final = Errors(0.0, MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """How uncertain the scores of iterations are, by number; one that is not there is exact."""

    errors: Mapping[int, Errors] = field(default_factory=lambda: MappingProxyType({}))

    def width(self, before: int, after: int) -> float:
        """Return up to how many points the scores of two iterations may differ by chance; 0 when they are exact."""
        return _LIMIT * math.hypot(self.errors.get(before, _NONE).score, self.errors.get(after, _NONE).score)

    def dimension_width(self, before: int, after: int, dimension: str) -> float:
        """Return the same for one dimension, in 0–1."""
        errors = (self.errors.get(number, _NONE).dimensions.get(dimension, 0.0) for number in (before, after))
        return _LIMIT * math.hypot(*errors)


EXACT: Final = Chance()
"""Nothing is known of noise: every difference counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A way in which quality is often lost, what it means, what speaks for it here, and what helps against it."""

    pattern: str
    meaning: str
    evidence: str
    mitigation: str


PATTERNS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "over-refinement": (
            "too many iterations",
            "early stopping: fewer iterations, or a [stop] rule such as decline",
        ),
        "scope creep": ("adding what nobody asked for", "strict requirements: say in the objective what is out of scope"),
        "style drift": ("changing the approach in mid-loop", "consistent prompts: the same style rules in every iteration"),
        "information loss": ("summarising too aggressively", "preserve details: say in the objective what must stay"),
    }
)
"""Pattern → (what it means, what helps), in the order in which causes are reported."""

NOTICEABLE: Final = 1.0
"""Points of the score (0–100): a smaller difference is no finding, whatever else is known of it."""

_FALL: Final = 0.05
"""A dimension (0–1) that lost less than this is not called fallen: where there are five of the same weight it moves the score by
one noticeable point. Known noise may ask for more."""

_INFORMATION: Final = ("completeness", "coverage", "key_term", "recall")
_EFFICIENCY: Final = ("efficiency", "conciseness")
_STYLE: Final = ("readability", "style")


def likely_causes(views: Iterable[IterationView], best: int, *, chance: Chance = EXACT) -> tuple[Cause, ...]:
    """Return which of :data:`PATTERNS` the iterations after iteration ``best`` show, in that order.

    over-refinement   no valid score after ``best`` rises again, and the last one is lower
    scope creep       efficiency fell, and nothing that measures completeness did
    style drift       readability or style fell
    information loss  something that measures completeness fell: completeness, coverage, key terms, recall

    Dimensions are recognised by these words in their names, and compared between ``best`` and the last valid iteration; a
    fall below 0.05, or within what ``chance`` alone does, does not count; nor does one of the score below one point. Empty when
    nothing speaks for any of them, when ``best`` is invalid and when nothing valid comes after it. Errors:
    :class:`jumar.errors.NotFoundError` when there is no iteration ``best``.
    """
    history = in_order(views)
    if all(view.number != best for view in history):
        raise NotFoundError(f"there is no iteration {best}")
    scored = valid_points(view for view in history if view.number >= best)
    if len(scored) < 2 or scored[0].view.number != best:
        return ()
    only_falls = all(difference(after.score, before.score) <= 0 for before, after in pairwise(scored))
    return _causes(scored[0], scored[-1], chance, only_falls=only_falls)


def _causes(best: Point, last: Point, chance: Chance, *, only_falls: bool) -> tuple[Cause, ...]:
    between = f"between iterations {best.view.number} and {last.view.number}"
    lost = _falls(best.view, last.view, _INFORMATION, chance)
    wasted = _falls(best.view, last.view, _EFFICIENCY, chance)
    drifted = _falls(best.view, last.view, _STYLE, chance)
    evidence: dict[str, str] = {}
    fall = difference(best.score, last.score)
    if only_falls and fall >= NOTICEABLE and fall > chance.width(best.view.number, last.view.number):
        better = "is better" if isinstance(best.score, Given) else "rises again"
        evidence["over-refinement"] = (
            f"nothing after iteration {best.view.number} ({percent(best.score)}) {better};"
            f" iteration {last.view.number} has {percent(last.score)}"
        )
    if wasted and not lost:
        kept = "completeness did not fall" if _named(best.view.dimensions, _INFORMATION) else "completeness is not measured"
        evidence["scope creep"] = f"{wasted} {between}; {kept}"
    if drifted:
        evidence["style drift"] = f"{drifted} {between}"
    if lost:
        evidence["information loss"] = f"{lost} {between}"
    return tuple(
        Cause(pattern=pattern, meaning=meaning, evidence=evidence[pattern], mitigation=mitigation)
        for pattern, (meaning, mitigation) in PATTERNS.items()
        if pattern in evidence
    )


def _named(names: Iterable[str], words: tuple[str, ...]) -> list[str]:
    """Return those of ``names`` that contain one of ``words``, whatever their case and separators."""
    plain = {name: name.lower().replace("-", "_").replace(" ", "_") for name in names}
    return sorted(name for name, text in plain.items() if any(word in text for word in words))


def _falls(best: IterationView, last: IterationView, words: tuple[str, ...], chance: Chance) -> str:
    """Return a sentence about the dimensions named by ``words`` that fell, or an empty string."""
    before, after = best.dimensions, last.dimensions
    fallen = [
        name
        for name in _named(before.keys() & after.keys(), words)
        if (fall := difference(before[name], after[name])) >= _FALL
        and fall > chance.dimension_width(best.number, last.number, name)
    ]
    return ", ".join(f"{escape(name)} fell from {before[name]:.4g} to {after[name]:.4g}" for name in fallen)


def detect_degradation(
    views: Iterable[IterationView], *, drop: float = 5.0, consecutive: int = 2, chance: Chance = EXACT
) -> Degradation:
    """Return which triggers fired, where, and what to do.

    quality_drop                   a step of more than ``drop`` points down
    consecutive_decreases          ``consecutive`` or more steps down in a row
    validation_failures_increased  more failing checks than at the last iteration whose checks are known; where either number is
                                   unknown, "failed" after "passed"

    Iteration 0 is the first point; a batch of parallel candidates is one, its best. Steps are rounded to 4 decimals. One within
    what ``chance`` alone does is no quality_drop; steps in a row count when all of them together are more than that.
    ``best_before`` is the running best before the first iteration at which a trigger fired, None when nothing before it was
    valid; ``causes`` are the patterns that :func:`likely_causes` finds between the running best and any of those iterations.
    Errors: :class:`jumar.errors.ScoreError` for a number twice, a ``drop`` below 0 or a ``consecutive`` below 1.
    """
    _check("drop", drop, "consecutive", consecutive)
    history = best_of_batches(in_order(views))
    fired: dict[str, set[int]] = {
        "quality_drop": set(),
        "consecutive_decreases": set(),
        "validation_failures_increased": _more_failures(history),
    }
    scored = valid_points(history)
    streak, top = 0, 0
    for index, (before, after) in enumerate(pairwise(scored)):
        fall = difference(before.score, after.score)
        streak, top = (streak + 1, top) if fall > 0 else (0, index + 1)
        if fall > max(drop, chance.width(before.view.number, after.view.number)):
            fired["quality_drop"].add(after.view.number)
        if streak >= consecutive and _fell(scored[top], after, chance):
            fired["consecutive_decreases"].add(after.view.number)
    iterations = sorted({number for numbers in fired.values() for number in numbers})
    if not iterations:
        return Degradation(detected=False)
    best = max((point for point in scored if point.view.number < iterations[0]), key=lambda point: point.score, default=None)
    keep = () if best is None else ("preserve_pre_degradation_best",)
    return Degradation(
        detected=True,
        triggers=tuple(trigger for trigger, numbers in fired.items() if numbers),
        iterations=tuple(iterations),
        best_before=None if best is None else best.view.number,
        actions=("flag_degradation", "consider_early_stopping", *keep),
        causes=_causes_at(scored, set(iterations), chance),
    )


def _fell(before: Point, after: Point, chance: Chance) -> bool:
    return difference(before.score, after.score) > chance.width(before.view.number, after.view.number)


def _causes_at(scored: list[Point], iterations: set[int], chance: Chance) -> tuple[str, ...]:
    """Return the patterns between the running best and each of ``iterations``; one iteration, however many there are."""
    found: set[str] = set()
    if not scored:
        return ()
    best = before = scored[0]
    only_falls = True
    for point in scored[1:]:
        only_falls = only_falls and difference(point.score, before.score) <= 0
        if point.view.number in iterations:
            found.update(cause.pattern for cause in _causes(best, point, chance, only_falls=only_falls))
        if point.score > best.score:
            best, only_falls = point, True
        before = point
    return tuple(pattern for pattern in PATTERNS if pattern in found)


_CHECKED: Final = frozenset({"ok", "scorer_broken", "invalid_score"})
"""With these statuses the checks' verdict is about the candidate; with others a check or the generator itself had failed."""


def _more_failures(history: Iterable[IterationView]) -> set[int]:
    known = [
        view for view in history if view.status in _CHECKED and (view.failed_checks is not None or view.verification != "skipped")
    ]
    return {after.number for before, after in pairwise(known) if _worse(before, after)}


def _worse(before: IterationView, after: IterationView) -> bool:
    if before.failed_checks is not None and after.failed_checks is not None:
        return after.failed_checks > before.failed_checks
    return before.verification == "passed" and after.verification == "failed"


def detect_diminishing_returns(
    views: Iterable[IterationView], consecutive_threshold: int = 2, delta_threshold: float = 5.0
) -> DiminishingReturns:
    """Return whether ``consecutive_threshold`` steps in a row were smaller than ``delta_threshold`` points, up or down, anywhere.

    ``iteration`` is the number of the first iteration of the first such streak. A step runs from one recorded iteration to the
    next, for parallel candidates from batch to batch, so an iteration without a valid score breaks it, twice. With no more than
    ``consecutive_threshold`` iterations nothing is detected. Errors: :class:`jumar.errors.ScoreError` for a number twice, a
    ``consecutive_threshold`` below 1 or a ``delta_threshold`` below 0.
    """
    _check("delta_threshold", delta_threshold, "consecutive_threshold", consecutive_threshold)
    history = best_of_batches(in_order(views))
    streak: list[int] = []
    for before, after in pairwise(history):
        old, new = valid_score(before), valid_score(after)
        if old is not None and new is not None and abs(difference(new, old)) < delta_threshold:
            streak.append(after.number)
            if len(streak) == consecutive_threshold:
                return DiminishingReturns(detected=True, iteration=streak[0])
        else:
            streak.clear()
    return DiminishingReturns(detected=False, iteration=None)


def _check(size_name: str, size: float, count_name: str, count: int) -> None:
    if not is_finite(size) or size < 0:
        raise ScoreError(f"{size_name} is {shown(size)}: give a number of points that is 0 or more")
    if not is_finite(count) or count < 1:
        raise ScoreError(f"{count_name} is {shown(count)}: give a whole number that is 1 or more")
