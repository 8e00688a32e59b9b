"""Nested cross-validation of the fit: every choice is made without the fold that it is tried on.

One partition into folds serves both levels: what is fitted without folds i and j predicts j for the choices that are made
without i, and i for those made without j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from jumar.judging.patterns.models import Curve
from jumar.learning.scorecard.pool import BLOCKS, AttackGains, FitSettings, Pool

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_JITTER = 1e-9
_ROUNDS = 8
_FEW_ITEMS = 2_000
"""Up to so many items their firings are kept as they are: of more, how often any two patterns fire together is smaller."""

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


class Equations:
    """The normal equations of ridge regressions: solves ``(gram + strength) x = wanted`` for some of the columns.

    ``gram`` is ``(columns, columns)``. Where there are fewer items than columns ``rows`` are given in its place, the
    ``(items, columns)`` of firings about their means: what the items say is then solved among the items.
    """

    def __init__(self, gram: Floats | None, rows: Floats | None = None) -> None:
        self._rows = rows
        self._gram = rows @ rows.T if gram is None and rows is not None else gram

    def at(self, columns: Numbers) -> Equations:
        """Return the equations of some of the columns."""
        if self._rows is not None:
            return Equations(None, self._rows[:, columns])
        return Equations(None if self._gram is None else self._gram[np.ix_(columns, columns)])

    def solve(self, wanted: Floats, strength: float) -> Floats:
        """Return ``(columns, wanted)`` solutions."""
        if self._gram is None or not self._gram.size:
            return np.zeros_like(wanted)
        library: Any = import_module("scipy.linalg")
        matrix = self._gram.copy()
        matrix.flat[:: matrix.shape[0] + 1] += strength
        factor = library.cho_factor(matrix, overwrite_a=True, check_finite=False)
        if self._rows is None:
            return library.cho_solve(factor, wanted, check_finite=False)
        # (rows' rows + strength)^-1 = (1 - rows' (rows rows' + strength)^-1 rows) / strength
        among = library.cho_solve(factor, self._rows @ wanted, check_finite=False)
        return np.asarray((wanted - self._rows.T @ among) / strength)


@dataclass(frozen=True, slots=True)
class Centred:
    """Items' sums about their means, and their ``equations``; ``share`` of the items on which each column fires."""

    equations: Equations
    covariance: Floats
    share: Floats
    mean: float

    def ridge(self, at: Numbers, strengths: Sequence[float], claims: NDArray[np.int8], limits: Floats) -> Ridge:
        """Return the ridge regressions with the columns at ``at``, one a strength.

        ``claims`` are as long as ``at``: the sign that points may have, 0 for any. ``limits`` are ``(limits, columns)``:
        the points of ``at`` times none of them are over 0. Where nothing can be learned all points are 0.
        """
        points = _claimed(self.equations.at(at), self.covariance[at], strengths, claims, limits)
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
        self._joined: list[Floats] = []
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
        points = solve(Equations(together[self.steps]), covariance[self.steps], (SCREEN,))[:, 0]
        left = covariance - together @ points
        variance = found.fires - found.fires**2 / found.items
        return np.asarray(left / np.sqrt(variance + SCREEN))

    def join(self, columns: Numbers) -> None:
        """Add up how often any two of ``columns`` fire together. Costs the most of all; done once, for many items."""
        self._columns = np.unique(columns)
        if self._items.sum() > _FEW_ITEMS:
            self._gram = [_gram(row[:, self._columns]) for row in self._rows]
            self._whole = np.sum(self._gram, axis=0)
        else:
            self._joined = [np.asarray(row[:, self._columns].toarray(), dtype=np.float64) for row in self._rows]

    def centred(self, folds: Sequence[int], columns: Numbers) -> Centred:
        """Return what ridge regressions on ``folds`` with any of ``columns`` need."""
        found = self.moments(folds)
        covariance, mean = found.centred()
        at = np.searchsorted(self._columns, columns)
        fires = found.fires[columns]
        share = fires / found.items
        if self._joined:
            rows = np.concatenate([self._joined[one][:, at] for one in folds]) - share
            return Centred(_equations(rows), covariance[columns], share, mean)
        together = self._whole[np.ix_(at, at)]
        for one in self.without(folds):
            together = together - self._gram[one][np.ix_(at, at)]
        return Centred(Equations(together - np.outer(fires, fires) / found.items), covariance[columns], share, mean)

    def predict(self, fold: int, columns: Numbers, ridge: Ridge) -> Floats:
        """Return ``(items of the fold, strengths)`` predictions."""
        return np.asarray(self._rows[fold][:, columns] @ ridge.points) + ridge.base


