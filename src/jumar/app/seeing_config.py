"""``[hooks]`` and ``[telemetry]``: who else hears what the loop tells."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from jumar.errors import ConfigError
from jumar.loop.events import Listener
from jumar.loop.listeners import Hook
from jumar.text import escape

__all__ = ["HooksConfig", "TelemetryConfig", "load_listeners"]

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
    found: list[Listener] = [Hook(name, _loaded(name, base)) for name in hooks.python]
    if telemetry.otel:
        try:
            from jumar.adapters.opentelemetry import OpenTelemetryListener, environment_providers

            tracers, loggers = environment_providers()
        except ImportError as error:
            raise ConfigError(f"[telemetry] otel needs OpenTelemetry: pip install 'jumar[otel]' ({error})") from error
        found.append(
            OpenTelemetryListener(tracers, loggers, agent=telemetry.agent, provider=telemetry.provider, content=telemetry.content)
        )
    return found


def _loaded(reference: str, base: Path) -> Any:
    """Return the function ``module:function``, which is looked for in the configuration's directory first."""
    module, _, name = reference.partition(":")
    directory = str(base.resolve())
    sys.path.insert(0, directory)
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except Exception as error:
        why = escape(f"{type(error).__name__}: {error}")
        raise ConfigError(f"[hooks] python '{escape(reference)}' cannot be loaded: {why}") from error
    finally:
        sys.path.remove(directory)
    if not callable(found):
        raise ConfigError(f"[hooks] python '{escape(reference)}' is no function: it takes one event")
    return found
