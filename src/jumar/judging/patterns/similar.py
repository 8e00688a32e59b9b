"""Which patterns say what an earlier one says. One at a time against those that stay: only those are ever looked up."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from jumar.judging.patterns.matcher import PatternMatcher, folded, literals
from jumar.judging.patterns.models import PatternV2
from jumar.judging.patterns.proposed import pattern_key

Likeness = Literal["identical", "subsumed", "wording", "firing"]

LEAST_FIRED: Final = 3
"""Texts on which a pattern has to fire before firing on the same ones means something."""

_SUBSUMED: Final = 0.5
_ALIKE: Final = 0.5
_NEAREST: Final[dict[Likeness, int]] = {"identical": 3, "subsumed": 2, "wording": 1, "firing": 0}
_CHUNK: Final = 256
_FEW: Final = 3  # phrases; a pattern with more of them is one that was derived from its description
_WORD: Final = re.compile(r"\w+")
_DENIALS: Final = frozenset({"no", "not", "never", "without", "less", "nor", "t", "lacks", "lack", "missing", "cannot", "non"})
_DENYING: Final = ("un", "in", "im", "ir", "il", "non", "dis", "mis", "anti")


@dataclass(frozen=True, slots=True)
class Similar:
    """How a pattern is like an earlier one. ``shared`` of ``either`` texts; both 0 where texts play no part."""

    by: Likeness
    similarity: float
    shared: int = 0
    either: int = 0

    @property
    def key(self) -> tuple[int, float]:
        """What is nearer has a larger key."""
        return _NEAREST[self.by], round(self.similarity, 4)


def settle(
    patterns: Sequence[PatternV2], fired: Fired | None, *, wording: float = 0.9, firing: float = 0.9
) -> dict[int, tuple[int, Similar]]:
    """Return the position of every pattern that goes, with that of the earlier one that stays for it, and why.

    Patterns are in the order of their right to stay; ``fired`` says on which texts, None without texts. A pattern goes to the
    nearest that stays: ``identical`` before ``subsumed``, ``wording`` and ``firing``, then the more similar, then the earlier
    one. Patterns without phrases and expression are like nothing. See :func:`jumar.judging.patterns.merging.merge_patterns`.
    """
    same = _Same()
    kept: set[int] = set()
    into: dict[int, tuple[int, Similar]] = {}
    general, items = _General(patterns), _Items(fired, firing)
    words = _Words(patterns, wording)
    for place, pattern in enumerate(patterns):
        if not literals(pattern) and pattern.regex is None:
            continue
        near: list[tuple[tuple[int, float], int, Similar]] = []
        twin = same.earlier(pattern)
        if twin is not None:
            into[place] = (twin, Similar("identical", 1.0)) if twin in kept else into[twin]
            continue
        for other in general.earlier(place):
            if other in kept and (how := _subsumed(place, other, fired)) is not None:
                near.append((how.key, -other, how))  # noqa: PERF401 - the three kinds read alike
        if not near:
            alike = ((other, _fire_alike(place, other, how, fired)) for other, how in words.earlier(place, kept))
            found = next(((other, how) for other, how in alike if how is not None), None)
            near += [(found[1].key, -found[0], found[1])] if found is not None else []
        if not near:
            near = [(how.key, -other, how) for other, how in items.earlier(place, patterns)]
        if near:
            _, other, how = max(near, key=lambda one: one[:2])
            into[place] = (-other, how)
        else:
            kept.add(place)
            items.keep(place)
        same.keep(pattern, place)
    return into


class _Same:
    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def earlier(self, pattern: PatternV2) -> int | None:
        return self._known.get(pattern_key(pattern))

    def keep(self, pattern: PatternV2, place: int) -> None:
        self._known[pattern_key(pattern)] = place


class _General:
    """Which patterns stand in every phrase of another one."""

    def __init__(self, patterns: Sequence[PatternV2]) -> None:
        self._patterns = patterns
        self._phrases = [[] if pattern.regex is not None else literals(pattern) for pattern in patterns]
        first: dict[str, int] = {}
        for place, one in enumerate(patterns):
            first.setdefault(pattern_key(one), place)
        distinct = sorted(first.values())
        self._places = distinct
        live = [_bare(str(place), self._phrases[place]) for place in distinct]
        self._matcher = PatternMatcher(live)

    def earlier(self, place: int) -> list[int]:
        phrases = self._phrases[place]
        if not phrases:
            return []
        found: set[int] | None = None
        for phrase in phrases:
            fired = set(self._matcher.fired(phrase))
            found = fired if found is None else found & fired
        kind = self._patterns[place].type
        others = (self._places[index] for index in found or ())
        return [other for other in others if other < place and self._patterns[other].type == kind]


def _bare(name: str, phrases: list[str]) -> PatternV2:
    return PatternV2.model_construct(
        id=name, type="good", description="", keywords=[], phrases=phrases, regex=None, status="provisional", source=""
    )


def _subsumed(place: int, other: int, fired: Fired | None) -> Similar | None:
    if fired is None:
        return Similar("subsumed", 1.0)
    shared, either = fired.overlap(place, other)
    if either and shared < _SUBSUMED * either:
        return None
    return Similar("subsumed", shared / either if either else 1.0, shared, either)


def _fire_alike(place: int, other: int, how: Similar, fired: Fired | None) -> Similar | None:
    """Return ``how`` two patterns are alike in words, None where they fire on other texts: the order of words may tell much."""
    if fired is None:
        return how
    shared, either = fired.overlap(place, other)
    return replace(how, shared=shared, either=either) if shared >= _ALIKE * either else None


class _Words:
    """Which patterns have nearly the same words: ratios of whole blocks at a time."""

    def __init__(self, patterns: Sequence[PatternV2], least: float) -> None:
        self._said = [words_of(pattern) for pattern in patterns]
        self._types = [pattern.type for pattern in patterns]
        self._least = least
        self._start = self._end = 0
        self._rows: Any = None

    def earlier(self, place: int, kept: set[int]) -> Iterator[tuple[int, Similar]]:
        """Yield the patterns that stay and are alike, the nearest first."""
        if not self._said[place]:
            return
        import numpy as np

        if place >= self._end:
            self._read(place)
        row: Any = self._rows[place - self._start][:place]
        alike: list[int] = np.flatnonzero(row).tolist()
        ratios = {other: float(row[other]) / 100 for other in alike}
        for other in sorted(alike, key=lambda one: (-round(ratios[one], 4), one)):
            if other in kept and self._types[other] == self._types[place] and not opposed(self._said[place], self._said[other]):
                yield other, Similar("wording", ratios[other])

    def _read(self, place: int) -> None:
        from rapidfuzz import fuzz, process

        self._start, self._end = place, min(place + _CHUNK, len(self._said))
        rows, columns = self._said[self._start : self._end], self._said[: self._end]
        self._rows = process.cdist(rows, columns, scorer=fuzz.ratio, score_cutoff=self._least * 100)


def words_of(pattern: PatternV2) -> str:
    """Return the words by which a pattern is compared, sorted: its phrases', or its description's where it has many phrases."""
    said = literals(pattern)
    text = " ".join(said) if 0 < len(said) <= _FEW else pattern.description
    return " ".join(sorted(_WORD.findall(folded(text))))


def opposed(one: str, other: str) -> bool:
    """Return whether what differs between two texts of sorted words is a number, a denial or a prefix that denies."""
    first, second = Counter(one.split()), Counter(other.split())
    left, right = list((first - second).elements()), list((second - first).elements())
    differ = [*left, *right]
    if any(word in _DENIALS or any(map(str.isdigit, word)) for word in differ):
        return True
    return any(_denies(a, b) or _denies(b, a) for a in left for b in right)


def _denies(one: str, other: str) -> bool:
    return any(one == prefix + other for prefix in _DENYING)


class _Items:
    """Which patterns that stay fire on nearly the same texts.

    Two sets whose Jaccard similarity is at least t share one of the first |A| - ceil(t |A|) + 1 members of each, in any order
    that both keep (Chaudhuri, Ganti and Kaushik 2006); with the rarest texts first there are few others to look at.
    """

    def __init__(self, fired: Fired | None, least: float) -> None:
        self._fired = fired
        self._least = least
        self._index: dict[int, list[int]] = {}

    def earlier(self, place: int, patterns: Sequence[PatternV2]) -> Iterator[tuple[int, Similar]]:
        """Yield the patterns that stay and fire on nearly the same texts as the one at ``place``."""
        fired = self._fired
        if fired is None or fired.sizes[place] < LEAST_FIRED:
            return
        sizes, kind, own = fired.sizes, patterns[place].type, fired.sizes[place]
        fewest, most = self._least * own - 1e-9, own / self._least + 1e-9
        others = {other for text in fired.rarest(place, self._least) for other in self._index.get(text, ())}
        for other in sorted(others):
            if fewest <= sizes[other] <= most and patterns[other].type == kind:
                shared, either = fired.overlap(place, other)
                if shared >= self._least * either - 1e-9:
                    yield other, Similar("firing", shared / either, shared, either)

    def keep(self, place: int) -> None:
        if self._fired is not None and self._fired.sizes[place] >= LEAST_FIRED:
            for text in self._fired.rarest(place, self._least):
                self._index.setdefault(text, []).append(place)


class Fired:
    """On which of ``texts`` texts each pattern fires, as the bits of one number a pattern."""

    def __init__(self, where: Sequence[Any], texts: int) -> None:
        import numpy as np

        self.sizes = [len(one) for one in where]
        self._where = [np.asarray(one, dtype=np.int64) for one in where]
        counts = np.bincount(np.concatenate([np.zeros(0, dtype=np.int64), *self._where]), minlength=texts)
        self._order = np.argsort(np.argsort(counts, kind="stable"), kind="stable")
        self._bits = [_bits(one, texts) for one in self._where]

    def overlap(self, one: int, other: int) -> tuple[int, int]:
        """Return the number of texts on which both fire, and of those on which either does."""
        shared = (self._bits[one] & self._bits[other]).bit_count()
        return shared, self.sizes[one] + self.sizes[other] - shared

    def rarest(self, place: int, least: float) -> list[int]:
        """Return its texts on which fewest patterns fire: as many as a set that is ``least`` similar must share one of."""
        where, size = self._where[place], self.sizes[place]
        length = size - math.ceil(least * size - 1e-9) + 1
        found: list[int] = where[self._order[where].argsort(kind="stable")[:length]].tolist()
        return found


def _bits(where: Any, texts: int) -> int:
    import numpy as np

    mask = np.zeros(texts, dtype=np.uint8)
    mask[where] = 1
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
