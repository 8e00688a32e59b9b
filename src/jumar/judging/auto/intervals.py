"""How far the expensive judge may lie from a cheap score: of the average of all items, and of a single one.

The average is of all items, though the judge was asked about some of them only. Prediction-powered inference (Angelopoulos,
Bates, Fannjiang, Jordan and Zrnic 2023) with unequal probabilities of being asked (Horvitz and Thompson 1952): every item has
its cheap score, and those that were asked correct it by their error over the probability that they are asked. The average is
right on average however wrong the cheap judge is; how wrong it is widens the interval.

How wrong it is, a few audits do not show where errors are rare and large: of items of which one in twenty-five is missed by 2.5
points, twenty audits find none as often as not. So the interval is also widened by what the audits may not have met, by the
rule of three (Hanley and Lippman-Hand 1983): of ``m`` groups with audits none may be of a kind that makes up 3/m of all, and
its items may be wrong as far as the scale goes.

Of a single item it is half widths of conformal intervals, by the height of the score. The errors come from items that the cheap
score was not fitted on. Items of one group are no independent evidence, so that every group counts as one, shared by its items,
and a group that nobody has seen stands for the worst that may come (hierarchical conformal prediction: Lee, Barber and Willett
2023). Errors are compared within bins of the cheap score (Mondrian: Vovk, Lindsay, Nouretdinov and Gammerman 2003), because a
judge that is right about the best items may not be so about the others. A decision can be wrong on one side only, so that the
confidence is of each side by itself: the score of a new group's item is below its interval in at most 1 − confidence of the
cases, and above it in as many, on average over sets of items and in each bin.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from jumar.core.record import Record
from jumar.core.text import escape
from jumar.errors import PatternLoadError
from jumar.judging.patterns.models import PatternSet

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


LEVELS: Final = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)
"""Confidences for which half widths are kept; one between two of them gets the wider ones."""

MOST_BINS: Final = 5
FEWEST_GROUPS: Final = 30
"""Groups in a bin; below twenty a tail of 5 % cannot be bounded at all, and near twenty the largest error bounds it."""

_CLOSE: Final = 1e-9

Width = Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None


class ScoreBin(BaseModel):
    """Cheap scores up to ``up_to`` (None: all that are left) and above the bin before.

    ``below`` and ``above`` are half widths, one a level: how far the judge may lie below and above the cheap score; None where
    there are too few groups to say.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    up_to: Annotated[float, Field(allow_inf_nan=False)] | None
    items: Annotated[int, Field(ge=0)]
    groups: Annotated[int, Field(ge=0)]
    below: tuple[Width, ...]
    above: tuple[Width, ...]


