"""Patterns as evidence: what fires on an item, and by how much it moves the raw score."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from jumar.judging.cheap.features import FeaturePatterns
from jumar.judging.items.item import Item
from jumar.judging.patterns.matcher import MATCHED, PatternMatcher, literals
from jumar.judging.patterns.models import PatternSet, PatternV2


class View(NamedTuple):
    """A record's parts, and what components said of it, for the rules that rest on them.

    Of a text that is no story ``description`` is all of it, ``criteria`` are the entries of its lists, ``area`` is 0.0 and
    ``scope`` None.
    """

    title: str
    description: str
    criteria: Sequence[str]
    services: int
    area: float
    value: float
    scope: float | None


_PROBLEM = re.compile(
    r"\b(?:users?|customers?|people|person|team|admins?|developers?|visitors?|members?)\s+(?:\w+\s+)?(?:wants?|needs?|expects?)"
    r"\b|\bas an? [^.\n]{1,80}?,? i (?:want|need|expect|would like)\b",
    re.IGNORECASE,
)
_FILE = re.compile(r"\w+/\w+\.[a-z]{1,4}\b")
_SPECIFIC = re.compile(r"\d|[`\"“][^`\"”\n]+[`\"”]|\w/\w|\w_\w|[a-z][A-Z]|(?<=[\w,;:] )[A-Z][a-z]+")
_VAGUE = re.compile(
    r"\b(?:something|somehow|stuff|things|various|etc|and so on|better|nicer|improvements?|as appropriate|as needed)\b",
    re.IGNORECASE,
)
_JOINED = re.compile(r"\b(?:and|also|plus|as well as)\b|[;,&+]", re.IGNORECASE)


Detector = Callable[[View], bool]


def has_clear_user_problem(view: View) -> bool:
    """Return whether title or description say that somebody wants, needs or expects something, or "As a …, I want"."""
    return bool(_PROBLEM.search(view.description) or _PROBLEM.search(view.title))


def has_acceptance_criteria(view: View) -> bool:
    """Return whether there is a list of criteria: at least two."""
    return len(view.criteria) >= 2


def has_technical_area(view: View) -> bool:
    """Return whether a place in the code is named: an area that scores over 0.5, or a path to a file anywhere."""
    return view.area > 0.5 or any(map(_FILE.search, (view.description, *view.criteria)))


def reasonable_scope(view: View) -> bool:
    """Return the story's scope check; of another text, whether it has 50 to 2,000 characters and at most 10 list entries."""
    if view.scope is not None:
        return view.scope > 0.5
    return 50 <= len(view.description) <= 2000 and len(view.criteria) <= 10


def too_vague(view: View) -> bool:
    """Return whether specifics are missing: under 10 words in all, or nothing specific with vague words or without criteria.

    Specific is a number, something quoted, a path or an identifier, a name inside a sentence, or a technical area.
    """
    told = "\n".join((view.title, view.description, *view.criteria))
    if len(told.split()) < 10:
        return True
    if view.area > 0.5 or _SPECIFIC.search(told):
        return False
    return not view.criteria or bool(_VAGUE.search(told))


def kitchen_sink(view: View) -> bool:
    """Return whether unrelated things are combined: over 10 criteria, 3 services or more, or a title that joins three things."""
    return len(view.criteria) > 10 or view.services >= 3 or len(_JOINED.findall(view.title)) >= 2


def missing_user_value(view: View) -> bool:
    """Return whether no benefit is stated: no phrase of user value, and no "so that"."""
    return view.value == 0.0 and "so that" not in view.description.lower()


DETECTORS: Final[Mapping[str, Detector]] = {
    "has_clear_user_problem": has_clear_user_problem,
    "has_acceptance_criteria": has_acceptance_criteria,
    "has_technical_area": has_technical_area,
    "reasonable_scope": reasonable_scope,
    "too_vague": too_vague,
    "kitchen_sink": kitchen_sink,
    "missing_user_value": missing_user_value,
}


def detector_for(pattern_id: str, description: str) -> Detector | None:
    """Return the rule for a pattern that is one of the seven by its id or its description; None for any other."""
    return DETECTORS.get(pattern_id.strip()) or DETECTORS.get(description.strip())


def cannot_fire(pattern: PatternV2) -> bool:
    """Return whether there is nothing that ``pattern`` could fire on: no phrase, expression, feature or rule of its name."""
    others = pattern.regex is None and pattern.feature is None and detector_for(pattern.id, pattern.description) is None
    return others and not literals(pattern)


class PatternEvidence:
    """The patterns of a set, ready to fire. Rejected and pruned ones never do.

    Errors: those of :class:`jumar.judging.patterns.matcher.PatternMatcher` and of
    :class:`jumar.judging.cheap.features.FeaturePatterns`.
    """

    def __init__(self, patterns: PatternSet) -> None:
        live = [pattern for pattern in patterns.patterns if pattern.status in MATCHED]
        named = {index: detector_for(pattern.id, pattern.description) for index, pattern in enumerate(live)}
        self._detectors: list[tuple[int, Detector]] = [(index, rule) for index, rule in named.items() if rule is not None]
        self._others = [index for index, rule in named.items() if rule is None]
        others = [live[index] for index in self._others]
        self._matcher = PatternMatcher(others)
        self._features = FeaturePatterns(others)
        self._as_given = not self._detectors and not self._features
        self.ids = tuple(pattern.id for pattern in live)
        self.live = tuple(live)
        self._signed = [(1.0 if one.type == "good" else -1.0) * one.weight * (one.status == "active") for one in live]
        self._moves = [one.status == "active" for one in live]
        self.active = sum(self._moves)

    @property
    def uses_view(self) -> bool:
        """Whether :meth:`fired` looks at an item's parts."""
        return bool(self._detectors)

    def fired(self, item: Item, view: View | None) -> list[int]:
        """Return the positions in ``ids`` of the patterns that fire, ascending; ``view`` may be None unless ``uses_view``."""
        found = self._matcher.fired(item.text)
        if self._as_given:
            return found
        found = [self._others[index] for index in {*found, *self._features.fired(item)}]
        if view is not None:
            found += [index for index, rule in self._detectors if rule(view)]
        return sorted(found)

    def points(self, fired: Sequence[int], unit: float) -> list[tuple[int, float]]:
        """Return position and signed points, ``unit`` at weight 1, of the active ones among what fired, in their order."""
        return [(index, self._signed[index] * unit) for index in fired if self._moves[index]]
