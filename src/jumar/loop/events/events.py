"""What a loop tells while it runs: one frozen event at a time.

A listener gets values, never the engine; what it raises is logged and does not stop the loop. Every event has a ``type``, a name
that does not change, and ``to_json``: what stands in ``events.jsonl`` (``docs/reference/events.md``). What is unknown is None.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, get_args

from jumar.core.record import dump
from jumar.model import IterationRecord, StopRules, Usage
from jumar.model.attempts import Purpose, Spend
from jumar.model.budget.limits import Budget

__all__ = [
    "LATEST",
    "AttemptEnded",
    "AttemptStarted",
    "Event",
    "IterationRecorded",
    "Listener",
    "LoopEnded",
    "LoopStarted",
    "Notice",
    "PhaseStarted",
    "StopDecided",
    "Waiting",
    "deliver",
]

_log = logging.getLogger("jumar.loop")

LATEST: Final = 31
"""How many of the iterations that a run finds it tells of when it starts; a loop may have ten thousand."""


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


class _Told:
    """An event whose JSON is its type and its fields."""

    __slots__ = ()
    type: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """Return the event."""
        return {"type": self.type, **dump(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStarted:
    """The loop holds its lock and is about to work. ``resumed`` is True when there were iterations already.

    ``recorded`` is their number, ``latest`` the last of them (:data:`LATEST` at most, by number), ``best`` the number of the
    best so far, None when no score is valid. ``spend`` is what earlier runs of the loop spent.
    """

    type: ClassVar[str] = "loop_started"

    loop_id: str
    resumed: bool
    rules: StopRules
    recorded: int
    weights: Mapping[str, float]
    latest: tuple[IterationRecord, ...] = ()
    best: int | None = None
    budget: Budget | None = None
    spend: Spend = field(default_factory=Spend)

    def to_json(self) -> dict[str, Any]:
        """Return the event, without the records."""
        return {
            "type": self.type,
            "loop_id": self.loop_id,
            "resumed": self.resumed,
            "recorded": self.recorded,
            "rules": self.rules.to_json(),
            "budget": None if self.budget is None else self.budget.to_json(),
            "spend": self.spend.to_json(),
            "weights": dict(self.weights),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted(_Told):
    """The start of a paid step is durable. The reservation is None where nothing is known."""

    type: ClassVar[str] = "attempt_started"

    attempt: int
    iteration: int
    candidate: int | None = None
    purpose: Purpose = "generate"
    reserve_cost_usd: float | None = None
    reserve_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    """The end of a paid step is durable. ``seconds`` is monotonic time; ``failure`` is the failure's kind, None for none."""

    type: ClassVar[str] = "attempt_ended"

    attempt: int
    iteration: int
    outcome: str
    candidate: int | None = None
    purpose: Purpose = "generate"
    seconds: float | None = None
    usage: Usage = field(default_factory=Usage)
    failure: str | None = None
    detail: str = ""
    exit_code: int | None = None

    @property
    def tokens(self) -> int | None:
        """All tokens: as reported, else input and output together."""
        return self.usage.tokens

    def to_json(self) -> dict[str, Any]:
        """Return the event; ``detail`` may hold a line of the program's output."""
        return {
            "type": self.type,
            "attempt": self.attempt,
            "iteration": self.iteration,
            "candidate": self.candidate,
            "purpose": self.purpose,
            "outcome": self.outcome,
            "seconds": self.seconds,
            "cost_usd": self.usage.token_cost_usd,
            "tokens": self.tokens,
            "model": self.usage.model,
            "failure": self.failure,
            "detail": self.detail,
            "exit_code": self.exit_code,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStarted(_Told):
    """A step of iteration ``iteration`` begins."""

    type: ClassVar[str] = "phase_started"

    iteration: int
    candidate: int | None = None
    phase: Literal["generate", "verify", "score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationRecorded:
    """An iteration is acknowledged. ``best`` is the number of the best so far, None when no score is valid."""

    type: ClassVar[str] = "iteration_recorded"

    record: IterationRecord
    best: int | None
    spend: Spend

    def to_json(self) -> dict[str, Any]:
        """Return the event with the record's figures; the record itself is in the iteration's ``metrics.json``."""
        record = self.record
        return {
            "type": self.type,
            "iteration": record.iteration_number,
            "status": record.status,
            "quality_score": record.quality_score,
            "quality_delta": record.quality_delta,
            "verification_status": record.verification_status,
            "best": self.best,
            "seconds": None if record.execution_time_ms is None else record.execution_time_ms / 1000,
            "cost_usd": record.token_cost_usd,
            "tokens": record.tokens_used,
            "spend": self.spend.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(_Told):
    """The loop waits up to ``seconds`` before it goes on, and pays for nothing meanwhile."""

    type: ClassVar[str] = "waiting"

    why: Literal["rate_limited", "calls_per_hour", "budget"]
    seconds: float
    iteration: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(_Told):
    """Something that the person should know, and what to do about it."""

    type: ClassVar[str] = "notice"

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDecided(_Told):
    """No further iteration begins; what belongs to the end follows. ``reason`` is one of the stop reasons."""

    type: ClassVar[str] = "stop_decided"

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopEnded(_Told):
    """This run of the loop is over. ``outcome`` is the document of ``jumar run --json``."""

    type: ClassVar[str] = "loop_ended"

    outcome: Mapping[str, Any] = field(default_factory=_nothing)


Event = (
    LoopStarted | AttemptStarted | AttemptEnded | PhaseStarted | IterationRecorded | Waiting | Notice | StopDecided | LoopEnded
)
Listener = Callable[[Event], None]


def _refuse(event: Event, name: str, value: object = None) -> None:
    del value
    raise FrozenInstanceError(f"a {type(event).__name__} does not change: '{name}' can be neither set nor deleted")


# with slots, what a frozen dataclass has for this raises a TypeError about super() for a name that is no field
for _kind in get_args(Event):
    _kind.__setattr__ = _kind.__delattr__ = _refuse


def deliver(event: Event, listener: Listener | None) -> None:
    """Hand ``event`` to ``listener``; an exception there is logged and dropped: the loop is worth more than its display."""
    if isinstance(event, Notice):
        _log.info("jumar.loop_notice: %s", event.message)
    else:
        _log.debug("jumar.%s", event.type)
    if listener is None:
        return
    try:
        listener(event)
    except Exception:  # noqa: BLE001 - whatever a listener raises, it is not the loop's
        _log.exception("jumar.listener_failed")
