"""The average of what the expensive judge would say of all items, though it was asked about some of them only.

Prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023) with unequal probabilities of being asked
(Horvitz and Thompson 1952): every item has its cheap score, and those that were asked correct it by their error over the
probability that they are asked. The average is right on average however wrong the cheap judge is; how wrong it is widens the
interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Final

__all__ = ["FEWEST_AUDITS", "CorrectedAverage", "corrected_average"]

LEVEL: Final = 0.95
FEWEST_AUDITS: Final = 10
"""Items that were drawn with a probability below 1 and judged; with fewer nobody knows how far they spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedAverage:
    """An average from 1 to 5 and its interval, of ``level``, by ``groups``; ``cheap`` is the plain average of the cheap scores.

    ``asked`` items were judged; ``drawn`` of them had a probability below 1. The interval is None where there are fewer than two
    groups, or fewer than :data:`FEWEST_AUDITS` drawn ones while there are items that nobody judged.
    """

    estimate: float
    interval: tuple[float, float] | None
    level: float
    cheap: float | None
    items: int
    groups: int
    asked: int
    drawn: int

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {**asdict(self), "interval": None if self.interval is None else list(self.interval)}


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
    independent are ``groups`` (None: an item by itself). Errors: ValueError for what does not fit together.
    """
    if not len(cheap) == len(judge) == len(chances) == len(groups):
        raise ValueError("give as many cheap scores, judge's scores, chances and groups")
    if not cheap:
        return None
    values = [_value(*one) for one in zip(cheap, judge, chances, strict=True)]
    count = len(values)
    estimate = math.fsum(values) / count
    sums: dict[tuple[str, object], float] = {}
    for place, (name, value) in enumerate(zip(groups, values, strict=True)):
        key = ("item", place) if name is None else ("group", name)
        sums[key] = sums.get(key, 0.0) + value - estimate
    known = [one for one in cheap if one is not None]
    drawn = sum(one is not None and chance < 1.0 for one, chance in zip(judge, chances, strict=True))
    unasked = any(one is None for one in judge)
    interval = None if unasked and drawn < FEWEST_AUDITS else _interval(estimate, list(sums.values()), count, level)
    return CorrectedAverage(
        estimate=min(5.0, max(1.0, estimate)),
        interval=interval,
        level=level,
        cheap=math.fsum(known) / len(known) if known else None,
        items=count,
        groups=len(sums),
        asked=sum(one is not None for one in judge),
        drawn=drawn,
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


def _interval(estimate: float, sums: Sequence[float], count: int, level: float) -> tuple[float, float] | None:
    """Return the interval of a mean of ``count`` items whose ``sums`` of deviations are by independent groups."""
    if len(sums) < 2:
        return None
    squares = math.fsum(one * one for one in sums)
    error = math.sqrt(squares * len(sums) / (len(sums) - 1)) / count
    student: Any = import_module("scipy.stats").t
    reach = float(student.ppf((1.0 + level) / 2.0, len(sums) - 1)) * error
    return max(1.0, estimate - reach), min(5.0, estimate + reach)
