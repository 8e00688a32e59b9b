"""How likely chance alone gives as large a sum of scores, had the items been dealt anew inside of their strata. Pure.

A false-discovery rate over thousands of proposals needs p-values far smaller than draws give, so they are computed. Where few
items are taken, or few strata concerned, the sums are counted, on a fine grid and rounded against the pattern. Else their
distribution is approximated by a saddlepoint (Robinson 1982; the tail by Lugannani and Rice 1980) and the result doubled, since
the tail of a discrete sum may be half of it. Scores of judges are skewed and groups are few, so that a normal approximation, or
flipping the signs of groups, would find what is not there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Numbers = NDArray[np.int64]

ENUMERATED: Final = 8
"""Strata up to this size are enumerated; of larger ones the permutations are approximated."""

_FEW: Final = 12
"""Up to so many items taken the sums are counted wherever that can be done: there a saddlepoint may be too small by half."""

_DECIDES: Final = 2.0
"""Standard deviations from which on the sums of more items are counted, too, where that is quick."""

_GRID: Final = 500
"""Steps of the grid for each stratum: rounding moves the sum by a thousandth of its range."""

_DENSE: Final = 100
"""Sums of one stratum from which on it is quicker to multiply all with all."""

_QUICK: Final = 5e6
_WORK: Final = 1e8
"""Additions that counting may take for many items, and for few."""


class Permutations:
    """The sum of the scores of ``taken`` items, had they been drawn inside of their strata.

    ``tables`` hold equally likely sums, ``(strata, sums)``; ``large`` holds ``(strata, size)`` scores, mean zero in each, and
    how many of each are drawn.
    """

    def __init__(self, tables: list[Scores], large: list[tuple[Scores, Numbers]], taken: int) -> None:
        self.tables = tables
        self.large = large
        self.taken = taken
        self.scaled = [
            (values * math.sqrt(values.shape[1] / (values.shape[1] - 1)), drawn / values.shape[1]) for values, drawn in large
        ]

    def tail(self, reached: float) -> float:
        """Return the likelihood of ``reached`` or more, which lies above the mean; rather too large than too small."""
        most, likely = self._most()
        few, decides = self.taken <= _FEW, reached > _DECIDES * math.sqrt(self.cumulants(0.0)[2])
        work = self._work()
        if work <= (_WORK if few else _QUICK if decides else 0.0):
            return min(1.0, max(likely, self._counted(reached)))
        if reached >= most * (1.0 - 1e-9):
            return likely
        tilt = self._tilt(reached)
        value, _, variance = self.cumulants(tilt)
        exponent = tilt * reached - value
        bound = math.exp(-max(0.0, exponent))
        if exponent <= 0.0 or variance <= 0.0:
            return bound
        root, scaled = math.sqrt(2.0 * exponent), tilt * math.sqrt(variance)
        density = math.exp(-exponent) / math.sqrt(2.0 * math.pi)
        tail = normal_tail(root) + density * (1.0 / scaled - 1.0 / root)
        return min(1.0, bound, max(2.0 * tail, likely))

    def cumulants(self, tilt: float) -> tuple[float, float, float]:
        """Return the cumulant generating function at ``tilt`` and its first two derivatives."""
        value = mean = variance = 0.0
        for sums in self.tables:
            top = sums.max(axis=1, keepdims=True)
            weights = np.exp(tilt * (sums - top))
            total = weights.sum(axis=1)
            first = (weights * sums).sum(axis=1) / total
            value += float((np.log(total) + tilt * top[:, 0]).sum()) - sums.shape[0] * math.log(sums.shape[1])
            mean += float(first.sum())
            variance += float(((weights * (sums - first[:, None]) ** 2).sum(axis=1) / total).sum())
        for values, share in self.scaled:
            more = _drawn(values, share, tilt)
            value, mean, variance = value + more[0], mean + more[1], variance + more[2]
        return value, mean, variance

    def _counted(self, reached: float) -> float:
        """Return the share of all deals that reach as much, each stratum's sums rounded up to a grid."""
        lowest = [float(one) for sums in self.tables for one in sums.min(axis=1)]
        highest = [float(one) for sums in self.tables for one in sums.max(axis=1)]
        for values, drawn in self.large:
            ordered = np.sort(values, axis=1)
            for row, count in zip(ordered, drawn.tolist(), strict=True):
                lowest.append(count * float(row[0]))
                highest.append(float(row[row.size - count :].sum()))
        span = sum(highest) - sum(lowest)
        if not span > 0:
            return 1.0
        step = span / (_GRID * max(4, len(lowest)))
        total = np.ones(1)
        for one in self._grids(step):
            some = np.flatnonzero(one)
            if some.size > _DENSE:
                total = np.convolve(total, one)
                continue
            more = np.zeros(total.size + one.size - 1)
            for place in some.tolist():
                more[place : place + total.size] += one[place] * total
            total = more
        least = math.ceil((reached - sum(lowest)) / step - 1e-6)
        return float(total[max(0, least) :].sum())

    def _work(self) -> float:
        """Return about how many additions :meth:`_counted` takes."""
        strata = sum(len(table) for table in self.tables) + sum(len(one) for one, _ in self.large)
        cells = _GRID * max(4, strata)
        work = float(sum(sums.size for sums in self.tables) * cells)
        for values, drawn in self.large:
            work += values.shape[1] * float(drawn.sum()) * _GRID + len(values) * float(_GRID * cells)
        return work

    def _grids(self, step: float) -> Iterator[Scores]:
        """Yield the likelihoods of each stratum's sums, from its least one on in steps."""
        for sums in self.tables:
            for row in _steps(sums, step):
                yield np.bincount(row) / row.size
        for values, drawn in self.large:
            for row, count in zip(_steps(values, step), drawn.tolist(), strict=True):
                yield _dealt(row, count)

    def _most(self) -> tuple[float, float]:
        """Return the largest sum there is, and how likely it is."""
        most, likely = 0.0, 0.0
        for sums in self.tables:
            top = sums.max(axis=1)
            most += float(top.sum())
            likely += float(np.log((sums >= top[:, None] - 1e-9).mean(axis=1)).sum())
        for values, drawn in self.large:
            size = values.shape[1]
            for row, number in zip(np.sort(values, axis=1), drawn.tolist(), strict=True):
                most += float(row[size - number :].sum())
                likely -= math.lgamma(size + 1) - math.lgamma(number + 1) - math.lgamma(size - number + 1)
        return most, max(math.exp(max(likely, -690.0)), 1e-299)

    def _tilt(self, reached: float) -> float:
        """Return the tilt whose mean is ``reached``: Newton's steps inside of a bracket that bisection narrows."""
        low, high = 0.0, 1.0
        while self.cumulants(high)[1] < reached and high < 1e6:
            low, high = high, 2.0 * high
        tilt = 0.5 * (low + high)
        for _ in range(60):
            _, mean, variance = self.cumulants(tilt)
            if abs(mean - reached) <= 1e-9 * max(1.0, abs(reached)):
                break
            low, high = (tilt, high) if mean < reached else (low, tilt)
            step = tilt + (reached - mean) / variance if variance > 0 else math.inf
            tilt = step if low < step < high else 0.5 * (low + high)
        return tilt


