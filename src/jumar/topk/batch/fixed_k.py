"""Fixed k."""

from __future__ import annotations

import numpy as np

from jumar.topk.batch.common import Floats, Kept, at_least
from jumar.topk.strategies.fixed_k import FixedKSelectionStrategy

__all__ = ["keep"]


def keep(table: Floats, strategy: FixedKSelectionStrategy, max_k: int, min_k: int) -> Kept:  # noqa: ARG001
    """Return ``k``, or how many reach the minimum."""
    return Kept(np.minimum(at_least(table, strategy.floor), strategy.k))
