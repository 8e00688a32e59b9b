"""What may become a pattern of the set: steps of features, phrases of the items, proposals. Nothing here looks at a score."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jumar.judging.cheap.evidence import PatternEvidence
from jumar.judging.cheap.features import FEATURES, Feature, Measured
from jumar.judging.cheap.words import lowered_words
from jumar.judging.items import Item
from jumar.patterns.models import PatternSet, PatternV2

__all__ = ["Pool", "feature_steps", "gather", "mined_phrases"]

Block = Literal["surface", "relation", "phrases"]
Floats = NDArray[np.float64]

SOURCE = "scorecard"


@dataclass(frozen=True, slots=True)
class Pool:
    """Candidates, and on which items they fire.

    ``fires`` is ``(items, candidates)`` of 0 and 1; ``blocks`` names each candidate's block; ``proposed`` is True for those whose
    sign is theirs to claim.
    """

    patterns: tuple[PatternV2, ...]
    blocks: tuple[Block, ...]
    proposed: tuple[bool, ...]
    fires: Any


def gather(
    items: Sequence[Item],
    proposals: Sequence[PatternV2],
    *,
    edges: int,
    least: int,
    mine: bool,
    made: datetime,
) -> Pool:
    """Return all candidates with what they fire on. A proposal counts as a phrase unless it is of a feature."""
    own = feature_steps(items, edges=edges, made=made)
    known = {(one.feature, one.at_least) for one in own}
    asked = [one for one in proposals if one.feature is None or (one.feature, one.at_least) not in known]
    taken = {one.id for one in asked}
    mined = [one for one in mined_phrases(items, least=least, made=made) if one.id not in taken] if mine else []
    patterns = [one.model_copy(update={"status": "active"}) for one in (*own, *asked, *mined)]
    proposed = [False] * len(own) + [True] * len(asked) + [False] * len(mined)
    blocks: list[Block] = [_block(one) for one in patterns]
    return Pool(tuple(patterns), tuple(blocks), tuple(proposed), _fires(items, patterns))


def _block(pattern: PatternV2) -> Block:
    known = FEATURES.get(pattern.feature or "")
    return "phrases" if known is None else known.block


def _fires(items: Sequence[Item], patterns: Sequence[PatternV2]) -> Any:
    csr_matrix: Any = import_module("scipy.sparse").csr_matrix
    evidence = PatternEvidence(PatternSet(version="2.0", patterns=list(patterns)))
    rows = [evidence.fired(item, None) for item in items]
    indices = np.fromiter((index for row in rows for index in row), dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return csr_matrix((np.ones(indices.size), indices, starts), shape=(len(items), len(patterns)))


def feature_steps(items: Sequence[Item], *, edges: int, made: datetime) -> list[PatternV2]:
    """Return up to ``edges`` patterns a feature, at quantiles of its values; none for one that is the same on all items."""
    found: list[PatternV2] = []
    measured = [Measured(item) for item in items]
    for feature in FEATURES.values():
        values = np.array([float(feature.read(one)) for one in measured])
        found += [_step(feature, edge, made) for edge in _edges(values, edges)]
    return found


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
    return PatternV2(
        id=f"{feature.name}>={edge:g}",
        type="good",
        description=feature.says.format(f"{edge:g}"),
        keywords=[],
        source=SOURCE,
        discovered_at=made,
        category=feature.block,
        feature=feature.name,
        at_least=edge,
    )


def mined_phrases(items: Sequence[Item], *, least: int, made: datetime) -> list[PatternV2]:
    """Return words, and pairs of words, that occur in at least ``least`` items and not in all, in the order of the alphabet."""
    counts: Counter[str] = Counter()
    for item in items:
        words = lowered_words(item.text)
        counts.update({*words, *_pairs(item.text)})
    return [_phrase(text, made) for text in sorted(counts) if least <= counts[text] < len(items)]


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
