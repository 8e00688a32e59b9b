"""Readings: write-once evaluations of an iteration that was acknowledged long before, made to see whether its score holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, cast, get_args

from jumar.core.codec import FORMAT, Fields
from jumar.model.checks import CheckResult
from jumar.model.records import STATUSES, ScoreReading, Status

__all__ = ["READING_KINDS", "Reading", "ReadingKind"]

ReadingKind = Literal["rescore", "confirm", "holdout"]
"""Of a finalist, before the choice; of the selected one, by the same scorers, after it; by the hold-out's scorers."""

READING_KINDS: Final[tuple[str, ...]] = get_args(ReadingKind)


def _nothing() -> Mapping[str, float]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
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

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "number": self.number,
            "kind": self.kind,
            "iteration": self.iteration,
            "at": self.at,
            "attempt": self.attempt,
            "score": self.score,
            "status": self.status,
            "status_reason": self.status_reason,
            "dimensions": dict(self.dimensions),
            "readings": [reading.to_json() for reading in self.readings],
            "checks": [check.to_json() for check in self.checks],
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, fields: Fields) -> Reading:
        """Read one file. Errors: :class:`jumar.errors.StoreDamagedError` that names the field."""
        return cls(
            number=fields.integer("number"),
            kind=cast("ReadingKind", fields.choice("kind", READING_KINDS)),
            iteration=fields.integer("iteration"),
            at=fields.text("at"),
            attempt=fields.integer_or_none("attempt"),
            score=fields.number_or_none("score"),
            status=cast("Status", fields.choice("status", STATUSES)),
            status_reason=fields.text("status_reason"),
            dimensions=MappingProxyType(fields.numbers("dimensions")),
            readings=tuple(ScoreReading.from_json(item) for item in fields.sections("readings")),
            checks=tuple(CheckResult.from_json(item) for item in fields.sections("checks")),
            seconds=fields.number("seconds"),
        )
