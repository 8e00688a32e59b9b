"""Phrases between word boundaries: ``allows`` is not in ``disallows``."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["count_phrases", "has_phrase"]


def has_phrase(text: str, phrase: str) -> bool:
    """Return whether ``phrase`` occurs in ``text`` with no letter, digit or underscore right before or after it.

    An edge of the phrase that is itself none of these needs no boundary: ``packages/`` may be followed by anything. Case counts.
    """
    start = text.find(phrase)
    while start >= 0:
        if _bounded(text, phrase, start):
            return True
        start = text.find(phrase, start + 1)
    return False


def count_phrases(text: str, phrases: Iterable[str]) -> int:
    """Return how often ``phrases`` occur in ``text`` as :func:`has_phrase` finds them; those inside another count too."""
    found = 0
    for phrase in phrases:
        start = text.find(phrase)
        while start >= 0:
            found += _bounded(text, phrase, start)
            start = text.find(phrase, start + 1)
    return found


def _bounded(text: str, phrase: str, start: int) -> bool:
    end = start + len(phrase)
    before = start > 0 and _is_word(text[start - 1]) and _is_word(phrase[0])
    after = end < len(text) and _is_word(text[end]) and _is_word(phrase[-1])
    return not before and not after


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"
