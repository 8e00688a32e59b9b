"""A text taken apart once, for all components that look at it."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["TextParts", "content_words", "lowered_words", "take_apart"]

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SENTENCE_END = re.compile(r"[.!?…]+(?=[\s\"'”’)\]]|$)|\n+")
_ENTRY = re.compile(r"^[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+\S", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*(?=\S)")


class TextParts(NamedTuple):
    """``words`` as written, in order; ``lowered`` is the whole text in lower case. The others are numbers of what was found.

    A sentence has a word, and ends with ``. ! ? …`` before white space, a closing mark or the end, or with its line.
    """

    text: str
    lowered: str
    words: list[str]
    sentences: int
    entries: int
    paragraphs: int


def take_apart(text: str) -> TextParts:
    """Return the parts of ``text``; for one without words all numbers but ``entries`` are 0."""
    words = _WORD.findall(text)
    stripped = text.strip()
    return TextParts(
        text,
        text.lower(),
        words,
        sum(1 for one in _SENTENCE_END.split(text) if _WORD.search(one)) if words else 0,
        len(_ENTRY.findall(text)),
        len(_PARAGRAPH.findall(stripped)) + 1 if words else 0,
    )


def content_words(words: list[str], letters: int) -> set[str]:
    """Return the different words of at least ``letters`` letters, in lower case."""
    return {word.lower() for word in words if len(word) >= letters}


def lowered_words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case, in order."""
    words: list[str] = _WORD.findall(text)
    if not words:
        return []
    lowered: str = " ".join(words).lower()
    return lowered.split(" ")
