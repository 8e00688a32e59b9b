"""Whether two samples of scores, by groups, are spread otherwise by more than chance: their groups are exchanged at random.

Items of one group are no independent evidence, so that it is whole groups that are dealt out anew (Fisher's permutation test).
While known and new groups come from one source, that is exact, however items of a group depend on each other. Differences are
divided by what groups of either sample vary by themselves (Chung and Romano 2013), so that it also holds, as simulations say,
where those of one sample are larger than those of the other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DEALS: Final = 4_999
"""So often groups are dealt out; one in a thousand is told from two by it."""

MOST_GROUPS: Final = 2_000
"""Of more groups of a sample as many are drawn: what these do not show is no drift that anybody minds."""

_AT_ONCE: Final = 250


def beyond_chance(
    known: Sequence[float],
    new: Sequence[float],
    known_groups: Sequence[Any],
    new_groups: Sequence[Any],
    cuts: Sequence[float],
    *,
    chance: float,
) -> bool:
    """Return whether ``new`` differs from ``known`` as much as in at most ``chance`` of all deals of their groups.

    What is compared are the shares of the bins between rising ``cuts``, which must not depend on which scores are known and
    which are new. Of so few groups that they cannot be dealt in 1 / ``chance`` ways the answer is always False.
    """
    draw = np.random.default_rng(0)
    ours = _by_group(known, known_groups, cuts, draw)
    theirs = _by_group(new, new_groups, cuts, draw)
    both = np.vstack([ours, theirs])
    sums = _sums(both)
    whole = sums.sum(axis=0)
    first = np.arange(len(both)) >= len(ours)
    found = _difference(first[None, :].astype(np.float64) @ sums, whole, len(theirs), len(ours))
    allowed = int(chance * (DEALS + 1)) - 1
    as_large = np.zeros(2, dtype=np.int64)
    done = 0
    while done < DEALS and as_large.max() <= allowed:
        size = min(_AT_ONCE, DEALS - done)
        places = draw.random((size, len(both))).argsort(axis=1) < len(theirs)
        dealt = _difference(places.astype(np.float64) @ sums, whole, len(theirs), len(ours))
        as_large += (dealt >= found * (1 - 1e-9)).sum(axis=1)
        done += size
    return bool(as_large.max() <= allowed)


def _by_group(scores: Sequence[float], groups: Sequence[Any], cuts: Sequence[float], draw: np.random.Generator) -> Floats:
    """Return ``(groups, bins)`` counts of items."""
    place = {name: number for number, name in enumerate(dict.fromkeys(groups))}
    counts = np.zeros((len(place), len(cuts) + 1))
    for score, name in zip(scores, groups, strict=True):
        counts[place[name], bisect_right(cuts, score)] += 1
    if len(counts) > MOST_GROUPS:
        counts = counts[np.sort(draw.permutation(len(counts))[:MOST_GROUPS])]
    return counts


def _sums(counts: Floats) -> Floats:
    """Return for each group what sums over a sample need: its counts, their squares, counts × size, size and its square."""
    size = counts.sum(axis=1, keepdims=True)
    return np.hstack([counts, counts**2, counts * size, size, size**2])


def _difference(sums: Floats, whole: Floats, new: int, known: int) -> Floats:
    """Return ``(2, deals)`` squared differences of the bins' shares in units of their variance, which groups say, added up.

    No bin's variance is believed to be below that of independent items, in the one, or of independent groups, in the other: of
    a few groups none may have had an item there.
    """
    one, its_variance = _shares(sums, new)
    other, other_variance = _shares(whole - sums, known)
    bins = one.shape[1]
    pooled = whole[:bins] / whole[3 * bins]
    sizes = np.maximum(sums[:, [3 * bins]], 1.0)
    rest = np.maximum(whole[3 * bins] - sizes, 1.0)
    apart = (one - other) ** 2
    found: list[Floats] = []
    for own, others in ((sizes, rest), (float(new), float(known))):
        least = pooled * (1 - pooled)
        variance = np.maximum(its_variance, least / own) + np.maximum(other_variance, least / others)
        found.append((apart / np.maximum(variance, 1e-12)).sum(axis=1))
    return np.stack(found)


def _shares(sums: Floats, groups: int) -> tuple[Floats, Floats]:
    bins = (sums.shape[1] - 2) // 3
    counts, squares, products = sums[:, :bins], sums[:, bins : 2 * bins], sums[:, 2 * bins : 3 * bins]
    size, size_squares = np.maximum(sums[:, [-2]], 1.0), sums[:, [-1]]
    shares = counts / size
    apart = squares - 2 * shares * products + shares**2 * size_squares
    return shares, np.maximum(apart, 0.0) / size**2 * (groups / max(1, groups - 1))
