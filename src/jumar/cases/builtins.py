"""The steps of a case that need no program: what each reads, what it writes, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from jumar.cases.judgement import write_feedback
from jumar.cases.records import CaseLimits
from jumar.model.pipeline import CaseStepContext


@dataclass(frozen=True, slots=True)
class Builtin:
    """One of them. ``write`` gets the step's context, the limits of the case, and where its judge writes each key."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    write: Callable[[CaseStepContext, CaseLimits, Mapping[str, str]], None]


BUILTINS: Final[Mapping[str, Builtin]] = MappingProxyType(
    {"feedback": Builtin(inputs=("judge",), outputs=("feedback",), write=write_feedback)}
)
