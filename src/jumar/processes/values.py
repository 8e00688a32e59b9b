"""What users' functions return and their commands print, as typed values: scores, verdicts, usage.

A number that is no score (NaN, 1.2, ``"high"``) is *invalid*: the part ran, and this candidate has no score. A value of a type
that was never asked for is a ``TypeError``: the part itself is wrong.
"""

from __future__ import annotations

import json
import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from jumar.core.text import nearest, once
from jumar.model.records import Usage
from jumar.processes.usage import NOTHING_REPORTED, USAGE_FIELDS, UsageReading, parse_usage

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_REASON: Final = 2_000  # characters
_NOTHING_PRINTED: Final = "it printed nothing; print one number in [0, 1]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreValue:
    """A score in [0, 1] with its reason, or None with ``invalid`` saying why there is none."""

    score: float | None
    reason: str = ""
    invalid: str | None = None


def _score_of(value: object, reason: str) -> ScoreValue:
    reason = reason[:_REASON]
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return ScoreValue(score=None, reason=reason, invalid=f"{_shown(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0.0 <= number <= 1.0:  # NaN fails too
        hint = "; a percentage is divided by 100" if 1.0 < number <= 100.0 else ""
        return ScoreValue(score=None, reason=reason, invalid=f"{number:g} is not in [0, 1]{hint}")
    return ScoreValue(score=abs(number), reason=reason)


def _shown(value: object) -> str:
    return f"{value!r:.60}" if isinstance(value, str | bool | None) else f"a value of type {type(value).__name__}"


def as_score(value: object) -> ScoreValue:
    """Read what a scorer returned: a number, ``(number, reason)``, or a mapping with ``score`` and perhaps ``reason``.

    Errors: ``TypeError`` for any other type.
    """
    number, reason = value, None
    if isinstance(value, Mapping):
        fields = cast("Mapping[object, object]", value)
        if "score" not in fields:
            raise TypeError("it returned a mapping without 'score'; return a number in [0, 1], or {'score': …, 'reason': …}")
        number, reason = fields["score"], fields.get("reason")
    elif isinstance(value, tuple | list):
        items = cast("tuple[object, ...] | list[object]", value)
        if len(items) != 2:
            raise TypeError(f"it returned {len(items)} values; return a number in [0, 1], or (number, reason)")
        number, reason = items
    elif isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"it returned {_shown(value)}; return a number in [0, 1], or (number, reason)")
    if reason is not None and not isinstance(reason, str):
        raise TypeError(f"its reason is {_shown(reason)}; give text")
    return _score_of(number, reason or "")


def parse_score(stdout: str) -> ScoreValue:
    """Read what a scorer printed: one number in [0, 1], or a JSON object with ``score`` and perhaps ``reason``.

    It may be all of the output, or its last line that is not empty.
    """
    text = stdout.strip()
    if not text:
        return ScoreValue(score=None, invalid=_NOTHING_PRINTED)
    return _parse(text) or _parse(text.splitlines()[-1].strip()) or ScoreValue(score=None, invalid=_unreadable(text))


def _parse(text: str) -> ScoreValue | None:
    """Return None for text that is neither a number nor a JSON object."""
    if _NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        return _score_of(float(text), "")
    if not text.startswith("{"):
        return None
    try:
        parsed: object = json.loads(text, object_pairs_hook=once)  # a key twice says nothing
    except (ValueError, RecursionError):
        return None
    fields = cast("dict[str, object]", parsed)
    reason = fields.get("reason")
    if "score" not in fields:
        return ScoreValue(score=None, invalid="it printed a JSON object without 'score'")
    return _score_of(fields["score"], reason if isinstance(reason, str) else "")


def _unreadable(text: str) -> str:
    last = text.splitlines()[-1].strip()
    hint = "; print 0.85 for 85%" if last.endswith("%") else ""
    return f"its last line is {last[:60]!r}, which is not a number in [0, 1] and not JSON with 'score'{hint}"


def as_verdict(value: object) -> tuple[bool, str]:
    """Read what a check returned: a bool, ``(bool, reason)``, or None for "passes". Errors: ``TypeError``."""
    if value is None:
        return True, ""
    if isinstance(value, bool):
        return value, ""
    if isinstance(value, tuple | list):
        items = cast("tuple[object, ...] | list[object]", value)
        if len(items) == 2 and isinstance(items[0], bool) and isinstance(items[1], str):
            return items[0], items[1]
    raise TypeError(f"it returned {_shown(cast('object', value))}; return True, False, (bool, reason), or nothing when it passes")


def as_usage(value: object) -> UsageReading:
    """Read what a generator returned: None, a :class:`Usage`, or a mapping with its fields.

    Errors: ``TypeError`` for another type, or for a field that is not known, with the nearest one. A known field with an unusable
    value is unknown, with a note.
    """
    if value is None:
        return NOTHING_REPORTED
    if isinstance(value, Usage):
        return parse_usage(value.to_json(), where="returned usage")
    if not isinstance(value, Mapping):
        raise TypeError(f"it returned {_shown(value)}; return nothing, a Usage, or a mapping with {', '.join(USAGE_FIELDS)}")
    fields = cast("Mapping[object, object]", value)
    for name in fields:
        if name not in USAGE_FIELDS:
            raise TypeError(f"it returned a mapping with the unknown key {name!r}{nearest(str(name), USAGE_FIELDS)}")
    return parse_usage(cast("Mapping[str, object]", fields), where="returned usage")
