"""Adaptive k: gaps against the mean gap, which telescopes."""

from __future__ import annotations

import numpy as np

from jumar.topk.batch.common import Bools, Counts, Floats, Kept, at_least, leading, pick
from jumar.topk.strategies.adaptive_k import AdaptiveKSelectionStrategy

__all__ = ["keep"]


def keep(table: Floats, strategy: AdaptiveKSelectionStrategy, max_k: int, min_k: int) -> Kept:  # noqa: ARG001
    """Return the first large gap; see :class:`jumar.topk.strategies.adaptive_k.AdaptiveKSelectionStrategy`."""
    floor, alpha = strategy.floor, strategy.alpha
    size = len(table)
    valid = at_least(table, floor)
    if size < 2:
        return Kept(valid)
    first = table[0]
    last = pick(table, np.maximum(valid, 1) - 1)
    mean = (first - last) / np.maximum(valid - 1, 1)
    margin = (np.abs(first) + np.abs(last)) * (4.5e-16 * alpha) * valid
    close = np.where(first > last, mean * alpha - margin, np.inf)
    gaps = table[:-1] - table[1:]
    hits = gaps > close
    if floor is not None:
        np.logical_and(hits, table[1:] >= floor, out=hits)
    before = leading(hits)
    # where the first large gap equals the limit up to rounding, the mean is added up as the seed does
    found = np.minimum(before, size - 2)
    near = (before + 1 < valid) & (pick(gaps, found) <= close + 2 * margin)
    counts = np.minimum(before + 1, valid)
    if near.any():
        _settle(gaps, valid, near, alpha, counts)
    return Kept(counts)


def _settle(gaps: Floats, valid: Counts, near: Bools, alpha: float, counts: Counts) -> None:
    """Decide the ``near`` queries with the mean that adds up every gap, in place."""
    for size in np.unique(valid[near]):
        queries = np.flatnonzero(near & (valid == size))
        rows = np.ascontiguousarray(gaps[: size - 1, queries].T)  # numpy adds up in pairs along contiguous rows only
        limits = rows.sum(axis=1) / (size - 1) * alpha
        counts[queries] = leading(gaps[: size - 1, queries] > limits) + 1
