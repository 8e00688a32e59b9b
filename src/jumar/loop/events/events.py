"""What a loop tells while it runs: one frozen event at a time.

A listener gets values, never the engine; what it raises is logged, does not stop the loop and keeps nothing from other listeners.
Every event has a ``type``, a name that does not change, and ``to_json``: what stands in ``events.jsonl``
(``docs/reference/events.md``). What is unknown is None.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

from jumar.core.record import dump, nothing
from jumar.core.text import escape
from jumar.model import IterationRecord, StopRules, Usage
from jumar.model.attempts import Purpose, Spend
from jumar.model.budget.pricing import Budget

_log = logging.getLogger("jumar.loop")

LATEST: Final = 31
"""How many of the iterations that a run finds it tells of when it starts; a loop may have ten thousand."""


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

    outcome: Mapping[str, Any] = field(default_factory=nothing)


Event = (
    LoopStarted | AttemptStarted | AttemptEnded | PhaseStarted | IterationRecorded | Waiting | Notice | StopDecided | LoopEnded
)
Listener = Callable[[Event], None]


def deliver(event: Event, listener: Listener | None) -> None:
    """Log ``event`` and hand it to ``listener``, which raises nothing: see :class:`Listeners`."""
    if isinstance(event, Notice):
        _log.info("jumar.loop_notice: %s", event.message)
    else:
        _log.debug("jumar.%s", event.type)
    if listener is not None:
        listener(event)


_SLOW: Final = 1.0  # seconds for one event, after which the person is told what the loop waited for


@dataclass(frozen=True, slots=True)
class Hook:
    """A listener of the person's own, with the name that messages call it by. What it returns is ignored."""

    name: str
    function: Callable[[Event], object]

    def __call__(self, event: Event) -> None:
        self.function(event)


class Listeners:
    """Hands each event to every listener, in their order.

    One that raises, whatever it is but ``KeyboardInterrupt``, is told of once, in a :class:`Notice` to the others; its traceback
    is logged each time, at the level debug. It goes on being called, because the next event may be one that it can take. One that
    needs more than a second for an event is told of once too. Nothing that it raises reaches the loop; one that never returns
    holds the loop up, as it runs in its thread.
    """

    def __init__(self, listeners: Iterable[Listener], *, time_source: Callable[[], float] = time.perf_counter) -> None:
        self._listeners = tuple(listeners)
        self._time = time_source
        self._told: set[tuple[int, str]] = set()

    def __call__(self, event: Event) -> None:
        """Hand ``event`` to all."""
        news: list[tuple[int, str]] = []
        for index, listener in enumerate(self._listeners):
            began = self._time()
            problem = self._hand(listener, event)
            seconds = self._time() - began
            if problem is not None and self._is_first(index, "failed"):
                news.append((index, f"{_name(listener)} failed and is passed over: {problem}"))
            elif seconds > _SLOW and self._is_first(index, "slow"):
                news.append(
                    (index, f"{_name(listener)} took {seconds:.1f} s for one event ({event.type}); the loop waits for it")
                )
        for index, message in news:
            for other, listener in enumerate(self._listeners):
                if other != index:
                    self._hand(listener, Notice(message=message))

    def _is_first(self, index: int, what: str) -> bool:
        first = (index, what) not in self._told
        self._told.add((index, what))
        return first

    def _hand(self, listener: Listener, event: Event) -> str | None:
        """Return what the listener raised, as one line; None when it took the event."""
        try:
            listener(event)
        except KeyboardInterrupt:
            raise  # a person's, where a caller handles no signals
        except BaseException as error:  # noqa: BLE001 - a panic of an extension module is no Exception, and not the loop's either
            _log.debug("jumar.listener_failed: %s", _name(listener), exc_info=True)
            return escape(f"{type(error).__name__}: {error}")
        return None


def _name(listener: Listener) -> str:
    if isinstance(listener, Hook):
        return f"the hook {escape(listener.name)}"
    return f"the listener {getattr(listener, '__qualname__', type(listener).__name__)}"
