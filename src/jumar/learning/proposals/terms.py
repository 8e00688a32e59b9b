"""Which phrases of up to a few words stand in which texts: counted in arrays, so that ten thousand texts take seconds.

A phrase is found here where, and only where, :class:`jumar.judging.patterns.PatternMatcher` would fire on it: texts are
folded as it folds them, and words that stand apart by more than a blank, a hyphen, an apostrophe or a slash make no phrase.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from jumar.judging.patterns.english import FUNCTION_WORDS
from jumar.judging.patterns.matcher import folded

__all__ = ["JOINS", "Terms", "find_terms", "says_something"]

JOINS: Final = (" ", "-", "'", "’", "/")
_SPLIT: Final = re.compile(r"(\W+)")
_LETTER: Final = re.compile(r"[^\Wai]\b")  # what an apostrophe cut off: the end of "user's"

_STUMPS: Final = frozenset("don didn doesn isn aren wasn weren won couldn wouldn shouldn hasn haven hadn ain".split())  # noqa: SIM905
"""What an apostrophe leaves of a denial: they stand in texts, and mean the denial as much as its absence."""


@dataclass(frozen=True, slots=True)
class Terms:
    """``phrases[i]`` stands in the texts ``where[i]``, an ascending array of positions; the order is that of first appearance."""

    phrases: tuple[str, ...]
    where: tuple[Any, ...]


def says_something(phrase: str) -> bool:
    """Return whether a phrase could tell good from bad: a word that means something is in it, and it does not end in the air."""
    words = phrase.split()
    if words[-1] in FUNCTION_WORDS or _LETTER.match(phrase):
        return False
    return any(
        len(word) >= 3 and word not in FUNCTION_WORDS and word not in _STUMPS and any(map(str.isalpha, word)) for word in words
    )


def find_terms(texts: Sequence[str], *, words: int = 3, least: int = 2, largest_share: float = 0.95) -> Terms:
    """Return the phrases of one to ``words`` words that stand in at least ``least`` texts and at most that share of them.

    Those that :func:`says_something` turns down are left out. Memory and time grow with the words of the texts. Needs numpy.
    """
    import numpy as np

    tokens, joins, items, vocabulary = _read(texts)
    most = largest_share * len(texts)
    found: list[tuple[int, str, Any]] = []
    level = np.where(tokens >= 0, tokens, -1)
    for size in range(1, words + 1):
        if size > 1:
            level = _longer(level, tokens, joins, size, len(vocabulary))
        level, where = _frequent(level, items, least)
        starts = _first(level, len(where))
        for number, places in enumerate(where):
            if len(places) <= most:
                start = int(starts[number])
                found.append((start, _phrase(start, size, tokens, joins, vocabulary), places))
    told = [(start, phrase, places) for start, phrase, places in found if says_something(phrase)]
    told.sort(key=lambda one: (one[0], len(one[1])))
    return Terms(tuple(phrase for _, phrase, _ in told), tuple(places for _, _, places in told))


class _Joins(dict[str, int]):
    """The number of what stands between two words: 0 for what keeps them apart."""

    def __init__(self) -> None:
        super().__init__({join: number for number, join in enumerate(JOINS, start=1)})

    def __missing__(self, between: str) -> int:
        return 0


def _read(texts: Sequence[str]) -> tuple[Any, Any, Any, list[str]]:
    """Return for every word its number (-1 for none), what joins it to the next one (0 for nothing) and its text."""
    import numpy as np

    known: defaultdict[str, int] = defaultdict(count().__next__, {"": -1})
    number_of, join_of = known.__getitem__, _Joins().__getitem__
    tokens: list[int] = []
    joins: list[int] = []
    sizes: list[int] = []
    for text in texts:
        parts = _SPLIT.split(folded(text))
        own = parts[::2]
        tokens.extend(map(number_of, own))
        joins.extend(map(join_of, parts[1::2]))
        joins.append(0)
        sizes.append(len(own))
    items = np.repeat(np.arange(len(texts), dtype=np.int64), np.asarray(sizes, dtype=np.int64))
    return np.asarray(tokens, dtype=np.int64), np.asarray(joins, dtype=np.int64), items, list(known)[1:]


def _longer(level: Any, tokens: Any, joins: Any, size: int, vocabulary: int) -> Any:
    """Return what begins at each place with one word more: -1 where there is no such phrase, or a part of it is rare."""
    import numpy as np

    grown = np.full(level.shape, -1, dtype=np.int64)
    last = size - 1
    if level.size <= last:
        return grown
    head, rest, join, word = level[:-last], level[1 : level.size - last + 1], joins[last - 1 : -1], tokens[last:]
    there = (head >= 0) & (rest >= 0) & (join > 0) & (word >= 0)
    grown[:-last][there] = (head[there] * (len(JOINS) + 1) + join[there]) * vocabulary + word[there]
    return grown


def _frequent(level: Any, items: Any, least: int) -> tuple[Any, list[Any]]:
    """Return the level with numbers from 0 for phrases in at least ``least`` texts, -1 for the others, and their texts."""
    import numpy as np

    there = np.flatnonzero(level >= 0)
    renumbered = np.full(level.shape, -1, dtype=np.int64)
    if not there.size:
        return renumbered, []
    order = there[np.argsort(level[there], kind="stable")]  # by phrase, and inside of one by text
    codes, texts = level[order], items[order]
    begins = np.r_[True, codes[1:] != codes[:-1]]
    number = np.cumsum(begins) - 1
    distinct = begins | np.r_[True, texts[1:] != texts[:-1]]
    counts = np.bincount(number[distinct])
    kept = counts >= least
    renumbered[order] = np.where(kept, np.cumsum(kept) - 1, -1)[number]
    wanted = texts[distinct & kept[number]]
    return renumbered, np.split(wanted, np.cumsum(counts[kept])[:-1]) if kept.any() else []


def _first(level: Any, count: int) -> Any:
    """Return the first place of every phrase of a level."""
    import numpy as np

    starts = np.zeros(count, dtype=np.int64)
    there = np.flatnonzero(level >= 0)[::-1]
    starts[level[there]] = there
    return starts


def _phrase(start: int, size: int, tokens: Any, joins: Any, vocabulary: Sequence[str]) -> str:
    said = vocabulary[int(tokens[start])]
    for place in range(start + 1, start + size):
        said += JOINS[int(joins[place - 1]) - 1] + vocabulary[int(tokens[place])]
    return said
