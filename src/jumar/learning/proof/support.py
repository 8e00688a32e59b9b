"""What one pattern adds to what the length of a text says already, and how easily chance would have added as much. Pure.

Scores are compared inside of groups where groups have several items; items that are groups by themselves are compared with
those of about the same length, eight at a time. From the scores, centred so, what the length explains is taken: a curve over
log(1 + characters) made of straight pieces, so that a judge may like long texts, short ones, or those in between. What is left
is compared between the items on which a pattern fired and the others of the same group or length.

The p-value is that of a permutation test: if the pattern said nothing, any items of the same strata might have had it
(:mod:`jumar.learning.proof.permutations`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from jumar.judging.agreement import Numbers, group_numbers
from jumar.judging.patterns.matcher import PatternMatcher
from jumar.judging.patterns.models import PatternProposal, PatternSet, PatternV2
from jumar.judging.patterns.proposed import as_pattern
from jumar.learning.material import Target
from jumar.learning.proof.permutations import ENUMERATED, Permutations, normal_tail
from jumar.learning.state import FALSE_DISCOVERY_RATE, LedgerEntry, ProposalLedger

Scores = NDArray[np.float64]
Sign = Literal["good", "bad"]

_CENTRE: Final = 1.0
"""Up to so many standard deviations a p-value decides nothing, and the normal one does."""

_SAME_LENGTH: Final = 1e-6
"""A column that is as small beside the largest adds nothing to a curve of the length; what is left of it is rounding."""

_ALIKE: Final = ENUMERATED
"""Items by themselves that are compared with each other because they are about as long, at most where no lengths are equal."""

_PIECES: Final = 8
"""Straight pieces of the curve that takes the length out, at most."""

_A_PIECE: Final = 20
"""Items for each of them, at least: of few items a free curve would take what the patterns say."""

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
        """Return the firing of what ``PatternMatcher.fired`` gives for each item, in their order."""
        rows = [sorted(set(one)) for one in fired]
        item = np.repeat(np.arange(len(rows)), [len(row) for row in rows]).astype(np.int64)
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


def support_of(patterns: Sequence[PatternV2], targets: Sequence[Target]) -> list[Support]:
    """Return the support of each pattern by scored items that it was not proposed from."""
    matcher = PatternMatcher(patterns)
    return support(
        [target.score for target in targets],
        lengths=[target.length for target in targets],
        groups=[target.group for target in targets],
        firing=Firing.of_items((matcher.fired(target.item.text) for target in targets), len(patterns)),
        types=[pattern.type for pattern in patterns],
    )


def ledger_entries(ids: Sequence[str], found: Sequence[Support], iteration: int) -> list[LedgerEntry]:
    """Return what goes into the ledger of patterns called ``ids``, tested in one iteration."""
    return [
        LedgerEntry(id=name, iteration=iteration, p_value=one.p_value, items=one.items, fired=one.fired, precision=one.precision)
        for name, one in zip(ids, found, strict=True)
    ]


class _Comparison:
    """What all patterns share: the strata, and what is left of the scores without group and length.

    ``curve`` is ``(items, columns)``, orthonormal: what the length can explain inside of the strata. ``left`` is what it does not
    explain of the scores, ``dealt`` the same with the spread that scores have before a curve was fitted to them.
    """

    def __init__(self, truth: Scores, lengths: Scores, groups: Sequence[str | None]) -> None:
        self.stratum = _strata(groups, lengths)
        self.sizes = np.bincount(self.stratum)
        self.curve = self._length_curve(np.log1p(lengths))
        centred = self._centred(truth)
        self.left = centred - self.curve @ (self.curve.T @ centred)
        free = truth.size - self.sizes.size
        rest = free - self.curve.shape[1]
        self.dealt = self.left * math.sqrt(free / rest) if rest > 0 else np.zeros_like(self.left)
        self.side = 0.5 * (np.sign(truth - np.median(truth)) + 1.0)
        self.squares = np.bincount(self.stratum, self.dealt**2)
        order = np.argsort(self.stratum, kind="stable")
        ends = np.cumsum(self.sizes)
        self.members = [order[end - size : end] for end, size in zip(ends.tolist(), self.sizes.tolist(), strict=True)]
        self.row = np.zeros_like(self.sizes)  # of each stratum among those of its size
        self.values: dict[int, Scores] = {}
        for size in np.unique(self.sizes).tolist():
            alike = np.flatnonzero(self.sizes == size)
            self.row[alike] = np.arange(alike.size)
            self.values[size] = self.dealt[np.stack([self.members[one] for one in alike.tolist()])]
        self.sums: dict[tuple[int, int], Scores] = {}

    def _length_curve(self, length: Scores) -> Scores:
        """Return what a curve of straight pieces can be inside of the strata, corners at quantiles; no column for one length."""
        pieces = max(1, min(_PIECES, length.size // _A_PIECE))
        corners = np.unique(np.quantile(length, np.arange(1, pieces) / pieces)) if pieces > 1 else np.zeros(0)
        columns = np.stack([self._centred(one) for one in (length, *(np.maximum(length - corner, 0.0) for corner in corners))])
        found, spread, _ = np.linalg.svd(columns.T, full_matrices=False)
        chosen: Scores = found[:, spread > _SAME_LENGTH * max(1.0, float(spread.max(initial=0.0)))]
        return chosen

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
        along = sum((np.bincount(pattern, one[firing.item], minlength=count) ** 2 for one in self.curve.T), np.zeros(count))
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
            explained = along[number] / apart[number] if apart[number] > 0 else 0.0
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
        """Return how likely chance alone reaches as much; where it decides nothing, twice the normal tail."""
        if reached <= _CENTRE * deviation:
            return min(1.0, 2.0 * normal_tail(reached / deviation))
        sizes = self.sizes[where]
        some = (drawn > 0) & (drawn < sizes)
        where, drawn, sizes = where[some], drawn[some], sizes[some]
        tables: list[Scores] = []
        large: list[tuple[Scores, Numbers]] = []
        for size in np.unique(sizes).tolist():
            alike = sizes == size
            rows, taken = self.row[where[alike]], drawn[alike]
            if size > ENUMERATED:
                large.append((sign * self.values[size][rows], taken))
                continue
            tables += [sign * self._sums(size, one)[rows[taken == one]] for one in np.unique(taken).tolist()]
        return Permutations(tables, large, int(drawn.sum())).tail(reached)

    def _sums(self, size: int, taken: int) -> Scores:
        """Return all sums of ``taken`` of the ``size`` items: a row for each stratum of this size."""
        if (size, taken) not in self.sums:
            subsets = np.asarray(list(itertools.combinations(range(size), taken)), dtype=np.int64)
            self.sums[size, taken] = self.values[size][:, subsets].sum(axis=2)
        return self.sums[size, taken]


def _strata(groups: Sequence[str | None], lengths: Scores) -> Numbers:
    """Return each item's stratum: its group, or, of the items that are groups by themselves, those of about its length."""
    numbers = group_numbers(groups)
    single = np.bincount(numbers)[numbers] == 1
    alone = int(single.sum())
    if alone:
        _, known, counts = np.unique(lengths[single], return_inverse=True, return_counts=True)
        shorter = np.cumsum(counts) - counts  # texts of one length are never parted
        bins = -(-alone // _ALIKE)
        numbers = numbers.copy()
        numbers[single] = -1 - shorter[known] * bins // alone
    _, strata = np.unique(numbers, return_inverse=True)
    return strata.astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A proposal that is in the set, as the held-out items saw it.

    ``role`` is ``supported`` when its own increment over length survives false-discovery control over all proposals of the run,
    in the set or not, and over all looks so far, else ``member``. ``increment`` is in points, ``precision`` the share of the
    items it fired on that are on its side of the median, ``coverage`` the share of items on which it fired; the first two are
    None where nothing can be said.
    """

    id: str
    description: str
    type: Literal["good", "bad"]
    role: Literal["supported", "member"]
    increment: float | None
    p_value: float
    precision: float | None
    coverage: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedTests:
    """What one look says of single patterns: its ``members``, and the ``ledger`` of all looks so far, this one the last."""

    members: tuple[Member, ...]
    ledger: ProposalLedger


def sealed_tests(
    patterns: PatternSet,
    proposals: Sequence[PatternProposal],
    sealed: Sequence[Target],
    *,
    known: ProposalLedger | None = None,
    look: int = 1,
    rate: float = FALSE_DISCOVERY_RATE,
) -> SealedTests:
    """Return what a look at the held-out items says of the proposals that are active in ``patterns``, the smallest p-value first.

    Every proposal of the run is tested once, on items that none was made from, and all of these tests count: also those of
    proposals that are not in the set, and those of other looks, which ``known`` holds with the number of the look as their
    ``iteration``. The very same test again is no other one. What ``known`` has of this ``look`` gives way: it is made
    again. ``sealed`` are scored items; without any, nothing is supported.
    """
    before = ProposalLedger(tuple(entry for entry in (known or ProposalLedger()).entries if entry.iteration != look))
    made = {one.id: one for one in map(as_pattern, proposals)}
    if not made or not sealed:
        return SealedTests(members=(), ledger=before)
    listed = list(made.values())
    found = support_of(listed, sealed)
    entries = ledger_entries([one.id for one in listed], found, look)
    again = {replace(entry, iteration=0) for entry in entries}
    counted = ProposalLedger(tuple(entry for entry in before.entries if replace(entry, iteration=0) not in again)).added(entries)
    tests = zip(counted.entries, counted.adjusted(), strict=True)
    supported = {one.id for one, value in tests if one.iteration == look and value <= rate}
    active = {pattern.id for pattern in patterns.patterns if pattern.status == "active"}
    members = [
        Member(
            id=pattern.id,
            description=pattern.description,
            type=pattern.type,
            role="supported" if pattern.id in supported else "member",
            increment=one.increment,
            p_value=one.p_value,
            precision=one.precision,
            coverage=one.coverage,
        )
        for pattern, one in zip(listed, found, strict=True)
        if pattern.id in active
    ]
    return SealedTests(
        members=tuple(sorted(members, key=lambda member: (member.p_value, member.id))), ledger=before.added(entries)
    )
