"""``[pipeline.retrieval]`` from TOML files and the environment, in layers; each value keeps where it came from.

What comes later goes before what came earlier: the built-in settings, the files in their order, the environment. A layer that
names another strategy than the one below takes over only the keys that the new strategy knows.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from jumar.core.text import escape, nearest
from jumar.core.toml import read_toml
from jumar.errors import ConfigError
from jumar.topk.base import SelectionStrategy, parameters, similarity_defaults
from jumar.topk.strategies import STRATEGIES, create_selection_strategy

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from jumar.topk.config import RetrievalConfig, SelectionStrategyConfig, Settings

Place = tuple[str, ...]

SELECTIONS: Final = ("rule_selection", "scenario_selection", "memory_selection")
"""The tables of ``[pipeline.retrieval]`` that name a strategy."""

_RETRIEVAL: Final[Place] = ("pipeline", "retrieval")
_PREFIX: Final = "JUMAR_"
_TEXTS: Final = frozenset({"embedding_provider", "strategy", "scale", "on"})


class SettingsWarning(UserWarning):
    """A setting has no effect: it belongs to another strategy than the one that is in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A strategy with its limits; ``warnings`` are about settings without effect."""

    strategy: SelectionStrategy
    max_k: int
    min_k: int
    warnings: tuple[str, ...] = ()


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
) -> Selection:
    """Return one selection of ``file`` with ``environ`` over it: that called ``use``, else the only one that they name.

    Errors: those of :func:`load_settings`; :class:`jumar.errors.ConfigError` that names the choices where there are several.
    """
    config, messages, given = _load([file], os.environ if environ is None else environ)
    where = escape(os.fspath(file))
    if use is not None and use not in SELECTIONS:
        raise ConfigError(f"--use {escape(use)}: no such selection{nearest(use, SELECTIONS)}; there are {', '.join(SELECTIONS)}")
    if use is None and len(given) != 1:
        what = f"{len(given)} selections" if given else "no selection"
        choices = " or ".join(f"--use {name}" for name in given or SELECTIONS)
        raise ConfigError(f"{where}: [pipeline.retrieval] has {what}: say which with {choices}")
    name = given[0] if use is None else use
    strategy = create_selection_strategy(getattr(config, name))
    return Selection(strategy=strategy, max_k=config.max_k, min_k=config.min_k, warnings=tuple(messages))


def _load(
    files: Sequence[str | os.PathLike[str]], environ: Mapping[str, str]
) -> tuple[RetrievalConfig, list[str], tuple[str, ...]]:
    """Return the settings, messages about values without effect, and the selections that some layer names."""
    layers = [_file_layer(Path(file)) for file in files]
    environment, messages = _environment_layer(environ)
    merged = _Layer()
    for layer in (*layers, environment):
        merged.keys.update(layer.keys)
        for name, upper in layer.selections.items():
            merged.selections[name] = _over(name, merged.selections.get(name, {}), upper, messages)
    for name, values in merged.selections.items():
        merged.selections[name] = _complete(name, values, environment.selections.get(name, {}), messages)
    return _checked(merged), messages, tuple(name for name in SELECTIONS if name in merged.selections)


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
    layer = _Layer()
    for key, value in current.items():
        _put(layer, key, value, lambda *place: origin(*_RETRIEVAL, *place))
    return layer


def _put(layer: _Layer, key: str, value: Any, origin: Callable[..., str]) -> None:
    """Add one key of ``[pipeline.retrieval]``; a selection that is a table is added key by key. ``origin`` gets these names."""
    if key in SELECTIONS and isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        layer.selections.setdefault(key, {}).update({name: _Value(one, origin(key, name)) for name, one in table.items()})
    else:
        layer.keys[key] = _Value(value, origin(key))


def _lines(text: str) -> dict[Place, int]:
    """Return the line of every table and key, as far as they stand at the beginning of a line."""
    lines: dict[Place, int] = {}
    table: Place = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"^\s*\[([^\[\]]+)\]", line)
        if header:
            table = _parts(header[1])
            lines.setdefault(table, number)
            continue
        key = re.match(r"^\s*([\w.\"' -]+?)\s*=", line)
        if key:
            lines.setdefault((*table, *_parts(key[1])), number)
    return lines


def _parts(dotted: str) -> Place:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


# ------------------------------------------------------------------------------------------------------- environment


def _environment_layer(environ: Mapping[str, str]) -> tuple[_Layer, list[str]]:
    """Return what ``environ`` sets, the keys of a table before the table, and a sentence on each variable that nobody reads.

    Names are read without regard to case. An empty variable sets nothing. A value is a number, ``true``, ``none`` or text; that
    of a table is a JSON object. Other tables of ``[pipeline]`` are passed over, as in a file. Errors:
    :class:`jumar.errors.ConfigError` for names that mean no place, with the way to write it, for two that differ in case alone
    and have different values, and for a table that is no JSON object.
    """
    layer = _Layer()
    unread: list[str] = []
    spelt: dict[str, str] = {}
    for variable in sorted(environ, key=lambda name: (name.count("__"), name)):
        upper, where, text = variable.upper(), escape(variable), environ[variable].strip()
        if not upper.startswith(_PREFIX) or not text:
            continue
        other = spelt.setdefault(upper, variable)
        if "__" in upper and environ[other].strip() != text:
            raise ConfigError(f"{escape(other)} and {where} are one setting with two values: unset one of them")
        pipeline, *parts = upper[len(_PREFIX) :].lower().split("__")
        if pipeline == _RETRIEVAL[0] and parts:
            if parts[0] == _RETRIEVAL[1]:
                _set_by(layer, where, parts[1:], text)
            elif _misspelt(parts[0]):
                raise ConfigError(f"{where}: [pipeline] has no '{escape(parts[0])}'{nearest(parts[0], _RETRIEVAL[1:])}; {_WAY}")
        elif pipeline == _RETRIEVAL[0] or pipeline.startswith("pipeline_") or _near(pipeline, parts):
            raise ConfigError(f"{where}: {_WAY}")
        elif parts:
            unread.append(f"{where} is read by nobody; {_WAY}")
    return layer, unread


def _near(table: str, parts: list[str]) -> bool:
    """Return whether the first word of a variable is nearly that of a table of ours."""
    return bool(parts and nearest(table, (*_RETRIEVAL, *SELECTIONS)))


_WAY: Final = f"settings are written {_PREFIX}PIPELINE__RETRIEVAL__KEY, with two underscores between the levels"


def _set_by(layer: _Layer, where: str, place: list[str], text: str) -> None:
    """Add what one variable sets, at its place below ``[pipeline.retrieval]``."""
    if len(place) < 2:
        values = _table(where, text) if not place or place[0] in SELECTIONS else _parsed(place[0], text)
        for key, value in (values if not place else {place[0]: values}).items():
            _put(layer, key, value, lambda *_: where)
    elif len(place) == 2 and place[0] in SELECTIONS:
        _put(layer, place[0], {place[1]: _parsed(place[1], text)}, lambda *_: where)
    else:
        hint = nearest(place[0], sorted(SELECTIONS)) if place[0] not in SELECTIONS else ""
        table = escape(".".join((*_RETRIEVAL, *place[:-1])))
        raise ConfigError(f"{where}: there is no table '{table}'{hint}; {_WAY}")


def _misspelt(table: str) -> bool:
    """Return whether a table of ``[pipeline]`` is likelier ours than somebody else's: nearly its name, or one of its keys."""
    from jumar.topk.config import RetrievalConfig

    return table in RetrievalConfig.model_fields or SequenceMatcher(None, table, _RETRIEVAL[1]).ratio() > 0.8