def _gram(rows: Any) -> Floats:
    dense: NDArray[np.float32] = np.asarray(rows.toarray(), dtype=np.float32)
    return np.asarray(dense.T @ dense, dtype=np.float64)  # whole numbers below 2 ** 24 are exact


def _equations(rows: Floats) -> Equations:
    return Equations(None, rows) if rows.shape[0] < rows.shape[1] else Equations(rows.T @ rows)


def solve(equations: Equations, covariance: Floats, strengths: Sequence[float], limits: Floats | None = None) -> Floats:
    """Return ``(columns, strengths)`` solutions of ``(gram + strength) points = covariance``.

    With ``limits``, ``(limits, columns)``: those that fit best among the points whose sums by each row are not over 0.
    """
    if not covariance.size:
        return np.zeros((0, len(strengths)))
    rows = np.zeros((0, covariance.size)) if limits is None else limits[np.abs(limits).sum(axis=1) > 0]
    wanted = np.column_stack([covariance, rows.T])
    solved: list[Floats] = []
    for strength in strengths:
        found = equations.solve(wanted, strength)
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


def _claimed(
    equations: Equations, covariance: Floats, strengths: Sequence[float], claims: NDArray[np.int8], limits: Floats
) -> Floats:
    """Leave out what would get points against its claim, and solve again without; what still does in the end gets none."""
    points = solve(equations, covariance, strengths, limits)
    if not claims.any():
        return points
    for number, strength in enumerate(strengths):
        own, right = np.arange(covariance.size), points[:, number].copy()
        for _ in range(_ROUNDS if limits.size else 1):
            fits = right * claims[own] >= 0
            if fits.all():
                break
            own = own[fits]
            right = solve(equations.at(own), covariance[own], (strength,), limits[:, own])[:, 0]
        points[:, number] = 0.0
        points[own, number] = np.where(right * claims[own] < 0, 0.0, right)
    return points


STRENGTHS: Final = (3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0)
ROUNDING: Final = 1e-9
"""How far over the limit of the guard is still at it: two ways to add the same points differ in the last bits."""

_STRONGEST: Final = len(STRENGTHS) - 1


