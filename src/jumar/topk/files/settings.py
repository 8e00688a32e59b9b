"""``[pipeline.retrieval]`` from TOML files and the environment, in layers; each value keeps where it came from.

What comes later goes before what came earlier: the built-in settings, the files in their order, the environment. A layer that
names another strategy than the one below takes over only the keys that the new strategy knows.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from jumar.core.text import escape, nearest
from jumar.core.toml import read_toml
from jumar.errors import ConfigError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from jumar.topk.config import RetrievalConfig, SelectionStrategyConfig, Settings

__all__ = [
    "SELECTIONS",
    "LoadedSelection",
    "SettingsWarning",
    "check_selection",
    "load_retrieval",
    "load_selection",
    "load_settings",
    "plain_value",
]

Place = tuple[str, ...]

SELECTIONS: Final = ("rule_selection", "scenario_selection", "memory_selection")
"""The tables of ``[pipeline.retrieval]`` that name a strategy."""

_RETRIEVAL: Final[Place] = ("pipeline", "retrieval")
_PREFIX: Final = "JUMAR_"
_TEXTS: Final = frozenset({"embedding_provider", "strategy", "scale", "on"})


class SettingsWarning(UserWarning):
    """A setting has no effect: it belongs to another strategy than the one that is in force."""


class LoadedSelection(NamedTuple):
    """One selection of the settings: which, its configuration, the limits that it shares with the others, and warnings."""

    name: str
    config: SelectionStrategyConfig
    max_k: int
    min_k: int
    said: tuple[str, ...]


class _Value(NamedTuple):
    """A value, and the file and line or the variable that it comes from."""

    value: Any
    origin: str


@dataclass(slots=True)
class _Layer:
    """What one source, or all of them, say: the keys of ``[pipeline.retrieval]``, and those of each selection below it."""

    keys: dict[str, _Value] = field(default_factory=dict[str, _Value])
    selections: dict[str, dict[str, _Value]] = field(default_factory=dict[str, dict[str, _Value]])


def load_settings(*files: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of ``files``, later ones before earlier ones, and of ``environ`` before all of them.

    Without files, those of the environment over the built-in ones. ``environ`` is ``os.environ`` unless it is given. What is
    dropped because the strategy changed is told by a :class:`SettingsWarning`. Errors: :class:`jumar.errors.ConfigError`, with
    the file and line or the variable, the key, and what is allowed.
    """
    from jumar.topk.config import PipelineConfig, Settings

    return Settings(pipeline=PipelineConfig(retrieval=_load_and_warn(files, environ)))


