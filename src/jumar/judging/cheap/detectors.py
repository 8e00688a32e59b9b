"""The seven named indicators. A pattern whose id or description is one of these names fires by the rule here, not by phrases.

The rules are the short remarks of the first design, made exact; each docstring says what was decided. They look at a
:class:`View`, which stories and other texts alike can give.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from jumar.judging.items.item import Item
from jumar.judging.models import Story

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