def _steps(values: Scores, step: float) -> Numbers:
    """Return by how many steps each is over the least of its row, rounded up."""
    return np.ceil((values - values.min(axis=1, keepdims=True)) / step - 1e-6).astype(np.int64)


def _dealt(steps: Numbers, count: int) -> Scores:
    """Return how likely each sum of ``count`` of the steps is, drawn without putting back; from a sum of zero on."""
    most = int(np.sort(steps)[steps.size - count :].sum())
    ways = np.zeros((count + 1, most + 1))
    ways[0, 0] = 1.0
    for step in steps.tolist():
        ways[1:, step:] += ways[:-1, : most + 1 - step]
    found: Scores = ways[count] / ways[count].sum()
    return found


def _drawn(values: Scores, share: Scores, tilt: float) -> tuple[float, float, float]:
    """Return the cumulant generating function of sums of ``share`` of each row, drawn without putting back, and derivatives.

    As if each were drawn by itself, with odds that keep their number what it is: the saddlepoint of the elementary symmetric
    polynomial in exp(tilt · value).
    """
    size = values.shape[1]
    number, odds = share * size, (share / (1.0 - share))[:, None]
    pull = np.clip(tilt * values, -300.0, 300.0)
    shift = np.zeros(values.shape[0])
    for _ in range(50):
        drawn = _chances(odds, pull, shift)
        spread = (drawn * (1.0 - drawn)).sum(axis=1)
        missing = number - drawn.sum(axis=1)
        unmet = (np.abs(missing) > 1e-10 * number) & (spread > 1e-12)
        if not unmet.any():
            break
        shift = np.where(unmet, shift + np.clip(missing / np.maximum(spread, 1e-12), -2.0, 2.0), shift)
    drawn = _chances(odds, pull, shift)
    spread = (drawn * (1.0 - drawn)).sum(axis=1)
    even = size * share * (1.0 - share)
    value = np.log((1.0 - share[:, None]) * (1.0 + odds * np.exp(pull + shift[:, None]))).sum(axis=1) - shift * number
    value -= 0.5 * np.log(np.maximum(spread, 1e-12) / even)
    weights = drawn * (1.0 - drawn)
    across = (weights * values).sum(axis=1)
    variance = (weights * values**2).sum(axis=1) - np.where(spread > 1e-12, across**2 / np.maximum(spread, 1e-12), 0.0)
    return float(value.sum()), float((drawn * values).sum()), float(variance.sum())


def _chances(odds: Scores, pull: Scores, shift: Scores) -> Scores:
    raised = odds * np.exp(pull + shift[:, None])
    found: Scores = raised / (1.0 + raised)
    return found


def normal_tail(deviations: float) -> float:
    """Return how likely a normal value lies ``deviations`` or more above its mean."""
    return 0.5 * math.erfc(deviations / math.sqrt(2.0))
