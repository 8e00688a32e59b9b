"""The eight components of a text's score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from jumar.judging.cheap.detectors import Judged
from jumar.judging.cheap.text_form import score_length, score_repetition, score_sentences, score_structure
from jumar.judging.cheap.text_substance import score_hedging, score_overlap, score_reasoning, score_specificity
from jumar.judging.cheap.value import value_scorer
from jumar.judging.cheap.words import take_apart
from jumar.judging.items.item import Item
from jumar.judging.patterns.models import ValuePhrase
from jumar.judging.rubric import TextRubric, ValueRules

__all__ = ["TextPanel"]


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
