"""Names in a patterns file that are nearly known ones: they are kept as somebody's own, and nothing reads them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from jumar.core.text import escape
from jumar.judging.patterns.models import PatternSet

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["near_misses"]

_NEAR: Final = 0.8
_MOST: Final = 20  # a misspelling is in every pattern, or in one


def near_misses(patterns: PatternSet) -> list[str]:
    """Return a line for each unknown name that is like a known one, at most 20, the sections of the file first."""
    found = _of(patterns, "the file") + _of(patterns.tech_validation, "tech_validation")
    for pattern in patterns.patterns:
        if len(found) >= _MOST:
            break
        found += _of(pattern, f"pattern {escape(pattern.id)}")
    return found[:_MOST]


def _of(model: BaseModel, what: str) -> list[str]:
    known = list(type(model).model_fields)
    return [
        f"{what} has '{escape(name)}', which nothing reads; did you mean '{near}'?"
        for name in model.model_extra or {}
        for near in get_close_matches(name.lower(), known, 1, _NEAR)
    ]
