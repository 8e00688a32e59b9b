"""What a caller hands in, as items and a rubric: stories, records with a text, models of either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from jumar.core.text import escape
from jumar.errors import ItemError
from jumar.judging.items.item import Item
from jumar.judging.models import Story
from jumar.judging.rubric import JudgeRubric, Rubric, builtin_rubric

__all__ = ["as_items", "rubric_of"]


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


def rubric_of(rubric: Rubric | JudgeRubric | None, items: Sequence[Item]) -> JudgeRubric:
    """Return the question of a rubric; without one, that of the built-in rubric: ``story`` when the first item is one."""
    if isinstance(rubric, Rubric):
        return rubric.judge
    if rubric is not None:
        return rubric
    return builtin_rubric("story" if items and items[0].story is not None else "text").judge
