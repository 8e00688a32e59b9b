"""``[hooks]`` and ``[telemetry]``: who else hears what the loop tells."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from jumar.app.config.functions import load_function
from jumar.errors import ConfigError
from jumar.loop.events.events import Listener
from jumar.loop.events.listeners import Hook

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
    found: list[Listener] = [
        Hook(name, load_function(name, base, key="[hooks] python", takes="one event")) for name in hooks.python
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
