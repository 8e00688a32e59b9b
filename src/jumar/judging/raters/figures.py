"""How far raters agree: exactly, within a point, in categories, in ranks and as a whole, with intervals by group. Pure.

Missing ratings are allowed: figures of a pair use the items that both rated, alpha all items with two ratings or more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from jumar.core.record import Record
from jumar.judging.agreement import Interval, Numbers, Scores, bootstrap, group_numbers, spearman, weighted_kappa
from jumar.judging.asking.summary import JudgeNoise
from jumar.judging.raters.ratings import Rater, Rating, left_out

Table = NDArray[np.float64]
WORST: Final = 20
_HAIR: Final = 1e-9  # the last digit of 4.1 - 3.1 must not decide
FIGURES: Final = ("exact", "within_one", "kappa_weighted", "alpha", "spearman", "bias")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion(Record):
    """How often the first rater gave ``labels[row]`` where the second gave ``labels[column]``; scores in whole points."""

    labels: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Record):
    """Two raters on the ``items`` that both rated. ``exact`` and ``within_one`` are shares, ``bias`` is second - first in points.

    ``kappa_weighted`` and ``spearman`` are None where they do not exist: a rater who gave one score to everything.
    """

    first: str
    second: str
    items: int
    exact: float
    within_one: float
    kappa_weighted: float | None
    spearman: float | None
    bias: float
    confusion: Confusion


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterFigures:
    """``bias`` is the mean distance to the mean of the others on the same items, in points; ``noise`` is of repeats.

    ``alpha_without`` is that of the other raters, where there are two or more of them.
    """

    name: str
    items: int
    mean: float
    sd: float
    low: float
    high: float
    bias: float | None
    alpha_without: float | None
    noise: JudgeNoise | None

    @property
    def constant(self) -> bool:
        """Whether one score was given to everything, so that there is neither kappa nor a rank correlation."""
        return self.low == self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement(Record):
    """An item with its scores by rater; ``difference`` is the highest less the lowest."""

    id: str
    group: str | None
    difference: float
    scores: Mapping[str, float]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterAgreement:
    """The agreement of two raters or more.

    The figures of more than two are means over the pairs, except ``alpha``, which is one figure of all, and ``bias``, which only
    two raters have. ``items`` counts those that two raters or more rated, ``groups`` their groups. ``intervals`` are of 95 %, by
    resampling whole groups; None where a figure or a second group is missing. ``unmatched`` are ids that one rater alone has.
    """

    raters: tuple[RaterFigures, ...]
    items: int
    groups: int
    exact: float
    within_one: float
    kappa_weighted: float | None
    alpha: float | None
    spearman: float | None
    bias: float | None
    intervals: Mapping[str, Interval | None]
    pairs: tuple[Pair, ...]
    worst: tuple[Disagreement, ...]
    unmatched: Mapping[str, Sequence[str]]
    scores: tuple[tuple[float | None, ...], ...]
    ids: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``jumar agree --json``."""
        return {
            "raters": [
                {
                    "name": rater.name,
                    "items": rater.items,
                    "mean": rater.mean,
                    "sd": rater.sd,
                    "range": [rater.low, rater.high],
                    "bias": rater.bias,
                    "alpha_without": rater.alpha_without,
                    "noise": None if rater.noise is None else rater.noise.to_json(),
                }
                for rater in self.raters
            ],
            "items": self.items,
            "groups": self.groups,
            **{name: getattr(self, name) for name in FIGURES},
            "intervals": {name: None if found is None else list(found) for name, found in self.intervals.items()},
            "confusion": self.pairs[0].confusion.to_json() if len(self.pairs) == 1 else None,
            "pairs": [pair.to_json() for pair in self.pairs],
            "worst": [item.to_json() for item in self.worst],
            "unmatched": {name: list(ids) for name, ids in self.unmatched.items() if ids},
        }


def compare_raters(raters: Sequence[Rater], *, seed: int = 0) -> RaterAgreement:
    """Return how far two raters or more agree, each sharing two items at least with another.

    ``seed`` is that of the resamples: the same one gives the same intervals.
    """
    alone = left_out(raters)
    dropped = {item for ids in alone.values() for item in ids}
    ids: list[str] = list(dict.fromkeys(item for rater in raters for item in rater.ratings if item not in dropped))
    table: Table = np.array([[rater.single.get(item, math.nan) for item in ids] for rater in raters], dtype=np.float64)
    groups = [next((of.group for of in _ratings(raters, item) if of.group is not None), None) for item in ids]
    names = [rater.name for rater in raters]
    pairs = tuple(
        _pair(names[first], names[second], table[first], table[second])
        for first, second in combinations(range(len(raters)), 2)
        if _both(table[first], table[second]).any()
    )
    figures = _figures(table)

    def statistic(positions: Numbers) -> dict[str, float | None]:
        return _figures(table[:, positions])

    return RaterAgreement(
        raters=tuple(_rater(rater, table, place) for place, rater in enumerate(raters)),
        items=len(ids),
        groups=int(group_numbers(groups).max()) + 1,
        exact=figures["exact"] or 0.0,
        within_one=figures["within_one"] or 0.0,
        kappa_weighted=figures["kappa_weighted"],
        alpha=figures["alpha"],
        spearman=figures["spearman"],
        bias=figures["bias"],
        intervals=bootstrap(groups, statistic, seed=seed),
        pairs=pairs,
        worst=_worst(raters, table, ids, groups),
        unmatched=alone,
        scores=tuple(tuple(None if math.isnan(score) else score for score in row) for row in table.tolist()),
        ids=tuple(ids),
    )


