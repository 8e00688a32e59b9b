"""The part of ``[loop]`` that says where the steps run, and what is run around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from jumar.loop.hooks import Hook

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = ["Command", "Option", "PlaceConfig", "Seconds", "check_protect", "option_of"]

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
