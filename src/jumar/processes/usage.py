"""What a generator says of its own cost: from the usage file, or from the JSON that it prints.

What is not reported, or not usable, is unknown: it becomes a note for the record, never an exception and never 0.
"""

from __future__ import annotations

import json
import math
import numbers
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast

from jumar.core.files import UnreadableFileError
from jumar.core.text import escape, nearest, once
from jumar.errors import ConfigError, StoreWriteError
from jumar.model.records import Usage
from jumar.processes.written_files import read_regular

USAGE_FIELDS: Final = tuple(field.name for field in fields(Usage))
_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tokens": "tokens_used",
        "cost": "token_cost_usd",
        "input": "input_tokens",
        "output": "output_tokens",
        "cached": "cached_tokens",
        "session": "session_id",
    }
)
_FILE_ALIASES: Final[Mapping[str, str]] = MappingProxyType({"cost_usd": "token_cost_usd"})
_LOOKS_PAID: Final = re.compile(r"cost|usd|dollar|token|price", re.IGNORECASE)
_MOST_NOTED: Final = 5  # unknown keys
_LONGEST_KEY: Final = 60  # characters
_INTEGERS: Final = ("tokens_used", "input_tokens", "output_tokens", "cached_tokens")
_NUMBERS: Final = (*_INTEGERS, "token_cost_usd")
_SUM: Final = "sum:"
ANY: Final = "*"
"""The step of a path that stands for every member of an object or list."""
_LONGEST_WAIT: Final = 7 * 86_400.0  # seconds
_MOST: Final = 10**15  # tokens or dollars; more is a mistake, and larger numbers are not exact as floats
_TEXT: Final = 500  # characters of a model, session or reason
_FILE_LIMIT: Final = 1 << 20
_DOCUMENTS: Final = 2_000  # beginnings of JSON looked at from the end of the output; for a sum, those that turn out to be none


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReading:
    """What was reported, and a sentence for each part of it that could not be used."""

    usage: Usage
    notes: tuple[str, ...] = ()


NOTHING_REPORTED: Final = UsageReading(usage=Usage())


def read_usage_file(path: Path) -> UsageReading:
    """Read the file that ``JUMAR_USAGE_FILE`` names. A missing one reports nothing, which is no mistake."""
    try:
        content = read_regular(path, limit=_FILE_LIMIT)
    except FileNotFoundError:
        return NOTHING_REPORTED
    except (UnreadableFileError, StoreWriteError) as error:
        return UsageReading(usage=Usage(), notes=(f"usage file: {error}",))
    try:
        parsed: object = json.loads(content)
    except (ValueError, RecursionError):
        return UsageReading(usage=Usage(), notes=("usage file: not JSON",))
    if not isinstance(parsed, dict):
        return UsageReading(usage=Usage(), notes=("usage file: not a JSON object",))
    return parse_usage(cast("dict[str, object]", parsed), where="usage file")


def parse_usage(values: Mapping[str, object], *, where: str) -> UsageReading:
    """Take the known fields of ``values``; what else is in there is the generator's own business.

    ``cost_usd`` is another name of ``token_cost_usd``, which counts where both are given. An unknown key that looks like money or
    tokens becomes a note: what it says would be missing from the budget.
    """
    values = {
        **values,
        **{name: values[given] for given, name in _FILE_ALIASES.items() if given in values and values.get(name) is None},
    }
    found: dict[str, int | float | str | bool] = {}
    notes: list[str] = []
    for name in USAGE_FIELDS:
        value = values.get(name)
        if value is None:
            continue
        usable = _usable(name, value)
        if usable is None:
            notes.append(f"{where}: {name} is {_shown(value)}, which is not {_wanted(name)}; it counts as unknown")
        elif usable != "":
            found[name] = usable
    usage = Usage(**found)  # pyright: ignore[reportArgumentType] - _usable gives each field its own type
    return UsageReading(usage=replace(usage, tokens_used=usage.tokens), notes=(*notes, *_overlooked(values, where=where)))


def _overlooked(values: Mapping[str, object], *, where: str) -> list[str]:
    known = (*USAGE_FIELDS, *_FILE_ALIASES)
    unknown = [key for key in values if key not in known and _LOOKS_PAID.search(key)][:_MOST_NOTED]
    return [f"{where}: '{escape(key[:_LONGEST_KEY])}' is no known key and is not counted{_meant(key, known)}" for key in unknown]


def _meant(key: str, known: tuple[str, ...]) -> str:
    """Return the nearest known key of the same kind, money or tokens."""
    tokens = "token" in key.lower() and not re.search(r"cost|usd|dollar|price", key, re.IGNORECASE)
    same = tuple(name for name in known if ("tokens" in name) == tokens)
    return nearest(key, same) or f" (did you mean '{'tokens_used' if tokens else 'token_cost_usd'}'?)"


