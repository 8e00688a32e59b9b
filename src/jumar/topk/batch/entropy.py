"""Entropy: three numbers, one for each band."""

from __future__ import annotations

import numpy as np

from jumar.topk.batch.common import Floats, Kept, at_least
from jumar.topk.strategies.entropy import EntropySelectionStrategy

__all__ = ["entropies", "keep"]


def keep(table: Floats, strategy: EntropySelectionStrategy, max_k: int, min_k: int) -> Kept:  # noqa: ARG001
    """Return the number of the band; see :class:`jumar.topk.strategies.entropy.EntropySelectionStrategy`."""
    floor = strategy.min_score
    valid = at_least(table, floor)
    shares = table
    sure = np.ones(table.shape[1], np.bool_)
    if floor is not None and (table[-1] < floor).any():
        shares = np.where(table >= floor, table, 0.0)
    if floor is None or floor < 0:
        sums = np.add.reduce(shares, axis=0)
        sure = (np.abs(sums) > 1e-9) | (table[-1] >= 0)
        shares = np.maximum(shares, 0.0)
    entropy = entropies(shares, valid)
    low, high = strategy.BOUNDS
    target = np.where(entropy < high, strategy.medium_entropy_k, strategy.high_entropy_k)
    target[entropy < low] = strategy.low_entropy_k
    sure &= (np.abs(entropy - low) > 1e-9) & (np.abs(entropy - high) > 1e-9)
    top = table[0]
    sure &= (top < 1e100) & (top > 1e-100)
    # with no more than min_k the entropy does not matter
    return Kept(np.minimum(target, valid), ~sure & (valid > min_k))


def entropies(shares: Floats, counts: np.ndarray) -> Floats:
    """Return ln S − (Σ s·ln s) ÷ S of each query; ln ``counts`` where S is 0. ``shares`` are 0 or more."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        logs = np.log(np.where(shares > 0, shares, 1.0) if shares[-1].min() <= 0 else shares)
        total = np.add.reduce(shares, axis=0)
        np.multiply(logs, shares, out=logs)
        entropy = np.log(total) - np.add.reduce(logs, axis=0) / total
        return np.where(total > 0, entropy, np.log(np.maximum(counts, 1)))
