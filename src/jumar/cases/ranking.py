"""The iterations of one case: which is best, which one to build on, when to end. Functions of the records alone.

Seed 3: accuracy decides, then the overall score, then the causal chain; among equals the earlier iteration. An iteration whose
steps failed or whose score is unusable has no place in the order.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from jumar.cases.records import CaseIteration, CaseLimits, CaseStop
from jumar.core.text import plural, points
from jumar.errors import ConfigError, ScoreError
from jumar.model.ordering import InvalidView, LexicographicOrder, difference, is_finite, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRanking:
    """``best`` is None when no iteration is valid. ``margin`` is the difference in the key that decided, 0 for a tie-break."""

    best: CaseIteration | None
    runner_up: int | None
    margin: float | None
    decided_by: str | None
    explanation: str
    invalid: tuple[InvalidView, ...]


def rank_case(iterations: Iterable[CaseIteration], order: LexicographicOrder) -> CaseRanking:
    """Rank the iterations of one case. Errors: :class:`jumar.errors.ScoreError` for a number twice."""
    listed = tuple(iterations)
    by_number = {iteration.number: iteration for iteration in listed}
    if len(by_number) < len(listed):
        raise ScoreError("an iteration is there twice: every iteration of a case needs a number of its own")
    valid = [iteration for iteration in by_number.values() if iteration.status == "ok"]
    failed = [
        InvalidView(number=iteration.number, reason=iteration.reason or iteration.status)
        for iteration in by_number.values()
        if iteration.status != "ok"
    ]
    ranking = order.rank(iteration.view() for iteration in valid)
    numbers = [view.number for view in ranking.ordered]
    margin = None
    if len(numbers) > 1:
        best_value, second_value = (by_number[number].values.get(ranking.decided_by or "") for number in numbers[:2])
        margin = 0.0 if best_value is None or second_value is None else abs(difference(best_value, second_value))
    return CaseRanking(
        best=by_number[numbers[0]] if numbers else None,
        runner_up=numbers[1] if len(numbers) > 1 else None,
        margin=margin,
        decided_by=ranking.decided_by,
        explanation=ranking.explanation,
        invalid=tuple(sorted((*failed, *ranking.invalid), key=lambda view: view.number)),
    )


@dataclass(frozen=True, slots=True)
class Condition:
    """``accuracy >= 7``: what a key's value has to be."""

    key: str
    sign: str
    limit: float

    def holds(self, values: Mapping[str, float | None]) -> bool:
        """Return whether it holds; what has no value meets nothing."""
        value = values.get(self.key)
        return value is not None and _SIGNS[self.sign](value, self.limit)

    def __str__(self) -> str:
        return f"{self.key} {self.sign} {self.limit:g}"


_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = MappingProxyType(
    {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
)
_CONDITION: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*(>=|<=|>|<)\s*([-+.\deE]+)\s*")


def parse_conditions(text: str, score: str) -> tuple[Condition, ...]:
    """Read ``"accuracy >= 7 and cost < 2"``; the key ``score`` stands for ``score``, the first one of the order.

    Errors: :class:`jumar.errors.ConfigError`.
    """
    found: list[Condition] = []
    for part in text.split(" and "):
        match = _CONDITION.fullmatch(part)
        try:
            limit = float(match[3]) if match is not None else math.nan
        except ValueError:
            limit = math.nan
        if match is None or not is_finite(limit):
            raise ConfigError(
                f"carry_if: {shown(part.strip())} should be a key, >=, >, <= or < and a number, as in "
                '"accuracy >= 7 and overall > 5"'
            )
        found.append(Condition(score if match[1] == "score" else match[1], match[2], limit))
    return tuple(found)


def thresholds_reached(
    values: Mapping[str, float | None], thresholds: Mapping[str, float], at_most: Collection[str] = ()
) -> bool:
    """Return whether every threshold is reached: ``≥``, and ``≤`` for the keys in ``at_most``, where less is better.

    Without thresholds nothing is ever reached; a missing value is not.
    """
    if not thresholds:
        return False
    compared = [(values.get(name), limit, name in at_most) for name, limit in thresholds.items()]
    return all(value is not None and (value <= limit if most else value >= limit) for value, limit, most in compared)


def case_parent(iterations: Sequence[CaseIteration], continue_from: str, order: LexicographicOrder) -> CaseIteration | None:
    """Return the iteration whose outputs the next one builds on; None for what the case started from.

    ``previous`` is the last one whose steps all did their work; ``best`` the best so far, else the previous.
    """
    if continue_from == "best":
        best = rank_case(iterations, order).best
        if best is not None:
            return best
    return last_complete(iterations)


def last_complete(iterations: Sequence[CaseIteration]) -> CaseIteration | None:
    """Return the last of the iterations, which come by number, whose steps all did their work."""
    return next((iteration for iteration in reversed(iterations) if iteration.complete), None)


def check_limits(limits: CaseLimits) -> None:
    """Raise :class:`jumar.errors.ConfigError` for a limit that cannot mean anything.

    Thresholds must be finite and may lie above every score there is; ``max_iters`` and ``consecutive_failures`` are whole
    numbers from 1; ``max_seconds`` is above 0.
    """
    for name, least in limits.thresholds.items():
        if not is_finite(least):
            raise ConfigError(f"the stop threshold for {shown(name)} is {shown(least)}: give a finite number")
    for name, value in (("max_iters", limits.max_iters), ("consecutive_failures", limits.consecutive_failures)):
        if not is_finite(value) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{name} is {shown(value)}: give a whole number that is 1 or more")
    if limits.max_seconds is not None and not (is_finite(limits.max_seconds) and limits.max_seconds > 0):
        raise ConfigError(f"max_seconds is {shown(limits.max_seconds)}: give a number above 0")


def stop_case(iterations: Sequence[CaseIteration], limits: CaseLimits, *, seconds: float) -> CaseStop | None:
    """Return why the case ends now, or None to go on.

    ``iterations`` are those of the case, by number; ``seconds`` is what all steps of the run took. Of several reasons the first
    in this order counts: thresholds, max_iters, consecutive_failures, max_seconds.
    """
    for iteration in iterations:
        if iteration.status == "ok" and thresholds_reached(iteration.values, limits.thresholds, limits.at_most):
            signs = {name: "≤" if name in limits.at_most else "≥" for name in limits.thresholds}
            wanted = ", ".join(f"{name} {signs[name]} {points(limit)}" for name, limit in limits.thresholds.items())
            return CaseStop(stopped_by="thresholds", detail=f"iteration {iteration.number} reached {wanted}")
    if len(iterations) >= limits.max_iters:
        return CaseStop(stopped_by="max_iters", detail=f"{len(iterations):,} of {plural(limits.max_iters, 'iteration')} done")
    failed = 0
    for iteration in reversed(iterations):
        if iteration.status == "ok":
            break
        failed += 1
    if failed >= limits.consecutive_failures:
        last = iterations[-1]
        reason = last.reason or last.status
        row = f"{plural(failed, 'iteration')} in a row without a usable score"
        return CaseStop(stopped_by="consecutive_failures", detail=f"{row}; the last: {reason}")
    if limits.max_seconds is not None and seconds >= limits.max_seconds:
        detail = f"{points(seconds)} of {points(limits.max_seconds)} seconds used"
        return CaseStop(stopped_by="max_seconds", detail=detail)
    return None
