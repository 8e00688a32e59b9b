"""The shapes that a patterns file may have, as one :class:`PatternSet`.

Read are the shape that is written here, a bare list of patterns, and two shapes of the first design: indicators under
``quality_signals`` (with the weight's sign or the list saying which way they count) and the plain lists of
``good_story_indicators``. Messages name the file, the line where it is known, the pattern, the field and what is allowed. Names
that are nearly known ones are kept as somebody's own, and nothing reads them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import ValidationError

from jumar.core.text import escape, once
from jumar.errors import PatternLoadError
from jumar.judging.patterns.models import FORMAT_VERSION, PatternSet

if TYPE_CHECKING:
    from pydantic import BaseModel

_UNDATED: Final = "1970-01-01T00:00:00Z"
_LISTS: Final = {"good_story_indicators": "good", "bad_story_indicators": "bad"}
_SIGNALS: Final = {"good_indicators": "good", "bad_indicators": "bad"}
_SPACE: Final = re.compile(r"[ \t\r\n]*")


class WrongFormatError(PatternLoadError):
    """A whole file of format 1, or one of a newer version."""


def shown(value: object) -> str:
    """Return a value as a message shows it: JSON, cut at 60 characters, on one line."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return escape(text if len(text) <= 60 else text[:59] + "…")


def parse_json(text: str, where: str) -> Any:
    """Return what a JSON document says. Errors: :class:`PatternLoadError` that names the line."""
    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        what = "it is empty" if not text.strip() else f"{error.msg}, column {error.colno}"
        raise PatternLoadError(f"{where}, line {error.lineno}: not JSON: {what}") from error
    except RecursionError as error:
        raise PatternLoadError(f"{where}: not a patterns file: nested too deeply") from error
    except ValueError as error:  # a number of thousands of digits
        raise PatternLoadError(f"{where}: not a patterns file: {escape(str(error))}") from error


def parse_pattern_text(text: str, where: str) -> PatternSet:
    """Return the patterns of a file's text; as :func:`parse_patterns`, with lines in the messages."""
    return _parse(parse_json(text, where), where, text)


def parse_patterns(data: Any, where: str) -> PatternSet:
    """Return ``data``, what a JSON file holds, as a set of patterns; ``where`` is the file's name for messages.

    A pattern without an id gets ``p_001``, ``p_002``, … by its place in the first design's shapes. Errors:
    :class:`PatternLoadError` for a file of format 1 (which ``jumar patterns migrate`` reads) or of a newer version, for what is
    missing, out of bounds, not finite or there twice.
    """
    return _parse(data, where, None)


def _parse(data: Any, where: str, text: str | None) -> PatternSet:
    document = _as_document(data, where)
    try:
        found = PatternSet.model_validate(document)
    except ValidationError as error:
        raise PatternLoadError(_refusal(error, document, where, text)) from error
    seen: dict[str, int] = {}
    for number, pattern in enumerate(found.patterns):
        if pattern.id in seen:
            raise PatternLoadError(
                f"{_place(where, text, number)}: pattern {number + 1} has the id '{escape(pattern.id)}' of pattern "
                f"{seen[pattern.id] + 1}; every id stands for one pattern"
            )
        seen[pattern.id] = number
    refuse_not_finite(document, where)
    return found


def _as_document(data: Any, where: str) -> dict[str, Any]:
    if isinstance(data, list):
        data = {"version": FORMAT_VERSION, "patterns": cast("list[Any]", data)}
    if not isinstance(data, dict):
        raise PatternLoadError(f"{where}: not a patterns file: {shown(data)} instead of an object with version and patterns")
    document = cast("dict[str, Any]", data)
    check_version(document, where)
    if "quality_signals" in document:
        return _from_signals(document, where)
    if "patterns" not in document and any(name in document for name in (*_LISTS, "valid_tech_paths", "gestalt_heuristics")):
        return _from_lists(document, where)
    for pattern in cast("list[Any]", document["patterns"]) if isinstance(document.get("patterns"), list) else ():
        if isinstance(pattern, dict) and cast("dict[str, Any]", pattern).get("type") in ("good_pattern", "bad_pattern"):
            raise _is_old(where)
    for name in ("version", "patterns"):
        if name not in document:
            raise PatternLoadError(f"{where}: '{name}' is missing; a patterns file has at least version and patterns")
    return document


