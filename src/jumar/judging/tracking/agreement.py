"""How far two judges are from each other on the same items: error, bias, categories, and ranks, in many resamples too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jumar.core.record import Record
from jumar.judging.tracking.intervals import Numbers

Scores = NDArray[np.float64]

HALF: Final = 0.5 + 1e-9
"""The limit of an item's error; the last digit of 4.1 - 3.6 must not decide."""


@dataclass(frozen=True, slots=True)
class Agreement(Record):
    """``mae`` and ``bias`` (cheap - expensive) in points of the scale; ``off_by_more_than_half`` is a share.

    The ranks and kappa are None where they do not exist: fewer than two items, or a judge without variance.
    """

    mae: float
    bias: float
    spearman: float | None
    kendall: float | None
    quadratic_kappa: float | None
    off_by_more_than_half: float


def agreement(expensive: Scores, cheap: Scores) -> Agreement:
    """Return the agreement over ``(items,)`` scores from 1 to 5, at least one. Kendall is tau-b; both ranks average ties."""
    error = cheap - expensive
    return Agreement(
        mae=float(np.abs(error).mean()),
        bias=float(error.mean()),
        spearman=spearman(expensive, cheap),
        kendall=kendall(expensive, cheap),
        quadratic_kappa=quadratic_kappa(expensive, cheap),
        off_by_more_than_half=off_by_more_than_half(error),
    )


def off_by_more_than_half(error: Scores) -> float:
    """Return the share of ``(items,)`` errors beyond half a point either way."""
    return float((np.abs(error) > HALF).mean())


def spearman(one: Scores, other: Scores) -> float | None:
    """Return the correlation of the ranks, None where one of them has no variance."""
    if _constant(one) or _constant(other):
        return None
    ranks = np.corrcoef(_ranks(one), _ranks(other))
    return _clipped(float(ranks[0, 1]))


def _ranks(scores: Scores) -> Scores:
    return np.asarray(_stats().rankdata(scores), dtype=np.float64)


def kendall(one: Scores, other: Scores) -> float | None:
    """Return tau-b, None where one of them has no variance."""
    if _constant(one) or _constant(other):
        return None
    return _clipped(float(_stats().kendalltau(one, other).statistic))


def quadratic_kappa(one: Scores, other: Scores) -> float | None:
    """Return Cohen's kappa with quadratic weights, of the scores rounded to whole points (halves up).

    1 - observed / expected squared disagreement, the expected one as if the two were independent (Cohen 1968). None where
    that is zero:
    both judges gave one and the same whole score to everything.
    """
    first, second = np.floor(one + 0.5), np.floor(other + 0.5)
    observed = float(((first - second) ** 2).mean())
    # E(x - y)² of independent x and y, from their means and variances: no table of categories is needed
    expected = float(first.var() + second.var() + (first.mean() - second.mean()) ** 2)
    if expected == 0:
        return None
    return 0.0 if observed == expected or _constant(first) or _constant(second) else 1.0 - observed / expected


@cache
def _stats() -> Any:
    """SciPy's statistics take most of a second to import, and bring no types."""
    return import_module("scipy.stats")


def _constant(scores: Scores) -> bool:
    return scores.size < 2 or bool((scores == scores[0]).all())


def _clipped(value: float) -> float:
    """Rounding may leave a correlation a hair outside."""
    return max(-1.0, min(1.0, value))


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
