"""The smaller tables of ``jumar.toml``, and what of ``[loop]`` says where the steps run and what is run around them."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from jumar.core.redaction import NOTHING, Redactor, environment_secrets, install, unfit
from jumar.core.text import escape
from jumar.errors import ConfigError
from jumar.loop.events.events import Hook as EventHook
from jumar.loop.events.events import Listener
from jumar.loop.hooks import Hook
from jumar.loop.settings import Retries
from jumar.model.selection import NoiseRules

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

Command = str | Annotated[list[str], Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Option(NamedTuple):
    """Marks a key that an option of ``jumar run`` sets, or adds to where it is a list; ``name`` is the option as a keyword."""

    name: str


def option_of(key: FieldInfo) -> str | None:
    """Return the name of the option that sets ``key``; None where there is none."""
    return next((each.name for each in key.metadata if isinstance(each, Option)), None)


class PlaceConfig(BaseModel):
    """Keys of ``[loop]``. A command is a string for the shell, or a list without one; times are seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    isolation: Annotated[Literal["none", "copy", "worktree", "sandbox"], Option("isolation")] = "none"
    final_output: Literal["auto", "full", "changed"] = "auto"
    network: bool = True
    sandbox_writable: list[str] = Field(default_factory=list)
    setup: Command | None = None
    setup_timeout: Seconds = 600
    recheck: Literal["clean", "strict", "off"] = "clean"
    reset: Command | None = None
    reset_timeout: Seconds = 120
    on_stop: Command | None = None
    on_stop_timeout: Seconds = 30

    def hook(self, name: Literal["setup", "reset", "on_stop"]) -> Hook | None:
        """Return one of the commands around the steps; None when there is none. Errors: :class:`jumar.errors.ConfigError`."""
        command: Command | None = getattr(self, name)
        return None if command is None else Hook(name=name, command=command, timeout=getattr(self, f"{name}_timeout"))


def check_protect(patterns: list[str]) -> list[str]:
    """Return ``protect`` when its patterns are usable. Errors: ``ValueError``."""
    from pathspec import GitIgnoreSpec

    for pattern in patterns:
        if not pattern.strip() or pattern.startswith("#"):
            raise ValueError("an empty pattern names nothing; give patterns in .gitignore syntax, such as 'tests/**'")
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError as error:
            raise ValueError(f"{pattern!r} is no pattern: {error}") from None
    return patterns


_DEFAULT: Final = NoiseRules()


