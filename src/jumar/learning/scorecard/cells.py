"""Sums over folds, so that a fit on any of them together needs no second look at the items.

What a ridge regression needs of its items are sums: of scores, of what fires, and of what fires together. They are added up
once a fold; a training set is some folds' sums added. That is exact, and makes nested cross-validation cost what plain one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_JITTER = 1e-9
_ROUNDS = 8

SCREEN: float = 100.0
"""The strength at which candidates are compared before strengths are selected: that of a hundred items without effect."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over some items: ``gram`` is ``(columns, columns)``, how often two fire together; ``with_y`` sums scores."""

    items: float
    total: float
    fires: Floats
    with_y: Floats

    def centred(self) -> tuple[Floats, float]:
        """Return ``(columns,)`` covariances with the scores, times items, and the mean score."""
        mean = self.total / self.items
        return self.with_y - self.fires * mean, mean


@dataclass(frozen=True, slots=True)
class Ridge:
    """A linear rule: ``base + points of the columns that fire``, one column of ``points`` a strength."""

    base: Floats
    points: Floats


@dataclass(frozen=True, slots=True)
class Centred:
    """Items' sums about their means: ``gram`` is ``(columns, columns)``, ``share`` of the items on which each column fires."""

    gram: Floats
    covariance: Floats
    share: Floats
    mean: float

    def ridge(self, at: Numbers, strengths: Sequence[float], claims: NDArray[np.int8], limits: Floats) -> Ridge:
        """Return the ridge regressions with the columns at ``at``, one a strength.

        ``claims`` are as long as ``at``: the sign that points may have, 0 for any. ``limits`` are ``(limits, columns)``:
        the points of ``at`` times none of them are over 0. Where nothing can be learned all points are 0.
        """
        points = _claimed(self.gram[np.ix_(at, at)], self.covariance[at], strengths, claims, limits)
        return Ridge(self.mean - self.share[at] @ points, points)


class Cells:
    """The sums of each fold, over all candidates; those of pairs of candidates for the columns that :meth:`join` names."""

    def __init__(self, fires: Any, steps: Numbers, y: Floats, fold: Numbers) -> None:
        count = int(fold.max()) + 1
        self.count = count
        self.steps = steps
        rows = [np.flatnonzero(fold == one) for one in range(count)]
        self._rows = [fires[row] for row in rows]
        self._y = [y[row] for row in rows]
        self._dense = [np.asarray(row[:, steps].toarray(), dtype=np.float64) for row in self._rows]
        self._fires = np.stack([np.asarray(row.sum(axis=0), dtype=np.float64).ravel() for row in self._rows])
        self._with_y = np.stack([np.asarray(one.T @ own, dtype=np.float64) for one, own in zip(self._rows, self._y, strict=True)])
        self._with_steps = np.stack(
            [np.asarray(one.T @ dense, dtype=np.float64) for one, dense in zip(self._rows, self._dense, strict=True)]
        )
        self._items = np.array([float(one.size) for one in self._y])
        self._total = np.array([float(one.sum()) for one in self._y])
        self._columns = np.array([], dtype=np.int64)
        self._gram: list[Floats] = []
        self._whole: Floats = np.zeros((0, 0))

    def without(self, left_out: Sequence[int]) -> list[int]:
        """Return the folds other than ``left_out``."""
        return [one for one in range(self.count) if one not in left_out]

    def moments(self, folds: Sequence[int]) -> Moments:
        """Return the sums over ``folds``, over all candidates."""
        own = list(folds)
        return Moments(
            float(self._items[own].sum()),
            float(self._total[own].sum()),
            np.asarray(self._fires[own].sum(axis=0)),
            np.asarray(self._with_y[own].sum(axis=0)),
        )

    def gains(self, folds: Sequence[int]) -> Floats:
        """Return ``(candidates,)`` signed gains: what each one would add to the steps of the features, on ``folds`` alone.

        The covariance with what the steps leave of the scores, over the root of the variance and :data:`SCREEN`.
        """
        own, found = list(folds), self.moments(folds)
        covariance, _ = found.centred()
        together = np.asarray(self._with_steps[own].sum(axis=0)) - np.outer(found.fires, found.fires[self.steps]) / found.items
        points = solve(together[self.steps], covariance[self.steps], (SCREEN,))[:, 0]
        left = covariance - together @ points
        variance = found.fires - found.fires**2 / found.items
        return np.asarray(left / np.sqrt(variance + SCREEN))

    def join(self, columns: Numbers) -> None:
        """Add up how often any two of ``columns`` fire together. Costs the most of all; done once."""
        self._columns = np.unique(columns)
        self._gram = [_gram(row[:, self._columns]) for row in self._rows]
        self._whole = np.sum(self._gram, axis=0)

    def centred(self, folds: Sequence[int], columns: Numbers) -> Centred:
        """Return what ridge regressions on ``folds`` with any of ``columns`` need."""
        found = self.moments(folds)
        covariance, mean = found.centred()
        at = np.searchsorted(self._columns, columns)
        fires = found.fires[columns]
        together = self._whole[np.ix_(at, at)]
        for one in self.without(folds):
            together = together - self._gram[one][np.ix_(at, at)]
        return Centred(together - np.outer(fires, fires) / found.items, covariance[columns], fires / found.items, mean)

    def predict(self, fold: int, columns: Numbers, ridge: Ridge) -> Floats:
        """Return ``(items of the fold, strengths)`` predictions."""
        return np.asarray(self._rows[fold][:, columns] @ ridge.points) + ridge.base


