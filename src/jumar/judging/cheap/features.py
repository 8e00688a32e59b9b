"""What can be counted of an item: its surface, and how it relates to its prompt and its context.

A feature is a number; a pattern with ``feature`` and ``at_least`` fires from a value on. Names, units and ranges are in
``docs/reference/rubrics.md``. Everything is counted on the words of :mod:`jumar.judging.cheap.phrases`, in lower case where
texts are compared. Where there is nothing to count, as for an empty text or no prompt, a feature is 0.0.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import math
import operator
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from jumar.core.text import escape, nearest
from jumar.errors import PatternLoadError
from jumar.judging.cheap.phrases import TextParts, lowered_words, take_apart
from jumar.judging.items.item import Item
from jumar.judging.patterns.models import PatternV2

_QUOTE = re.compile(r"[\"“”«»„]|``|''")
_MARK = re.compile(r"[^\w\s]")
_DIGIT = re.compile(r"\d")
_CAPITAL = re.compile(r"[A-Z]")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_WHOLE = (".", "!", "?", "…", '."', '!"', '?"', ".”", "!”", "?”", ".)", "。")
_FIRST: Final = operator.itemgetter(0)
_LIVE: Final = frozenset({"active", "provisional"})
_CONTENT: Final = 4
"""Letters from which a word says what a text is about, as in the rubric's component ``overlap``."""


class _Source(NamedTuple):
    """A text that the item's is compared with."""

    characters: int
    words: frozenset[str]
    content: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    triples: frozenset[tuple[str, str, str]]
    places: Mapping[str, float]
    opening: frozenset[str]
    ending: frozenset[str]
    numbers: frozenset[str]


@functools.lru_cache(maxsize=256)  # the items of a group share their prompt, and usually follow each other
def _source(text: str) -> _Source:
    words = lowered_words(text)
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    places: dict[str, float] = {}
    for place, word in enumerate(words):
        places.setdefault(word, place / len(words))
    content = _content(places)
    # most texts are one line, which need not be taken apart three times
    opening, ending = (content if len(lines) == 1 else _content(lowered_words(line)) for line in (lines[0], lines[-1]))
    return _Source(
        characters=len(text),
        words=frozenset(places),
        content=content,
        pairs=frozenset(itertools.pairwise(words)),
        triples=frozenset(zip(words, words[1:], words[2:], strict=False)),
        places=places,
        opening=opening,
        ending=ending,
        numbers=frozenset(_NUMBER.findall(text)),
    )


def _content(words: Iterable[str]) -> frozenset[str]:
    return frozenset([word for word in words if len(word) >= _CONTENT])


class Measured:
    """An item that features are read from; what several of them need is worked out once, and only when one asks."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.text = item.text

    @functools.cached_property
    def parts(self) -> TextParts:
        """The text, taken apart."""
        return take_apart(self.text)

    @functools.cached_property
    def words(self) -> list[str]:
        """The words in lower case, in order."""
        return lowered_words(self.text)

    @functools.cached_property
    def lengths(self) -> list[int]:
        """The letters of each word."""
        return list(map(len, self.words))

    @functools.cached_property
    def different(self) -> frozenset[str]:
        """The words, each once."""
        return frozenset(self.words)

    @functools.cached_property
    def content(self) -> frozenset[str]:
        """The different words that say what the text is about."""
        return _content(self.different)

    @functools.cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Every two words that follow each other."""
        return list(itertools.pairwise(self.words))

    @functools.cached_property
    def triples(self) -> list[tuple[str, str, str]]:
        """Every three words that follow each other."""
        return list(zip(self.words, self.words[1:], self.words[2:], strict=False))

    @functools.cached_property
    def prompt(self) -> Relation:
        """The text beside its prompt."""
        return Relation(self, _source(self.item.prompt))

    @functools.cached_property
    def context(self) -> Relation:
        """The text beside its context."""
        return Relation(self, _source(self.item.context))


class Relation:
    """A text beside another one, its source."""

    def __init__(self, measured: Measured, source: _Source) -> None:
        self.measured = measured
        self.source = source

    @functools.cached_property
    def shared(self) -> frozenset[str]:
        """The content words of both."""
        return self.measured.content & self.source.content

    @functools.cached_property
    def copied(self) -> list[bool]:
        """Of each three words that follow each other, whether they do in the source."""
        return list(map(self.source.triples.__contains__, self.measured.triples))

    @functools.cached_property
    def longest(self) -> int:
        """The words of the longest passage all of whose sequences of three words stand in the source.

        Where there is no such sequence, 2 for a shared pair of words. That is the longest copied fragment in nearly all texts, in
        time linear in the text.
        """
        if True not in self.copied:
            return 0 if self.source.pairs.isdisjoint(self.measured.pairs) else 2
        longest = run = 0
        for there in self.copied:
            run = run + 1 if there else 0
            longest = max(longest, run)
        return longest + 2


Block = Literal["surface", "relation"]
Read = Callable[[Measured], float]


