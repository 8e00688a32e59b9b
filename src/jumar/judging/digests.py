"""Hashes of what is judged: of an item, and of many of them whatever their order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from jumar.judging.expensive.prompt import item_record
from jumar.judging.items import Item

__all__ = ["canonical", "digest_of", "item_digest", "items_digest"]


def canonical(value: Any) -> bytes:
    """Return a JSON value as the bytes that are hashed: sorted keys, no blanks, ASCII. Errors: ValueError when not finite."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


def digest_of(value: Any) -> str:
    """Return the SHA-256 of a JSON value in hexadecimal; the layout of its file does not matter."""
    return hashlib.sha256(canonical(value)).hexdigest()


def item_digest(item: Item) -> str:
    """Return the SHA-256 of all that a judge sees of an item, and of its group; where it was read from does not count."""
    return digest_of({"item": item_record(item), "group": item.group})


def items_digest(items: Iterable[Item]) -> str:
    """Return one SHA-256 of items: the same for the same items in any order."""
    return digest_of(sorted([item.id, item_digest(item)] for item in items))