def _table(where: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: this is a table; give a JSON object, or set its keys: {where}__KEY")
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


def _keys_of(strategy: object) -> set[str]:
    """Return the keys of a selection by ``strategy``; none for one that there is not."""
    return {"strategy", *parameters(STRATEGIES[strategy])} if isinstance(strategy, str) and strategy in STRATEGIES else set()


def _over(name: str, lower: dict[str, _Value], upper: dict[str, _Value], messages: list[str]) -> dict[str, _Value]:
    """Return ``lower`` with ``upper`` over it; when the strategy changes, without the keys that the new one does not know."""
    new = upper.get("strategy")
    if new is not None and lower and ("strategy" not in lower or lower["strategy"].value != new.value):
        keys = _keys_of(new.value)
        kept = {key: value for key, value in lower.items() if key in keys}
        dropped = [key for key in lower if keys and key not in keys]
        if dropped:
            still = [key for key in kept if key not in {"strategy", *upper}]
            what = ", ".join(f"{escape(key)} ({lower[key].origin})" for key in dropped)
            beside = f"; still in force: {', '.join(still)}" if still else ""
            messages.append(f"{new.origin}: the strategy of {name} is now '{new.value}', which has no {what}: dropped{beside}")
        lower = kept
    return {**lower, **upper}


def _complete(name: str, values: dict[str, _Value], environment: dict[str, _Value], messages: list[str]) -> dict[str, _Value]:
    """Return ``values`` with the built-in settings below it when nobody named a strategy, and without variables of other ones.

    A variable that the strategy does not know is ignored with a warning when the strategy comes from the environment, too, or
    when another strategy knows it; else it is a mistake, and left to be reported.
    """
    from jumar.topk.config import RetrievalConfig

    if "strategy" not in values:
        built_in = getattr(RetrievalConfig(), name).model_dump()
        if "scale" in values and values["scale"].value != built_in["scale"]:
            for key in similarity_defaults(STRATEGIES[built_in["strategy"]]):
                del built_in[key]
        values = {**{key: _Value(value, "built in") for key, value in built_in.items()}, **values}
    strategy = values["strategy"].value
    keys = _keys_of(strategy)
    for key, value in environment.items():
        if not keys or key in keys or values.get(key) != value:
            continue
        if "strategy" in environment or any(key in _keys_of(other) for other in STRATEGIES):
            hint = nearest(key, sorted(keys))
            messages.append(
                f"{value.origin} is ignored: {name} has the strategy '{strategy}', which has no '{escape(key)}'{hint}"
            )
            del values[key]
    return values


# --------------------------------------------------------------------------------------------------------------- checking


def check_selection(values: Mapping[str, Any]) -> SelectionStrategyConfig:
    """Return the configuration of one strategy. Errors: ValueError that says for each wrong key what is allowed."""
    from pydantic import TypeAdapter, ValidationError

    from jumar.topk.config import SelectionStrategyConfig

    try:
        return TypeAdapter[Any](SelectionStrategyConfig).validate_python(
            {key: plain_value(value) for key, value in values.items()}
        )
    except ValidationError as error:
        problems = (_of_selection(detail, str(values.get("strategy")), detail["loc"][1:]) for detail in error.errors())
        raise ValueError("; ".join(f"{escape(key)}{problem}".removeprefix(": ") for key, problem in problems)) from None


def _of_selection(detail: ErrorDetails, strategy: str, place: Sequence[int | str]) -> tuple[str, str]:
    """Return which key of a selection is wrong, empty for several together, and what is wrong with it."""
    from jumar.topk.config import CONFIGS

    key = "strategy" if detail["type"] == "union_tag_invalid" else str(place[0]) if place else ""
    return key, _problem(detail, key, CONFIGS.get(strategy), f" for the strategy '{escape(strategy)}'")


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
        details = [detail for detail in error.errors(include_url=False) if detail["type"] != "default_factory_not_called"]
        raise ConfigError("\n".join(_explain(detail, merged) for detail in details)) from None


def _explain(detail: ErrorDetails, merged: _Layer) -> str:
    from jumar.topk.config import RetrievalConfig

    first, *rest = (str(part) for part in detail["loc"])
    if first in merged.selections and first not in merged.keys:
        values = merged.selections[first]
        key, problem = _of_selection(detail, str(values["strategy"].value), rest[1:])
        place = (first, key) if key else (first,)
    else:
        key, values, place = first, merged.keys, (first,)
        problem = _problem(detail, key, RetrievalConfig, "")
    # a mistake of several values together has the origins of all
    origins = [values[key].origin] if key in values else dict.fromkeys(value.origin for value in values.values())
    return f"{', '.join(origins) or 'built in'}: {escape('.'.join((*_RETRIEVAL, *place)))}{problem}"


def _problem(detail: ErrorDetails, key: str, model: Any, whose: str) -> str:
    """Return what is wrong with a key and what is allowed, to be put after its name."""
    from jumar.topk.config import CONFIGS

    given = escape(repr(detail["input"]))[:60]
    if detail["type"] == "union_tag_invalid":
        name = str(detail["input"].get("strategy"))
        return f": unknown strategy '{escape(name)}'{nearest(name, sorted(CONFIGS))}; there are: {', '.join(sorted(CONFIGS))}"
    if detail["type"] == "extra_forbidden":
        keys = sorted(model.model_fields)
        return f": unknown key{whose}{nearest(key, keys)}; known here: {', '.join(keys)}"
    if detail["type"] == "value_error":
        message = detail["msg"].removeprefix("Value error, ")
        return f" is {given}: {message}" if key else f": {message}"
    return f" is {given}: allowed: {_allowed(model, key)}" if key and model else f" is {given}: give a table"


_WORDS: Final[Mapping[str, str]] = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}


def _allowed(model: Any, key: str) -> str:
    """Return what a key may be, from its model's schema: ``numbers from 0.5 to 5``, ``whole numbers from 1``, ``'a', 'b'``."""
    properties: dict[str, Any] = model.model_json_schema()["properties"]
    return " or ".join(_described(properties.get(key, {})))


def _described(schema: dict[str, Any]) -> Iterator[str]:
    if "anyOf" in schema:
        for choice in schema["anyOf"]:
            yield from _described(choice)
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
