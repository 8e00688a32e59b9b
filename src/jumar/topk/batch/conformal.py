"""Conformal: a threshold on the score, or on its share of the best one."""

from __future__ import annotations

import numpy as np

from jumar.topk.batch.common import Floats, Kept, at_least, tally
from jumar.topk.strategies.conformal import ConformalSelectionStrategy

__all__ = ["keep"]


def keep(table: Floats, strategy: ConformalSelectionStrategy, max_k: int, min_k: int) -> Kept:  # noqa: ARG001
    """Return how many reach the threshold; all where there is none."""
    if strategy.on == "score" or strategy.threshold is None:
        return Kept(at_least(table, strategy.limit(1.0)))
    top = table[0]
    return Kept(tally(table >= np.where(top > 0, strategy.threshold * top, -np.inf)))
