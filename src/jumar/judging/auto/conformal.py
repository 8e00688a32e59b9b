"""How far the expensive judge's score may lie from a cheap one: half widths of conformal intervals, by the height of the score.

The errors come from items that the cheap score was not fitted on. Items of one group are no independent evidence, so that every
group counts as one, shared by its items, and a group that nobody has seen stands for the worst that may come (hierarchical
conformal prediction: Lee, Barber and Willett 2023). Errors are compared within bins of the cheap score (Mondrian: Vovk, Lindsay,
Nouretdinov and Gammerman 2003), because a judge that is right about the best items may not be so about the others.

A decision can be wrong on one side only, so that the confidence is of each side by itself: the score of a new group's item is
below its interval in at most 1 − confidence of the cases, and above it in as many, on average over sets of items and in each bin.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from jumar.core.text import escape
from jumar.errors import PatternLoadError
from jumar.judging.patterns.models import PatternSet

LEVELS: Final = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)
"""Confidences for which half widths are kept; one between two of them gets the wider ones."""

MOST_BINS: Final = 5
FEWEST_GROUPS: Final = 30
"""Groups in a bin; below twenty a tail of 5 % cannot be bounded at all, and near twenty the largest error bounds it."""

_LOWEST, _HIGHEST = 1.0, 5.0
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