def load_retrieval(*files: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> RetrievalConfig:
    """Return ``load_settings(…).pipeline.retrieval``: what the functions of :mod:`jumar.topk.retrieval` take."""
    return _load_and_warn(files, environ)


def _load_and_warn(files: Sequence[str | os.PathLike[str]], environ: Mapping[str, str] | None) -> RetrievalConfig:
    config, messages, _ = _load(files, os.environ if environ is None else environ)
    for message in messages:
        warnings.warn(message, SettingsWarning, stacklevel=3)
    return config


def load_selection(
    file: str | os.PathLike[str], use: str | None = None, *, environ: Mapping[str, str] | None = None
) -> LoadedSelection:
    """Return one selection of ``file`` with ``environ`` over it: that called ``use``, else the only one that they name.

    Errors: those of :func:`load_settings`; :class:`jumar.errors.ConfigError` that names the choices where there are several.
    """
    config, said, given = _load([file], os.environ if environ is None else environ)
    where = escape(os.fspath(file))
    if use is not None and use not in SELECTIONS:
        raise ConfigError(f"--use {escape(use)}: no such selection{nearest(use, SELECTIONS)}; there are {', '.join(SELECTIONS)}")
    if use is None and len(given) != 1:
        what = f"{len(given)} selections" if given else "no selection"
        choices = " or ".join(f"--use {name}" for name in given or SELECTIONS)
        raise ConfigError(f"{where}: [pipeline.retrieval] has {what}: say which with {choices}")
    name = given[0] if use is None else use
    return LoadedSelection(name, getattr(config, name), config.max_k, config.min_k, tuple(said))


def _load(
    files: Sequence[str | os.PathLike[str]], environ: Mapping[str, str]
) -> tuple[RetrievalConfig, list[str], tuple[str, ...]]:
    """Return the settings, what is to be said about values without effect, and the selections that anything is said of."""
    layers = [_file_layer(Path(one)) for one in files]
    environment, said = _environment_layer(environ)
    merged = _Layer()
    for layer in (*layers, environment):
        merged.keys.update(layer.keys)
        for name, upper in layer.selections.items():
            merged.selections[name] = _over(name, merged.selections.get(name, {}), upper, said)
    for name, found in merged.selections.items():
        merged.selections[name] = _complete(name, found, environment.selections.get(name, {}), said)
    return _checked(merged), said, tuple(name for name in SELECTIONS if name in merged.selections)


# ---------------------------------------------------------------------------------------------------------------- layers


def _file_layer(path: Path) -> _Layer:
    if not path.exists():
        raise ConfigError(f"{escape(str(path))}: no such file; name one with a table [pipeline.retrieval], or none")
    data, text = read_toml(path, "")
    if "pipeline" not in data and isinstance(data.get("selection"), dict):
        raise ConfigError(
            f"{escape(str(path))}: this is a selection that `jumar topk tune` found; copy its [selection] into a file of "
            "settings, as [pipeline.retrieval.rule_selection], scenario_selection or memory_selection, or let tune write "
            "that with --table"
        )
    lines = _lines(text)

    def origin(*place: str) -> str:
        line = next((lines[place[:size]] for size in range(len(place), 0, -1) if place[:size] in lines), None)
        return escape(f"{path}:{line}" if line else str(path))

    current: dict[str, Any] = data
    for depth, name in enumerate(_RETRIEVAL):
        for key in current:
            if name not in current and SequenceMatcher(None, key, name).ratio() > 0.8:
                shown = escape(".".join((*_RETRIEVAL[:depth], key)))
                raise ConfigError(f"{origin(*_RETRIEVAL[:depth], key)}: unknown table '{shown}'{nearest(key, (name,))}")
        below: Any = current.get(name, {})
        if not isinstance(below, dict):
            raise ConfigError(f"{origin(*_RETRIEVAL[: depth + 1])}: '{'.'.join(_RETRIEVAL[: depth + 1])}' must be a table")
        current = cast("dict[str, Any]", below)
    return _layer({key: _Value(value, origin(*_RETRIEVAL, key)) for key, value in current.items()}, origin)


def _environment_layer(environ: Mapping[str, str]) -> tuple[_Layer, list[str]]:
    found, unread = _read_environment(environ)
    keys: dict[str, _Value] = {}
    selections: dict[str, dict[str, _Value]] = {}
    for setting in found:
        origin = escape(setting.variable)
        if len(setting.place) == 2 and setting.place[0] in SELECTIONS:
            selections.setdefault(setting.place[0], {})[setting.place[1]] = _Value(setting.value, origin)
        elif setting.place[0] in SELECTIONS and isinstance(setting.value, dict):
            table = cast("dict[str, Any]", setting.value)  # pyright: ignore[reportUnknownMemberType]
            selections.setdefault(setting.place[0], {}).update({key: _Value(value, origin) for key, value in table.items()})
        else:
            keys[".".join(setting.place)] = _Value(setting.value, origin)
    return _Layer(keys, selections), unread


def _layer(values: dict[str, _Value], origin: Any) -> _Layer:
    selections: dict[str, dict[str, _Value]] = {}
    for name in SELECTIONS:
        if name in values and isinstance(values[name].value, dict):
            table: dict[str, Any] = values.pop(name).value
            selections[name] = {key: _Value(value, origin(*_RETRIEVAL, name, key)) for key, value in table.items()}
    return _Layer(values, selections)


def _lines(text: str) -> dict[Place, int]:
    """Return the line of every table and key, as far as they stand at the beginning of a line."""
    found: dict[Place, int] = {}
    table: Place = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"^\s*\[([^\[\]]+)\]", line)
        if header:
            table = _parts(header[1])
            found.setdefault(table, number)
            continue
        key = re.match(r"^\s*([\w.\"' -]+?)\s*=", line)
        if key:
            found.setdefault((*table, *_parts(key[1])), number)
    return found


