"""Patterns as evidence: what fires on an item, and by how much it moves the raw score."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from jumar.judging.cheap.features import FeaturePatterns
from jumar.judging.items.item import Item
from jumar.judging.models import Story
from jumar.judging.patterns.coverage import Coverage
from jumar.judging.patterns.matcher import PatternMatcher
from jumar.judging.patterns.models import PatternSet, PatternV2
from jumar.judging.rubric import PatternRules

_ENTRY = re.compile(r"^[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+(\S.*)$", re.MULTILINE)


class View(NamedTuple):
    """A record's parts. Of a text that is no story ``description`` is all of it and ``criteria`` are the entries of its lists."""

    title: str
    description: str
    criteria: tuple[str, ...]
    area: str
    services: int


def view_of_story(story: Story) -> View:
    """Return a story's parts; blank criteria are left out."""
    criteria = tuple(criterion for criterion in story.acceptance_criteria if criterion.strip())
    return View(story.title, story.description, criteria, story.technical_area or "", len(story.services))


def view_of_item(item: Item) -> View:
    """Return the parts of any item."""
    if item.story is not None:
        return view_of_story(item.story)
    return View("", item.text, tuple(_ENTRY.findall(item.text)), "", 0)


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


class Judged(NamedTuple):
    """What the components of a story said, for the rules that rest on them; of other texts ``area`` is 0.0 and ``scope`` None."""

    area: float
    value: float
    scope: float | None


Detector = Callable[[View, Judged], bool]


def has_clear_user_problem(view: View, judged: Judged) -> bool:
    """Return whether title or description say that somebody wants, needs or expects something, or "As a …, I want"."""
    del judged
    return bool(_PROBLEM.search(view.description) or _PROBLEM.search(view.title))


def has_acceptance_criteria(view: View, judged: Judged) -> bool:
    """Return whether there is a list of criteria: at least two."""
    del judged
    return len(view.criteria) >= 2


def has_technical_area(view: View, judged: Judged) -> bool:
    """Return whether a place in the code is named: an area that scores over 0.5, or a path to a file anywhere."""
    return (
        judged.area > 0.5 or bool(_FILE.search(view.description)) or any(_FILE.search(criterion) for criterion in view.criteria)
    )


def reasonable_scope(view: View, judged: Judged) -> bool:
    """Return the story's scope check; of another text, whether it has 50 to 2,000 characters and at most 10 list entries."""
    if judged.scope is not None:
        return judged.scope > 0.5
    return 50 <= len(view.description) <= 2000 and len(view.criteria) <= 10


def too_vague(view: View, judged: Judged) -> bool:
    """Return whether specifics are missing: under 10 words in all, or nothing specific with vague words or without criteria.

    Specific is a number, something quoted, a path or an identifier, a name inside a sentence, or a technical area.
    """
    told = "\n".join((view.title, view.description, *view.criteria))
    if len(told.split()) < 10:
        return True
    if judged.area > 0.5 or _SPECIFIC.search(told):
        return False
    return not view.criteria or bool(_VAGUE.search(told))


def kitchen_sink(view: View, judged: Judged) -> bool:
    """Return whether unrelated things are combined: over 10 criteria, 3 services or more, or a title that joins three things."""
    del judged
    return len(view.criteria) > 10 or view.services >= 3 or len(_JOINED.findall(view.title)) >= 2


def missing_user_value(view: View, judged: Judged) -> bool:
    """Return whether no benefit is stated: no phrase of user value, and no "so that"."""
    return judged.value == 0.0 and "so that" not in view.description.lower()


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


_MATCHED = frozenset({"active", "provisional"})


class Evidence(NamedTuple):
    """What fired: ids in the order of the set, and the signed points that each active one would give by itself."""

    ids: list[str]
    points: list[tuple[str, float]]


class PatternEvidence:
    """The patterns of a set, ready to fire. Rejected and pruned ones never do.

    Errors: those of :class:`jumar.judging.patterns.matcher.PatternMatcher` and of
    :class:`jumar.judging.cheap.features.FeaturePatterns`.
    """

    def __init__(self, patterns: PatternSet) -> None:
        live = [pattern for pattern in patterns.patterns if pattern.status in _MATCHED]
        named = [(index, detector_for(one.id, one.description)) for index, one in enumerate(live)]
        self._detectors: list[tuple[int, Detector]] = [(index, rule) for index, rule in named if rule is not None]
        by_rule = {index for index, _ in self._detectors}
        self._others = [index for index in range(len(live)) if index not in by_rule]
        self._matcher = _matcher([live[index] for index in self._others])
        self._features = FeaturePatterns([one for index, one in enumerate(live) if index not in by_rule])
        self._as_given = not by_rule and not self._features
        self.ids = tuple(pattern.id for pattern in live)
        self.live = tuple(live)
        self._signed = [(1.0 if one.type == "good" else -1.0) * one.weight * (one.status == "active") for one in live]
        self._moves = [one.status == "active" for one in live]
        self.active = sum(self._moves)

    @property
    def uses_judged(self) -> bool:
        """Whether :meth:`fired` looks at what the components said."""
        return bool(self._detectors)

    def fired(self, item: Item, judged: Judged | None) -> list[int]:
        """Return the positions in ``ids`` of the patterns that fire, ascending; ``judged`` may be None unless ``uses_judged``."""
        found = [] if self._matcher is None else self._matcher.fired(item.text)
        if self._as_given:
            return found
        found = [self._others[index] for index in {*found, *self._features.fired(item)}]
        if judged is not None:
            view = view_of_item(item)
            found += [index for index, rule in self._detectors if rule(view, judged)]
        return sorted(found)

    def points(self, fired: Sequence[int], unit: float) -> list[tuple[str, float]]:
        """Return id and signed points, ``unit`` at weight 1, of the active ones among what fired, in their order."""
        ids = self.ids
        return [(ids[index], self._signed[index] * unit) for index in fired if self._moves[index]]

    def moves(self, fired: Sequence[int], unit: float) -> list[tuple[int, float]]:
        """Return :meth:`points` with the positions instead of the ids."""
        return [(index, self._signed[index] * unit) for index in fired if self._moves[index]]

    def weigh(self, fired: Sequence[int], rules: PatternRules) -> Evidence:
        """Return what fired with its points; ``rules.most`` is not applied yet."""
        ids = self.ids
        return Evidence([ids[index] for index in fired], self.points(fired, rules.points))


def measure_items(patterns: PatternSet, items: Iterable[Item]) -> Coverage:
    """Return what ``patterns`` do on ``items``, by phrases, expressions and features; the named indicators by their phrases.

    Errors: those of :class:`PatternEvidence`; :class:`jumar.errors.MissingExtraError`.
    """
    from jumar.judging.patterns.coverage import count_coverage, measure_coverage

    features = FeaturePatterns(patterns.patterns)
    if not features:
        return measure_coverage(patterns, (item.text for item in items))
    from jumar.judging.patterns.matcher import PatternMatcher

    matcher = PatternMatcher(patterns)
    return count_coverage(patterns, (sorted({*matcher.fired(item.text), *features.fired(item)}) for item in items))


def _matcher(patterns: list[PatternV2]) -> PatternMatcher | None:
    """Import the matching libraries only where there is something to match."""
    if all(pattern.feature is not None and not pattern.phrases and pattern.regex is None for pattern in patterns):
        return None
    from jumar.judging.patterns.matcher import PatternMatcher

    return PatternMatcher(patterns)
