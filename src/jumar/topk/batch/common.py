"""What the kernels share. Tables are (items, queries): a column a query, descending, finite, so that every row is contiguous.

A kernel returns how many items each query keeps before the clamp, and for which queries it is not sure: where a comparison hangs
on the last bits of a logarithm or a sum, the function for one query decides, so that one and many always agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Counts", "Floats", "Kept", "at_least", "leading", "pick", "tally"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Counts = NDArray[np.intp]


class Kept(NamedTuple):
    """How many each query keeps, and which of these numbers are not sure (None: all are)."""

    counts: Counts
    unsure: Bools | None = None


def tally(flags: Bools) -> Counts:
    """Return how many of each column are true; ``flags`` (items, queries)."""
    # bytes add up several times faster than booleans that are counted into integers
    if len(flags) < 256:
        return np.add.reduce(flags.view(np.uint8), axis=0, dtype=np.uint8).astype(np.intp)
    return flags.sum(axis=0, dtype=np.intp)


def leading(hits: Bools) -> Counts:
    """Return how many of each column come before the first true one; all of them when there is none."""
    alive = np.ones(hits.shape[1], np.bool_)
    bytes_of_alive = alive.view(np.uint8)
    small = len(hits) < 256
    counts = np.zeros(hits.shape[1], np.uint8 if small else np.intp)
    for row in hits:
        np.greater(alive, row, out=alive)
        np.add(counts, bytes_of_alive if small else alive, out=counts)
    return counts.astype(np.intp)


def at_least(table: Floats, floor: float | None) -> Counts:
    """Return how many scores of each query are at least ``floor``."""
    if floor is None:
        return np.zeros(table.shape[1], np.intp) + len(table)
    flags: Bools = table >= floor
    return tally(flags)


def pick(table: Floats, rows: Counts) -> Floats:
    """Return one value a column, that of ``rows``."""
    return np.take_along_axis(table, rows[None, :], axis=0)[0]