def _parts(dotted: str) -> Place:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


# ------------------------------------------------------------------------------------------------------- environment


class _Variable(NamedTuple):
    """One variable: its name, the place of its key below ``[pipeline.retrieval]``, one part or two, and its value."""

    variable: str
    place: tuple[str, ...]
    value: Any


def _read_environment(environ: Mapping[str, str]) -> tuple[list[_Variable], list[str]]:
    """Return what ``environ`` sets, tables before their keys, and a sentence on each variable that nobody reads.

    Names are read without regard to case. An empty variable sets nothing. A value is a number, ``true``, ``none`` or text; that
    of a table is a JSON object. Other tables of ``[pipeline]`` are passed over, as in a file. Errors:
    :class:`jumar.errors.ConfigError` for names that mean no place, with the way to write it, for two that differ in case alone
    and have different values, and for a table that is no JSON object.
    """
    found: list[_Variable] = []
    unread: list[str] = []
    spelt: dict[str, str] = {}
    for variable in sorted(environ, key=lambda name: (name.count("__"), name)):
        upper = variable.upper()
        if not upper.startswith(_PREFIX) or not environ[variable].strip():
            continue
        other = spelt.setdefault(upper, variable)
        if "__" in upper and environ[other].strip() != environ[variable].strip():
            raise ConfigError(f"{escape(other)} and {escape(variable)} are one setting with two values: unset one of them")
        parts = upper[len(_PREFIX) :].lower().split("__")
        if parts[0] == _RETRIEVAL[0] and len(parts) > 1:
            found.extend(_set_by(variable, parts, environ[variable].strip()))
        elif parts[0] == _RETRIEVAL[0] or parts[0].startswith("pipeline_"):
            raise ConfigError(f"{escape(variable)}: {_way()}")
        elif len(parts) > 1:
            hint = nearest(parts[0], (*_RETRIEVAL, *SELECTIONS))
            if hint:
                raise ConfigError(f"{escape(variable)}: {_way()}")
            unread.append(f"{escape(variable)} is read by nobody; {_way()}")
    return found, unread


def _way() -> str:
    return f"settings are written {_PREFIX}PIPELINE__RETRIEVAL__KEY, with two underscores between the levels"


def _set_by(variable: str, parts: list[str], text: str) -> list[_Variable]:
    """Return what one variable sets. ``parts`` start with ``pipeline``."""
    if parts[1] != _RETRIEVAL[1]:
        if not _misspelt(parts):
            return []
        raise ConfigError(
            f"{escape(variable)}: [pipeline] has no '{escape(parts[1])}'{nearest(parts[1], _RETRIEVAL[1:])}; {_way()}"
        )
    place = tuple(parts[2:])
    if not place:
        return [_Variable(variable, (key,), value) for key, value in _table(variable, text).items()]
    if len(place) == 1:
        return [_Variable(variable, place, _table(variable, text) if place[0] in SELECTIONS else _parsed(place[0], text))]
    if len(place) == 2 and place[0] in SELECTIONS:
        return [_Variable(variable, place, _parsed(place[1], text))]
    hint = nearest(place[0], sorted(SELECTIONS)) if place[0] not in SELECTIONS else ""
    raise ConfigError(f"{escape(variable)}: there is no table '{escape('.'.join(parts[:-1]))}'{hint}; {_way()}")


def _misspelt(parts: list[str]) -> bool:
    """Return whether a table of ``[pipeline]`` is likelier ours than somebody else's: nearly its name, or one of its keys."""
    from jumar.topk.config import RetrievalConfig

    return parts[1] in RetrievalConfig.model_fields or SequenceMatcher(None, parts[1], _RETRIEVAL[1]).ratio() > 0.8


