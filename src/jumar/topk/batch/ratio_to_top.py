"""Ratio to the best score."""

from __future__ import annotations

import numpy as np

from jumar.topk.batch.common import Floats, Kept, tally
from jumar.topk.strategies.ratio_to_top import RatioToTopSelectionStrategy

__all__ = ["keep"]


def keep(table: Floats, strategy: RatioToTopSelectionStrategy, max_k: int, min_k: int) -> Kept:  # noqa: ARG001
    """Return how many reach their query's threshold; ``min_k`` where the best score is 0 or less."""
    threshold = strategy.ratio * table[0]
    if strategy.min_score is not None:
        threshold = np.maximum(threshold, strategy.min_score)
    counts = tally(table >= threshold)
    counts[table[0] <= 0] = min_k
    return Kept(counts)
