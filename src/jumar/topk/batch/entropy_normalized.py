"""Evenness: three numbers, one for each band."""

from __future__ import annotations

import numpy as np

from jumar.topk.batch.common import Floats, Kept, at_least, pick
from jumar.topk.batch.entropy import entropies
from jumar.topk.strategies.entropy_normalized import NormalizedEntropySelectionStrategy

__all__ = ["keep"]


def keep(table: Floats, strategy: NormalizedEntropySelectionStrategy, max_k: int, min_k: int) -> Kept:  # noqa: ARG001
    """Return the number of the band; see :func:`jumar.topk.strategies.entropy_normalized.evenness`."""
    valid = at_least(table, strategy.floor)
    last = pick(table, np.maximum(valid, 1) - 1)
    spread = table[0] - last
    shares = np.maximum(table - last, 0.0)
    plain = (valid >= 3) & (spread > 0)
    value = np.where(plain, entropies(shares, valid) / np.log(np.maximum(valid - 1, 2)), 1.0)
    target = np.where(value < strategy.high, strategy.medium_entropy_k, strategy.high_entropy_k)
    target[value < strategy.low] = strategy.low_entropy_k
    sure = (np.abs(value - strategy.low) > 1e-9) & (np.abs(value - strategy.high) > 1e-9)
    sure &= (spread < 1e100) & ((spread > 1e-100) | (spread <= 0))
    return Kept(np.minimum(target, valid), ~sure & (valid > min_k))
