"""An item: whatever is judged, as both judges see it."""

from __future__ import annotations

from dataclasses import dataclass

from jumar.judging.models import Story

__all__ = ["Item", "story_text"]


@dataclass(frozen=True, slots=True)
class Item:
    """A record to be judged.

    ``text`` is all that patterns see. ``story`` is there for stories, whose text is :func:`story_text`; ``prompt`` is what
    the text answers,
    empty where that is not known. ``group`` ties items that must never be split between learning and testing (one question,
    one document).
    ``source`` is the file and line, for messages. ``context`` is what the text was to draw on, beside its prompt (a fact, a
    document): only features look at it.
    """

    id: str
    text: str
    prompt: str = ""
    story: Story | None = None
    group: str | None = None
    source: str = ""
    context: str = ""

    @classmethod
    def of(cls, story: Story, *, group: str | None = None, source: str = "") -> Item:
        """Return a story as an item."""
        return cls(story.id, story_text(story), story=story, group=group, source=source)


def story_text(story: Story) -> str:
    """Return title, description and criteria, a line each: patterns never match across two of them by accident of layout."""
    return "\n".join((story.title, story.description, *story.acceptance_criteria))
