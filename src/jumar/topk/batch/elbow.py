"""Elbow: relative drops, and the first one above the threshold."""

from __future__ import annotations

import numpy as np

from jumar.topk.batch.common import Floats, Kept, leading
from jumar.topk.strategies.elbow import ElbowSelectionStrategy

__all__ = ["keep"]


def keep(table: Floats, strategy: ElbowSelectionStrategy, max_k: int, min_k: int) -> Kept:  # noqa: ARG001
    """Return where the first drop is; see :class:`jumar.topk.strategies.elbow.ElbowSelectionStrategy`."""
    start = max(min_k, 1)
    size, queries = table.shape
    if start > size:
        return Kept(np.full(queries, size, np.intp))
    before, after = table[start - 1 : -1], table[start:]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        drops = np.subtract(before, after)
        # 0 ÷ 0 is no drop and x ÷ 0 an infinite one, as it should be; adding 0 makes 0 of −0
        np.divide(drops, before if before.size == 0 or table[-1].min() > 0 else before + 0.0, out=drops)
        hits = drops > strategy.drop_threshold
    if strategy.min_score is not None:
        np.logical_or(hits, after < strategy.min_score, out=hits)
    counts = leading(hits) + start
    if not min_k and strategy.min_score is not None:
        counts[table[0] < strategy.min_score] = 0
    return Kept(counts)
