"""The average of what the expensive judge would say of all items, though it was asked about some of them only.

Prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023) with unequal probabilities of being asked
(Horvitz and Thompson 1952): every item has its cheap score, and those that were asked correct it by their error over the
probability that they are asked. The average is right on average however wrong the cheap judge is; how wrong it is widens the
interval.

How wrong it is, a few audits do not show where errors are rare and large: of items of which one in twenty-five is missed by
2.5 points, twenty audits find none as often as not. So the interval is also widened by what the audits may not have met, by the
rule of three (Hanley and Lippman-Hand 1983): of ``m`` groups with audits none may be of a kind that makes up 3/m of all, and
its items may be wrong as far as the scale goes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from jumar.core.record import Record

LEVEL: Final = 0.95
FEWEST_AUDITS: Final = 10
"""Groups with items that were drawn with a probability below 1 and judged; with fewer nobody knows how far they spread."""

_UNMET: Final = 3.0
_LOWEST, _HIGHEST = 1.0, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedAverage(Record):
    """An average from 1 to 5 and its interval, of ``level``, by ``groups``; ``cheap`` is the plain average of the cheap scores.

    ``asked`` items were judged; ``drawn`` of them, of ``drawn_groups``, had a probability below 1. The interval is None where
    there are fewer than two groups, or fewer than :data:`FEWEST_AUDITS` drawn ones while there are items that nobody judged.
    """

    estimate: float
    interval: tuple[float, float] | None
    level: float
    cheap: float | None
    items: int
    groups: int
    asked: int
    drawn: int
    drawn_groups: int


def corrected_average(
    cheap: Sequence[float | None],
    judge: Sequence[float | None],
    chances: Sequence[float],
    groups: Sequence[str | None],
    *,
    level: float = LEVEL,
) -> CorrectedAverage | None:
    """Return the average of ``(items,)`` scores, None of no items.

    ``chances`` are the probabilities of being asked, above 0 wherever ``judge`` has a score; 1 where ``cheap`` is None. What is
    independent are ``groups`` (None: an item by itself). The interval is about these items and about the groups that they are a
    sample of. Errors: ValueError for what does not fit together.
    """
    if not len(cheap) == len(judge) == len(chances) == len(groups):
        raise ValueError("give as many cheap scores, judge's scores, chances and groups")
    if not cheap:
        return None
    values = [_value(*one) for one in zip(cheap, judge, chances, strict=True)]
    count = len(values)
    estimate = math.fsum(values) / count
    keys: list[Any] = [place if name is None else name for place, name in enumerate(groups)]
    sums: dict[Any, float] = {}
    for key, value in zip(keys, values, strict=True):
        sums[key] = sums.get(key, 0.0) + value - estimate
    known = [one for one in cheap if one is not None]
    drawn = [key for key, one, chance in zip(keys, judge, chances, strict=True) if one is not None and chance < 1.0]
    unasked = [one for one, said in zip(cheap, judge, strict=True) if one is not None and said is None]
    audited = len(set(drawn))
    interval = None
    if not unasked or audited >= FEWEST_AUDITS:
        unmet = (
            _unmet([one - _LOWEST for one in unasked], audited, count),
            _unmet([_HIGHEST - one for one in unasked], audited, count),
        )
        interval = _interval(estimate, list(sums.values()), count, level, audited - 1 if unasked else len(sums) - 1, unmet)
    return CorrectedAverage(
        estimate=min(5.0, max(1.0, estimate)),
        interval=interval,
        level=level,
        cheap=math.fsum(known) / len(known) if known else None,
        items=count,
        groups=len(sums),
        asked=sum(one is not None for one in judge),
        drawn=len(drawn),
        drawn_groups=audited,
    )


def _value(cheap: float | None, judge: float | None, chance: float) -> float:
    """Return what an item gives to the sum; its mean over the draws is the judge's score."""
    if judge is None:
        if cheap is None:
            raise ValueError("an item without a cheap score has to be judged")
        return cheap
    if cheap is None:
        return judge
    if not 0.0 < chance <= 1.0:
        raise ValueError(f"an item that was judged has a chance of being asked above 0 and up to 1, not {chance}")
    return cheap + (judge - cheap) / chance


def _unmet(ranges: Sequence[float], audited: int, count: int) -> float:
    """Return how much items that nobody judged may move the mean of ``count``, though no audit of ``audited`` groups says so.

    ``ranges`` is how far each may be wrong. Those that may be wrong farthest weigh most: where most cheap scores are low and a
    few high, it is about these.
    """
    squares = math.fsum(one**2 for one in ranges)
    if not squares:
        return 0.0
    far = math.sqrt(math.fsum(one**4 for one in ranges) / squares)
    return min(1.0, _UNMET / audited) * far * len(ranges) / count


def _interval(
    estimate: float, sums: Sequence[float], count: int, level: float, freedom: int, unmet: tuple[float, float]
) -> tuple[float, float] | None:
    """Return the interval of a mean of ``count`` items whose ``sums`` of deviations are by independent groups.

    ``freedom`` is how many groups say how far they spread, less one; ``unmet`` is added to what lies below and above.
    """
    if len(sums) < 2:
        return None
    squares = math.fsum(one * one for one in sums)
    error = math.sqrt(squares * len(sums) / (len(sums) - 1)) / count
    student: Any = import_module("scipy.stats").t
    reach = float(student.ppf((1.0 + level) / 2.0, freedom)) * error
    below, above = (math.hypot(reach, one) for one in unmet)
    return max(_LOWEST, estimate - below), min(_HIGHEST, estimate + above)
