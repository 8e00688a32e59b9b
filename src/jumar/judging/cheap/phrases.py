"""A text in words and phrases, looked for between word boundaries: ``allows`` is not in ``disallows``.

It is taken apart once, for all components that look at it; phrases that name what a user gains give the score of user value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from jumar.judging.patterns.models import ValuePhrase
from jumar.judging.rubric import ValueRules


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


def value_scorer(rules: ValueRules, learned: Sequence[ValuePhrase]) -> Callable[[str], float]:
    """Return the function that scores a description that was lower-cased: that of its best phrase, 0.0 without any.

    The rubric's phrases give 1.0, learned ones their weight, at most 1.0. A phrase counts only between word boundaries:
    ``user can`` is not in ``user cannot``.
    """
    worth: dict[str, float] = {one.phrase.lower(): min(1.0, one.weight) for one in learned if one.phrase.strip()}
    worth |= dict.fromkeys((phrase.lower() for phrase in rules.phrases), 1.0)
    best_first = sorted(worth.items(), key=lambda item: -item[1])

    def score(description: str) -> float:
        for phrase, credit in best_first:
            if phrase in description and has_phrase(description, phrase):
                return credit
        return 0.0

    return score


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
    words = find_words(text)
    one_line = "\n" not in text  # as most are, which need no search at the beginning of each
    return TextParts(
        text,
        text.lower(),
        words,
        sum([1 for one in _SENTENCE_END.split(text) if _WORD.search(one)]) if words else 0,
        int(_ENTRY.match(text) is not None) if one_line else len(_ENTRY.findall(text)),
        (1 if one_line else len(_PARAGRAPH.findall(text.strip())) + 1) if words else 0,
    )


def find_words(text: str) -> list[str]:
    """Return the words of ``text`` as written, in order."""
    return _WORD.findall(text)


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