class ConformalIntervals(BaseModel):
    """The part ``interval`` of a calibration. Levels rise, bins too; the last bin has no end."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    kind: Literal["conformal"] = "conformal"
    levels: Annotated[tuple[Annotated[float, Field(gt=0.0, lt=1.0)], ...], Field(min_length=1)]
    bins: Annotated[tuple[ScoreBin, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _in_order(self) -> ConformalIntervals:
        ends = [one.up_to for one in self.bins]
        inner = [end for end in ends[:-1] if end is not None]
        if ends[-1] is not None or len(inner) < len(ends) - 1 or any(one >= other for one, other in pairwise(inner)):
            raise ValueError("the bins' up_to must increase, and only the last one is null")
        if any(one >= other for one, other in pairwise(self.levels)):
            raise ValueError("the levels must increase")
        if any(len(side) != len(self.levels) for one in self.bins for side in (one.below, one.above)):
            raise ValueError("a bin has a half width for each level, below and above")
        return self

    def at(self, score: float, confidence: float) -> tuple[float, float]:
        """Return the interval, within 1–5, of the judge's score of an item with this cheap ``score``: each end at ``confidence``.

        A confidence above the highest level, and a bin of too few groups, give the whole scale.
        """
        place = bisect_left(self.levels, confidence - _CLOSE)
        if place == len(self.levels):
            return _LOWEST, _HIGHEST
        one = self.bins[bisect_left([end for end in (each.up_to for each in self.bins[:-1]) if end is not None], score)]
        below, above = one.below[place], one.above[place]
        low = _LOWEST if below is None else max(_LOWEST, score - below)
        high = _HIGHEST if above is None else min(_HIGHEST, score + above)
        return low, high


def fit_intervals(
    cheap: Sequence[float],
    judge: Sequence[float],
    groups: Sequence[str | None],
    *,
    levels: Sequence[float] = LEVELS,
    most_bins: int = MOST_BINS,
    fewest_groups: int = FEWEST_GROUPS,
) -> ConformalIntervals:
    """Return half widths from ``(items,)`` cheap scores, judge's scores and groups (None: an item by itself).

    The cheap scores must not come from a fit on the same items. There are as many bins, at quantiles of the cheap scores, as have
    ``fewest_groups`` groups each, ``most_bins`` at most and one at least. Errors: ValueError for sequences of different lengths,
    and for no items.
    """
    if not len(cheap) == len(judge) == len(groups):
        raise ValueError(f"{len(cheap)} cheap scores, {len(judge)} of the judge, {len(groups)} groups: give as many of each")
    if not cheap:
        raise ValueError("there are no errors to make intervals of")
    keys = [("item", str(place)) if name is None else ("group", name) for place, name in enumerate(groups)]
    edges = _edges(cheap, keys, most_bins, fewest_groups)
    members: list[list[int]] = [[] for _ in range(len(edges) + 1)]
    for place, score in enumerate(cheap):
        members[bisect_left(edges, score)].append(place)
    bins: list[ScoreBin] = []
    for end, own in zip([*edges, None], members, strict=True):
        errors = [judge[place] - cheap[place] for place in own]
        names = [keys[place] for place in own]
        bins.append(
            ScoreBin(
                up_to=end,
                items=len(own),
                groups=len(set(names)),
                below=_widths([-error for error in errors], names, levels),
                above=_widths(errors, names, levels),
            )
        )
    return ConformalIntervals(levels=tuple(levels), bins=tuple(bins))


def intervals_of(patterns: PatternSet) -> ConformalIntervals | None:
    """Return the intervals of a calibrated set, None where it has none.

    Errors: :class:`jumar.errors.PatternLoadError` for some that cannot be read.
    """
    card = patterns.scorecard()
    if card is None or card.interval is None:
        return None
    try:
        return ConformalIntervals.model_validate(card.interval)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(["calibration", "interval", *map(str, first["loc"])])
        raise PatternLoadError(
            f"the patterns' {where}: {escape(str(first['msg']))}; learn the set again, or set calibration.interval to null"
        ) from None


def _edges(cheap: Sequence[float], keys: Sequence[Any], most: int, fewest: int) -> list[float]:
    """Return where bins end, between scores that occur; chosen by scores and groups alone, never by errors."""
    ordered = sorted(cheap)
    for count in range(most, 1, -1):
        edges = sorted({ordered[len(ordered) * part // count - 1] for part in range(1, count) if len(ordered) * part >= count})
        edges = [edge for edge in edges if edge < ordered[-1]]
        seen = Counter(place for place, _ in {(bisect_left(edges, score), key) for score, key in zip(cheap, keys, strict=True)})
        if len(edges) == count - 1 and min(seen.values()) >= fewest:
            return edges
    return []


def _widths(errors: Sequence[float], names: Sequence[Any], levels: Sequence[float]) -> tuple[float | None, ...]:
    """Return for each level how far ``errors`` reach upwards: their weighted quantile, never below 0."""
    sizes = Counter(names)
    ranked = sorted(zip(errors, names, strict=True), key=lambda pair: pair[0])
    found: list[float | None] = []
    for level in levels:
        wanted = (len(sizes) + 1) * level
        total = 0.0
        width: float | None = None
        for error, name in ranked:
            total += 1.0 / sizes[name]
            if total >= wanted - _CLOSE:
                width = max(0.0, error)
                break
        found.append(None if width is None or not math.isfinite(width) else width)
    return tuple(found)