class NoiseConfig(BaseModel):
    """``[noise]``: who is scored again after the last iteration, how often, and which differences count as none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rescore: Annotated[int, Field(ge=0, le=100, strict=True)] = _DEFAULT.rescore
    finalists: Annotated[int, Field(ge=1, le=1000, strict=True)] = _DEFAULT.finalists
    level: Annotated[float, Field(ge=0.5, lt=1, allow_inf_nan=False)] = _DEFAULT.level
    tie: Annotated[float, Field(ge=0, le=5, allow_inf_nan=False)] = _DEFAULT.tie

    def rules(self) -> NoiseRules:
        return NoiseRules(rescore=self.rescore, finalists=self.finalists, level=self.level, tie=self.tie)


_Times = Annotated[int, Field(ge=0, strict=True)]


class RetryConfig(BaseModel):
    """``[retry]``: further tries by kind of failure; 0 is none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    generator_failed: _Times = 0
    generator_timeout: _Times = 0
    rate_limited: _Times = 20
    broken: _Times = 1

    def retries(self) -> Retries:
        return Retries(
            generator_failed=self.generator_failed,
            generator_timeout=self.generator_timeout,
            rate_limited=self.rate_limited,
            broken=self.broken,
        )


Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class RedactConfig(BaseModel):
    """``values_of`` names variables whose values are secrets besides those whose names say so; ``patterns`` are expressions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    values_of: list[Variable] = Field(default_factory=list[str])
    patterns: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list[str])

    @field_validator("patterns")
    @classmethod
    def _are_expressions(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            why = unusable(pattern)
            if why is not None:
                raise ValueError(f"the pattern {pattern!r} {why}")
        return patterns


def unusable(pattern: str) -> str | None:
    """Return why ``pattern`` cannot say what a secret is; None when it can."""
    try:
        compiled = re.compile(pattern.encode(), re.MULTILINE)
    except (re.error, UnicodeEncodeError) as error:
        return f"is no regular expression: {error}"
    if compiled.search(b"") is not None:
        return "also matches nothing at all: say what the secret begins with"
    return None


def redactor_of(config: RedactConfig, environment: Mapping[str, str]) -> Redactor:
    """Return what ``config`` means where ``environment`` holds the values. Errors: :class:`jumar.errors.ConfigError`."""
    if not config.enabled:
        return NOTHING
    for name in config.values_of:
        value = environment.get(name)
        why = None if value is None else unfit(value)
        if why is not None:
            raise ConfigError(f"[redact] values_of: the value of {name} {why}; set a longer one, or take {name} off the list")
    return Redactor(environment_secrets(environment, config.values_of), patterns=config.patterns)


def install_redaction(config: RedactConfig) -> None:
    """Wire ``[redact]`` for this process. Errors: :class:`jumar.errors.ConfigError`."""
    install(redactor_of(config, os.environ))


def install_recorded(section: Mapping[str, Any]) -> None:
    """Wire the ``[redact]`` that a loop was recorded with. What cannot be used here is left out: a loop stays readable."""
    if section.get("enabled") is False:
        install(NOTHING)
        return
    patterns = [pattern for pattern in _texts(section.get("patterns")) if unusable(pattern) is None]
    install(Redactor(environment_secrets(os.environ, _texts(section.get("values_of"))), patterns=patterns))


def _texts(found: object) -> list[str]:
    return [item for item in cast("list[object]", found) if isinstance(item, str)] if isinstance(found, list) else []


PythonName = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
Name = Annotated[str, Field(min_length=1, pattern=r"\S")]


class HooksConfig(BaseModel):
    """``[hooks]``: functions that are called with each event."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    python: list[PythonName] = Field(default_factory=list[str])


class TelemetryConfig(BaseModel):
    """``[telemetry]``: spans and events for OpenTelemetry."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    otel: bool = False
    agent: Name = "generator"
    provider: Name = "unknown"
    content: bool = False


def load_listeners(hooks: HooksConfig, telemetry: TelemetryConfig, base: Path) -> list[Listener]:
    """Return the listeners that a configuration names. Errors: :class:`ConfigError` when one cannot be loaded."""
    found: list[Listener] = [
        EventHook(name, load_function(name, base, key="[hooks] python", takes="one event")) for name in hooks.python
    ]
    if telemetry.otel:
        try:
            from jumar.integrations.opentelemetry import OpenTelemetryListener, environment_providers

            tracers, loggers = environment_providers()
        except ImportError as error:
            raise ConfigError(f"[telemetry] otel needs OpenTelemetry: pip install 'jumar[otel]' ({error})") from error
        found.append(
            OpenTelemetryListener(tracers, loggers, agent=telemetry.agent, provider=telemetry.provider, content=telemetry.content)
        )
    return found


def load_function(reference: str, base: Path, *, key: str, takes: str) -> Any:
    """Return the function ``module:function``, which is looked for in ``base``, the configuration's directory, first.

    ``key`` is what the configuration calls it, ``takes`` completes "it takes". Errors: :class:`ConfigError` when the module
    cannot be imported, has no such name, or what it has is no function.
    """
    module, _, name = reference.partition(":")
    directory = str(base.resolve())
    sys.path.insert(0, directory)
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except Exception as error:
        why = escape(f"{type(error).__name__}: {error}")
        raise ConfigError(f"{key} '{escape(reference)}' cannot be loaded: {why}") from error
    finally:
        sys.path.remove(directory)
    if not callable(found):
        raise ConfigError(f"{key} '{escape(reference)}' is no function: it takes {takes}")
    return found
