"""Which phrases of up to a few words stand in which texts: counted in arrays, so that ten thousand texts take seconds.

A phrase is found here where, and only where, :class:`jumar.judging.patterns.PatternMatcher` would fire on it: texts are
folded as it folds them, and words that stand apart by more than a blank, a hyphen, an apostrophe or a slash make no phrase.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any, Final, Literal, Self

from jumar.judging.patterns.matcher import folded
from jumar.judging.patterns.phrases import FUNCTION_WORDS

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


_QUOTE: Final = re.compile(r"(?<!\w)['\"“‘«](?P<said>[^'\"“”‘’«»\n]{3,120}|[^\"“”«»\n]{3,120}?)['\"”’»](?!\w)")
_DENIAL: Final = re.compile(
    r"\b(?:no|not|never|without|lacks?|lacking|missing|miss(?:es|ed)|fails?\s+to|failed|absen(?:t|ce)\s*(?:of)?|instead\s+of|"
    r"rather\s+than|could|should|would|nor|neither)\b|n['’]t\b"
)
_NEAR: Final = 40  # characters before a phrase in which a denial is about it


def quotes_of(statement: str) -> list[str]:
    """Return what a statement quotes, in any quotation marks."""
    return [match["said"].strip() for match in _QUOTE.finditer(statement) if match["said"].strip()]


@functools.lru_cache(maxsize=4096)  # every line of every iteration reads the same statements
def phrases_of(statement: str, *, words: int = 3) -> tuple[str, ...]:
    """Return the phrases of one to ``words`` words of a statement, folded, each once, the longest first.

    What a denial stands before is left out ("lacks concrete examples" does not say that "concrete examples" are there), and what
    says nothing by itself; of a quotation a phrase may end in any word.
    """
    found: dict[str, None] = {}
    for quote in quotes_of(statement):
        for phrase in _runs(folded(quote), words):
            if any(len(word) >= 3 and word not in FUNCTION_WORDS for word in phrase.split()) and len(phrase.split()) > 1:
                found.setdefault(phrase)
    said = folded(statement)
    for phrase in _runs(said, words):
        if says_something(phrase) and phrase not in found and not denied(said, phrase):
            found.setdefault(phrase)
    return tuple(sorted(found, key=lambda phrase: -len(phrase.split())))


def denied(said: str, phrase: str) -> bool:
    """Return whether every time that folded ``phrase`` stands in ``said`` a denial stands shortly before it in its sentence."""
    at, seen = said.find(phrase), False
    while at >= 0:
        seen = True
        before = re.split(r"[.;:!?\n]", said[max(0, at - _NEAR) : at])[-1]
        if _DENIAL.search(before) is None:
            return False
        at = said.find(phrase, at + 1)
    return seen


def _runs(said: str, words: int) -> Iterator[str]:
    """Yield every run of up to ``words`` words that stand together."""
    parts = _SPLIT.split(said)
    own, between = parts[::2], parts[1::2]
    for start, word in enumerate(own):
        if not word:
            continue
        phrase = word
        yield phrase
        for place in range(start + 1, min(start + words, len(own))):
            if between[place - 1] not in JOINS or not own[place]:
                break
            phrase += between[place - 1] + own[place]
            yield phrase


_PRIOR: Final = 10.0
"""Texts that the prior is worth: what is known of a term before its side is looked at, namely its share of all texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """How a term leans. ``kind`` is good where it stands in texts that were scored too low.

    ``log_odds`` is how much higher its log odds are on that side than elsewhere, ``z`` the same in standard errors: log odds
    ratio with an informative Dirichlet prior (Monroe, Colaresi and Quinn 2008), over texts, because a pattern fires once a text.
    ``chi_square`` is Pearson's, of the four counts, 0 where it leans the other way.
    """

    kind: Literal["good", "bad"]
    log_odds: float
    z: float
    chi_square: float
    with_gap: int
    of_gap: int
    elsewhere: int
    of_others: int
    other: Strength | None = None

    def towards(self, kind: Literal["good", "bad"]) -> Strength:
        """Return the strength towards a side that somebody named, which may be below 0."""
        return self if self.kind == kind or self.other is None else self.other

    def to_json(self) -> dict[str, Any]:
        found = asdict(replace(self, other=None))
        del found["other"], found["kind"]
        return {name: round(value, 6) if isinstance(value, float) else value for name, value in found.items()}


