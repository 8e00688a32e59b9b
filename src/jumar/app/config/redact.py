"""``[redact]``: which secrets are taken out of everything that jumar writes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from jumar.core.redaction import NOTHING, Redactor, environment_secrets, install, unfit
from jumar.errors import ConfigError

__all__ = ["RedactConfig", "install_recorded", "install_redaction", "redactor_of"]

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class RedactConfig(BaseModel):
    """``values_of`` names variables whose values are secrets besides those whose names say so; ``patterns`` are expressions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    values_of: list[Name] = Field(default_factory=list[str])
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
