"""What may become a pattern of the set: steps of features, phrases of the items, proposals. Nothing here looks at a score."""

from __future__ import annotations

import functools
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from itertools import pairwise
from random import Random
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from jumar.judging.cheap.features import FEATURES, Feature, feature_values
from jumar.judging.cheap.offload import fired_on
from jumar.judging.cheap.phrases import lowered_words
from jumar.judging.cheap.scoring import words_of
from jumar.judging.items.item import Item
from jumar.judging.patterns.matcher import folded, literals
from jumar.judging.patterns.models import PatternSet, PatternV2
from jumar.judging.patterns.phrases import FUNCTION_WORDS
from jumar.judging.patterns.proposed import UNDATED, pattern_key
from jumar.learning.proof.attacks import ATTACKS, WORD_CHOICE, AttackMeans, stuffed

Block = Literal["surface", "relation", "phrases"]
Floats = NDArray[np.float64]

SOURCE = "scorecard"


BLOCKS: Final = ("surface", "relation", "phrases", "all")
"""What is fitted by itself and then combined: three kinds of patterns, and all of them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSettings:
    """How a scorecard is fitted.

    ``folds`` are by group. A feature gets up to ``edges`` patterns, a phrase takes part from ``least_items`` items on that it
    fires on, ``most_patterns`` are all patterns of the set. ``mine_phrases``: whether words and pairs of words of the items are
    candidates beside the proposals, at most ``most_mined``, the most frequent ones. ``guard``: whether points are fitted so that
    making an item worse or just longer raises no score, and good phrases are bounded
    (:mod:`jumar.learning.scorecard.pool`).
    Errors: ValueError for a number that is too small.
    """

    folds: int = 5
    edges: int = 4
    least_items: int = 6
    most_patterns: int = 500
    mine_phrases: bool = True
    most_mined: int = 4_000
    guard: bool = True

    def __post_init__(self) -> None:
        if self.folds < 3 or min(self.edges, self.least_items, self.most_patterns) < 1 or self.most_mined < 0:
            raise ValueError("folds are at least 3; edges, least_items and most_patterns at least 1; most_mined is not negative")


@dataclass(frozen=True, slots=True)
class Pool:
    """Candidates, and on which items they fire.

    ``fires`` is ``(items, candidates)`` of 0 and 1; ``blocks`` names each candidate's block; ``claims`` are 1 and -1 for
    proposals of good and bad patterns, and 0 for what claims nothing.
    """

    patterns: tuple[PatternV2, ...]
    blocks: tuple[Block, ...]
    claims: NDArray[np.int8]
    fires: Any


def gather_candidates(items: Sequence[Item], proposals: Sequence[PatternV2], *, settings: FitSettings, made: datetime) -> Pool:
    """Return all candidates with what they fire on. A proposal counts as a phrase unless it is of a feature."""
    own, steps = feature_steps(items, edges=settings.edges, made=made)
    own, steps = own[: settings.most_patterns], steps[:, : settings.most_patterns]
    known = {(one.feature, one.at_least) for one in own}
    asked = [proposal for proposal in proposals if proposal.feature is None or (proposal.feature, proposal.at_least) not in known]
    taken = {one.id for one in asked}
    said = {phrase for one in asked for phrase in map(folded, one.phrases)}
    asked = [one.model_copy(update={"status": "active"}) for one in asked]
    mined: Sequence[PatternV2] = ()
    mined_on = fires_on(items, mined)
    if settings.mine_phrases:
        mined, mined_on = mined_phrases(_texts(items), settings.least_items, settings.most_mined, made)
        new = [place for place, one in enumerate(mined) if one.id not in taken and one.phrases[0] not in said]
        new = [new[place] for place in _different(mined_on[:, new], [mined[place] for place in new])]
        mined, mined_on = [mined[place] for place in new], mined_on[:, new]
    patterns = [*own, *asked, *mined]
    claims = np.zeros(len(patterns), dtype=np.int8)
    claims[len(own) : len(own) + len(asked)] = [1 if one.type == "good" else -1 for one in asked]
    blocks: list[Block] = [block_of(pattern) for pattern in patterns]
    sparse: Any = import_module("scipy.sparse")
    fires = sparse.hstack([sparse.csr_matrix(steps.astype(np.float64)), fires_on(items, asked), mined_on], format="csr")
    return Pool(tuple(patterns), tuple(blocks), claims, fires)


def _different(fires: Any, patterns: Sequence[PatternV2]) -> list[int]:
    """Return the places of columns of which no two are the same: of phrases that fire alike the one that says most."""
    columns = fires.tocsc()
    columns.sort_indices()
    found: dict[bytes, int] = {}
    for place, one in enumerate(patterns):
        key = columns.indices[columns.indptr[place] : columns.indptr[place + 1]].tobytes()
        other = found.get(key)
        if other is None or _said(one.phrases[0]) > _said(patterns[other].phrases[0]):
            found[key] = place
    return sorted(found.values())


def _said(phrase: str) -> tuple[int, int, int]:
    """Return how much a phrase says: words that mean something, then as few others as can be, then letters."""
    words = phrase.split(" ")
    empty = sum(word in FUNCTION_WORDS for word in words)
    return len(words) - empty, -empty, len(phrase)


def block_of(pattern: PatternV2) -> Block:
    """Return what a pattern is fitted together with: the block of its feature, else phrases."""
    known = FEATURES.get(pattern.feature or "")
    return "phrases" if known is None else known.block


def fires_on(items: Sequence[Item], patterns: Sequence[PatternV2]) -> Any:
    """Return ``(items, patterns)``, sparse, of 0 and 1: where each fires."""
    csr_matrix: Any = import_module("scipy.sparse").csr_matrix
    if not patterns or not items:
        return csr_matrix((len(items), 0))
    rows = fired_on(items, PatternSet(version="2.0", patterns=list(patterns)))
    indices = np.fromiter((index for row in rows for index in row), dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return csr_matrix((np.ones(indices.size), indices, starts), shape=(len(items), len(patterns)))


def feature_steps(items: Sequence[Item], *, edges: int, made: datetime) -> tuple[list[PatternV2], NDArray[np.bool_]]:
    """Return up to ``edges`` patterns a feature, and ``(items, patterns)``: where each fires.

    They stand at quantiles of the feature's values; there is none of a feature that is the same on all items.
    """
    values = np.empty((len(items), len(FEATURES)))
    for row, item in enumerate(items):
        values[row] = feature_values(item)
    found: list[PatternV2] = []
    fires: list[NDArray[np.bool_]] = []
    for column, feature in enumerate(FEATURES.values()):
        for edge in _edges(values[:, column], edges):
            found.append(_step(feature, edge, made))
            fires.append(values[:, column] >= edge)
    return found, np.stack(fires, axis=1) if fires else np.zeros((len(items), 0), dtype=np.bool_)


def _edges(values: Floats, most: int) -> list[float]:
    """Return values from which at least one item is on each side, and every two have an item between them."""
    different = np.unique(values)
    if different.size < 2:
        return []
    if different.size <= most + 1:
        return [_readable(one, different) for one in different[1:]]
    quantiles = np.quantile(values, np.linspace(0, 1, most + 2)[1:-1], method="higher")
    return sorted({_readable(one, different) for one in np.unique(quantiles) if one > different[0]})


def _readable(edge: float, values: Floats) -> float:
    """Return the shortest decimal that parts ``values`` as ``edge`` does: above the value before it, at most itself."""
    below = values[np.searchsorted(values, edge) - 1]
    for digits in range(1, 17):
        short = float(f"{edge:.{digits}g}")
        if below < short <= edge:
            return short
        step = 10.0 ** (math.floor(math.log10(abs(edge))) - digits + 1) if edge else 0.0
        short = float(f"{edge - step:.{digits}g}")
        if below < short <= edge:
            return short
    return float(edge)


def _step(feature: Feature, edge: float, made: datetime) -> PatternV2:
    shown = f"{edge:g}" if float(f"{edge:g}") == edge else repr(edge)  # two steps never share a name
    return PatternV2(
        id=f"{feature.name}>={shown}",
        type="good",
        description=feature.says.format(shown),
        keywords=[],
        source=SOURCE,
        discovered_at=made,
        category=feature.block,
        feature=feature.name,
        at_least=edge,
    )


def _texts(items: Sequence[Item]) -> tuple[str, ...]:
    return tuple(item.text for item in items)


_SETS_OF_TEXTS: Final = 8
"""What is mined of texts is kept of so many sets of them: those of the lines of a run, whose every iteration asks again."""


@functools.lru_cache(maxsize=_SETS_OF_TEXTS)
def mined_phrases(texts: tuple[str, ...], least: int, most: int, made: datetime) -> tuple[tuple[PatternV2, ...], Any]:
    """Return patterns of words, and pairs of words, that occur in at least ``least`` texts and not in all; and where they fire.

    At most ``most``, those of the most texts; in the order of the alphabet. Neither is to be changed by who asks.
    """
    found = tuple(_phrase(text, made) for text in _mined(texts, least, most))
    return found, fires_on([Item("", text) for text in texts], found)


def mined_keys(items: Sequence[Item]) -> frozenset[str]:
    """Return the keys of the patterns of either sign that a fit to ``items`` finds by itself."""
    return _mined_keys(_texts(items))


@functools.lru_cache(maxsize=_SETS_OF_TEXTS)
def _mined_keys(texts: tuple[str, ...]) -> frozenset[str]:
    chosen = FitSettings()
    found = [_phrase(text, UNDATED) for text in _mined(texts, chosen.least_items, chosen.most_mined)]
    return frozenset(pattern_key(one.model_copy(update={"type": kind})) for one in found for kind in ("good", "bad"))


@functools.lru_cache(maxsize=_SETS_OF_TEXTS)
def _mined(texts: tuple[str, ...], least: int, most: int) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update({*lowered_words(text), *_pairs(text)})
    found = sorted((-count, text) for text, count in counts.items() if least <= count < len(texts))[:most]
    return tuple(sorted(text for _, text in found))


def _pairs(text: str) -> Iterable[str]:
    """Return pairs that stand with one blank between them: others would not fire as a phrase."""
    words = text.lower().split()
    return (f"{one} {other}" for one, other in pairwise(words) if one.isalnum() and other.isalnum())


def _phrase(text: str, made: datetime) -> PatternV2:
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return PatternV2(
        id=f"phrase:{digest}",
        type="good",
        description=f'says "{text}"',
        keywords=text.split(),
        source=SOURCE,
        discovered_at=made,
        category="phrases",
        phrases=[text],
    )


Numbers = NDArray[np.int64]

MOST_ITEMS: Final = 120
"""Items that are attacked, each dozens of times: a mean of those will do."""

_CODED: Final = ("utf-8", "surrogatepass")

_FEW_PHRASES: Final = 6
_MANY_PHRASES: Final = 20

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
    # by the item alone, so that the fits of a run attack the same items in the same way, and what was counted of them is known
    chosen = sorted(range(len(items)), key=lambda at: hashlib.sha256(f"{seed} {items[at].id}".encode(*_CODED)).digest())
    chosen = sorted(chosen[:MOST_ITEMS])
    phrases = _phrases(pool.patterns)
    probed: list[Item] = []
    origin: list[int] = []
    kind: list[int] = []
    for number, (name, change) in enumerate(KINDS.items()):
        for at in chosen:
            draw = Random(f"gaming {seed} {name} {items[at].id}")  # noqa: S311 - no secret
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
    "some_phrases": _stuffed(_FEW_PHRASES),
    "many_phrases": _stuffed(_MANY_PHRASES),
    **{name: _foreseen(name) for name in ATTACKS if name not in WORD_CHOICE},
}
"""What is done to items: an item, phrases of the candidates and chance → one that should not score higher."""

STUFFING: Final = frozenset({"some_phrases", "many_phrases"})
"""The kinds whose phrases are bounded where the set is applied. Two: nobody knows yet how many phrases a set will have."""
