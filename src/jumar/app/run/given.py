"""What a command line says of a loop belongs to the loop, not to one run: a resume that does not give it keeps it.

Limits (:func:`limits_in_force`) stand apart from the other options (:func:`held`), because a file can change them under a loop.
"""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from jumar.app.config.config import JumarConfig, parse_config
from jumar.app.config.tables import BudgetConfig, option_of
from jumar.core.redaction import current, redacted_json
from jumar.core.rendering.figures import dollars
from jumar.core.text import escape
from jumar.core.toml import model_in
from jumar.errors import ConfigError
from jumar.loop.decisions.select import left_open
from jumar.loop.generators.workdir import WORKDIR
from jumar.loop.report.read import setting
from jumar.loop.store.in_force import config_now
from jumar.loop.store.loop_reader import LoopReader

if TYPE_CHECKING:
    from jumar.app.config.config import JumarConfig


LIMITS: Final[Mapping[str, str]] = MappingProxyType(
    {key: option for key, info in BudgetConfig.model_fields.items() if (option := option_of(info)) is not None}
)
"""Keys of ``[budget]`` that the command line can set, and the option for each, as a keyword."""

_INSTEAD: Final = MappingProxyType({"target": "keep_going", "keep_going": "target"})
_SPELLED: Final = MappingProxyType(
    {"max_iterations": "-n", "objective": "-p", "checks": "--check", "scores": "--score", "environment": "--env"}
)
_SAID: Final = MappingProxyType({"limits": "command_line", "options": "said"})
"""The two records of a loop, and how each names what the command line said."""


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a command line ``said``, and what the ``file`` says in the same places: limits by their key, else by option."""

    said: Mapping[str, Any] = field(default_factory=_nothing)
    file: Mapping[str, Any] = field(default_factory=_nothing)

    @property
    def anew(self) -> frozenset[str]:
        """The options that were said, and what each of them stands in the place of."""
        return frozenset((*self.said, *(_INSTEAD[option] for option in self.said if option in _INSTEAD)))

    def document(self, record: Literal["limits", "options"]) -> dict[str, Any]:
        """Return what a loop keeps of it, without secrets."""
        return redacted_json({_SAID[record]: dict(self.said), "file": dict(self.file)}, current().redact)


def recorded(store: LoopReader, record: Literal["limits", "options"]) -> Given | None:
    """Return what was recorded last; None for a loop of a version that recorded nothing."""
    last = store.config.get(record)
    for decision in store.decisions():
        if decision.kind == "limits":
            last = decision.data.get(record, last)
        elif decision.kind == "accept":
            last = cast("Mapping[str, Any]", decision.data["config"]).get(record, last)
    if not isinstance(last, Mapping):
        return None
    document = cast("Mapping[str, Any]", last)
    said, file = _table(document.get(_SAID[record])), _table(document.get("file"))
    return Given(said=_figures(said), file=_figures(file)) if record == "limits" else Given(said=said, file=file)


def _table(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _figures(limits: Mapping[str, Any]) -> dict[str, Any]:
    return {key: limits[key] for key in LIMITS if isinstance(limits.get(key), int | float)}


def held(options: Given, store: LoopReader) -> dict[str, Any]:
    """Return the options of earlier command lines that hold for a resume with these ``options``.

    One is given anew by an option, or by an edit of its key in the file; ``--target`` and ``--keep-going`` exclude each
    other, and a ``-n`` that was reached is used up. Errors: :class:`ConfigError` where one of them holds a secret, which no
    record keeps.
    """
    before = recorded(store, "options")
    if before is None:
        return {}
    anew = set(options.anew)
    if before.said.get("max_iterations", 0) <= max(store.iteration_numbers(), default=0):
        anew.add("max_iterations")
    kept = {
        option: value
        for option, value in before.said.items()
        if option not in anew and options.file.get(option) == before.file.get(option)
    }
    secret = [option for option, value in kept.items() if "[redacted" in json.dumps(value)]
    if secret:
        raise ConfigError(
            f"loop '{escape(store.loop_id)}' was begun with {_spelled(secret[0])}, whose value holds a secret that no record "
            f"keeps: give {_spelled(secret[0])} again"
        )
    return kept


def words_of(options: Mapping[str, Any]) -> str:
    """Return options as they are typed: ``-n 5 --env SLOW``."""
    words: list[str] = []
    for option, value in options.items():
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
        words += [
            _spelled(option)
            if each is True
            else f"{_spelled(option)} {shlex.quote(f'{each:g}' if isinstance(each, float) else str(each))}"
            for each in values
        ]
    return escape(" ".join(words))


def _spelled(option: str) -> str:
    return _SPELLED.get(option, f"--{option.replace('_', '-')}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsInForce:
    """``config`` with the limits that hold; ``given``: what to record of where they come from; ``changes``: what is new in it."""

    config: JumarConfig
    given: Given
    changes: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def limits_in(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the limits that the content of a configuration file sets."""
    budget, stop = data.get("budget", {}), data.get("stop", {})
    found = {key: budget.get(key, stop.get(key) if key == "max_seconds" else None) for key in LIMITS}
    return {key: value for key, value in found.items() if value is not None}


