"""Folds and intervals by whole groups: items of one question or document are no independent evidence, and stay together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

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
