"""What a text says: specific words, the words of its prompt, hedges, reasons. Each function returns a score from 0.0 to 1.0."""

from __future__ import annotations

import re

from jumar.judging.cheap.phrases import count_phrases, has_phrase
from jumar.judging.cheap.words import TextParts, content_words, take_apart
from jumar.judging.rubric import HedgingRules, OverlapRules, ReasoningRules, SpecificityRules

__all__ = ["score_hedging", "score_overlap", "score_reasoning", "score_specificity"]

_CODE = re.compile(r"`[^`\n]+`")
_NAME_INSIDE = re.compile(r"(?<=[\w,;:] )[A-Z][^\W\d_]+(?!\w)")


def score_specificity(parts: TextParts, rules: SpecificityRules) -> float:
    """Return the share of specific words / ``enough``, at most 1.0; 0.0 without words.

    Specific is a word with a digit, one of ``long`` letters or more, a capitalised one that does not begin a sentence, and each
    passage in backticks.
    """
    if not parts.words:
        return 0.0
    long = rules.long
    specific = sum(1 for word in parts.words if len(word) >= long or (not word.isalpha() and any(map(str.isdigit, word))))
    specific += sum(1 for name in _NAME_INSIDE.findall(parts.text) if len(name) < long)
    if "`" in parts.text:
        specific += len(_CODE.findall(parts.text))
    return min(1.0, specific / len(parts.words) / rules.enough)


def score_overlap(parts: TextParts, prompt: str, rules: OverlapRules) -> float | None:
    """Return the overlap coefficient of the words of text and prompt / ``enough``, at most 1.0.

    That is the number of words in both / the smaller number of different words, after Szymkiewicz and Simpson: it serves a long
    prompt with a short text (a summary) and the other way round (an answer). None where the prompt has no word of that length:
    nothing can be said. 0.0 where only the text has none.
    """
    asked = content_words(take_apart(prompt).words, rules.letters) if prompt else set[str]()
    if not asked:
        return None
    said = content_words(parts.words, rules.letters)
    if not said:
        return 0.0
    return min(1.0, len(asked & said) / min(len(asked), len(said)) / rules.enough)


def score_hedging(parts: TextParts, rules: HedgingRules) -> float:
    """Return 1 − hedges in 100 words / ``most``, at least 0.0; 0.0 without words. Phrases count between word boundaries."""
    if not parts.words:
        return 0.0
    hedges = count_phrases(parts.lowered, rules.phrases)
    return max(0.0, 1.0 - 100.0 * hedges / len(parts.words) / rules.most)


def score_reasoning(parts: TextParts, rules: ReasoningRules) -> float:
    """Return the number of different phrases found / ``enough``, at most 1.0."""
    found = sum(1 for phrase in rules.phrases if phrase in parts.lowered and has_phrase(parts.lowered, phrase))
    return min(1.0, found / rules.enough)
