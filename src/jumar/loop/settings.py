"""What one loop is told to do: plain frozen values, already checked, and the parts it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from jumar.model import SelectionCriteria, StopRules
from jumar.model.protocols import Generator, Scorer, Validator
from jumar.store.matching import ArtifactRules

__all__ = ["ApplyPolicy", "ContinueFrom", "Isolation", "LoopParts", "LoopSettings"]

ContinueFrom = Literal["previous", "best"]
Isolation = Literal["none", "copy"]
ApplyPolicy = Literal["auto", "never"]


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """One loop, without its programs.

    ``workdir`` is the person's own directory; with ``isolation = "copy"`` the loop works in a copy of it. ``weights`` is empty
    when all dimensions count the same. ``environment`` are further patterns for the allow-list. ``recorded`` is the
    configuration as it is kept in ``loop.json``; a resume with another one is refused.
    """

    loop_id: str
    workdir: Path
    objective: str = ""
    continue_from: ContinueFrom = "previous"
    isolation: Isolation = "none"
    apply: ApplyPolicy = "auto"
    artifacts: ArtifactRules = field(default_factory=ArtifactRules)
    weights: Mapping[str, float] = field(default_factory=_nothing)
    criteria: SelectionCriteria = field(default_factory=lambda: SelectionCriteria(threshold=None))
    stop: StopRules = field(default_factory=StopRules)
    environment: tuple[str, ...] = ()
    prompt_template: str | None = None
    completion_promise: str | None = None
    recorded: Mapping[str, Any] = field(default_factory=_nothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """The programs of one loop: what generates, what verifies, what scores."""

    generator: Generator
    validators: tuple[Validator, ...] = ()
    scorers: tuple[Scorer, ...] = ()