class Feature(NamedTuple):
    """``says`` with a value in place of ``{}`` describes a pattern; ``block`` says which features a fit weighs together."""

    name: str
    block: Block
    says: str
    read: Read


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _upper(text: str) -> int:
    return len(_CAPITAL.findall(text)) if text.isascii() else sum(map(str.isupper, text))


def _repeated(sequences: Sequence[object]) -> float:
    return 1.0 - len(set(sequences)) / len(sequences) if sequences else 0.0


def _surface() -> Iterator[Feature]:
    def one(name: str, says: str, read: Read) -> Feature:
        return Feature(name, "surface", says, read)

    yield one("characters", "{} characters or more", lambda m: len(m.text))
    yield one("words", "{} words or more", lambda m: len(m.words))
    yield one("different_words", "{} different words or more", lambda m: len(m.different))
    yield one("distinct_ratio", "different words are {} of all words or more", lambda m: _share(len(m.different), len(m.words)))
    yield one("sentences", "{} sentences or more", lambda m: m.parts.sentences)
    yield one("sentence_length", "{} words a sentence or more", lambda m: _share(len(m.words), m.parts.sentences))
    yield one("paragraphs", "{} paragraphs or more", lambda m: m.parts.paragraphs)
    yield one("lines", "{} lines or more", lambda m: m.text.count("\n") + 1 if m.text else 0)
    yield one("list_entries", "{} list entries or more", lambda m: m.parts.entries)
    yield one("digits", "{} digits or more", lambda m: len(_DIGIT.findall(m.text)))
    yield one("numbers", "{} numbers or more", lambda m: len(_NUMBER.findall(m.text)))
    yield one("questions", "{} question marks or more", lambda m: m.text.count("?"))
    yield one("exclamations", "{} exclamation marks or more", lambda m: m.text.count("!"))
    yield one("commas", "{} commas or more", lambda m: m.text.count(","))
    yield one("quotes", "{} quotation marks or more", lambda m: len(_QUOTE.findall(m.text)))
    yield one("marks", "{} punctuation marks a word or more", lambda m: _share(len(_MARK.findall(m.text)), len(m.words)))
    yield one("word_length", "{} letters a word or more", lambda m: _share(sum(m.lengths), len(m.lengths)))
    yield one(
        "long_words",
        "words of 8 letters are {} of all or more",
        lambda m: _share(sum(map((8).__le__, m.lengths)), len(m.lengths)),
    )
    yield one(
        "short_words",
        "words of 3 letters are {} of all or more",
        lambda m: _share(sum(map((3).__ge__, m.lengths)), len(m.lengths)),
    )
    yield one("capitals", "capital letters are {} of the text or more", lambda m: _share(_upper(m.text), len(m.text)))
    yield one("names", "{} capitalised words or more", lambda m: sum(map(str.isupper, map(_FIRST, m.parts.words))))
    yield one("code", "{} backticks or more", lambda m: m.text.count("`"))
    yield one("ends_whole", "ends as a sentence does", lambda m: m.text.rstrip().endswith(_WHOLE))
    yield one("repeated_pairs", "repeated word pairs are {} of all or more", lambda m: _repeated(m.pairs))
    yield one("repeated_triples", "repeated word triples are {} of all or more", lambda m: _repeated(m.triples))


def _relation(source: str) -> Iterator[Feature]:
    of: Callable[[Measured], Relation] = operator.attrgetter(source)

    def one(name: str, says: str, read: Callable[[Measured, Relation], float]) -> Feature:
        def related(measured: Measured) -> float:
            relation = of(measured)
            # without a source there is nothing to relate to
            return read(measured, relation) if relation.source.characters else 0.0

        return Feature(f"{source}_{name}", "relation", says.replace("SOURCE", source), related)

    yield one("characters", "the SOURCE has {} characters or more", lambda _, r: r.source.characters)
    yield one("length_ratio", "{} times as long as the SOURCE or more", lambda m, r: len(m.text) / r.source.characters)
    yield one("overlap", "of the content words {} or more are the SOURCE's", lambda m, r: _share(len(r.shared), len(m.content)))
    yield one(
        "covered", "of the SOURCE's content words {} or more occur", lambda _, r: _share(len(r.shared), len(r.source.content))
    )
    yield one("shared", "{} content words of the SOURCE or more", lambda _, r: len(r.shared))
    yield one("novel", "{} content words or more that the SOURCE lacks", lambda m, r: len(m.content) - len(r.shared))
    yield one(
        "novel_ratio",
        "of the different words {} or more are not the SOURCE's",
        lambda m, r: _share(len(m.different - r.source.words), len(m.different)),
    )
    yield one(
        "copied_pairs",
        "of the word pairs {} or more are the SOURCE's",
        lambda m, r: _share(sum(map(r.source.pairs.__contains__, m.pairs)), len(m.pairs)),
    )
    yield one(
        "copied_triples",
        "of the word triples {} or more are the SOURCE's",
        lambda _, r: _share(sum(r.copied), len(r.copied)),
    )
    yield one("longest_copy", "{} words or more in a row are the SOURCE's", lambda _, r: r.longest)
    yield one(
        "longest_copy_ratio",
        "{} of the words or more are one passage of the SOURCE",
        lambda m, r: _share(r.longest, len(m.words)),
    )
    yield one(
        "position",
        "what it shares stands {} of the way into the SOURCE or later",
        lambda _, r: _share(math.fsum(map(r.source.places.__getitem__, r.shared)), len(r.shared)),
    )
    yield one(
        "opening",
        "of the content words of the SOURCE's first line {} or more occur",
        lambda m, r: _share(len(m.content & r.source.opening), len(r.source.opening)),
    )
    yield one(
        "ending",
        "of the content words of the SOURCE's last line {} or more occur",
        lambda m, r: _share(len(m.content & r.source.ending), len(r.source.ending)),
    )
    yield one(
        "novel_numbers",
        "{} numbers or more that the SOURCE lacks",
        lambda m, r: len(set(_NUMBER.findall(m.text)) - r.source.numbers),
    )