def interval_alpha(table: Table) -> float | None:
    """Return Krippendorff's alpha for interval data of ``(raters, items)`` scores, NaN where one is missing.

    1 - observed / expected squared difference within items and over all ratings (Krippendorff 2011, section E). Items with one
    rating count for nothing. None where there are no two different ratings.
    """
    rated = ~np.isnan(table)
    table = table[:, rated.sum(axis=0) >= 2]
    rated = ~np.isnan(table)
    ratings = int(rated.sum())
    if not ratings:
        return None
    values = table[rated]
    spread = float(((values - values.mean()) ** 2).sum())
    if spread == 0:
        return None
    counts = rated.sum(axis=0)
    means = np.nansum(table, axis=0) / counts
    within = np.nansum((table - means) ** 2, axis=0)
    observed = float((within * counts / (counts - 1)).sum()) / ratings
    return 1.0 - observed / (spread / (ratings - 1))


def _figures(table: Table) -> dict[str, float | None]:
    """Return the figures of ``(raters, items)`` scores: means over the pairs where there are more than two raters."""
    shares: list[tuple[float, float]] = []
    kappas: list[float | None] = []
    ranks: list[float | None] = []
    for first, second in combinations(table, 2):
        both = _both(first, second)
        if both.any():
            one, other = first[both], second[both]
            shares.append(_shares(one, other))
            kappas.append(weighted_kappa(one, other))
            ranks.append(spearman(one, other))
    return {
        "exact": fmean(exact for exact, _ in shares) if shares else None,
        "within_one": fmean(within for _, within in shares) if shares else None,
        "kappa_weighted": _mean(kappas),
        "alpha": interval_alpha(table),
        "spearman": _mean(ranks),
        "bias": fmean((table[1] - table[0])[_both(table[0], table[1])]) if len(table) == 2 and shares else None,
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the pairs' figures, None where a pair has none: a mean over the others would be of other raters."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _both(first: Scores, second: Scores) -> NDArray[np.bool_]:
    return ~(np.isnan(first) | np.isnan(second))


def _shares(first: Scores, second: Scores) -> tuple[float, float]:
    apart = np.abs(first - second)
    return float((apart <= _HAIR).mean()), float((apart <= 1 + _HAIR).mean())


def _pair(first: str, second: str, scores: Scores, others: Scores) -> Pair:
    both = _both(scores, others)
    one, other = scores[both], others[both]
    exact, within = _shares(one, other)
    return Pair(
        first=first,
        second=second,
        items=int(both.sum()),
        exact=exact,
        within_one=within,
        kappa_weighted=weighted_kappa(one, other),
        spearman=spearman(one, other),
        bias=float((other - one).mean()),
        confusion=_confusion(one, other),
    )


def _confusion(first: Scores, second: Scores) -> Confusion:
    """Return the table in whole points, halves up; at most twenty labels, so wide scales in equal steps."""
    step = max(1, math.ceil((max(first.max(), second.max()) - min(first.min(), second.min())) / 20))
    rows, columns = (np.floor(scores / step + 0.5).astype(np.int64) for scores in (first, second))
    low, high = int(min(rows.min(), columns.min())), int(max(rows.max(), columns.max()))
    counts = np.zeros((high - low + 1, high - low + 1), dtype=np.int64)
    np.add.at(counts, (rows - low, columns - low), 1)
    return Confusion(
        labels=tuple(label * step for label in range(low, high + 1)), counts=tuple(tuple(row) for row in counts.tolist())
    )


def _rater(rater: Rater, table: Table, place: int) -> RaterFigures:
    scores = table[place][~np.isnan(table[place])]
    others = np.delete(table, place, axis=0)
    rated = ~np.isnan(others)
    shared = rated.any(axis=0) & ~np.isnan(table[place])
    means: Scores = np.nansum(others[:, shared], axis=0) / rated[:, shared].sum(axis=0)
    return RaterFigures(
        name=rater.name,
        items=int(scores.size),
        mean=float(scores.mean()),
        sd=float(scores.std(ddof=1)) if scores.size > 1 else 0.0,
        low=float(scores.min()),
        high=float(scores.max()),
        bias=float((table[place][shared] - means).mean()) if shared.any() else None,
        alpha_without=interval_alpha(others) if len(others) > 1 else None,
        noise=rater.noise,
    )


def _ratings(raters: Sequence[Rater], item: str) -> list[Rating]:
    """Return what the files say of an item, in their order: not each of them needs to have its group and its text."""
    return [rater.ratings[item] for rater in raters if item in rater.ratings]


def _worst(raters: Sequence[Rater], table: Table, ids: Sequence[str], groups: Sequence[str | None]) -> tuple[Disagreement, ...]:
    apart = np.nanmax(table, axis=0) - np.nanmin(table, axis=0)
    order = np.argsort(-apart, kind="stable")[:WORST]
    return tuple(
        Disagreement(
            id=ids[place],
            group=groups[place],
            difference=float(apart[place]),
            scores={
                rater.name: float(table[row, place]) for row, rater in enumerate(raters) if not math.isnan(table[row, place])
            },
            text=next((of.text for of in _ratings(raters, ids[place]) if of.text), ""),
        )
        for place in cast("list[int]", order.tolist())
        if apart[place] > _HAIR
    )
