"""Largest gap."""

from __future__ import annotations

import numpy as np

from jumar.topk.batch.common import Floats, Kept, at_least
from jumar.topk.strategies.largest_gap import LargestGapSelectionStrategy

__all__ = ["keep"]


def keep(table: Floats, strategy: LargestGapSelectionStrategy, max_k: int, min_k: int) -> Kept:  # noqa: ARG001
    """Return the first of the largest gaps; see :class:`jumar.topk.strategies.largest_gap.LargestGapSelectionStrategy`."""
    weakest_top, floor = strategy.floors
    counts = at_least(table, floor)
    gaps = table[:-1] - table[1:]
    if floor is not None:
        gaps[table[1:] < floor] = 0.0
    widest = np.zeros(table.shape[1])
    for k, gap in enumerate(gaps, 1):
        wider = gap > widest
        np.copyto(counts, k, where=wider)
        np.copyto(widest, gap, where=wider)
    if weakest_top is not None:
        counts[table[0] < weakest_top] = min_k
    return Kept(counts)
