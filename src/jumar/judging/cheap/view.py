"""What the detectors and the parts of a score look at, for stories and for other texts alike."""

from __future__ import annotations

import re
from typing import NamedTuple

from jumar.judging.items.item import Item
from jumar.judging.models import Story

__all__ = ["View", "view_of_item", "view_of_story"]

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
    criteria = tuple(one for one in story.acceptance_criteria if one.strip())
    return View(story.title, story.description, criteria, story.technical_area or "", len(story.services))


def view_of_item(item: Item) -> View:
    """Return the parts of any item."""
    if item.story is not None:
        return view_of_story(item.story)
    return View("", item.text, tuple(_ENTRY.findall(item.text)), "", 0)