def _gram(rows: Any) -> Floats:
    dense: NDArray[np.float32] = np.asarray(rows.toarray(), dtype=np.float32)
    return np.asarray(dense.T @ dense, dtype=np.float64)  # whole numbers below 2 ** 24 are exact


def solve(gram: Floats, covariance: Floats, strengths: Sequence[float], limits: Floats | None = None) -> Floats:
    """Return ``(columns, strengths)`` solutions of ``(gram + strength) points = covariance``.

    With ``limits``, ``(limits, columns)``: those that fit best among the points whose sums by each row are not over 0.
    """
    if not covariance.size:
        return np.zeros((0, len(strengths)))
    library: Any = import_module("scipy.linalg")
    eye = np.eye(covariance.size)
    rows = np.zeros((0, covariance.size)) if limits is None else limits[np.abs(limits).sum(axis=1) > 0]
    wanted = np.column_stack([covariance, rows.T])
    solved: list[Floats] = []
    for strength in strengths:
        factor = library.cho_factor(gram + strength * eye, overwrite_a=True, check_finite=False)
        found: Floats = library.cho_solve(factor, wanted, check_finite=False)
        solved.append(_limited(found[:, 0], found[:, 1:], rows))
    return np.asarray(np.stack(solved, axis=1), dtype=np.float64)


def _limited(free: Floats, towards: Floats, rows: Floats) -> Floats:
    """Return the nearest points to ``free``, in the regression's own metric, with ``rows @ points`` not over 0.

    The dual of that has a factor a row, not negative, and is a least-squares problem of as many unknowns as rows.
    """
    over = rows @ free
    if not (over > 0).any():
        return free
    scale = 1.0 / np.sqrt(np.einsum("ij,ji->i", rows, towards))
    metric = rows @ towards * np.outer(scale, scale)
    library: Any = import_module("scipy.linalg")
    root = library.cholesky(metric + _JITTER * np.eye(over.size))
    nnls: Any = import_module("scipy.optimize").nnls
    factors = nnls(root, library.solve_triangular(root, over * scale, trans="T"), maxiter=100 * over.size)[0]
    return np.asarray(free - towards @ (factors * scale), dtype=np.float64)


def _claimed(gram: Floats, covariance: Floats, strengths: Sequence[float], claims: NDArray[np.int8], limits: Floats) -> Floats:
    """Leave out what would get points against its claim, and solve again without; what still does in the end gets none."""
    points = solve(gram, covariance, strengths, limits)
    if not claims.any():
        return points
    for number, strength in enumerate(strengths):
        own, right = np.arange(covariance.size), points[:, number].copy()
        for _ in range(_ROUNDS if limits.size else 1):
            fits = right * claims[own] >= 0
            if fits.all():
                break
            own = own[fits]
            right = solve(gram[np.ix_(own, own)], covariance[own], (strength,), limits[:, own])[:, 0]
        points[:, number] = 0.0
        points[own, number] = np.where(right * claims[own] < 0, 0.0, right)
    return points