def _is_old(where: str) -> WrongFormatError:
    return WrongFormatError(
        f"{where}: these are patterns of format 1, sentences that cannot be matched; "
        f"`jumar patterns migrate {where} -o patterns.json` makes patterns of them"
    )


def check_version(document: Mapping[str, Any], where: str) -> None:
    """Refuse a document of format 1 or of a format that is newer than this. Errors: :class:`PatternLoadError`."""
    if document.get("format", 1) != 1:
        raise WrongFormatError(f"{where}: format {shown(document['format'])} is not known here; update jumar, or mend the file")
    version = document.get("version")
    if isinstance(version, int | float) and not isinstance(version, bool):
        version = str(version)
    if not isinstance(version, str) or not re.fullmatch(r"\d{1,6}(\.\d{1,6})*", version):
        return
    parts = tuple(map(int, version.split(".")))
    known = tuple(map(int, FORMAT_VERSION.split(".")))
    if parts > known:
        raise WrongFormatError(
            f"{where}: written by a newer jumar: format {version}, and this one reads up to {FORMAT_VERSION}; update jumar"
        )
    if parts < (1,):
        raise WrongFormatError(f"{where}: format {version} is not known here; known are 1.0, which can be migrated, and 2.0")
    if parts < (2,):
        raise _is_old(where)


# ------------------------------------------------------------------------------------------- shapes of the first design


