"""An item: whatever is judged, as both judges see it, and the hashes of items and of what judges them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from pydantic import ValidationError

from jumar.core.text import escape
from jumar.errors import ItemError
from jumar.judging.models import Story
from jumar.judging.patterns.models import PatternSet


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


def as_items(given: Iterable[Item | Story | Mapping[str, Any]]) -> list[Item]:
    """Return items from items, stories, or mappings with a story's fields or ``text`` (and ``prompt``, ``group``).

    Errors: :class:`jumar.errors.ItemError` that names the place, counted from 1, and the field.
    """
    return [_as_item(one, place) for place, one in enumerate(given, start=1)]


def _as_item(one: Item | Story | Mapping[str, Any], place: int) -> Item:
    if isinstance(one, Item):
        return one
    if isinstance(one, Story):
        return Item.of(one)
    if not isinstance(one, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ItemError(f"item {place} is a {type(one).__name__}; give stories, or mappings with their fields")
    record = {"id": f"item-{place}", **one}
    if "title" in record and "acceptance_criteria" in record:
        try:
            return Item.of(Story.model_validate(record))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise ItemError(f"item {place}: '{field}': {first['msg']}") from None
    if isinstance(record["id"], int):
        record["id"] = str(record["id"])
    for name in ("id", "text", "prompt"):
        if not isinstance(record.get(name, "" if name == "prompt" else None), str):
            raise ItemError(
                f"item {place} ({escape(str(record['id']))[:80]}): '{name}' should be a text; a story has a title, a description "
                "and acceptance_criteria"
            )
    group = record.get("group")
    return Item(record["id"], record["text"], record.get("prompt", ""), group=group if isinstance(group, str) else None)


_COUNTED: Final = {"last_updated": True, "calibration_history": True, "patterns": {"__all__": {"times_fired", "accuracy"}}}


def canonical(value: Any) -> bytes:
    """Return a JSON value as the bytes that are hashed: sorted keys, no blanks, ASCII. Errors: ValueError when not finite."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


def digest_of(value: Any) -> str:
    """Return the SHA-256 of a JSON value in hexadecimal; the layout of its file does not matter."""
    return hashlib.sha256(canonical(value)).hexdigest()


def item_digest(item: Item) -> str:
    """Return the SHA-256 of all that a judge sees of an item, and of its group; where it was read from does not count."""
    seen: dict[str, Any] = {field.name: getattr(item, field.name) for field in fields(item) if field.name != "source"}
    return digest_of({**seen, "story": None if item.story is None else item.story.model_dump()})


def items_digest(items: Iterable[Item]) -> str:
    """Return one SHA-256 of items: the same for the same items in any order."""
    return digest_of(sorted([item.id, item_digest(item)] for item in items))


def patterns_digest(patterns: PatternSet) -> str:
    """Return the SHA-256 of a set of patterns without what is only counted: dates of saving, firings, accuracies, the history."""
    return digest_of(patterns.model_dump(mode="json", exclude=_COUNTED))