@dataclass(frozen=True, slots=True)
class Contrast:
    """Which texts were scored too low (1), too high (-1) or well enough (0), and the groups they are from."""

    signs: tuple[int, ...]
    groups: tuple[str | None, ...]
    several: bool = True

    @classmethod
    def of(cls, gaps: Sequence[float], groups: Sequence[str | None]) -> Self | None:
        """Return the contrast of ``gaps``, 0 where one is not large; None when none is."""
        signs = tuple((gap > 0) - (gap < 0) for gap in gaps)
        return cls(signs, tuple(groups), len(set(groups)) > 1) if any(signs) else None

    def two_groups(self, where: Any, kind: Literal["good", "bad"]) -> bool:
        """Return whether a term's texts of that side come from two groups at least: one group's topic is no signal.

        True where there are no groups, or only one.
        """
        if not self.several:
            return True
        side = 1 if kind == "good" else -1
        seen: set[str | int] = set()
        places: list[int] = where.tolist()
        for place in places:
            if self.signs[place] == side:
                group = self.groups[place]
                seen.add(place if group is None else group)
                if len(seen) > 1:
                    return True
        return False

    def strengths(self, where: Sequence[Any]) -> list[Strength]:
        """Return for every term, given by the positions of the texts it stands in, the side to which it leans more."""
        if not where:
            return []
        import numpy as np

        signs = np.asarray(self.signs)
        lengths = np.asarray([len(one) for one in where])
        ends = np.cumsum(lengths)
        every = np.concatenate([signs[one] for one in where])
        sums = [np.r_[0, np.cumsum(every == side)] for side in (1, -1)]
        sides: list[list[Strength]] = []
        for side, total, kind in zip((1, -1), sums, ("good", "bad"), strict=True):
            sides.append(_side(total[ends] - total[ends - lengths], lengths, int((signs == side).sum()), len(signs), kind))
        return [
            replace(good, other=bad) if (good.z, good.chi_square) >= (bad.z, bad.chi_square) else replace(bad, other=good)
            for good, bad in zip(*sides, strict=True)
        ]


def _side(inside: Any, total: Any, of_inside: int, texts: int, kind: Any) -> list[Strength]:
    """Return the strength of every term towards one side: ``inside`` of its ``total`` texts are on it."""
    import numpy as np

    outside, of_outside = total - inside, texts - of_inside
    if not of_inside or not of_outside:
        known: Any = np.zeros(len(total))
        columns = (known, known, known)
    else:
        prior = _PRIOR * (total + 0.5) / (texts + 1)
        one, other = inside + prior, outside + prior
        # what speaks against counts too: terms may stand in most texts, unlike words among all words
        without, elsewhere = of_inside + _PRIOR - one, of_outside + _PRIOR - other
        log_odds = np.log(one / without) - np.log(other / elsewhere)
        z = log_odds / np.sqrt(1 / one + 1 / without + 1 / other + 1 / elsewhere)
        cross = inside * (of_outside - outside) - outside * (of_inside - inside)
        spread = np.maximum(1, of_inside * of_outside * total * (texts - total)).astype(float)
        chi = np.where(cross > 0, texts * cross.astype(float) ** 2 / spread, 0.0)
        columns = (log_odds, z, chi)
    return [
        Strength(
            kind=kind,
            log_odds=float(log_odds),
            z=float(z),
            chi_square=float(chi),
            with_gap=int(a),
            of_gap=of_inside,
            elsewhere=int(b),
            of_others=of_outside,
        )
        for log_odds, z, chi, a, b in zip(*columns, inside, outside, strict=True)
    ]
