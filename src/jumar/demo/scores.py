"""What the measures of the demo have in common: the score with its reason, and the sentences of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jumar.demo.blocks import Block, pieces, visible
from jumar.demo.words import count_words

__all__ = ["Check", "Score", "sentences_of", "shares", "words_of"]


class Score(NamedTuple):
    """A number in [0, 1], 1 is best, and the facts that it was made of."""

    score: float
    reason: str


class Check(NamedTuple):
    """Whether a check passes, and the facts that say why."""

    passed: bool
    reason: str


def sentences_of(blocks: Sequence[Block]) -> list[str]:
    """Return all sentences of paragraphs and items, as a reader sees them."""
    return [sentence for block in blocks if block.prose for sentence in pieces(block)]


def words_of(blocks: Sequence[Block]) -> int:
    """Return the number of words of a document, code, tables and headings included, link targets and tags not."""
    return sum(count_words(visible(block)) for block in blocks)


def shares(kept: int, of: int) -> float:
    """Return ``kept / of`` in [0, 1]; 1.0 when there was nothing to keep."""
    return min(1.0, kept / of) if of else 1.0
