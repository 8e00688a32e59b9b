"""The defaults that a loop began with: they hold for it whenever it is resumed, also by a version that has others.

``loop.json`` names them all in ``defaults``, by key: ``loop.continue_from``, ``generator.timeout``, ``validators[].timeout`` for
the entries of a list of tables. Its ``run`` is what the configuration says otherwise;
:func:`told_differences` says what of two recorded configurations differs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from jumar.app.config.load import parse_config
from jumar.core.toml import model_in
from jumar.loop.store.loop_reader import LoopReader

if TYPE_CHECKING:
    from jumar.app.config.config import JumarConfig

FORMER: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "loop.continue_from": "previous",
        "loop.final_output": "full",
        "loop.recheck": "off",
        "stop.keep_going": True,
        "validators[].known": "none",
    }
)
"""What holds for a loop whose ``loop.json`` does not name the key: how such a loop behaved before the key or its default came.

A key that is not here has its present default. So whoever changes a default adds what it was, for the loops of versions that
recorded no defaults; and whoever adds a key whose default changes what a loop does adds the value that leaves all as it was.
"""

_LIST: Final = "[]"


def defaults_of(store: LoopReader | None) -> Mapping[str, Any]:
    """Return the default of every key that holds for the loop in ``store``; those of this version for one that is new (None)."""
    present = _present()
    if store is None:
        return present
    recorded: object = store.config.get("defaults")
    known: Mapping[str, Any] = cast("Mapping[str, Any]", recorded) if isinstance(recorded, Mapping) else {}
    return {key: known.get(key, FORMER.get(key, value)) for key, value in present.items()}


def config_with(defaults: Mapping[str, Any], config: JumarConfig) -> JumarConfig:
    """Return ``config`` with every key that it leaves unset at what :func:`defaults_of` says.

    Errors: :class:`jumar.errors.ConfigError` when such a default and what is set cannot go together.
    """
    changed = _changed(defaults)
    if not changed:
        return config
    data = config.model_dump(mode="json", exclude_unset=True)
    for key, value in changed.items():
        for section in _sections(data, key):
            section.setdefault(_name(key), value)
    return parse_config(data, "the configuration with the defaults that the loop began with")


def said_otherwise(defaults: Mapping[str, Any], config: JumarConfig) -> dict[str, Any]:
    """Return what ``config`` says other than ``defaults``, as ``loop.json`` keeps it in ``run``; an empty section is left out."""
    said, whole = config.model_dump(mode="json", exclude_defaults=True), config.model_dump(mode="json")
    for key, value in _changed(defaults).items():
        name = _name(key)
        for section, all_of_it in zip(_sections(said, key), _sections(whole, key), strict=True):
            section.pop(name, None)
            if all_of_it[name] != value:
                section[name] = all_of_it[name]
    return {name: section for name, section in said.items() if section != {}}


@functools.cache
def _present() -> Mapping[str, Any]:
    """Return the defaults of this version. A key without one is not there, nor is one of a table that a person names."""
    from pydantic import TypeAdapter

    from jumar.app.config.config import JumarConfig

    as_json: TypeAdapter[Any] = TypeAdapter(Any)
    found: dict[str, Any] = {}
    for table, field in JumarConfig.model_fields.items():
        section = model_in(field.annotation)
        for name, key in () if section is None else section.model_fields.items():
            if not key.is_required():
                place = f"{table}{_LIST if _is_list(table) else ''}.{name}"
                found[place] = as_json.dump_python(key.get_default(call_default_factory=True), mode="json")
    return MappingProxyType(found)


def _is_list(table: str) -> bool:
    from jumar.app.config.config import JumarConfig

    return getattr(JumarConfig.model_fields[table].annotation, "__origin__", None) is list


def _changed(defaults: Mapping[str, Any]) -> dict[str, Any]:
    present = _present()
    return {key: value for key, value in defaults.items() if key in present and present[key] != value}


def _sections(data: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """Yield the tables of ``data`` that ``key`` is a key of: one, each of a list, none of an optional table that is not there."""
    from jumar.app.config.config import JumarConfig

    table = key.rpartition(".")[0]
    if table.endswith(_LIST):
        yield from data.get(table.removesuffix(_LIST), ())
    elif data.get(table) is not None:
        yield data[table]
    elif JumarConfig.model_fields[table].default_factory is not None:
        yield data.setdefault(table, {})


def _name(key: str) -> str:
    return key.rpartition(".")[2]


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
