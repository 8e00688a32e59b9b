"""Hashes of what is judged, and of what judges: of an item, of many of them whatever their order, of a set of patterns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Final

from jumar.judging.items.item import Item
from jumar.judging.patterns.models import PatternSet

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