def _from_signals(document: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the shape with indicators under ``quality_signals``."""
    signals = document["quality_signals"]
    if not isinstance(signals, dict):
        raise PatternLoadError(f"{where}: quality_signals is {shown(signals)}; give good_indicators and bad_indicators")
    patterns = _indicators(document, cast("dict[str, Any]", signals), _SIGNALS, where, "quality_signals.", "quality_signals")
    others = {name: value for name, value in document.items() if name != "quality_signals"}
    return {"version": FORMAT_VERSION, **others, "patterns": [*_listed(document, "patterns", where), *patterns]}


def _from_lists(document: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the shape with plain lists of indicators."""
    others = {name: value for name, value in document.items() if name not in {*_LISTS, "valid_tech_paths"}}
    technical = {"valid_repo_paths": document.get("valid_tech_paths", {})}
    patterns = _indicators(document, document, _LISTS, where, "", "learned_patterns")
    return {"version": FORMAT_VERSION, "tech_validation": technical, **others, "patterns": patterns}


def _indicators(
    document: Mapping[str, Any], lists: Mapping[str, Any], kinds: Mapping[str, str], where: str, prefix: str, source: str
) -> list[dict[str, Any]]:
    """Return the indicators of ``lists`` as patterns, numbered throughout; ``kinds`` says whether a list is of good ones."""
    dated = document.get("last_updated") or _UNDATED
    patterns: list[dict[str, Any]] = []
    for name, kind in kinds.items():
        for number, one in enumerate(_listed(lists, name, where), start=1):
            place = f"{where}: {prefix}{name}, entry {number}"
            pattern = _from_indicator(one, kind, f"p_{len(patterns) + 1:03d}", dated, place)
            patterns.append(pattern if source == "quality_signals" else {**pattern, "source": source})
    return patterns


def _listed(document: Mapping[str, Any], name: str, where: str) -> list[Any]:
    found = document.get(name, [])
    if not isinstance(found, list):
        raise PatternLoadError(f"{where}: {name} is {shown(found)}; give a list")
    return cast("list[Any]", found)


def _from_indicator(one: Any, kind: str, name: str, dated: Any, place: str) -> dict[str, Any]:
    if isinstance(one, str):
        one = {"pattern": one}
    if not isinstance(one, dict):
        raise PatternLoadError(f"{place}: {shown(one)}; give an object with pattern or description")
    found = cast("dict[str, Any]", one)
    said = found.get("pattern", found.get("description"))
    if not isinstance(said, str) or not said.strip():
        raise PatternLoadError(f"{place}: neither pattern nor description says what to look for")
    weight = found.get("weight", 1.0)
    if isinstance(weight, int | float) and not isinstance(weight, bool):
        weight = abs(weight)  # the list says which way it counts
    known = {key: value for key, value in found.items() if key not in {"pattern", "weight"}}
    filled = {"id": name, "description": said, "keywords": [said], "source": "quality_signals", "discovered_at": dated}
    return {**filled, "category": f"{kind}_story_indicators", **known, "type": kind, "weight": weight}


# ------------------------------------------------------------------------------------------------------------- messages


def _refusal(error: ValidationError, document: Mapping[str, Any], where: str, text: str | None) -> str:
    errors = error.errors(include_url=False)
    first = errors[0]
    place, location = where, first["loc"]
    if not location:  # it is of the whole, and says what
        return f"{place}: {escape(first['msg'].removeprefix('Value error, '))}"
    if location[0] == "patterns" and len(location) > 1 and isinstance(location[1], int):
        number = location[1]
        pattern: Any = document["patterns"][number]
        name = cast("dict[str, Any]", pattern).get("id") if isinstance(pattern, dict) else None
        called = f" ({escape(name[:60])})" if isinstance(name, str) else ""
        place, location = f"{_place(where, text, number)}: pattern {number + 1}{called}", location[2:]
    field = ".".join(str(part) for part in location) or "it"
    what, said = f"is {shown(first['input'])}: {first['msg']}", 1
    if first["type"] == "missing":
        missing = [str(one["loc"][-1]) for one in errors if one["type"] == "missing" and one["loc"][:-1] == first["loc"][:-1]]
        others, said = ", ".join(missing[1:]), len(missing)
        what = f"is missing{f'; {others} too' if others else ''}"
    more = f" (and {len(errors) - said} more)" if len(errors) > said else ""
    return f"{place}: {escape(field)} {what}{more}"


def _place(where: str, text: str | None, number: int) -> str:
    """Return the file, and the line where pattern ``number`` (from 0) begins, when the text is there."""
    if text is None:
        return where
    starts = list(_pattern_starts(text))
    return f"{where}, line {text.count(chr(10), 0, starts[number]) + 1}" if number < len(starts) else where


def _pattern_starts(text: str) -> Iterator[int]:
    """Yield where each element of the patterns begins, in a text that is JSON."""
    decoder = json.JSONDecoder()

    def past_space(position: int) -> int:
        found = _SPACE.match(text, position)
        return position if found is None else found.end()

    def past_value(position: int) -> int:
        position = past_space(decoder.raw_decode(text, position)[1])
        return past_space(position + 1) if text[position] == "," else position

    position = past_space(0)
    if text[position] == "{":
        position = past_space(position + 1)
        while text[position] != "}":
            key, position = decoder.raw_decode(text, position)
            position = past_space(past_space(position) + 1)
            if key == "patterns":
                break
            position = past_value(position)
    if text[position] != "[":
        return
    position = past_space(position + 1)
    while text[position] != "]":
        yield position
        position = past_value(position)


def refuse_not_finite(document: Any, where: str) -> None:
    """Refuse what JSON cannot say and Python reads. Errors: :class:`PatternLoadError` that names the place."""
    for path in _not_finite(document, ""):
        raise PatternLoadError(f"{where}: {escape(path)} is not a finite number; JSON has no NaN and no infinity")


def _not_finite(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield path
    elif isinstance(value, dict):
        for name, below in cast("dict[str, Any]", value).items():
            yield from _not_finite(below, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for number, below in enumerate(cast("list[Any]", value)):
            yield from _not_finite(below, f"{path}[{number}]")


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
    known = [*type(model).model_fields, *(["robust"] if isinstance(model, PatternSet) else [])]
    return [
        f"{what} has '{escape(name)}', which nothing reads; did you mean '{near}'?"
        for name in model.model_extra or {}
        if name not in known
        for near in get_close_matches(name.lower(), known, 1, _NEAR)
    ]
