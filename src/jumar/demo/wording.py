"""Wordy English said shorter, by rule: the part of condensing that takes nothing from the reader.

Each rule is a phrase and what it becomes; none makes a text longer, and applying all of them twice changes nothing more
than applying them once. Code spans, links, addresses, tags and quoted words are left as they are. Other languages pass
through untouched.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from jumar.demo.phrases import ASIDES, CHATTER, LINK_WORDS, OPENERS, SHORTER

__all__ = ["Shortened", "is_chatter", "shorten", "without_link_word"]


class Shortened(NamedTuple):
    """A text and how many phrases of it were shortened."""

    text: str
    phrases: int


_KEPT = r"`+[^`]*`+|!?\[[^\]]*\]\([^)]*\)|\[[^\]]*\]\[[^\]]*\]|<[^>]*>|\w+://\S+|\"[^\"]*\"|“[^”]*”"
_WORDY = "|".join(re.escape(phrase) for phrase in sorted(SHORTER, key=len, reverse=True))
_ASIDE = "|".join(sorted(ASIDES, key=lambda aside: len(aside.split("(")[0]), reverse=True))
_OPENING = re.compile(rf"^([*_(]*)(?:{'|'.join(OPENERS)}),?\s+(?=\S)", re.IGNORECASE)
_INSIDE = re.compile(
    rf"(?P<kept>{_KEPT})"
    rf"|(?<![\w-])(?P<say>{_WORDY})(?![\w-])"
    rf"|(?P<set>,\s+(?:{_ASIDE}),)"
    rf"|(?<!\ba )(?<!\ban )(?<!\bnot )(?<!\bthe )(?<![\w-])(?P<drop>{_ASIDE})(?= [a-z]) ",
    re.IGNORECASE,
)
_CHATTER = re.compile(rf"\b(?:{'|'.join(CHATTER)})\b", re.IGNORECASE)
_LINK_WORD = re.compile(rf"^(?:{'|'.join(LINK_WORDS)}),\s+(?=\S)", re.IGNORECASE)


def shorten(sentence: str) -> Shortened:
    """Return ``sentence`` with wordy phrases replaced, empty openings and asides left out. Never longer; stable when repeated."""
    phrases = 0
    text = sentence
    while True:
        shorter, opened = _OPENING.subn(r"\1", text, count=1)
        if opened:
            shorter = _capitalised(shorter)
        result, changed = _shorten_inside(shorter)
        phrases += opened + changed
        if result == text or len(result) >= len(text):
            return Shortened(text, phrases) if text != sentence else Shortened(sentence, 0)
        text = result


def _shorten_inside(text: str) -> tuple[str, int]:
    changed = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal changed
        if match.group("kept") is not None:
            return match.group()
        changed += 1
        if (said := match.group("say")) is None:
            return ""
        shorter = SHORTER[said.lower()]
        return shorter[:1].upper() + shorter[1:] if said[0].isupper() else shorter

    result = _INSIDE.sub(replace, text)
    if not changed:
        return text, 0
    result = re.sub(r"(?<=\S) {2,}(?=\S)", " ", result).strip()
    result = re.sub(r" +(?=[,;.!?](?:\s|$))", "", result)
    result = re.sub(r"^[,;]\s*", "", result)
    return (_capitalised(result) if text[:1].isupper() else result), changed


def _capitalised(text: str) -> str:
    return re.sub(r"^([*_(]*)([a-z])(?=[a-z']* |[a-z']*[,.])", lambda match: match.group(1) + match.group(2).upper(), text)


def is_chatter(sentence: str) -> bool:
    """Whether ``sentence`` talks to the reader about the text instead of about its subject."""
    return _CHATTER.search(sentence) is not None


def without_link_word(sentence: str) -> str:
    """Return ``sentence`` without an opening "However," or "Therefore,": for when the sentence that it links to is gone."""
    bare = _LINK_WORD.sub("", sentence)
    return _capitalised(bare) if bare != sentence and sentence[:1].isupper() else bare