def _table(variable: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ConfigError(f"{escape(variable)}: this is a table; give a JSON object, or set its keys: {escape(variable)}__KEY")
    return value  # pyright: ignore[reportUnknownVariableType]


def _parsed(key: str, text: str) -> Any:
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


# ---------------------------------------------------------------------------------------------------------------- merging


def _known(strategy: object) -> set[str]:
    from jumar.topk.config import CONFIGS

    return set(CONFIGS[strategy].model_fields) if isinstance(strategy, str) and strategy in CONFIGS else set()


def _known_to_some() -> set[str]:
    from jumar.topk.config import CONFIGS

    return {key for config in CONFIGS.values() for key in config.model_fields}


def _in_unit_of_scores(strategy: str) -> set[str]:
    from jumar.topk.base import similarity_defaults
    from jumar.topk.registry import strategy_class

    return set(similarity_defaults(strategy_class(strategy)))


def _over(name: str, lower: dict[str, _Value], upper: dict[str, _Value], said: list[str]) -> dict[str, _Value]:
    """Return ``lower`` with ``upper`` over it; when the strategy changes, without the keys that the new one does not know."""
    new = upper.get("strategy")
    if new is not None and lower and ("strategy" not in lower or lower["strategy"].value != new.value):
        known = _known(new.value)
        kept = {key: value for key, value in lower.items() if key in known}
        dropped = [key for key in lower if known and key not in known]
        if dropped:
            still = [key for key in kept if key not in {"strategy", *upper}]
            said.append(_dropped(name, new, {key: lower[key] for key in dropped}, still))
        lower = kept
    return {**lower, **upper}


def _dropped(name: str, new: _Value, dropped: dict[str, _Value], kept: list[str]) -> str:
    what = ", ".join(f"{escape(key)} ({value.origin})" for key, value in dropped.items())
    still = f"; still in force: {', '.join(kept)}" if kept else ""
    return f"{new.origin}: the strategy of {name} is now '{new.value}', which has no {what}: dropped{still}"


def _complete(name: str, found: dict[str, _Value], environment: dict[str, _Value], said: list[str]) -> dict[str, _Value]:
    """Return ``found`` with the built-in settings below it when nobody named a strategy, and without variables of other ones.

    A variable that the strategy does not know is ignored with a warning when the strategy comes from the environment, too, or
    when another strategy knows it; else it is a mistake, and left to be reported.
    """
    from jumar.topk.config import RetrievalConfig

    if "strategy" not in found:
        built_in = getattr(RetrievalConfig(), name).model_dump()
        if "scale" in found and found["scale"].value != built_in["scale"]:  # what is in the unit of similarities holds for them
            built_in = {key: value for key, value in built_in.items() if key not in _in_unit_of_scores(built_in["strategy"])}
        found = {**{key: _Value(value, "built in") for key, value in built_in.items()}, **found}
    strategy = found["strategy"].value
    known = _known(strategy)
    for key, value in environment.items():
        if not known or key in known or found.get(key) != value:
            continue
        if "strategy" in environment or key in _known_to_some():
            hint = nearest(key, sorted(known))
            said.append(f"{value.origin} is ignored: {name} has the strategy '{strategy}', which has no '{escape(key)}'{hint}")
            del found[key]
    return found


# --------------------------------------------------------------------------------------------------------------- checking


def check_selection(values: Mapping[str, Any]) -> SelectionStrategyConfig:
    """Return the configuration of one strategy. Errors: ValueError that says for each wrong key what is allowed."""
    from pydantic import TypeAdapter, ValidationError

    from jumar.topk.config import CONFIGS, SelectionStrategyConfig

    try:
        return TypeAdapter[Any](SelectionStrategyConfig).validate_python(
            {key: plain_value(value) for key, value in values.items()}
        )
    except ValidationError as error:
        strategy = str(values.get("strategy"))
        whose = f" for the strategy '{escape(strategy)}'"
        said: list[str] = []
        for detail in error.errors(include_url=False):
            key = str(detail["loc"][1]) if len(detail["loc"]) > 1 else ""
            name = "strategy" if detail["type"] == "union_tag_invalid" else escape(key)
            said.append(f"{name}{_said(detail, key, CONFIGS.get(strategy), whose)}".removeprefix(": "))
        raise ValueError("; ".join(said)) from None


def _checked(merged: _Layer) -> RetrievalConfig:
    from pydantic import ValidationError

    from jumar.topk.config import RetrievalConfig

    data: dict[str, Any] = {key: value.value for key, value in merged.keys.items()}
    for name, values in merged.selections.items():
        if name not in data:  # what is no table stays, in whichever layer it stands, and is refused
            data[name] = {key: plain_value(value.value) for key, value in values.items()}
    try:
        return RetrievalConfig.model_validate(data)
    except ValidationError as error:
        details = [one for one in error.errors(include_url=False) if one["type"] != "default_factory_not_called"]
        raise ConfigError("\n".join(_explain(one, merged) for one in details)) from None


def _explain(detail: ErrorDetails, merged: _Layer) -> str:
    from jumar.topk.config import CONFIGS, RetrievalConfig

    first, *rest = (str(part) for part in detail["loc"])
    if first in merged.selections and first not in merged.keys:
        values = merged.selections[first]
        strategy = str(values["strategy"].value)
        key = rest[1] if len(rest) > 1 else ("strategy" if detail["type"] == "union_tag_invalid" else "")
        model: Any = CONFIGS.get(strategy)
        place = (*_RETRIEVAL, first, key) if key else (*_RETRIEVAL, first)
        whose = f" for the strategy '{escape(strategy)}'"
        origin = values[key].origin if key in values else _origins(values)
    else:
        key, model, whose = first, RetrievalConfig, ""
        place = (*_RETRIEVAL, key)
        origin = merged.keys[key].origin if key in merged.keys else _origins(merged.keys)
    return f"{origin}: {escape('.'.join(place))}{_said(detail, key, model, whose)}"


def _said(detail: ErrorDetails, key: str, model: Any, whose: str) -> str:
    """Return what is wrong with a key and what is allowed, to be put after its name."""
    from jumar.topk.config import CONFIGS

    given = escape(repr(detail["input"]))[:60]
    if detail["type"] == "union_tag_invalid":
        name = str(detail["input"].get("strategy"))
        return f": unknown strategy '{escape(name)}'{nearest(name, sorted(CONFIGS))}; there are: {', '.join(sorted(CONFIGS))}"
    if detail["type"] == "extra_forbidden":
        known = sorted(model.model_fields)
        return f": unknown key{whose}{nearest(key, known)}; known here: {', '.join(known)}"
    if detail["type"] == "value_error":
        message = detail["msg"].removeprefix("Value error, ")
        return f" is {given}: {message}" if key else f": {message}"
    return f" is {given}: allowed: {_allowed(model, key)}" if key and model else f" is {given}: give a table"


def _origins(values: dict[str, _Value]) -> str:
    """Return where the values come from, for a mistake of several together."""
    return ", ".join(dict.fromkeys(value.origin for value in values.values())) or "built in"


_WORDS: Final[Mapping[str, str]] = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}


def _allowed(model: Any, key: str) -> str:
    """Return what a key may be, from its model's schema: ``numbers from 0.5 to 5``, ``whole numbers from 1``, ``'a', 'b'``."""
    properties: dict[str, Any] = model.model_json_schema()["properties"]
    return " or ".join(_described(properties.get(key, {})))


def _described(schema: dict[str, Any]) -> Iterator[str]:
    if "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from _described(one)
    elif "enum" in schema:
        yield ", ".join(f"'{value}'" for value in schema["enum"])
    elif schema.get("type") in {"number", "integer"}:
        noun = "whole numbers" if schema["type"] == "integer" else "numbers"
        bounds = [f"{word} {schema[bound]:g}" for bound, word in _WORDS.items() if bound in schema]
        yield " ".join([noun, " and ".join(bounds).replace(" and to ", " to ")]).strip()
    elif schema.get("type") == "null":
        yield "nothing"
    else:
        yield "text" if schema.get("type") == "string" else "a table"
