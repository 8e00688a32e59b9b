"""Otsu: the variance between the groups, for every cut."""

from __future__ import annotations

import numpy as np

from jumar.topk.batch.common import Floats, Kept, at_least, pick
from jumar.topk.strategies.otsu import OtsuSelectionStrategy

__all__ = ["keep"]


def keep(table: Floats, strategy: OtsuSelectionStrategy, max_k: int, min_k: int) -> Kept:  # noqa: ARG001
    """Return the best break; see :func:`jumar.topk.strategies.otsu.separations`, whose order of operations this is."""
    counts = at_least(table, strategy.floor)
    valid = counts.copy()
    spread = table[0] - pick(table, np.maximum(valid, 1) - 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        sums = (table[0] - table) / spread
        for k in range(1, len(sums)):
            np.add(sums[k], sums[k - 1], out=sums[k])
        total = pick(sums, np.maximum(valid, 1) - 1)
        best = np.full(table.shape[1], -1.0)
        for k in range(1, len(sums)):
            value = k * total - valid * sums[k - 1]
            value *= value
            value /= k * (valid - k)
            better = (value > best) & (k < valid) & (spread > 0)
            np.copyto(counts, k, where=better)
            np.copyto(best, value, where=better)
    return Kept(counts)
