"""How far two judges of the same items are from each other, and intervals of such figures by whole groups."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumar.core.record import Record

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


def group_numbers(groups: Sequence[str | None]) -> Numbers:
    """Return a number for each item, the same within a group, counted from 0 as they appear; an item without a group is one."""
    seen: dict[tuple[str, object], int] = {}
    keys = (("item", position) if name is None else ("group", name) for position, name in enumerate(groups))
    return np.fromiter((seen.setdefault(key, len(seen)) for key in keys), dtype=np.int64, count=len(groups))


def folds_by_group(groups: Sequence[str | None], count: int = 10) -> Numbers:
    """Return each item's fold, from 0 to ``count`` - 1 or fewer: whole groups, sizes balanced, the same for the same groups.

    The order of the groups comes from a hash of their names, so that neighbours in the file do not end up together.
    """
    numbers = group_numbers(groups)
    total = int(numbers.max()) + 1 if numbers.size else 0
    names = [""] * total
    for position, (number, name) in enumerate(zip(numbers.tolist(), groups, strict=True)):
        names[number] = names[number] or (f"item {position}" if name is None else f"group {name}")
    order = sorted(range(total), key=lambda number: hashlib.sha256(names[number].encode("utf-8", "surrogatepass")).digest())
    fold = np.empty(total, dtype=np.int64)
    fold[order] = np.arange(total) % max(1, min(count, total))
    return fold[numbers]


_WORK: Final = 20_000_000
_FEWEST, _MOST = 200, 1_000


class Interval(NamedTuple):
    """The middle 95 % of the resampled figure."""

    low: float
    high: float


def resamples(items: int) -> int:
    """Return how many resamples there are for so many items: 1,000, fewer for very many items, never below 200."""
    return max(_FEWEST, min(_MOST, _WORK // max(1, items)))


def bootstrap(
    groups: Sequence[str | None],
    statistic: Callable[[Numbers], Mapping[str, float | None]],
    *,
    seed: int = 0,
    count: int | None = None,
) -> dict[str, Interval | None]:
    """Return the percentile interval of every figure of ``statistic``, which is given the ``(items,)`` positions of a resample.

    Groups are drawn with replacement (Field and Welsh 2007). A figure that does not exist in more than one of twenty
    resamples has no
    interval (None); nor has any with fewer than two groups. The same ``seed`` gives the same intervals.
    """
    numbers = group_numbers(groups)
    members = _members(numbers) if numbers.size else []
    if len(members) < 2:
        return dict.fromkeys(statistic(np.arange(numbers.size)), None)
    random = np.random.default_rng(seed)
    seen: dict[str, list[float]] = {}
    total = count or resamples(numbers.size)
    for _ in range(total):
        drawn: list[int] = random.integers(0, len(members), len(members)).tolist()
        for name, value in statistic(np.concatenate([members[one] for one in drawn])).items():
            seen.setdefault(name, [])
            if value is not None:
                seen[name].append(value)
    return {name: _middle(values) if len(values) >= 0.95 * total else None for name, values in seen.items()}


def _members(numbers: Numbers) -> list[Numbers]:
    """Return the positions of each group; at least one item."""
    order = np.argsort(numbers, kind="stable")
    ends = np.flatnonzero(np.diff(numbers[order])) + 1
    parts: list[Numbers] = [order[start:end] for start, end in pairwise([0, *ends.tolist(), order.size])]
    return parts


def _middle(values: list[float]) -> Interval:
    low, high = np.quantile(np.asarray(values), (0.025, 0.975))
    return Interval(float(low), float(high))


Scores = NDArray[np.float64]

HALF: Final = 0.5 + 1e-9
"""The limit of an item's error; the last digit of 4.1 - 3.6 must not decide."""


@dataclass(frozen=True, slots=True)
class Agreement(Record):
    """``mae`` and ``bias`` (cheap - expensive) in points of the scale; ``off_by_more_than_half`` is a share.

    The ranks and kappa are None where they do not exist: fewer than two items, or a judge without variance.
    """

    mae: float
    bias: float
    spearman: float | None
    kendall: float | None
    quadratic_kappa: float | None
    off_by_more_than_half: float


def agreement(expensive: Scores, cheap: Scores) -> Agreement:
    """Return the agreement over ``(items,)`` scores from 1 to 5, at least one. Kendall is tau-b; both ranks average ties."""
    error = cheap - expensive
    return Agreement(
        mae=float(np.abs(error).mean()),
        bias=float(error.mean()),
        spearman=spearman(expensive, cheap),
        kendall=kendall(expensive, cheap),
        quadratic_kappa=quadratic_kappa(expensive, cheap),
        off_by_more_than_half=off_by_more_than_half(error),
    )


