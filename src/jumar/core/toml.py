"""Reading TOML into a checked model, or one error that says where and how to mend it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from jumar.core.files import LARGEST, read_named
from jumar.core.text import escape, nearest
from jumar.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound="BaseModel")


def read_toml(path: Path, maker: str) -> tuple[dict[str, Any], str]:
    """Return a file's content as data and as text; ``maker`` is the command that writes one. Errors: :class:`ConfigError`."""
    try:
        size = path.stat().st_size
        if size > LARGEST:  # a hole is enough for that
            raise ConfigError(f"{path}: has {size:,} bytes, as no configuration has: put it back")
        if path.is_dir():
            raise ConfigError(f"{path}: is a directory; name the file")
        text = read_named(path)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; `{maker}` writes one") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not valid TOML: it is nested too deeply") from None


def parse_model(
    model: type[M], data: dict[str, Any], where: str, text: str = "", called: Mapping[str, str] = MappingProxyType({})
) -> M:
    """Check ``data`` against ``model``; ``text`` is its source, for line numbers. Errors: :class:`ConfigError`.

    ``called`` is how ``data`` calls tables that the model has under another name.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_explain(error, model, where, text, called)) from None


def _explain(error: ValidationError, model: type[BaseModel], where: str, text: str, called: Mapping[str, str]) -> str:
    seen: set[str] = set()
    lines: list[str] = []
    for detail in error.errors(include_url=False):
        line = _explain_one(detail, model, where, text, called)
        if line not in seen:
            seen.add(line)
            lines.append(line)
    return "\n".join(lines)


def _explain_one(detail: ErrorDetails, model: type[BaseModel], where: str, text: str, called: Mapping[str, str]) -> str:
    found_at = _without_union_tags(detail["loc"])
    location = tuple(called.get(part, part) if isinstance(part, str) else part for part in found_at[:1]) + found_at[1:]
    line = _line_of(location, text)
    place = f"{where}:{line}" if line else where
    key = escape(_dotted(location)) if location else ""
    if detail["type"] == "extra_forbidden":
        known = sorted(called.get(name, name) for name in _keys_at(model, found_at[:-1]))
        return f"{place}: unknown key '{key}'{nearest(str(location[-1]), known)}; known here: {', '.join(known)}"
    if detail["type"] == "missing":
        return f"{place}: '{key}' is missing"
    message = detail["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    found = detail.get("input")
    told = isinstance(found, str | int | float | bool) and "://" not in str(found)  # an address may hold a password
    shown = f" (found {escape(repr(found))[:60]})" if told else ""
    return f"{place}: {key + ': ' if key else ''}{message}{shown}"


def _without_union_tags(location: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Pydantic puts the name of the tried type of a union into the location; no key of ours looks like one."""
    tags = re.compile(r"^(str|bool|int|float|list(\[.*\])?|constrained-.*|function-.*|literal\[.*\]|TrendConfig|ScaledKey)$")
    return tuple(part for part in location if not (isinstance(part, str) and tags.match(part)))


def _dotted(location: Sequence[int | str]) -> str:
    shown = ""
    for part in location:
        shown += f"[{part + 1}]" if isinstance(part, int) else (f".{part}" if shown else part)
    return shown


def _keys_at(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    current: Any = model
    for part in location:
        if isinstance(part, int) or part not in current.model_fields:  # an index, or the name of a table that a person chose
            continue
        current = model_in(current.model_fields[part].annotation)
    return sorted(current.model_fields)


def model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation names, also as one of several or as what a list holds; None when there is none."""
    from typing import get_args

    if hasattr(annotation, "model_fields"):
        return annotation
    for argument in get_args(annotation):
        found = model_in(argument)
        if found is not None:
            return found
    return None


def _line_of(location: Sequence[int | str], text: str) -> int | None:
    """Find the line of a key: its table's header first, then the key below it. Best effort; None when not found."""
    names = [part for part in location if isinstance(part, str)]
    index = next((part for part in location if isinstance(part, int)), 0)
    if not names or not text:
        return None
    lines = text.splitlines()
    if len(names) > 2:  # a table in a table has its own header, or stands in a line
        inner = _header_line(lines, f"{names[0]}.{names[1]}", 0)
        if inner is not None:
            return _key_line(lines, inner + 1, names[2]) or inner + 1
    start = _header_line(lines, names[0], index)
    if start is None:
        return _key_line(lines, 0, names[0])
    if len(names) == 1:
        return start + 1
    return _key_line(lines, start + 1, names[1]) or start + 1


def _header_line(lines: list[str], table: str, index: int) -> int | None:
    header = re.compile(rf"^\s*\[\[?\s*{re.escape(table)}\s*\]\]?")
    found = [number for number, line in enumerate(lines) if header.match(line)]
    return found[min(index, len(found) - 1)] if found else None


def _key_line(lines: list[str], start: int, key: str) -> int | None:
    pattern = re.compile(rf"^\s*[\"']?{re.escape(key)}[\"']?\s*[=.]")
    for number in range(start, len(lines)):
        if number > start and re.match(r"^\s*\[", lines[number]):
            return None
        if pattern.match(lines[number]):
            return number + 1
    return None
