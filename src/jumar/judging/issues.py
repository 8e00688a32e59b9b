"""Whether patterns name what the expensive judge named: the first design's pattern coverage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from jumar.judging.models import DualModeResult
from jumar.judging.patterns.english import FUNCTION_WORDS, stem
from jumar.judging.patterns.matcher import folded, literals
from jumar.judging.patterns.models import PatternSet, PatternV2

COVERAGE_TARGET: Final = 0.8
"""The share of items that the first design asks for."""

_WORD: Final = re.compile(r"\w+")
_HALF: Final = 0.5
_TELLING: Final = 2  # stems of a description that have to be shared at least: one word in common is an accident


@dataclass(frozen=True, slots=True)
class PatternCoverage:
    """On how many of the ``items`` about which the judge named something a pattern named it too.

    ``share`` is None where the judge named nothing anywhere; ``met`` says whether it reaches 80 %.
    """

    items: int
    covered: int
    target: float = COVERAGE_TARGET

    @property
    def share(self) -> float | None:
        """Covered items over items, from 0 to 1."""
        return self.covered / self.items if self.items else None

    @property
    def met(self) -> bool | None:
        """Whether the share reaches the target; None where there is no share."""
        return None if self.share is None else self.share >= self.target

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON with ``share`` and ``met``."""
        return {**asdict(self), "share": self.share, "met": self.met}


def pattern_coverage(results: Iterable[DualModeResult], patterns: PatternSet) -> PatternCoverage:
    """Return on how many items a pattern that fired names an issue that the expensive judge named.

    A good pattern is held against each of the judge's ``strengths``, a bad one against its ``weaknesses``. It names the same when
    one of its phrases stands there in any inflection, word after word, or when at least two of the words that mean something in
    its description do, and half of them. Items about which the judge named neither are left out; active and provisional patterns
    count.
    """
    named = {pattern.id: _Named(pattern) for pattern in patterns.patterns if pattern.status in {"active", "provisional"}}
    known: dict[str, tuple[str, ...]] = {}
    items = covered = 0
    for result in results:
        said = {"good": result.expensive.strengths, "bad": result.expensive.weaknesses}
        if not any(one.strip() for ones in said.values() for one in ones):
            continue
        items += 1
        fired = [named[one] for one in result.cheap.patterns_matched if one in named]
        covered += any(one.names(_stems(statement, known)) for one in fired for statement in said[one.type])
    return PatternCoverage(items, covered)


class _Named:
    """The stems by which a pattern is recognised in a statement."""

    def __init__(self, pattern: PatternV2) -> None:
        self.type = pattern.type
        known: dict[str, tuple[str, ...]] = {}
        self._phrases = [stems for one in literals(pattern) if (stems := _stems(one, known))]
        words = [word for word in _WORD.findall(folded(pattern.description)) if word not in FUNCTION_WORDS and len(word) > 2]
        self._telling = frozenset(map(_stem, words))

    def names(self, statement: tuple[str, ...]) -> bool:
        if any(_runs(phrase, statement) for phrase in self._phrases):
            return True
        shared = len(self._telling.intersection(statement))
        return shared >= _TELLING and shared >= _HALF * len(self._telling)


def _stems(text: str, known: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    if text not in known:
        known[text] = tuple(_stem(word) for word in _WORD.findall(folded(text)))
    return known[text]


def _stem(word: str) -> str:
    return stem(word) if word.isascii() else word


def _runs(phrase: Sequence[str], statement: Sequence[str]) -> bool:
    size = len(phrase)
    return any(tuple(statement[at : at + size]) == tuple(phrase) for at in range(len(statement) - size + 1))
