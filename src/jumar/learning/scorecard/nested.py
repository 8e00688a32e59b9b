"""Nested cross-validation of the fit: every choice is made without the fold that it is tried on.

One partition into folds serves both levels: what is fitted without folds i and j predicts j for the choices that are made
without i, and i for those made without j.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from jumar.judging.patterns.models import Curve
from jumar.learning.scorecard.cells import Cells, Ridge
from jumar.learning.scorecard.gaming import AttackGains
from jumar.learning.scorecard.pool import BLOCKS, FitSettings, Pool

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

STRENGTHS: Final = (10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0)
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
