"""The eight components of a text's score: what it says, and its form. Each function returns a score from 0.0 to 1.0."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import ClassVar

from jumar.judging.cheap.detectors import Judged
from jumar.judging.cheap.phrases import TextParts, content_words, count_phrases, has_phrase, take_apart, value_scorer
from jumar.judging.items.item import Item
from jumar.judging.patterns.models import ValuePhrase
from jumar.judging.rubric import (
    HedgingRules,
    LengthRules,
    OverlapRules,
    ReasoningRules,
    RepetitionRules,
    SentenceRules,
    SpecificityRules,
    StructureRules,
    TextRubric,
    ValueRules,
)

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


class TextPanel:
    """Scores texts by a rubric. Learned value phrases only serve the named indicators: a text need not speak of users."""

    names: ClassVar[tuple[str, ...]] = TextRubric.COMPONENTS
    codes: ClassVar[tuple[str, ...]] = (
        "good_length",
        "clear_structure",
        "specific",
        "little_repetition",
        "on_topic",
        "confident",
        "readable_sentences",
        "gives_reasons",
    )

    def __init__(self, rubric: TextRubric, phrases: Sequence[ValuePhrase]) -> None:
        self._rubric = rubric
        self._hedging = rubric.hedging.model_copy(update={"phrases": _lowered(rubric.hedging.phrases)})
        self._reasoning = rubric.reasoning.model_copy(update={"phrases": _lowered(rubric.reasoning.phrases)})
        self._value = value_scorer(ValueRules(), phrases)

    def mute(self, item: Item) -> str | None:
        """Return why there is nothing to judge, None where there is."""
        return None if item.text else "the text is empty"

    def scores(self, item: Item) -> tuple[float | None, ...] | str:
        """Return the components' scores in the order of ``names``, None where one cannot tell, or why there are none."""
        mute = self.mute(item)
        if mute is not None:
            return mute
        rubric, parts = self._rubric, take_apart(item.text)
        return (
            score_length(parts, rubric.length),
            score_structure(parts, rubric.structure),
            score_specificity(parts, rubric.specificity),
            score_repetition(parts, rubric.repetition),
            score_overlap(parts, item.prompt, rubric.overlap),
            score_hedging(parts, self._hedging),
            score_sentences(parts, rubric.sentences),
            score_reasoning(parts, self._reasoning),
        )

    def judged(self, item: Item, scores: Sequence[float | None]) -> Judged:
        """Return what named indicators rest on."""
        del scores
        return Judged(0.0, self._value(item.text.lower()), None)

    def parts(self, item: Item, scores: Sequence[float | None]) -> dict[str, float]:
        """Return the components' scores by name: a text's parts are its components."""
        del item
        return {name: score for name, score in zip(self.names, scores, strict=True) if score is not None}


def _lowered(phrases: Sequence[str]) -> tuple[str, ...]:
    return tuple(phrase.lower() for phrase in phrases)
