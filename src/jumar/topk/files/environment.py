"""``JUMAR_PIPELINE__RETRIEVAL__…`` variables as settings: which key each of them means, and what its text says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

from jumar.core.text import escape, nearest
from jumar.errors import ConfigError

__all__ = ["PREFIX", "SELECTIONS", "Setting", "plain_value", "read_environment"]

SELECTIONS: Final = ("rule_selection", "scenario_selection", "memory_selection")
"""The tables of ``[pipeline.retrieval]`` that name a strategy."""


PREFIX: Final = "JUMAR_"
_START: Final = ("pipeline", "retrieval")
_BELOW: Final = frozenset({"rule_selection", "scenario_selection", "memory_selection"})
_TEXTS: Final = frozenset({"embedding_provider", "strategy", "scale", "on"})


class Setting(NamedTuple):
    """One variable: its name, the place of its key below ``[pipeline.retrieval]``, one part or two, and its value."""

    variable: str
    place: tuple[str, ...]
    value: Any


def read_environment(environ: Mapping[str, str]) -> tuple[list[Setting], list[str]]:
    """Return what ``environ`` sets, tables before their keys, and a sentence on each variable that nobody reads.

    Names are read without regard to case. An empty variable sets nothing. A value is a number, ``true``, ``none`` or text; that
    of a table is a JSON object. Other tables of ``[pipeline]`` are passed over, as in a file. Errors:
    :class:`jumar.errors.ConfigError` for names that mean no place, with the way to write it, for two that differ in case alone
    and have different values, and for a table that is no JSON object.
    """
    found: list[Setting] = []
    unread: list[str] = []
    spelt: dict[str, str] = {}
    for variable in sorted(environ, key=lambda name: (name.count("__"), name)):
        upper = variable.upper()
        if not upper.startswith(PREFIX) or not environ[variable].strip():
            continue
        other = spelt.setdefault(upper, variable)
        if "__" in upper and environ[other].strip() != environ[variable].strip():
            raise ConfigError(f"{escape(other)} and {escape(variable)} are one setting with two values: unset one of them")
        parts = upper[len(PREFIX) :].lower().split("__")
        if parts[0] == _START[0] and len(parts) > 1:
            found.extend(_settings(variable, parts, environ[variable].strip()))
        elif parts[0] == _START[0] or parts[0].startswith("pipeline_"):
            raise ConfigError(f"{escape(variable)}: {_way()}")
        elif len(parts) > 1:
            hint = nearest(parts[0], (*_START, *_BELOW))
            if hint:
                raise ConfigError(f"{escape(variable)}: {_way()}")
            unread.append(f"{escape(variable)} is read by nobody; {_way()}")
    return found, unread


def _way() -> str:
    return f"settings are written {PREFIX}PIPELINE__RETRIEVAL__KEY, with two underscores between the levels"


def _settings(variable: str, parts: list[str], text: str) -> list[Setting]:
    """Return what one variable sets. ``parts`` start with ``pipeline``."""
    if parts[1] != _START[1]:
        if not _misspelt(parts):
            return []
        raise ConfigError(f"{escape(variable)}: [pipeline] has no '{escape(parts[1])}'{nearest(parts[1], _START[1:])}; {_way()}")
    place = tuple(parts[2:])
    if not place:
        return [Setting(variable, (key,), value) for key, value in _table(variable, text).items()]
    if len(place) == 1:
        return [Setting(variable, place, _table(variable, text) if place[0] in _BELOW else _value(place[0], text))]
    if len(place) == 2 and place[0] in _BELOW:
        return [Setting(variable, place, _value(place[1], text))]
    hint = nearest(place[0], sorted(_BELOW)) if place[0] not in _BELOW else ""
    raise ConfigError(f"{escape(variable)}: there is no table '{escape('.'.join(parts[:-1]))}'{hint}; {_way()}")


def _misspelt(parts: list[str]) -> bool:
    """Return whether a table of ``[pipeline]`` is likelier ours than somebody else's: nearly its name, or one of its keys."""
    from jumar.topk.config import RetrievalConfig

    return parts[1] in RetrievalConfig.model_fields or SequenceMatcher(None, parts[1], _START[1]).ratio() > 0.8


def _table(variable: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ConfigError(f"{escape(variable)}: this is a table; give a JSON object, or set its keys: {escape(variable)}__KEY")
    return value  # pyright: ignore[reportUnknownVariableType]


def _value(key: str, text: str) -> Any:
    """Return what ``text`` means: JSON where it is some, None for ``none``, else itself; the keys that are texts stay texts."""
    if key in _TEXTS:
        return text
    if text.lower() in {"none", "null"}:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else float(text)  # +5, 05; .5, 1e-1
    except ValueError:
        return text


def plain_value(value: Any) -> Any:
    """Return None for the text ``none`` or ``null``, in any case, since TOML has no word for it; any other value as it is."""
    return None if isinstance(value, str) and value.strip().lower() in {"none", "null"} else value
