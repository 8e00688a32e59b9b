"""Expected F1, for every cut."""

from __future__ import annotations

import math

import numpy as np

from jumar.topk.batch.common import Floats, Kept, at_least
from jumar.topk.strategies.expected_f1 import ExpectedF1SelectionStrategy

__all__ = ["WHOLE", "keep"]

WHOLE = True
"""All scores count, those beyond ``max_k`` too."""


def keep(table: Floats, strategy: ExpectedF1SelectionStrategy, max_k: int, min_k: int) -> Kept:  # noqa: ARG001
    """Return the best cut; see :class:`jumar.topk.strategies.expected_f1.ExpectedF1SelectionStrategy`."""
    logs = np.array([[math.log(rank)] for rank in range(1, len(table) + 1)])
    with np.errstate(over="ignore", under="ignore"):
        chances = 1 / (1 + np.exp(-(strategy.slope * table + strategy.rank_slope * logs + strategy.intercept)))
    weight = strategy.beta * strategy.beta
    share = weight * (np.add.reduce(chances, axis=0) + strategy.unseen)
    valid = np.minimum(at_least(table, strategy.floor), max_k)
    counts = valid.copy()
    found = np.zeros(table.shape[1])
    best = np.full(table.shape[1], -1.0)
    second = best.copy()
    for k, chance in enumerate(chances[:max_k], 1):
        found += chance
        value = np.where(k <= valid, (1 + weight) * found / (k + share), -1.0)
        better = value > best
        second = np.where(better, best, np.maximum(second, value))
        np.copyto(counts, k, where=better)
        np.copyto(best, value, where=better)
    return Kept(counts, ~(best - second > 1e-9 * best) & (valid > 0))
