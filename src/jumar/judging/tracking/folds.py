"""Splitting items so that what belongs together stays together."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

__all__ = ["Numbers", "folds_by_group", "group_numbers"]

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
