"""What one pattern adds to what the length of a text says already, and how easily chance would have added as much. Pure.

Scores are compared inside of groups where groups have several items; the items that are groups by themselves are compared with
each other. From the scores, centred so, what the length explains is taken (a line over log(1 + characters)). What is left is
compared between the items on which a pattern fired and the others of the same group.

The p-value is that of a permutation test: if the pattern said nothing, any items of the same groups might have had it. It is not
drawn but computed, by a saddlepoint approximation to the permutation distribution (Robinson 1982; the tail by Lugannani and Rice
1980), because a false-discovery rate over thousands of proposals needs p-values far smaller than draws give. Scores of judges are
skewed and groups are few, so that a normal approximation, or flipping the signs of groups, would find what is not there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from jumar.judging.tracking.folds import Numbers, group_numbers
from jumar.learning.ledger import LedgerEntry

__all__ = ["Firing", "Support", "ledger_entries", "support"]

Scores = NDArray[np.float64]
Sign = Literal["good", "bad"]

_ENUMERATED: Final = 8
"""Strata up to this size are enumerated; of larger ones the permutations are approximated too."""

_CENTRE: Final = 1.0
"""Up to so many standard deviations a p-value decides nothing, and the normal one does."""

_SAME_LENGTH: Final = 1e-12
"""Up to this variance of log lengths all texts are as long; what is left of it is rounding."""

_ALL_LENGTH: Final = 0.95
"""A pattern whose firing the length explains to this share is the length under another name."""


@dataclass(frozen=True, slots=True)
class Firing:
    """Which patterns fire on which items: ``(pairs,)`` numbers of items and of patterns, each pair once."""

    items: int
    patterns: int
    item: Numbers
    pattern: Numbers

    @classmethod
    def of_items(cls, fired: Iterable[Sequence[int]], patterns: int) -> Firing:
        """Return the firing of what :meth:`jumar.patterns.matcher.PatternMatcher.fired` gives for each item, in their order."""
        rows = [sorted(set(one)) for one in fired]
        item = np.repeat(np.arange(len(rows)), [len(one) for one in rows]).astype(np.int64)
        pattern = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64, count=item.size)
        order = np.argsort(pattern, kind="stable")
        return cls(len(rows), patterns, item[order], pattern[order])


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """What was found of one pattern.

    ``increment`` is in points of the scale, signed as the score is: the mean difference between items with and without the
    pattern, of the same group and length; None when there is nothing to compare. ``p_value`` is one-sided in the direction of the
    pattern's type, 1.0 when nothing can be said. ``precision``, ``fired`` and ``items`` are those of :class:`LedgerEntry`.
    """

    increment: float | None
    p_value: float
    items: int
    fired: int
    precision: float | None

    @property
    def coverage(self) -> float:
        return self.fired / self.items if self.items else 0.0


def support(
    scores: Sequence[float], *, lengths: Sequence[int], groups: Sequence[str | None], firing: Firing, types: Sequence[Sign]
) -> list[Support]:
    """Return the support of each pattern from ``(items,)`` scores, lengths in characters and groups of the same items.

    The items must be others than those from which the patterns were proposed, else every pattern looks supported. ``types`` is
    of the patterns. Errors: ValueError when the sizes differ or a score is not finite.
    """
    truth = np.asarray(scores, dtype=np.float64)
    if not (truth.size == len(lengths) == len(groups) == firing.items and len(types) == firing.patterns):
        raise ValueError(
            f"{truth.size} scores, {len(lengths)} lengths, {len(groups)} groups, firing of {firing.items} items and "
            f"{firing.patterns} patterns, {len(types)} types"
        )
    if not np.isfinite(truth).all():
        raise ValueError("scores must be finite")
    if not truth.size:
        return [Support(increment=None, p_value=1.0, items=0, fired=0, precision=None) for _ in types]
    return _Comparison(truth, np.asarray(lengths, dtype=np.float64), groups).of(firing, types)


def ledger_entries(ids: Sequence[str], found: Sequence[Support], iteration: int) -> list[LedgerEntry]:
    """Return what goes into the ledger of patterns called ``ids``, tested in one iteration."""
    return [
        LedgerEntry(id=name, iteration=iteration, p_value=one.p_value, items=one.items, fired=one.fired, precision=one.precision)
        for name, one in zip(ids, found, strict=True)
    ]


class _Comparison:
    """What all patterns share: the strata, and what is left of the scores without group and length."""

    def __init__(self, truth: Scores, lengths: Scores, groups: Sequence[str | None]) -> None:
        self.stratum = _strata(groups)
        self.sizes = np.bincount(self.stratum)
        self.length = self._centred(np.log1p(lengths))
        centred = self._centred(truth)
        spread = float(self.length @ self.length)
        self.spread = spread if spread > _SAME_LENGTH * truth.size else 0.0
        slope = float(self.length @ centred) / self.spread if self.spread else 0.0
        self.left = centred - slope * self.length
        self.side = 0.5 * (np.sign(truth - np.median(truth)) + 1.0)
        self.squares = np.bincount(self.stratum, self.left**2)
        order = np.argsort(self.stratum, kind="stable")
        ends = np.cumsum(self.sizes)
        self.members = [order[end - size : end] for end, size in zip(ends.tolist(), self.sizes.tolist(), strict=True)]
        self.sums: dict[tuple[int, int], Scores] = {}

    def _centred(self, values: Scores) -> Scores:
        means = np.bincount(self.stratum, values) / self.sizes
        centred: Scores = values - means[self.stratum]
        return centred

    def of(self, firing: Firing, types: Sequence[Sign]) -> list[Support]:
        """Return the support of each pattern."""
        count, strata = firing.patterns, self.sizes.size
        pattern, stratum = firing.pattern, self.stratum[firing.item]
        fired = np.bincount(pattern, minlength=count)
        found = np.bincount(pattern, self.left[firing.item], minlength=count)
        along = np.bincount(pattern, self.length[firing.item], minlength=count)
        sided = np.bincount(pattern, self.side[firing.item], minlength=count)
        cells, drawn = np.unique(pattern * strata + stratum, return_counts=True)
        owner, where = cells // strata, cells % strata
        size = self.sizes[where]
        apart = np.bincount(owner, drawn * (size - drawn) / size, minlength=count)
        chance = drawn * (size - drawn) / (size * np.maximum(size - 1, 1)) * self.squares[where]
        variance = np.bincount(owner, chance, minlength=count)
        starts = np.searchsorted(owner, np.arange(count + 1))
        results: list[Support] = []
        for number, kind in enumerate(types):
            own = slice(int(starts[number]), int(starts[number + 1]))
            p_value, increment = 1.0, None
            explained = along[number] ** 2 / (self.spread * apart[number]) if self.spread and apart[number] > 0 else 0.0
            if variance[number] > 0 and explained < _ALL_LENGTH:
                sign = 1.0 if kind == "good" else -1.0
                increment = float(found[number] / (apart[number] * (1.0 - explained)))
                # what the length explains of the firing cannot differ by chance any more: the variance is smaller by it
                reached = sign * float(found[number]) / math.sqrt(1.0 - explained)
                p_value = self._tail(reached, math.sqrt(variance[number]), sign, where[own], drawn[own])
            share = None if not fired[number] else float(sided[number] / fired[number])
            results.append(
                Support(
                    increment=increment,
                    p_value=p_value,
                    items=firing.items,
                    fired=int(fired[number]),
                    precision=share if kind == "good" or share is None else 1.0 - share,
                )
            )
        return results

    def _tail(self, reached: float, deviation: float, sign: float, where: Numbers, drawn: Numbers) -> float:
        """Return how likely chance alone reaches as much: twice the tail, since that of a discrete sum may be half of it."""
        if reached <= _CENTRE * deviation:
            return min(1.0, 2.0 * _normal_tail(reached / deviation))
        sizes = self.sizes[where]
        some = (drawn > 0) & (drawn < sizes)
        small: dict[tuple[int, int], list[int]] = {}
        large: list[tuple[Scores, float]] = []
        for stratum, taken, size in zip(where[some].tolist(), drawn[some].tolist(), sizes[some].tolist(), strict=True):
            if size <= _ENUMERATED:
                small.setdefault((size, taken), []).append(stratum)
            else:
                large.append((self.left[self.members[stratum]] * (sign * math.sqrt(size / (size - 1))), taken / size))
        tables = [sign * self._sums(key)[self._rows(key[0])[chosen]] for key, chosen in small.items()]
        return _Permutations(tables, large).tail(reached)

    def _rows(self, size: int) -> Numbers:
        """Return the row of each stratum among those of its size."""
        chosen = self.sizes == size
        rows: Numbers = np.cumsum(chosen) - 1
        return rows

    def _sums(self, key: tuple[int, int]) -> Scores:
        """Return all sums of ``taken`` of the ``size`` items: a row for each stratum of this size."""
        if key not in self.sums:
            size, taken = key
            values = np.stack([self.left[one] for one in self.members if one.size == size])
            subsets = np.asarray(list(itertools.combinations(range(size), taken)), dtype=np.int64)
            self.sums[key] = values[:, subsets].sum(axis=2)
        return self.sums[key]


class _Permutations:
    """The sum of the scores of the items with the pattern, had they been drawn inside of their strata.

    ``tables`` hold equally likely sums, a stratum a row; ``large`` holds values of a stratum and the share that is drawn.
    """

    def __init__(self, tables: list[Scores], large: list[tuple[Scores, float]]) -> None:
        self.tables = tables
        self.large = large

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
        for values, share in self.large:
            more = _drawn(values, share, tilt)
            value, mean, variance = value + more[0], mean + more[1], variance + more[2]
        return value, mean, variance

    def tail(self, reached: float) -> float:
        """Return the likelihood of ``reached`` or more, which lies above the mean; never too small by more than the method."""
        most, likely = self._most()
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
        tail = _normal_tail(root) + density * (1.0 / scaled - 1.0 / root)
        return min(1.0, bound, max(2.0 * tail, likely))

    def _most(self) -> tuple[float, float]:
        """Return the largest sum there is, and how likely it is."""
        most, likely = 0.0, 0.0
        for sums in self.tables:
            top = sums.max(axis=1)
            most += float(top.sum())
            likely += float(np.log((sums >= top[:, None] - 1e-9).mean(axis=1)).sum())
        for values, share in self.large:
            number = round(share * values.size)
            most += float(np.sort(values)[values.size - number :].sum())
            likely -= math.lgamma(values.size + 1) - math.lgamma(number + 1) - math.lgamma(values.size - number + 1)
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


def _drawn(values: Scores, share: float, tilt: float) -> tuple[float, float, float]:
    """Return the cumulant generating function of a sum of ``share`` of the values, drawn without putting back, and derivatives.

    As if each were drawn by itself, with odds that keep their number what it is: the saddlepoint of the elementary symmetric
    polynomial in exp(tilt · value).
    """
    number, odds = share * values.size, share / (1.0 - share)
    pull = np.clip(tilt * values, -300.0, 300.0)
    shift = 0.0
    raised = odds * np.exp(pull)
    drawn = raised / (1.0 + raised)
    spread = float((drawn * (1.0 - drawn)).sum())
    for _ in range(50):
        missing = number - float(drawn.sum())
        if abs(missing) <= 1e-10 * number or spread <= 1e-12:
            break
        shift += min(2.0, max(-2.0, missing / spread))
        raised = odds * np.exp(pull + shift)
        drawn = raised / (1.0 + raised)
        spread = float((drawn * (1.0 - drawn)).sum())
    even = values.size * share * (1.0 - share)
    value = float(np.log((1.0 - share) * (1.0 + raised)).sum()) - shift * number - 0.5 * math.log(max(spread, 1e-12) / even)
    weights = drawn * (1.0 - drawn)
    across = float((weights * values).sum())
    variance = float((weights * values**2).sum()) - (across**2 / spread if spread > 1e-12 else 0.0)
    return value, float((drawn * values).sum()), variance


def _strata(groups: Sequence[str | None]) -> Numbers:
    """Return each item's stratum: its group, or, of all items that are groups by themselves, one and the same."""
    numbers = group_numbers(groups)
    single = np.bincount(numbers)[numbers] == 1
    _, strata = np.unique(np.where(single, -1, numbers), return_inverse=True)
    return strata.astype(np.int64)


def _normal_tail(deviations: float) -> float:
    return 0.5 * math.erfc(deviations / math.sqrt(2.0))
