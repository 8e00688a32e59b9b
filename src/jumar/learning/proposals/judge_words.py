"""Phrases of a judge's reasons, for looking up in texts: what it praised, what it missed, and what it quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from jumar.judging.patterns.english import FUNCTION_WORDS
from jumar.judging.patterns.matcher import folded
from jumar.learning.proposals.terms import JOINS, says_something

__all__ = ["denied", "phrases_of", "quotes_of"]

_SPLIT: Final = re.compile(r"(\W+)")
_QUOTE: Final = re.compile(r"(?<!\w)['\"“‘«](?P<said>[^'\"“”‘’«»\n]{3,120}|[^\"“”«»\n]{3,120}?)['\"”’»](?!\w)")
_DENIAL: Final = re.compile(
    r"\b(?:no|not|never|without|lacks?|lacking|missing|miss(?:es|ed)|fails?\s+to|failed|absen(?:t|ce)\s*(?:of)?|instead\s+of|"
    r"rather\s+than|could|should|would|nor|neither)\b|n['’]t\b"
)
_NEAR: Final = 40  # characters before a phrase in which a denial is about it


def quotes_of(statement: str) -> list[str]:
    """Return what a statement quotes, in any quotation marks."""
    return [match["said"].strip() for match in _QUOTE.finditer(statement) if match["said"].strip()]


def phrases_of(statement: str, *, words: int = 3) -> list[str]:
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
    return sorted(found, key=lambda phrase: -len(phrase.split()))


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
