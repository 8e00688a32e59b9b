"""What a command line says of a loop belongs to the loop, not to one run: a resume that does not give it keeps it.

Limits (:func:`limits_in_force`) stand apart from the other options (:func:`held`), because a file can change them under a loop.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from jumar.app.config.budget import BudgetConfig
from jumar.app.config.config import JumarConfig
from jumar.app.config.load import parse_config
from jumar.app.config.tables import option_of
from jumar.core.redaction import current, redacted_json
from jumar.core.rendering.figures import dollars
from jumar.core.text import escape
from jumar.errors import ConfigError
from jumar.loop.store.loop_reader import LoopReader

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
    anew = {*options.said, *(_INSTEAD[option] for option in options.said if option in _INSTEAD)}
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


def refuse_unseen(store: LoopReader | None, change: str, given: str) -> None:
    """Refuse a ``change`` of the file that allows more where a generator ran whose end jumar did not see: it may have made it.

    ``given`` is what a person types to allow it. Errors: :class:`jumar.errors.ConfigError`.
    """
    attempts = () if store is None else store.attempts()
    if any(attempt.end is None and attempt.start.purpose == "generate" for attempt in attempts):
        raise ConfigError(
            f"{change} since jumar was killed while an agent ran, which may have written that: put it back, or give {given} or "
            "--accept-changes if it was you"
        )


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
