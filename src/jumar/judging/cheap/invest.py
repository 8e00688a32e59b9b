"""INVEST by rules, and the other parts of a story's score. After Bill Wake, "INVEST in Good Stories, and SMART Tasks" (2003).

A rule sees words, not meaning: each letter is a sign, none is a proof. All scores are from 0.0 to 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from jumar.judging.cheap.phrases import has_phrase

__all__ = ["Known", "sub_scores"]

_DEPENDS: Final = ("depends on", "depend on", "dependent on", "blocked by", "prerequisite", "waits for", "waiting for")
_DEPENDS_IN: Final = ("depend", "blocked", "prereq", "wait")
_PRESCRIBES: Final = ("must use", "exactly as in", "pixel perfect", "pixel-perfect", "```")
_PRESCRIBES_IN: Final = ("must use", "exactly as", "pixel", "```")
_CHECKABLE: Final = frozenset(
    {
        *("given", "when", "then", "should", "must", "shall", "can", "cannot", "if", "only", "never", "always", "exactly"),
        *("show", "shows", "return", "returns", "display", "displays", "receive", "receives", "see", "sees"),
        *("fail", "fails", "error", "errors", "within", "least", "most"),
    }
)
_DIGIT: Final = re.compile(r"\d")


class Known(NamedTuple):
    """What is known already: the components' scores, the number of criteria, and whether the story is small (1.0 or 0.0)."""

    title: float
    criteria_score: float
    area: float
    value: float
    scope: float
    criteria: int
    small: float


def sub_scores(told: str, criteria: Sequence[str], known: Known) -> dict[str, float]:
    """Return the parts by name. ``told`` is all of the story, in lower case.

    ``story_quality`` is the mean of title, criteria and user value; ``tech_accuracy`` is the technical area; ``actionability``
    the mean of title, checkable criteria and scope; ``invest`` the mean of its letters:

    *independent* 1 unless the story names something that has to come first; *negotiable* 1 unless it prescribes the solution;
    *valuable* the score of user value; *estimable* the mean of technical area and criteria; *small* 1 within the upper bounds;
    *testable* the share of criteria that say something checkable: a number, a condition, or what has to be seen.
    """
    checkable = _checkable(criteria) / known.criteria if known.criteria else 0.0
    independent = 0.0 if _says(told, _DEPENDS_IN, _DEPENDS) else 1.0
    negotiable = 0.0 if _says(told, _PRESCRIBES_IN, _PRESCRIBES) else 1.0
    estimable = (known.area + known.criteria_score) / 2.0
    return {
        "story_quality": (known.title + known.criteria_score + known.value) / 3.0,
        "tech_accuracy": known.area,
        "actionability": (known.title + checkable + known.scope) / 3.0,
        "invest": (independent + negotiable + known.value + estimable + known.small + checkable) / 6.0,
        "invest_independent": independent,
        "invest_negotiable": negotiable,
        "invest_valuable": known.value,
        "invest_estimable": estimable,
        "invest_small": known.small,
        "invest_testable": checkable,
    }


def _checkable(criteria: Sequence[str]) -> int:
    """Return how many criteria have a digit or one of the words; a word with punctuation right after it is another word."""
    found, none_of, digit = 0, _CHECKABLE.isdisjoint, _DIGIT.search
    for one in criteria:
        if not none_of(one.lower().split()) or digit(one):
            found += 1
    return found


def _says(told: str, hints: Sequence[str], phrases: Sequence[str]) -> bool:
    """Return whether one of ``phrases`` is there; without any of ``hints``, which are parts of them, there is no need to look."""
    for hint in hints:
        if hint in told:
            return any(has_phrase(told, phrase) for phrase in phrases)
    return False