@dataclass(frozen=True, slots=True)
class _Trained:
    """The ridge regressions of every block on one training set, by :data:`BLOCKS`, each with its columns of the pool."""

    columns: tuple[Numbers, ...]
    ridges: tuple[Ridge, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    """What was selected without some fold: a strength and a factor a block, and the curve."""

    strengths: tuple[int, ...]
    factors: Floats
    middle: float
    kind: CurveKind
    curve: Curve


@dataclass(frozen=True, slots=True)
class Rule:
    """A fitted rule over the pool's candidates: ``curve(base + points of what fires)``."""

    base: float
    points: Floats
    choice: _Choice

    @property
    def strengths(self) -> dict[str, float]:
        """The strength of each block's ridge."""
        return {block: STRENGTHS[one] for block, one in zip(BLOCKS, self.choice.strengths, strict=True)}

    @property
    def factors(self) -> dict[str, float]:
        """The factor of each block."""
        return dict(zip(BLOCKS, self.choice.factors.tolist(), strict=True))


class Nested:
    """All fits that a nested cross-validation needs, made once.

    ``start`` are ``(candidates,)`` points to begin from, of which ``1 - rate`` stays. ``gaming`` is what no points may reward,
    None where they may. At least three folds.
    """

    def __init__(
        self,
        pool: Pool,
        y: Floats,
        groups: Numbers,
        fold: Numbers,
        settings: FitSettings,
        start: Floats,
        rate: float,
        gaming: AttackGains | None,
    ) -> None:
        self._pool, self._y, self._groups, self._fold = pool, y, groups, fold
        self._start, self._rate, self._gaming = start, rate, gaming
        self._kept = np.asarray(pool.fires @ ((1.0 - rate) * start))
        blocks = np.array(pool.blocks)
        self._said = np.flatnonzero(blocks == "phrases")
        steps = np.flatnonzero((blocks != "phrases") & (pool.claims == 0))
        self._blocks = blocks
        self._cells = Cells(pool.fires, steps, y, fold)
        folds = range(self._cells.count)
        left_out: list[tuple[int, ...]] = [(), *((fold,) for fold in folds), *combinations(folds, 2)]
        chosen = {one: self._candidates(one, steps, settings) for one in left_out}
        self._cells.join(np.concatenate(list(chosen.values())))
        self._trained = {one: self._train(one, columns) for one, columns in chosen.items()}

    def predictions(self) -> Floats:
        """Return each item's score by the rule that was fitted and chosen without its fold."""
        found = np.zeros_like(self._y)
        for one in range(self._cells.count):
            inside = self._fold == one
            rule = self._rule((one,))
            totals = np.asarray(self._pool.fires[inside] @ rule.points) + rule.base - self._withheld(rule, one)
            found[inside] = [rule.choice.curve.at(total) for total in totals.tolist()]
        return found

    def _withheld(self, rule: Rule, left_out: int) -> Floats | float:
        """Return what the guard takes from each item of a fold: what good phrases give over the most outside of it."""
        if self._gaming is None:
            return 0.0
        given = np.asarray(self._pool.fires[:, self._said] @ np.maximum(rule.points[self._said], 0.0))
        inside = self._fold == left_out
        share = given / self._gaming.roots
        most = float(share[~inside].max())
        return np.where(share[inside] > most * (1.0 + ROUNDING), given[inside], 0.0)

    def rule(self) -> Rule:
        """Return the rule that is fitted on all items."""
        return self._rule(())

    def _candidates(self, left_out: tuple[int, ...], steps: Numbers, settings: FitSettings) -> Numbers:
        """Return the columns that a fit without some folds works with: all steps, and the phrases that add most to them there."""
        inside = self._cells.without(left_out)
        gains = self._cells.gains(inside)
        fires = self._cells.moments(inside).fires
        others = np.setdiff1d(np.arange(gains.size), steps)
        claims = self._pool.claims[others]
        fit = (fires[others] >= settings.least_items) & ((claims == 0) | (gains[others] * claims > 0))
        others = others[fit]
        room = max(0, settings.most_patterns - steps.size)
        best = others[np.argsort(-np.abs(gains[others]), kind="stable")[:room]]
        return np.sort(np.concatenate([steps, best]))

    def _train(self, left_out: tuple[int, ...], columns: Numbers) -> _Trained:
        inside = self._cells.without(left_out)
        sums, blocks, claims = self._cells.centred(inside, columns), self._blocks[columns], self._pool.claims[columns]
        own = [np.flatnonzero((blocks == block) | (block == "all")) for block in BLOCKS]
        limits = np.zeros((0, columns.size)) if self._gaming is None else self._gaming.limits(inside)[:, columns]
        ridges = tuple(sums.ridge(at, STRENGTHS, claims[at], limits[:, at]) for at in own)
        return _Trained(tuple(columns[at] for at in own), ridges)

    def _rule(self, left_out: tuple[int, ...]) -> Rule:
        choice = self._choose(left_out)
        trained = self._trained[left_out]
        points = (1.0 - self._rate) * self._start
        base = choice.middle
        for columns, ridge, strength, factor in zip(
            trained.columns, trained.ridges, choice.strengths, choice.factors, strict=True
        ):
            points[columns] += self._rate * factor * ridge.points[:, strength]
            base += self._rate * factor * (ridge.base[strength] - choice.middle)
        return Rule(float(base), points, choice)

    def _choose(self, left_out: tuple[int, ...]) -> _Choice:
        """Choose strengths, factors and curve by predictions in which neither ``left_out`` nor the item's fold had a part."""
        inside = self._cells.without(left_out)
        rows = np.flatnonzero(np.isin(self._fold, inside))
        y = self._y[rows]
        tried = np.zeros((len(BLOCKS), self._y.size, len(STRENGTHS)))
        for one in inside:
            trained = self._trained[tuple(sorted((*left_out, one)))]
            for number, (columns, ridge) in enumerate(zip(trained.columns, trained.ridges, strict=True)):
                tried[number, self._fold == one] = self._cells.predict(one, columns, ridge)
        tried = tried[:, rows]
        errors = ((tried - y[None, :, None]) ** 2).sum(axis=1)
        # of equally good ones the strongest, which claims least
        strengths = tuple(_STRONGEST - int(np.argmin(error[::-1])) for error in errors)
        best = np.stack([tried[number, :, one] for number, one in enumerate(strengths)], axis=1)
        middle = float(y.mean())
        factors = _factors(best - middle, y - middle)
        totals = middle + self._rate * ((best - middle) @ factors) + self._kept[rows]
        if not np.ptp(totals) > 0:
            return _Choice(strengths, factors, middle, "constant", constant_curve(float(np.clip(np.median(y), 1.0, 5.0))))
        kind, curve = choose_curve(totals, y, self._groups[rows], self._fold[rows])
        return _Choice(strengths, factors, middle, kind, curve)


def _factors(predictions: Floats, y: Floats) -> Floats:
    """Return the factors, not negative, that combine ``(items, blocks)`` predictions best: stacking (Breiman 1996)."""
    nnls: Any = import_module("scipy.optimize").nnls
    return np.asarray(nnls(predictions, y)[0], dtype=np.float64)


CurveKind = Literal["constant", "line", "isotonic"]

SLOPE: Final = 0.001
"""The least slope of a line: it keeps the ranks, and moves a score by less than anyone could see."""

_KINDS: Final[tuple[CurveKind, ...]] = ("constant", "line", "isotonic")


def choose_curve(totals: Floats, y: Floats, groups: Numbers, fold: Numbers) -> tuple[CurveKind, Curve]:
    """Return the curve from ``(items,)`` out-of-fold totals to scores, and of which kind it is.

    In the order of their freedom: the median of the scores (with the least slope, so that ranks stay), the line of least absolute
    deviations, isotonic regression. A freer one is taken when its mean absolute error on folds of groups left out is smaller by
    more than one standard error, counted by groups (the rule of Breiman and others, 1984).
    """
    errors = {kind: _left_out(kind, totals, y, fold) for kind in _KINDS}
    chosen: CurveKind = "constant"
    for kind in _KINDS[1:]:
        gain = errors[chosen] - errors[kind]
        if gain.mean() > _standard_error(gain, groups):
            chosen = kind
    return chosen, _curve(chosen, totals, y)


def constant_curve(score: float) -> Curve:
    """Return the curve that is ``score`` everywhere."""
    return Curve(x=(score,), y=(score,))


def _left_out(kind: CurveKind, totals: Floats, y: Floats, fold: Numbers) -> Floats:
    errors = np.zeros_like(y)
    for one in np.unique(fold):
        inside = fold == one
        if inside.all():
            inside = np.zeros_like(inside)
        curve = _curve(kind, totals[~inside], y[~inside])
        errors[inside] = np.abs(np.interp(totals[inside], curve.x, curve.y) - y[inside])
    return errors


def _standard_error(values: Floats, groups: Numbers) -> float:
    """Return the standard error of the mean of ``values``, whose groups are independent."""
    sums = np.bincount(groups, values - values.mean())
    return float(np.sqrt((sums**2).sum()) / values.size)


def _curve(kind: CurveKind, totals: Floats, y: Floats) -> Curve:
    if kind == "isotonic":
        return _isotonic(totals, y)
    slope = SLOPE if kind == "constant" else max(SLOPE, _least_deviations(totals, y))
    height = float(np.median(y - slope * totals))
    return Curve(x=((1.0 - height) / slope, (5.0 - height) / slope), y=(1.0, 5.0))


def _least_deviations(totals: Floats, y: Floats) -> float:
    """Return the slope of the line of least absolute deviations: a convex function of the slope alone, at most 5."""
    spread = float(np.ptp(totals))
    if not spread > 0:
        return 0.0
    minimize: Any = import_module("scipy.optimize").minimize_scalar

    def deviations(slope: float) -> float:
        rest = y - slope * totals
        return float(np.abs(rest - np.median(rest)).sum())

    return float(minimize(deviations, bounds=(0.0, 5.0), method="bounded", options={"xatol": 1e-4}).x)


def _isotonic(totals: Floats, y: Floats) -> Curve:
    regression: Any = import_module("sklearn.isotonic").IsotonicRegression(y_min=1.0, y_max=5.0, out_of_bounds="clip")
    regression.fit(totals, y)
    x: list[float] = regression.X_thresholds_.tolist()
    heights = np.clip(np.maximum.accumulate(regression.y_thresholds_), 1.0, 5.0).tolist()
    return Curve(x=tuple(x), y=tuple(heights))
