"""Attempts of a long loop, read quickly: the usual case, checked as the slow way checks it; anything else is left to that."""

from __future__ import annotations

import json
import math
import sys
from typing import Any, Final

from jumar.core.codec import FORMAT
from jumar.core.files import read_store_file
from jumar.errors import StoreDamagedError
from jumar.loop.store.layout import LoopPaths
from jumar.loop.store.reading import Read, light, read_attempt
from jumar.model.attempts import OUTCOMES, PURPOSES, Attempt, AttemptEnd, AttemptStart
from jumar.model.records import FAILURES, Usage

__all__ = ["END_TYPES", "START_TYPES", "USAGE_TYPES", "read_light_attempt"]

_NONE: Final = type(None)
_WHOLE: Final = frozenset({int})
_TEXT: Final = frozenset({str})
_MAYBE_WHOLE: Final = frozenset({int, _NONE})
_MAYBE_NUMBER: Final = frozenset({int, float, _NONE})
_MAYBE_TEXT: Final = frozenset({str, _NONE})
_MAYBE_TRUTH: Final = frozenset({bool, _NONE})

START_TYPES: Final = {
    **dict.fromkeys(("number", "iteration", "pid"), _WHOLE),
    **dict.fromkeys(("nonce", "started_at", "purpose"), _TEXT),
    **dict.fromkeys(("parent", "batch", "candidate", "reserve_tokens"), _MAYBE_WHOLE),
    "reserve_cost_usd": _MAYBE_NUMBER,
}
END_TYPES: Final = {
    **dict.fromkeys(("outcome", "ended_at", "detail"), _TEXT),
    **dict.fromkeys(("seconds", "known_cost_usd", "wait_seconds"), _MAYBE_NUMBER),
    "exit_code": _MAYBE_WHOLE,
    "printed": _MAYBE_TRUTH,
    "failure": _MAYBE_TEXT,
}
USAGE_TYPES: Final = {
    **dict.fromkeys(("tokens_used", "input_tokens", "output_tokens", "cached_tokens"), _MAYBE_WHOLE),
    **dict.fromkeys(("token_cost_usd", "retry_after"), _MAYBE_NUMBER),
    **dict.fromkeys(("model", "session_id", "blocked"), _MAYBE_TEXT),
    **dict.fromkeys(("completed", "rate_limited"), _MAYBE_TRUTH),
}
_LISTS: Final = ("commits", "errors", "notes")
_SILENT: Final = Usage()
_LARGE: Final = 1 << 62


def read_light_attempt(paths: LoopPaths, number: int, *, ended: bool, read: Read = read_store_file) -> Attempt:
    """Read one attempt without the generator's output. Errors: :class:`jumar.errors.StoreDamagedError`."""
    directory = f"{paths.directory}/attempts/{number:06d}"
    try:
        start = _start(read(f"{directory}.start.json"))
        end = _end(read(f"{directory}.end.json")) if ended else None
    except (StoreDamagedError, ValueError, TypeError, KeyError, AttributeError):
        start = end = None
    if start is None or start.number != number or (ended and end is None):
        return light(read_attempt(paths, number, ended=ended, read=read))
    return Attempt(start=start, end=end)


def _start(data: bytes) -> AttemptStart | None:
    found: dict[str, Any] = json.loads(data)
    values = _checked(found, START_TYPES)
    if values is None or not _known(found) or values["purpose"] not in PURPOSES:
        return None
    return AttemptStart(**values)


def _end(data: bytes) -> AttemptEnd | None:
    found: dict[str, Any] = json.loads(data)
    values, said = _checked(found, END_TYPES), _checked(found["usage"], USAGE_TYPES)
    if values is None or said is None or not _known(found) or values["outcome"] not in OUTCOMES:
        return None
    if values["failure"] is not None and values["failure"] not in FAILURES:
        return None
    for name in _LISTS:
        if found[name] != []:  # seldom: left to the slow way
            return None
    silent = all(value is None for value in said.values())
    return AttemptEnd(**values, usage=_SILENT if silent else Usage(**said))


def _known(found: dict[str, Any]) -> bool:
    return type(found["format"]) is int and found["format"] <= FORMAT


def _checked(found: dict[str, Any], wanted: dict[str, frozenset[type]]) -> dict[str, Any] | None:
    """Return the wanted fields, a missing one as None; None when one is of another type, or a number is not finite."""
    values: dict[str, Any] = {}
    for name, types in wanted.items():
        value = values[name] = found.get(name)
        if type(value) not in types or (type(value) is float and not math.isfinite(value)):
            return None
        if type(value) is int and abs(value) > _LARGE:  # may be no float: left to the slow way
            return None
        if type(value) is str:
            values[name] = sys.intern(value)  # most say the same in every attempt, and all of them stay in memory
    return values
