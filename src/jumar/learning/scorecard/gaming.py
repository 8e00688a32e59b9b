"""Items made worse, or just longer, beside the items of a fit: its points must not reward what was done to them.

The probes of :mod:`jumar.learning.proof.probes` try a finished set. What they do is foreseen here: the same attacks, with
other words and other chance, but for those that only choose their words (:data:`jumar.learning.proof.attacks.WORD_CHOICE`). Of
each attacked item the difference to the original says what it gains. The mean gain by kind is a sum of points; a fit with
``FitSettings.guard`` is the best of those in which no such sum is over 0. No score is looked at, and an attacked item is in
the fold of its original.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jumar.judging.cheap.scoring import words_of
from jumar.judging.items.item import Item
from jumar.judging.patterns.matcher import literals
from jumar.judging.patterns.models import PatternV2
from jumar.learning.proof.attacks import ATTACKS, WORD_CHOICE, AttackMeans, stuffed
from jumar.learning.scorecard.pool import Pool, fires_on

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

MOST_ITEMS: Final = 400
"""Items that are attacked, of so few that the noise of their means would cost ranks."""

_LARGE: Final = 2_000
_OF_LARGE: Final = 120
"""From how many items on fewer are attacked, and how many: they are measured dozens of times, and a mean of those will do."""

_FEW: Final = 6
_MANY: Final = 20

_MEANS: Final = AttackMeans(
    filler=(
        "Many people have thought about it for years and will do so again.",
        "Some would agree, some would not, and both have their reasons.",
        "At the end of the day, you never know what comes next.",
        "We could talk about that topic in more detail later on.",
        "Generally speaking, things like these happen from time to time.",
        "I think it was very interesting, and they said they liked it too.",
        "What can I say? That was just one of those days!",
        "Of course, one should always keep an open mind when looking at the details.",
        "In the following, a few general remarks are made.",
        "He did what he had to do, but she knew how it would turn out.",
        "First of all, it might be useful to consider the wider picture.",
        "My friends do that a lot; do you know anyone who does?",
    ),
    long_words=("circumstances", "characteristic", "fundamentally", "considerations", "extraordinary", "independently"),
    after_verb="never",
    in_front="No one can claim that",
)

Change = Callable[[Item, Sequence[str], Random], Item]


@dataclass(frozen=True, slots=True)
class AttackGains:
    """What probed items gain: ``gains`` is ``(probed, candidates)``, sparse, of -1, 0 and 1; ``kind`` numbers :data:`KINDS`.

    ``fold`` is that of the original. ``roots`` are those of the words of all items, as the guard of a scorecard counts them.
    """

    gains: Any
    kind: Numbers
    fold: Numbers
    roots: Floats

    def limits(self, folds: Sequence[int]) -> Floats:
        """Return ``(limits, candidates)``: the mean gain of each kind among the probed items of ``folds``."""
        inside = np.isin(self.fold, np.asarray(folds))
        rows = [self.gains[inside & (self.kind == one)].mean(axis=0) for one in np.unique(self.kind[inside])]
        return np.asarray(np.vstack(rows), dtype=np.float64) if rows else np.zeros((0, self.gains.shape[1]))


def measure_attack_gains(items: Sequence[Item], pool: Pool, fold: Numbers, *, seed: int) -> AttackGains:
    """Return what the candidates of ``pool`` gain on probed versions of ``items``, which are in ``fold``.

    What is stuffed with phrases gains none by its phrases here: they are bounded where the set is applied.
    """
    draw = Random(f"gaming {seed}")  # noqa: S311 - no secret
    most = MOST_ITEMS if len(items) <= _LARGE else _OF_LARGE
    chosen = sorted(draw.sample(range(len(items)), min(most, len(items))))
    phrases = _phrases(pool.patterns)
    probed: list[Item] = []
    origin: list[int] = []
    kind: list[int] = []
    for number, change in enumerate(KINDS.values()):
        for at in chosen:
            made = change(items[at], phrases, draw)
            if made.text != items[at].text:
                probed.append(made)
                origin.append(at)
                kind.append(number)
    kinds = np.array(kind, dtype=np.int64)
    own = np.array(origin, dtype=np.int64)
    gains = (fires_on(probed, pool.patterns) - pool.fires[own]).tocoo()
    said = np.array([block == "phrases" for block in pool.blocks], dtype=np.bool_)
    stuffed = np.isin(kinds, [number for number, name in enumerate(KINDS) if name in STUFFING])
    gains.data[stuffed[gains.row] & said[gains.col]] = 0.0
    roots = np.sqrt([max(1, words_of(item)) for item in items])
    return AttackGains(gains.tocsr(), kinds, fold[own], roots)


def _phrases(patterns: Sequence[PatternV2]) -> list[str]:
    return sorted({phrase for pattern in patterns for phrase in literals(pattern)})


def _stuffed(count: int) -> Change:
    return lambda item, phrases, draw: stuffed(item, draw.sample(list(phrases), min(count, len(phrases))), draw)


def _foreseen(name: str) -> Change:
    return lambda item, _phrases, draw: ATTACKS[name](item, _MEANS, draw)


KINDS: Final[Mapping[str, Change]] = {
    "some_phrases": _stuffed(_FEW),
    "many_phrases": _stuffed(_MANY),
    **{name: _foreseen(name) for name in ATTACKS if name not in WORD_CHOICE},
}
"""What is done to items: an item, phrases of the candidates and chance → one that should not score higher."""

STUFFING: Final = frozenset({"some_phrases", "many_phrases"})
"""The kinds whose phrases are bounded where the set is applied. Two: nobody knows yet how many phrases a set will have."""
