"""Length: how near the document is to a third of the original."""

from __future__ import annotations

from collections.abc import Sequence

from jumar.demo.blocks import Block
from jumar.demo.scores import Score, words_of

__all__ = ["bounds", "length"]

_SHORT = 150  # words; a text of that length needs no condensing


def bounds(words: int) -> tuple[float, float]:
    """Return the least and the greatest number of words that are right for an original of ``words``.

    A quarter to two fifths of it, but a text may always have 150 words.
    """
    return words / 4, max(words * 0.4, _SHORT)


def length(reference: Sequence[Block], blocks: Sequence[Block]) -> Score:
    """Return 1.0 within the bounds; down to 0.0 in a straight line at no words, and at the original's length or more."""
    original, words = words_of(reference), words_of(blocks)
    least, most = bounds(original)
    if words < least:
        score = words / least
    elif words <= most:
        score = 1.0 if words else 0.0
    else:
        score = max(0.0, (original - words) / (original - most)) if original > most else 0.0
    return Score(score, f"{words:,} words of {original:,}; {least:,.0f} to {most:,.0f} are right")
