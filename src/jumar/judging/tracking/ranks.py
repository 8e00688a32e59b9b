"""Ranks of scores in many resamples, without sorting each of them anew."""

from __future__ import annotations

import numpy as np

from jumar.judging.tracking.agreement import Scores
from jumar.judging.tracking.folds import Numbers

__all__ = ["Ranks", "rank_correlation", "times_drawn"]


class Ranks:
    """``(items,)`` scores, sorted once: in a resample only how often each item was drawn changes."""

    def __init__(self, scores: Scores) -> None:
        values, self._place = np.unique(scores, return_inverse=True)
        self._count = values.size

    def of(self, drawn: Scores) -> Scores | None:
        """Return each item's mean rank less the mean of all, None where all that was drawn is equal.

        ``drawn`` is how often each item is in the resample.
        """
        together = np.bincount(self._place, drawn, minlength=self._count)
        if np.count_nonzero(together) < 2:
            return None
        ranks: Scores = (np.cumsum(together) - 0.5 * together)[self._place]
        ranks -= float(ranks @ drawn) / float(drawn.sum())
        return ranks


def times_drawn(at: Numbers, items: int) -> Scores:
    """Return how often each of the items is among the positions ``at``."""
    return np.bincount(at, minlength=items).astype(np.float64)


def rank_correlation(one: Scores | None, other: Scores | None, drawn: Scores) -> float | None:
    """Return Spearman's correlation in a resample, of what :meth:`Ranks.of` gave of both; None where one does not vary."""
    if one is None or other is None:
        return None
    scale = float(one**2 @ drawn) * float(other**2 @ drawn)
    return max(-1.0, min(1.0, float((one * other) @ drawn) / scale**0.5))
