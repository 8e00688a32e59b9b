"""Attempts: every paid step leaves a reservation before it begins and an outcome after it ended."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, cast

from jumar.model.codec import FORMAT, Fields
from jumar.model.records import Usage

__all__ = ["OUTCOMES", "Attempt", "AttemptEnd", "AttemptStart", "Outcome", "Spend"]

Outcome = Literal["ok", "failed", "timeout", "interrupted", "lost"]
OUTCOMES: Final[tuple[str, ...]] = ("ok", "failed", "timeout", "interrupted", "lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStart:
    """Durable before the step is paid for. ``nonce`` ties attempt, pending snapshot and iteration together."""

    number: int
    iteration: int
    parent: int | None
    nonce: str
    started_at: str
    purpose: Literal["generate"] = "generate"
    pid: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, fields: Fields) -> AttemptStart:
        return cls(
            number=fields.integer("number"),
            iteration=fields.integer("iteration"),
            parent=fields.integer_or_none("parent"),
            nonce=fields.text("nonce"),
            started_at=fields.text("started_at"),
            purpose=cast("Literal['generate']", fields.choice("purpose", ("generate",))),
            pid=fields.integer("pid"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """How the step ended. ``lost`` was written later by somebody else: the process died and nothing is known.

    ``seconds`` is monotonic time; for a lost attempt it is unknown (None). ``notes`` say what of its usage report was not usable.
    """

    outcome: Outcome
    seconds: float | None
    ended_at: str
    exit_code: int | None = None
    detail: str = ""
    output_tail: str = ""
    usage: Usage = field(default_factory=Usage)
    commits: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        lists = {"commits": list(self.commits), "errors": list(self.errors), "notes": list(self.notes)}
        return {"format": FORMAT, **asdict(self), "usage": self.usage.to_json(), **lists}

    @classmethod
    def from_json(cls, fields: Fields) -> AttemptEnd:
        return cls(
            outcome=cast("Outcome", fields.choice("outcome", OUTCOMES)),
            seconds=fields.number_or_none("seconds"),
            ended_at=fields.text("ended_at"),
            exit_code=fields.integer_or_none("exit_code"),
            detail=fields.text("detail"),
            output_tail=fields.text("output_tail"),
            usage=Usage.from_json(fields.section("usage")),
            commits=fields.texts("commits"),
            errors=fields.texts("errors"),
            notes=fields.texts("notes"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A start with its end; ``end`` is None while it runs, or when its process died and nobody noticed yet."""

    start: AttemptStart
    end: AttemptEnd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What a loop used over all its resumes. ``tokens`` and ``cost_usd`` are None when an attempt that ended did not say."""

    iterations: int = 0
    seconds: float = 0.0
    tokens: int | None = 0
    cost_usd: float | None = 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
