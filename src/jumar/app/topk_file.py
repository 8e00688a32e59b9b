"""``topk.toml``: the selection that ``jumar topk tune`` found, and that ``jumar topk select --config`` reads.

format = 1
max_k = 20
min_k = 1

[selection]
strategy = "elbow"
drop_threshold = 0.1

[evidence]                 # where it comes from; for people, never read
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumar.errors import ConfigError, FormatTooNewError, JumarError, NotFoundError
from jumar.text import escape, nearest
from jumar.topk.base import SelectionStrategy
from jumar.topk.contract import check_limits, shown
from jumar.topk.registry import create_selection_strategy

__all__ = ["FORMAT", "Selection", "read_selection", "render_selection"]

FORMAT = 1

_KEYS = ("format", "max_k", "min_k", "selection", "evidence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A strategy with its limits."""

    strategy: SelectionStrategy
    max_k: int
    min_k: int


def read_selection(path: Path) -> Selection:
    """Return what a ``topk.toml`` says.

    Errors: :class:`jumar.errors.NotFoundError`, :class:`jumar.errors.FormatTooNewError` for a newer format, and
    :class:`jumar.errors.ConfigError` that names the file and the key.
    """
    where = escape(str(path))
    try:
        found = tomllib.loads(path.read_bytes().decode("utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFoundError(f"there is no file {where}; `jumar topk tune RUNS -o {where}` writes one") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: not TOML ({error})") from error
    version = found.get("format", FORMAT)
    if isinstance(version, int) and version > FORMAT:
        raise FormatTooNewError(f"{where}: format {version} was written by a newer jumar; this one reads up to {FORMAT}")
    for key in found:
        if key not in _KEYS:
            raise ConfigError(f"{where}: unknown key '{escape(key)}'{nearest(key, _KEYS)}; there are {', '.join(_KEYS)}")
    if not isinstance(found.get("selection"), dict) or "strategy" not in found["selection"]:
        raise ConfigError(f"{where}: a table [selection] with a key 'strategy' is needed")
    table: dict[str, Any] = found["selection"]
    try:
        max_k, min_k = check_limits(found.get("max_k", 20), found.get("min_k", 1))
        return Selection(strategy=create_selection_strategy(table), max_k=max_k, min_k=min_k)
    except JumarError as error:
        raise ConfigError(f"{where}: {error}") from error


def render_selection(selection: Selection, evidence: Mapping[str, Any], comment: str = "") -> str:
    """Return the text of a ``topk.toml``. A parameter that is None has to be its default, because TOML has no word for it."""
    head = [f"# {escape(line)}" for line in comment.splitlines()]
    lines = [*head, f"format = {FORMAT}", f"max_k = {selection.max_k}", f"min_k = {selection.min_k}", "", "[selection]"]
    lines += [f'strategy = "{selection.strategy.name}"', *_pairs(selection.strategy.params())]
    if evidence:
        lines += ["", "[evidence]", *_pairs(evidence)]
    return "\n".join(lines) + "\n"


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_value(value)}" for name, value in values.items() if value is not None]


def _value(value: Any) -> str:
    """Return ``value`` as TOML. JSON's texts, numbers, booleans and lists are TOML, but for escapes of half characters."""
    if isinstance(value, str | bool | int | float | list | tuple):
        return json.dumps(value, allow_nan=False, ensure_ascii=False)
    raise TypeError(f"{shown(value)} has no place in a topk.toml")