FEATURES: Final[Mapping[str, Feature]] = {one.name: one for one in (*_surface(), *_relation("prompt"), *_relation("context"))}


_COLUMNS: Final = {name: column for column, name in enumerate(FEATURES)}
_READS: Final = tuple(feature.read for feature in FEATURES.values())
_BLOCKS: Final = {
    name: tuple(feature.read for feature in found)
    for name, found in (("surface", _surface()), ("prompt", _relation("prompt")), ("context", _relation("context")))
}
Values = Sequence[float]
"""The values of all features of an item, in the order of :data:`FEATURES`."""


class FeatureMemo:
    """What was counted of items, to be used again: who looks at the same thousands of items over and over counts once.

    Half a kilobyte an item, and its texts, for as long as it lives.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], Values] = {}

    def values(self, item: Item) -> Values:
        key = (item.text, item.prompt, item.context)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = count_features(item)
        return found

    def known(self, items: Iterable[Item]) -> list[Values | None]:
        """Return what is known of each item, None where nothing was counted yet."""
        return [self._known.get((item.text, item.prompt, item.context)) for item in items]

    def learn(self, items: Iterable[Item], values: Iterable[Values | None]) -> None:
        """Take over what was counted elsewhere, or was not: None."""
        for item, counted in zip(items, values, strict=True):
            if counted is not None:
                self._known[item.text, item.prompt, item.context] = counted

    @contextlib.contextmanager
    def used(self) -> Generator[None]:
        """Use what is known here, and keep what is counted, until the end of the ``with``; only in this context."""
        token = _MEMO.set(self)
        try:
            yield
        finally:
            _MEMO.reset(token)


_MEMO: Final[contextvars.ContextVar[FeatureMemo | None]] = contextvars.ContextVar("features", default=None)


def memo_in_use() -> FeatureMemo | None:
    """Return the memo that is in use in this context."""
    return _MEMO.get()


def count_features(item: Item) -> Values:
    """Return the values of all features of an item."""
    measured = Measured(item)
    values = array("d", [read(measured) for read in _BLOCKS["surface"]])
    for source, text in (("prompt", item.prompt), ("context", item.context)):
        reads = _BLOCKS[source]
        # without a source there is nothing to relate to
        values.extend([read(measured) for read in reads] if text else itertools.repeat(0.0, len(reads)))
    return values


def feature_values(item: Item) -> Values:
    """Return :func:`count_features`, from the memo where one is in use."""
    memo = _MEMO.get()
    return count_features(item) if memo is None else memo.values(item)


def feature_called(name: str, pattern_id: str) -> Feature:
    """Return the feature of a pattern. Errors: :class:`jumar.errors.PatternLoadError` that names the pattern and what is near."""
    known = FEATURES.get(name)
    if known is None:
        near = nearest(name, list(FEATURES))
        raise PatternLoadError(f"pattern {escape(pattern_id)}: no feature '{escape(name)}'{near}; known: {', '.join(FEATURES)}")
    return known


class FeaturePatterns:
    """The patterns of a sequence that fire by a feature. Rejected and pruned ones never do. An instance is immutable.

    Errors: :class:`jumar.errors.PatternLoadError` for a feature that nobody knows.
    """

    def __init__(self, patterns: Sequence[PatternV2]) -> None:
        edges: dict[str, list[tuple[float, int]]] = {}
        for index, one in enumerate(patterns):
            if one.feature is not None and one.at_least is not None and one.status in _LIVE:
                feature_called(one.feature, one.id)
                edges.setdefault(one.feature, []).append((one.at_least, index))
        self._edges: list[tuple[int, list[float], list[int]]] = []
        for name, found in edges.items():
            found.sort()
            self._edges.append((_COLUMNS[name], [edge for edge, _ in found], [index for _, index in found]))

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self._edges)

    def fired(self, item: Item) -> list[int]:
        """Return the positions of the patterns that fire on ``item``, ascending, each once."""
        if not self._edges:
            return []
        memo = _MEMO.get()
        fired: list[int] = []
        if memo is not None:
            known = memo.values(item)
            for column, values, indices in self._edges:
                fired += indices[: bisect_right(values, known[column])]
        else:  # only what is asked for
            measured = Measured(item)
            for column, values, indices in self._edges:
                fired += indices[: bisect_right(values, _READS[column](measured))]
        fired.sort()
        return fired
