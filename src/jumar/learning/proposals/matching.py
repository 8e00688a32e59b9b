"""A text on which an expression fires, made from the expression: what a cheat who reads it would write down. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import islice, product
from typing import Any, Final

from jumar.judging.patterns.matcher import PatternMatcher
from jumar.judging.patterns.models import PatternV2

__all__ = ["text_that_fires"]

_TRIES: Final = 16
_CHARACTERS: Final = "a1 .-_,:;!?/()'\"#+*=%&$@<>[]{}|~^`\nA"
_MOST_REPEATS: Final = 200


def text_that_fires(pattern: PatternV2) -> str | None:
    """Return a text on which the expression of ``pattern`` fires, None where none can be made. The matcher itself is asked.

    One that says where a text begins or ends may fire on the text alone and not behind another.
    """
    if pattern.regex is None:
        return None
    parser: Any = import_module("re._parser")
    try:
        parsed = parser.parse(pattern.regex)
    except (re.error, OverflowError, RecursionError):
        return None
    matcher = PatternMatcher([pattern.model_copy(update={"status": "active", "phrases": [], "keywords": []})])
    try:
        return next((one for one in islice(_texts(parsed), _TRIES) if matcher.fired(f"It is so: {one} and")), None)
    except (_UnknownError, RecursionError):
        return None


class _UnknownError(Exception):
    """A part of an expression of which no text can be made."""


def _texts(parts: Iterable[tuple[Any, Any]]) -> Iterator[str]:
    """Yield texts, the first of each alternative first."""
    made = [list(islice(_part(str(kind), value), _TRIES)) for kind, value in parts]
    for one in product(*made):
        yield "".join(one)


def _part(kind: str, value: Any) -> Iterator[str]:
    if kind == "LITERAL":
        yield chr(value)
    elif kind in {"ANY", "AT"}:
        yield "a" if kind == "ANY" else ""
    elif kind == "NOT_LITERAL":
        yield next(one for one in _CHARACTERS if one != chr(value))
    elif kind == "IN":
        yield from _of_class(value)
    elif kind == "BRANCH":
        for alternative in value[1]:
            yield from _texts(alternative)
    elif kind in {"SUBPATTERN", "ATOMIC_GROUP"}:
        yield from _texts(value[-1] if kind == "SUBPATTERN" else value)
    elif kind in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"} and value[0] <= _MOST_REPEATS:
        for one in _texts(value[2]):
            yield one * max(1, value[0]) if value[1] else ""
    else:
        raise _UnknownError(kind)


def _of_class(members: Sequence[tuple[Any, Any]]) -> Iterator[str]:
    """Yield characters of a class."""
    negated = any(str(kind) == "NEGATE" for kind, _ in members)
    if not negated:
        for kind, value in members:
            if str(kind) in {"LITERAL", "RANGE"}:
                yield chr(value if str(kind) == "LITERAL" else value[0])
    for one in _CHARACTERS:
        if any(_inside(str(kind), value, one) for kind, value in members) != negated:
            yield one


def _inside(kind: str, value: Any, one: str) -> bool:
    if kind == "LITERAL":
        return ord(one) == value
    if kind == "RANGE":
        return value[0] <= ord(one) <= value[1]
    if kind != "CATEGORY":
        return False
    name = str(value)
    found = one.isdigit() if "DIGIT" in name else one.isspace() if "SPACE" in name else one.isalnum() or one == "_"
    return found != ("NOT" in name)