def limits_in_force(config: JumarConfig, given: Given, store: LoopReader | None, *, accepting: bool = False) -> LimitsInForce:
    """Return the limits that hold for a run of the loop in ``store``, None for one that is not there yet.

    A limit from an earlier command line holds until another command line gives one, or somebody edits that key of the file.
    Errors: :class:`jumar.errors.ConfigError` when it leaves no room for what ``[budget]`` sets aside for an iteration, and when
    the file allows more than before, and a program of the loop may have written that after jumar was killed, unless the person
    is ``accepting`` changes.
    """
    before = None if store is None else recorded(store, "limits")
    if before is None:  # a new loop, or one of an earlier version
        changes = ("the limits in force are recorded",) if store is not None and (given.said or given.file) else ()
        return LimitsInForce(config=config, given=given, changes=changes)
    kept: dict[str, float] = {}
    notices: list[str] = []
    new: list[str] = []
    for key, option in ((key, _spelled(option)) for key, option in LIMITS.items()):
        told, earlier, now = given.said.get(key), before.said.get(key), given.file.get(key)
        edited = now != before.file.get(key)
        if edited:
            new.append(f"{key} in the configuration: {_value(key, before.file.get(key))} → {_value(key, now)}")
        if told is not None:
            if told != earlier:
                new.append(f"{option}: {_value(key, earlier)} → {_value(key, told)}")
        elif earlier is not None and (now is None or not edited):
            kept[key] = earlier
            notices.append(
                f"the limit of {_value(key, earlier)} given with {option} stands; to change it give another {option}, "
                f"or set [budget] {key} to another value"
            )
        elif edited:
            if not accepting:
                _refuse_loosened(store, key, before.file.get(key) if earlier is None else earlier, now)
            instead = "" if earlier is None else f", and the one given with {option} ({_value(key, earlier)}) no longer holds"
            was = _value(key, before.file.get(key))
            notices.append(f"[budget] {key} is {_value(key, now)} now (in the run before: {was}){instead}")
    return LimitsInForce(
        config=_with_limits(config, kept),
        given=Given(said={**kept, **given.said}, file=given.file),
        changes=tuple(new),
        notices=tuple(notices),
    )


def _refuse_loosened(store: LoopReader | None, key: str, was: float | None, now: float | None) -> None:
    if was is not None and (now is None or (now < was if key.startswith("reserve") else now > was)):
        given = f"{_spelled(LIMITS[key])} {'AMOUNT' if now is None else f'{now:g}'}"
        refuse_unseen(store, f"[budget] {key} was {_value(key, was)} and is {_value(key, now)}", given)


def refuse_unseen(store: LoopReader | None, change: str, given: str = "") -> None:
    """Refuse a ``change`` of the file where an agent worked that jumar did not see, or whose end it did not: it may have made it.

    ``given`` is an option by which a person may allow it too. Errors: :class:`jumar.errors.ConfigError`.
    """
    unseen = store is not None and _works_unseen(store)
    if store is not None and (unseen or was_cut_off(store)):
        when = "the last iteration was recorded, and the agent" if unseen else "jumar was killed while an agent ran, which"
        who = "let a person give" if unseen else "give"
        allowed = f"{f'{given} or ' if given else ''}--accept-changes{'' if unseen else ' if it was you'}"
        raise ConfigError(f"{change} since {when} may have written that: put it back, or {who} {allowed}")


def _works_unseen(store: LoopReader) -> bool:
    """Return whether an agent works between the runs that record it, and may have written any file meanwhile."""
    config = config_now(store)
    return setting(config, "generator", "builtin") == WORKDIR and setting(config, "loop", "given_by") == "agent"


def was_cut_off(store: LoopReader) -> bool:
    """Return whether a program of the loop ran when jumar was killed, as far as is on record."""
    return bool(store.pending_numbers()) or left_open(store) is not None


def last_settings(store: LoopReader) -> Mapping[str, Any]:
    """Return the configuration that the last run of a loop had, as it was recorded."""
    last: Mapping[str, Any] = store.config["run"]
    for decision in store.decisions():
        if decision.kind == "accept":
            last = decision.data["config"].get("run", last)
        elif decision.kind == "limits":
            last = decision.data.get("run", last)
    return last


def _with_limits(config: JumarConfig, limits: Mapping[str, float]) -> JumarConfig:
    if not limits:
        return config
    data = config.model_dump(mode="json", exclude_unset=True)
    data["budget"] = {**data.get("budget", {}), **limits}
    if "max_seconds" in limits:
        data.get("stop", {}).pop("max_seconds", None)
    return parse_config(data, "the configuration with the limits given to the loop before")


def _value(key: str, value: float | None) -> str:
    if value is None:
        return "none"
    if key.endswith("cost_usd"):
        return dollars(value, places=2 if round(value, 2) == value else 4)
    return f"{value:,.10g} s" if key == "max_seconds" else f"{value:,} tokens"


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
    for table, info in JumarConfig.model_fields.items():
        section = model_in(info.annotation)
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
