"""What differs between two recorded settings, key by key, also inside lists of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

__all__ = ["told_differences"]

_MISSING: Final = object()
_NAMES: Final = ("name", "dimension", "id")


def told_differences(key: str, before: Any, after: Any) -> list[str]:
    """Return ``scorers[readability].weight: 1.0 → 2.0``, one line for each value that differs; ``before != after``.

    Entries of a list of tables are told apart by their name or dimension, else by their place.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        old, new = cast("Mapping[str, Any]", before), cast("Mapping[str, Any]", after)
        return _members(old, new, lambda name: f"{key}.{name}")
    tables = _tables(before), _tables(after)
    if tables[0] is not None and tables[1] is not None:
        return _members(tables[0], tables[1], lambda name: f"{key}[{name}]")
    return [f"{key}: {_shown(before)} → {_shown(after)}"]


def _members(old: Mapping[str, Any], new: Mapping[str, Any], path: Callable[[str], str]) -> list[str]:
    found: list[str] = []
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name, _MISSING), new.get(name, _MISSING)
        if before is _MISSING or after is _MISSING:
            table = isinstance(before if after is _MISSING else after, Mapping)
            word = "removed" if after is _MISSING else "added"
            found.append(f"{path(name)}: {word}" if table else f"{path(name)}: {_shown(before)} → {_shown(after)}")
        elif before != after:
            found += told_differences(path(name), before, after)
    return found


def _tables(value: Any) -> dict[str, Any] | None:
    """Return a list of tables by their names; None for anything else. An empty list is one, too."""
    if not isinstance(value, list | tuple):
        return None
    items = list(cast("list[Any]", value))
    if not all(isinstance(item, Mapping) for item in items):
        return None
    found: dict[str, Any] = {}
    for place, item in enumerate(items, 1):
        name = next((str(item[one]) for one in _NAMES if item.get(one)), str(place))
        found[name if name not in found else f"{name} {place}"] = item
    return found


def _shown(value: Any) -> str:
    if value is _MISSING or value is None:
        return "its default" if value is _MISSING else "none"
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        return f"{{{', '.join(f'{name} = {_shown(one)}' for name, one in table.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_shown(one) for one in cast('list[Any]', value))}]"
    return repr(value)
