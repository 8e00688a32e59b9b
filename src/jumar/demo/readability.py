"""Readability by LIX: words a sentence, and long words among the words.

LIX = words / sentences + 100 · words of more than six letters / words (C.-H. Björnsson, Läsbarhet, Stockholm 1968). It
needs no syllables and no word list, so it compares texts of any language with an alphabet: 25 is very easy, 40 ordinary,
50 factual, 60 hard.
"""

from __future__ import annotations

from collections.abc import Sequence

from jumar.demo.blocks import Block
from jumar.demo.scores import Score, sentences_of
from jumar.demo.words import count_words, tokens

__all__ = ["lix", "readability"]

_EASY, _HARD = 25.0, 75.0


def lix(sentences: Sequence[str]) -> float | None:
    """Return the LIX of ``sentences``; None without a word.

    In scripts without spaces two characters count as a word, and no word is long: what is left is the length of the sentences.
    """
    words = sum(count_words(sentence) for sentence in sentences)
    if not words:
        return None
    long_words = sum(len(token) > 6 for sentence in sentences for token in tokens(sentence))
    return words / len(sentences) + 100 * long_words / words


def readability(blocks: Sequence[Block]) -> Score:
    """Return 1.0 for a LIX of 25 or less, 0.0 for 75 or more, in a straight line between; 0.0 when there are no sentences."""
    sentences = [sentence for sentence in sentences_of(blocks) if count_words(sentence)]
    value = lix(sentences)
    if value is None:
        return Score(0.0, "there are no sentences to read")
    average = sum(count_words(sentence) for sentence in sentences) / len(sentences)
    score = min(1.0, max(0.0, (_HARD - value) / (_HARD - _EASY)))
    return Score(score, f"LIX {value:.0f} (25 is very easy, 60 hard), {average:.1f} words a sentence")
