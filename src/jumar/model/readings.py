"""Readings: write-once evaluations of an iteration that was acknowledged long before, made to see whether its score holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, get_args

from jumar.core.record import FileRecord
from jumar.model.checks import CheckResult
from jumar.model.records import ScoreReading, Status

__all__ = ["READING_KINDS", "Reading", "ReadingKind"]

ReadingKind = Literal["rescore", "confirm", "holdout"]
"""Of a finalist, before the choice; of the selected one, by the same scorers, after it; by the hold-out's scorers."""

READING_KINDS: Final[tuple[str, ...]] = get_args(ReadingKind)


def _nothing() -> Mapping[str, float]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(FileRecord):
    """One file of ``readings/``. ``score`` is 0–100, or None with ``status`` saying why; then it counts as made all the same.

    Only a ``rescore`` takes part in the choice. ``attempt`` is the one that paid for it, None when nothing was run.
    """

    number: int
    kind: ReadingKind
    iteration: int
    at: str
    attempt: int | None
    score: float | None
    status: Status = "ok"
    status_reason: str = ""
    dimensions: Mapping[str, float] = field(default_factory=_nothing)
    readings: tuple[ScoreReading, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    seconds: float = 0.0