def _usable(name: str, value: object) -> int | float | str | bool | None:
    """Return ``value`` as the field's type; None when it is not usable; empty text when it says nothing."""
    if name in {"completed", "rate_limited"}:
        return value if isinstance(value, bool) else None
    if name == "blocked" and isinstance(value, bool):
        return "the generator says that it is blocked" if value else ""
    if name in {"model", "session_id", "blocked"}:
        return value[:_TEXT] if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:  # NaN fails too
        return None
    if name == "retry_after":
        return min(float(value), _LONGEST_WAIT)
    if name not in _INTEGERS:
        return float(value)
    return int(value) if value == math.floor(value) else None


def _wanted(name: str) -> str:
    if name in _INTEGERS:
        return "a number of tokens"
    wanted = {
        "token_cost_usd": "a number of dollars",
        "retry_after": "a number of seconds",
        "completed": "true or false",
        "rate_limited": "true or false",
    }
    return wanted.get(name, "text")


def _shown(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MOST:
        return "too large a number"  # writing out a huge integer takes long, or is refused
    return f"{value!r:.60}" if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def merge_usage(first: Usage, second: Usage) -> Usage:
    """Return ``first``, with what it does not know taken from ``second``."""
    own = first.to_json()
    merged = {name: value if (value := own[name]) is not None else other for name, other in second.to_json().items()}
    usage = Usage(**merged)
    return replace(usage, tokens_used=usage.tokens)


def join_readings(first: UsageReading, second: UsageReading) -> UsageReading:
    """Return what either reported, the first one first, and all notes."""
    return UsageReading(usage=merge_usage(first.usage, second.usage), notes=(*first.notes, *second.notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePath:
    """Where a field stands in JSON: the sum of ``terms`` in the last document that has them all, or in ``every`` one."""

    text: str
    terms: tuple[tuple[str | int, ...], ...]
    every: bool = False

    @property
    def adds(self) -> bool:
        """Whether numbers are added, so that the field must be one."""
        return self.every or len(self.terms) > 1 or any(ANY in term for term in self.terms)


def check_usage_map(usage_map: Mapping[str, str]) -> dict[str, UsagePath]:
    """Return field name → path for ``[generator] usage``, such as ``{cost = "total_cost_usd", tokens = "usage.output_tokens"}``.

    A path goes through objects by name and through lists by number (from the end when negative), joined with dots; ``*`` stands
    for every member and adds them up (0 where there is none). Paths joined by `` + `` are added; ``sum:`` in front adds over all
    documents instead of taking the last. Errors: :class:`jumar.errors.ConfigError` for an unknown field, with the nearest known
    one, an empty path, or a sum of what is no number.
    """
    paths: dict[str, UsagePath] = {}
    for given, text in usage_map.items():
        name = _ALIASES.get(given, given)
        if name not in USAGE_FIELDS:
            known = (*USAGE_FIELDS, *_ALIASES)
            raise ConfigError(f"generator.usage: unknown field '{given}'{nearest(given, known)}; known are {', '.join(known)}")
        if name in paths:
            raise ConfigError(f"generator.usage: '{given}' and its other name are both set; keep one of them")
        summed = text.removeprefix(_SUM)
        terms = [term.strip().split(".") for term in summed.split(" + ")]
        if not all(step for term in terms for step in term):
            raise ConfigError(f"generator.usage: '{given}' has the path {text!r}; write it as in \"usage.output_tokens\"")
        path = UsagePath(text=text, terms=tuple(tuple(_step(step) for step in term) for term in terms), every=summed != text)
        if path.adds and name not in _NUMBERS:
            raise ConfigError(f"generator.usage: '{given}' has the path {text!r}, which adds up numbers; '{given}' is none")
        paths[name] = path
    return paths


def _step(step: str) -> str | int:
    return int(step) if re.fullmatch(r"-?[0-9]{1,6}", step) else step


def usage_from_output(stdout: str, paths: Mapping[str, UsagePath], *, whole: bool = True) -> UsageReading:
    """Take each field from the JSON documents in ``stdout`` that have its path: the last one, or all of them for a ``sum:``.

    Of a number that is the largest, as a total only grows: what an agent left running may print a small one after the program.

    ``stdout`` may be one document, one a line, or documents among other text; each begins at the start of a line. Unless it is
    ``whole``, a sum over documents is unknown: a part of it may be missing.
    """
    if not paths:
        return NOTHING_REPORTED
    found: dict[str, object] = {}
    notes: list[str] = []
    every = _all_documents(stdout) if whole and any(path.every for path in paths.values()) else None
    last = list(_documents(stdout, _starts(stdout)[-_DOCUMENTS:]))[::-1]
    for name, path in paths.items():
        if path.every and every is None:
            why = "the output is not JSON, one document a line" if whole else "a part of the output was left out"
            notes.append(f"generator output: '{path.text}' cannot be summed, because {why}; {name} counts as unknown")
            continue
        values = (_value(document, path) for document in (every if path.every and every is not None else last))
        known = [value for value in values if value is not None]
        value = _added(known) if path.every else _largest(name, known)
        if value is None:
            notes.append(f"generator output: nothing found at '{path.text}' for {name}; it counts as unknown")
        else:
            found[name] = value
    reading = parse_usage(found, where="generator output")
    return UsageReading(usage=reading.usage, notes=(*notes, *reading.notes))


def _largest(name: str, known: Sequence[object]) -> object | None:
    """Return the largest number of a field that is one; else what comes first, None of nothing."""
    usable = [
        value for value in known if name in _NUMBERS and isinstance(value, int | float) and _usable(name, value) is not None
    ]
    return max(usable, default=known[0] if known else None)


def _value(document: object, path: UsagePath) -> object | None:
    """Return what ``path`` finds in ``document``; None unless it has all terms."""
    found = [_at(document, term) for term in path.terms]
    if any(value is None for value in found):
        return None
    return _added(found) if len(found) > 1 else found[0]


def _added(values: Sequence[object]) -> object | None:
    """Return the sum; the first value that is no number from 0 on instead, where there is one; None of nothing."""
    numbers: list[int | float] = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
            return value
        numbers.append(value)
    if not numbers:
        return None
    return sum(numbers) if all(isinstance(number, int) for number in numbers) else math.fsum(numbers)


def _at(document: object, path: Sequence[str | int]) -> object | None:
    current = document
    for position, step in enumerate(path):
        if step == ANY:
            members = _members(current)
            if not members:
                return 0 if isinstance(current, dict | list) else None  # nothing to add up is known to be nothing
            return _added([value for member in members if (value := _at(member, path[position + 1 :])) is not None])
        if isinstance(current, dict):
            current = cast("dict[str, object]", current).get(str(step))
        elif isinstance(current, list) and isinstance(step, int):
            items = cast("list[object]", current)
            current = items[step] if -len(items) <= step < len(items) else None
        else:
            return None
    return current


def _members(value: object) -> Sequence[object]:
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).values())
    return cast("list[object]", value) if isinstance(value, list) else ()


def _starts(text: str) -> list[int]:
    return [match.end() - 1 for match in re.finditer(r"^[ \t]*[\[{]", text, re.MULTILINE)]


def _documents(text: str, starts: Sequence[int], failures: list[int] | None = None) -> Iterator[object]:
    """Yield the JSON objects and arrays that begin at one of ``starts``, in order; ``failures`` gets those that hold none."""
    decoder = json.JSONDecoder()
    position = 0
    for start in starts:
        if start < position:  # inside the document before
            continue
        try:
            document, position = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            if failures is not None:
                failures.append(start)
                if len(failures) > _DOCUMENTS:
                    return
            continue
        yield document


def _all_documents(text: str) -> list[object] | None:
    """Return every document; None where so much is none that it would take long to look through."""
    failures: list[int] = []
    documents = list(_documents(text, _starts(text), failures))
    return None if len(failures) > _DOCUMENTS else documents


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
        return ScoreValue(score=None, reason=reason, invalid=f"{_as_shown(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0.0 <= number <= 1.0:  # NaN fails too
        hint = "; a percentage is divided by 100" if 1.0 < number <= 100.0 else ""
        return ScoreValue(score=None, reason=reason, invalid=f"{number:g} is not in [0, 1]{hint}")
    return ScoreValue(score=abs(number), reason=reason)


def _as_shown(value: object) -> str:
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
        raise TypeError(f"it returned {_as_shown(value)}; return a number in [0, 1], or (number, reason)")
    if reason is not None and not isinstance(reason, str):
        raise TypeError(f"its reason is {_as_shown(reason)}; give text")
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
    raise TypeError(
        f"it returned {_as_shown(cast('object', value))}; return True, False, (bool, reason), or nothing when it passes"
    )


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
        raise TypeError(f"it returned {_as_shown(value)}; return nothing, a Usage, or a mapping with {', '.join(USAGE_FIELDS)}")
    fields = cast("Mapping[object, object]", value)
    for name in fields:
        if name not in USAGE_FIELDS:
            raise TypeError(f"it returned a mapping with the unknown key {name!r}{nearest(str(name), USAGE_FIELDS)}")
    return parse_usage(cast("Mapping[str, object]", fields), where="returned usage")
