"""From totals to scores: the simplest of three curves that nothing better beats beyond noise."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from jumar.judging.patterns.calibration import Curve

__all__ = ["CurveKind", "choose_curve", "constant_curve"]

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
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
