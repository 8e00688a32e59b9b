"""The form of a text: length, structure, sentences, what it repeats. Each function returns a score from 0.0 to 1.0."""

from __future__ import annotations

import math

from jumar.judging.cheap.words import TextParts
from jumar.judging.rubric import LengthRules, RepetitionRules, SentenceRules, StructureRules

__all__ = ["score_length", "score_repetition", "score_sentences", "score_structure"]

_ENDS = (".", "!", "?", "…", ":", ")", "]", '"', "”", "'", "’", "`", "*", "|", ">", "。")


def score_length(parts: TextParts, rules: LengthRules) -> float:
    """Return log(1 + n) / log(1 + enough) for n words up to ``enough``, 1.0 to ``most``, then down to ``over`` at twice that."""
    count = len(parts.words)
    if count < rules.enough:
        return math.log1p(count) / math.log1p(rules.enough)
    if count <= rules.most:
        return 1.0
    return 1.0 - (1.0 - rules.over) * min(1.0, (count - rules.most) / rules.most)


def score_structure(parts: TextParts, rules: StructureRules) -> float:
    """Return the mean of whether the text ends as a whole one does, and of its units / ``units``; 0.0 without words."""
    if not parts.words:
        return 0.0
    units = parts.sentences + parts.entries + parts.paragraphs - 1
    whole = parts.text.rstrip().endswith(_ENDS)
    return 0.5 * whole + 0.5 * min(1.0, units / rules.units)


def score_sentences(parts: TextParts, rules: SentenceRules) -> float:
    """Return 1.0 where a sentence has ``shortest`` to ``longest`` words on average, 0.0 at none and at twice ``longest``."""
    if not parts.sentences:
        return 0.0
    mean = len(parts.words) / parts.sentences
    if mean < rules.shortest:
        return mean / rules.shortest
    return max(0.0, 1.0 - max(0.0, mean - rules.longest) / rules.longest)


def score_repetition(parts: TextParts, rules: RepetitionRules) -> float:
    """Return how far the share of different sequences of three words is from ``worst`` (0.0) towards 1 (1.0).

    A text of one or two words has nothing to repeat, 1.0; one without words has 0.0.
    """
    if len(parts.words) < 3:
        return 1.0 if parts.words else 0.0
    words = [word.lower() for word in parts.words]
    sequences = list(zip(words, words[1:], words[2:], strict=False))
    different = len(set(sequences)) / len(sequences)
    return max(0.0, (different - rules.worst) / (1.0 - rules.worst))
