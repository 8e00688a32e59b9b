"""Does the description say what a user gains?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jumar.judging.cheap.phrases import has_phrase
from jumar.judging.patterns.models import ValuePhrase
from jumar.judging.rubric import ValueRules

__all__ = ["value_scorer"]


def value_scorer(rules: ValueRules, learned: Sequence[ValuePhrase]) -> Callable[[str], float]:
    """Return the function that scores a description that was lower-cased: that of its best phrase, 0.0 without any.

    The rubric's phrases give 1.0, learned ones their weight, at most 1.0. A phrase counts only between word boundaries:
    ``user can`` is not in ``user cannot``.
    """
    worth: dict[str, float] = {one.phrase.lower(): min(1.0, one.weight) for one in learned if one.phrase.strip()}
    worth |= dict.fromkeys((phrase.lower() for phrase in rules.phrases), 1.0)
    best_first = sorted(worth.items(), key=lambda one: -one[1])

    def score(description: str) -> float:
        for phrase, credit in best_first:
            if phrase in description and has_phrase(description, phrase):
                return credit
        return 0.0

    return score
