"""Limits given on the command line: they belong to the loop, not to one run, so a resume that says nothing keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from jumar.app.config.load import parse_config
from jumar.core.rendering.figures import dollars
from jumar.errors import ConfigError
from jumar.loop.store.loop_reader import LoopReader

if TYPE_CHECKING:
    from jumar.app.config.config import JumarConfig

__all__ = ["OPTIONS", "GivenLimits", "LimitsInForce", "limits_in", "limits_in_force", "refuse_unseen"]

OPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "max_cost_usd": "--max-cost",
        "reserve_cost_usd": "--reserve-cost",
        "max_tokens": "--max-tokens",
        "max_seconds": "--max-seconds",
    }
)
"""Keys of ``[budget]`` that the command line can set, and its option for each."""

_Limits = Mapping[str, float]


def _none() -> _Limits:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLimits:
    """Where a run's limits come from: what its command line gave, and what the file says without it. By key of ``[budget]``."""

    command_line: _Limits = field(default_factory=_none)
    file: _Limits = field(default_factory=_none)

    def to_json(self) -> dict[str, Any]:
        return {"command_line": dict(self.command_line), "file": dict(self.file)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsInForce:
    """``config`` with the limits that hold; ``given``: what to record of where they come from; ``changes``: what is new in it."""

    config: JumarConfig
    given: GivenLimits
    changes: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def limits_in(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the limits that the content of a configuration file sets."""
    budget, stop = data.get("budget", {}), data.get("stop", {})
    found = {key: budget.get(key, stop.get(key) if key == "max_seconds" else None) for key in OPTIONS}
    return {key: value for key, value in found.items() if value is not None}


def limits_in_force(
    config: JumarConfig, given: GivenLimits, store: LoopReader | None, *, accepting: bool = False
) -> LimitsInForce:
    """Return the limits that hold for a run of the loop in ``store``, None for one that is not there yet.

    A limit from an earlier command line holds until another command line gives one, or somebody edits that key of the file.
    Errors: :class:`jumar.errors.ConfigError` when it leaves no room for what ``[budget]`` sets aside for an iteration, and when
    the file allows more than before, and a program of the loop may have written that after jumar was killed, unless the person
    is ``accepting`` changes.
    """
    before = None if store is None else _recorded(store)
    if before is None:  # a new loop, or one of an earlier version
        changes = ("the limits in force are recorded",) if store is not None and (given.command_line or given.file) else ()
        return LimitsInForce(config=config, given=given, changes=changes)
    kept: dict[str, float] = {}
    notices: list[str] = []
    new: list[str] = []
    for key, option in OPTIONS.items():
        told, earlier, now = given.command_line.get(key), before.command_line.get(key), given.file.get(key)
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
        config=_with(config, kept),
        given=GivenLimits(command_line={**kept, **given.command_line}, file=given.file),
        changes=tuple(new),
        notices=tuple(notices),
    )


def _refuse_loosened(store: LoopReader | None, key: str, was: float | None, now: float | None) -> None:
    if was is not None and (now is None or (now < was if key.startswith("reserve") else now > was)):
        given = f"{OPTIONS[key]} {'AMOUNT' if now is None else f'{now:g}'}"
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


def _with(config: JumarConfig, limits: _Limits) -> JumarConfig:
    if not limits:
        return config
    data = config.model_dump(mode="json", exclude_unset=True)
    data["budget"] = {**data.get("budget", {}), **limits}
    if "max_seconds" in limits:
        data.get("stop", {}).pop("max_seconds", None)
    return parse_config(data, "the configuration with the limits given to the loop before")


def _recorded(store: LoopReader) -> GivenLimits | None:
    """Return what was recorded last; None when nothing was, as for a loop of an earlier version."""
    last = store.config.get("limits")
    for decision in store.decisions():
        if decision.kind == "limits":
            last = decision.data.get("limits")
        elif decision.kind == "accept":
            last = cast("Mapping[str, Any]", decision.data["config"]).get("limits", last)
    if not isinstance(last, Mapping):
        return None
    held = cast("Mapping[str, Any]", last)
    return GivenLimits(command_line=_figures(held.get("command_line")), file=_figures(held.get("file")))


def _figures(section: object) -> dict[str, float]:
    given: Mapping[str, Any] = cast("Mapping[str, Any]", section) if isinstance(section, Mapping) else {}
    return {key: given[key] for key in OPTIONS if isinstance(given.get(key), int | float)}


def _value(key: str, value: float | None) -> str:
    if value is None:
        return "none"
    if key.endswith("cost_usd"):
        return dollars(value, places=2 if round(value, 2) == value else 4)
    return f"{value:,.10g} s" if key == "max_seconds" else f"{value:,} tokens"
