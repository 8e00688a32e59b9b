"""Score threshold."""

from __future__ import annotations

from jumar.topk.batch.common import Floats, Kept, at_least
from jumar.topk.strategies.score_threshold import ScoreThresholdSelectionStrategy

__all__ = ["keep"]


def keep(table: Floats, strategy: ScoreThresholdSelectionStrategy, max_k: int, min_k: int) -> Kept:  # noqa: ARG001
    """Return how many reach the threshold."""
    return Kept(at_least(table, strategy.floor))
