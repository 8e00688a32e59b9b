"""What each piece of a document is worth: the weight of what it says that was not said before."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jumar.demo.blocks import Block, pieces, visible
from jumar.demo.wording import is_chatter
from jumar.demo.words import content, count_words, function_words

__all__ = ["Part", "parts_of"]

_PRECISE = re.compile(r"\d|`")
_NO_PARTS = frozenset({"heading", "definition", "front", "rule"})


class Part(NamedTuple):
    """A piece that can be given up: sentence ``sentence`` of block ``block``, or the whole block when ``sentence`` is -1."""

    block: int
    sentence: int
    words: int
    value: float
    lines: int = 1

    @property
    def density(self) -> float:
        """What it holds for its length, two words added to each line so that scraps don't win."""
        return self.value / (self.words + 2 * self.lines)


def parts_of(blocks: Sequence[Block], title: int | None) -> list[Part]:
    """Return the pieces in order: the sentences of prose, whole blocks of the rest; not the title, headings, link definitions.

    A piece has the weight of its terms, each ``ln(1 + count)`` (Luhn 1958: words that come back matter) and half as much
    again when a heading has it (Edmundson 1969), times the share of its pairs of terms that no earlier piece had
    (Carbonell and Goldstein 1998: relevance minus redundancy). What opens a section counts more, so do numbers, code and
    tables; chatter counts less.
    """
    functional = function_words(sentence for block in blocks for sentence in (block.sentences or (visible(block),)))
    told = [pieces(block) for block in blocks]
    counted = [[content(piece, functional) for piece in said] for said in told]
    frequency = Counter(term for said in counted for terms in said for term in terms)
    in_headings = {term for block, said in zip(blocks, counted, strict=True) if block.kind == "heading" for term in said[0]}
    weights = {term: math.log1p(count) * (1.5 if term in in_headings else 1.0) for term, count in frequency.items()}
    seen: set[tuple[str, ...]] = set()
    parts: list[Part] = []
    opening = True
    for at, (block, said) in enumerate(zip(blocks, counted, strict=True)):
        if block.kind in _NO_PARTS:
            opening = opening or block.kind == "heading"
            continue
        factor = 1.5 if block.kind in {"code", "table"} else 1.0  # what people come back to look up
        for number, terms in enumerate(said):
            piece = told[at][number]
            value = _value(terms, piece, weights, seen) * factor * (1.25 if opening and not number else 1.0)
            if at == title and (number == 0 or not block.prose):
                continue
            lines = 1 if block.prose else sum(bool(line.strip()) for line in block.raw)
            parts.append(Part(at, number if block.prose else -1, count_words(piece), value, lines))
        opening = False
    return parts


def _value(terms: Sequence[str], told: str, weights: Mapping[str, float], seen: set[tuple[str, ...]]) -> float:
    """Return what a piece holds beyond the pairs of terms in ``seen``, and add its own pairs to them."""
    pairs: set[tuple[str, ...]] = set(itertools.pairwise(terms)) or {(term,) for term in terms}
    new = len(pairs - seen) / len(pairs) if pairs else 0.0
    seen |= pairs
    value = math.fsum(weights[term] for term in set(terms)) * (0.1 + 0.9 * new)
    value *= 1.15 if _PRECISE.search(told) else 1.0
    return value * (0.4 if is_chatter(told) else 1.0)
