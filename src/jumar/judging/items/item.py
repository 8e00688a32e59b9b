"""An item: whatever is judged, as both judges see it, and the hashes of items and of what judges them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from pydantic import ValidationError

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
    """Return items from items, stories, or mappings. Errors: as of :func:`as_item`, at the place counted from 1."""
    return [as_item(one, place) for place, one in enumerate(given, start=1)]


def as_item(given: Item | Story | Mapping[str, Any], place: int) -> Item:
    """Return an item from an item, a story or a mapping, called ``item-PLACE`` where it has no id.

    A mapping has ``text`` and, where they are known, ``id``, ``prompt``, ``context`` and ``group``; one with title and
    acceptance criteria, or without text, has the fields of a story. Errors: :class:`jumar.errors.ItemError` for one that is
    neither, and for a field of the wrong type.
    """
    if isinstance(given, Item):
        return given
    if isinstance(given, Story):
        return Item.of(given)
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ItemError(f"item {place} is a {type(given).__name__}; give stories, or mappings with their fields")
    if {"title", "acceptance_criteria"} <= given.keys() or "text" not in given:
        if not {"title", "description", "acceptance_criteria"} & given.keys():
            raise ItemError(f"item {place}: it has no 'text', and none of a story's title, description and acceptance_criteria")
        return Item.of(as_story({"id": f"item-{place}", **given}, f"item {place}"), group=_text(given, "group", place) or None)
    texts = {name: _text(given, name, place) for name in ("text", "prompt", "context", "group")}
    name = given.get("id")
    name = str(name) if isinstance(name, int) else _text(given, "id", place)
    named, group = name or f"item-{place}", texts["group"] or None
    return Item(named, texts["text"], prompt=texts["prompt"], context=texts["context"], group=group)


def as_story(fields: Mapping[str, Any], what: str) -> Story:
    """Return a story of what is there; a field that is missing is empty. Errors: :class:`jumar.errors.ItemError`."""
    empty: dict[str, Any] = {"id": "", "title": "", "description": "", "acceptance_criteria": []}
    try:
        return Story.model_validate({**empty, **{name: value for name, value in fields.items() if value is not None}})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ItemError(f"{what}: {where}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None


def _text(given: Mapping[str, Any], name: str, place: int) -> str:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise ItemError(f"item {place}: {name}: give a text, not {type(value).__name__}")
    return value or ""


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
    """Return the SHA-256 of a set without what is only counted: when it was made, firings, accuracies, the history."""
    return digest_of({**patterns.model_dump(mode="json", exclude=_COUNTED), "iteration_learned": 0})