def off_by_more_than_half(error: Scores) -> float:
    """Return the share of ``(items,)`` errors beyond half a point either way."""
    return float((np.abs(error) > HALF).mean())


def spearman(one: Scores, other: Scores) -> float | None:
    """Return the correlation of the ranks, None where one of them has no variance."""
    if _constant(one) or _constant(other):
        return None
    ranks = np.corrcoef(_ranks(one), _ranks(other))
    return _clipped(float(ranks[0, 1]))


def _ranks(scores: Scores) -> Scores:
    return np.asarray(_stats().rankdata(scores), dtype=np.float64)


def kendall(one: Scores, other: Scores) -> float | None:
    """Return tau-b, None where one of them has no variance."""
    if _constant(one) or _constant(other):
        return None
    return _clipped(float(_stats().kendalltau(one, other).statistic))


def quadratic_kappa(one: Scores, other: Scores) -> float | None:
    """Return :func:`weighted_kappa` of the scores rounded to whole points (halves up).

    0 where a judge gave one whole score to everything, None where both gave the same one.
    """
    first, second = np.floor(one + 0.5), np.floor(other + 0.5)
    kappa = weighted_kappa(first, second)
    return 0.0 if kappa is None and (first != second).any() else kappa


def weighted_kappa(first: Scores, second: Scores) -> float | None:
    """Return Cohen's kappa of ``(items,)`` scores with quadratic weights, 1 - observed / expected squared difference.

    Cohen 1968; the expected one is as if the two were independent. Of whole points it is the kappa of the table of categories;
    other scores are their own categories. None where a rater gave one score to everything: whatever was expected of chance is
    then what was seen.
    """
    if _constant(first) or _constant(second):
        return None
    observed = float(((first - second) ** 2).mean())
    # E(x - y)² of independent x and y, from their means and variances: no table of categories is needed
    expected = float(first.var() + second.var() + (first.mean() - second.mean()) ** 2)
    return 1.0 - observed / expected


@cache
def _stats() -> Any:
    """SciPy's statistics take most of a second to import, and bring no types."""
    return import_module("scipy.stats")


def _constant(scores: Scores) -> bool:
    return scores.size < 2 or bool((scores == scores[0]).all())


def _clipped(value: float) -> float:
    """Rounding may leave a correlation a hair outside."""
    return max(-1.0, min(1.0, value))


class Ranks:
    """``(items,)`` scores, sorted once: in a resample only how often each item was drawn changes."""

    def __init__(self, scores: Scores) -> None:
        values, self._place = np.unique(scores, return_inverse=True)
        self._count = values.size

    def of(self, drawn: Scores) -> Scores | None:
        """Return each item's mean rank less the mean of all, None where all that was drawn is equal.

        ``drawn`` is how often each item is in the resample.
        """
        together = np.bincount(self._place, drawn, minlength=self._count)
        if np.count_nonzero(together) < 2:
            return None
        ranks: Scores = (np.cumsum(together) - 0.5 * together)[self._place]
        ranks -= float(ranks @ drawn) / float(drawn.sum())
        return ranks


class RankPairs:
    """Two ``(items,)`` scores, every pair of items compared once: in a resample only how often each was drawn changes.

    Memory grows with the square of the items; three matrices of :data:`PAIRS_UP_TO` are 48 MB.
    """

    def __init__(self, one: Scores, other: Scores) -> None:
        orders = [np.sign(scores[:, None] - scores).astype(np.float32) for scores in (one, other)]
        self._agree = orders[0] * orders[1]
        self._differ = [np.abs(order) for order in orders]

    def kendall(self, drawn: Scores) -> float | None:
        """Return :func:`kendall` of a resample, None where one of the scores does not vary."""
        times = drawn.astype(np.float32)  # whole numbers, whose sums float32 holds exactly
        first, second = (float(times @ (differ @ times)) for differ in self._differ)
        return None if not first or not second else _clipped(float(times @ (self._agree @ times)) / (first * second) ** 0.5)


PAIRS_UP_TO: Final = 2_000


def times_drawn(at: Numbers, items: int) -> Scores:
    """Return how often each of the items is among the positions ``at``."""
    return np.bincount(at, minlength=items).astype(np.float64)


def rank_correlation(one: Scores | None, other: Scores | None, drawn: Scores) -> float | None:
    """Return Spearman's correlation in a resample, of what :meth:`Ranks.of` gave of both; None where one does not vary."""
    if one is None or other is None:
        return None
    scale = float(one**2 @ drawn) * float(other**2 @ drawn)
    return max(-1.0, min(1.0, float((one * other) @ drawn) / scale**0.5))
