"""A loop as it is now, as values: what `jumar status`, `jumar watch` and `jumar` alone say of it. Nothing here reads a file.

:class:`LoopStatus` is the read model; :class:`Timeline` tells from the events which step runs since when, and where time went.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, cast

from jumar.core.lock import Holder
from jumar.core.rendering.figures import duration
from jumar.core.text import escape
from jumar.loop.report.judged import decided_document, learned_document
from jumar.model import IterationRecord, IterationView, StopDecision
from jumar.model.attempts import Spend
from jumar.model.budget import budget_left
from jumar.model.budget.pricing import Budget

LIVE: Final = frozenset({"running", "waiting"})
PHASES: Final = ("generate", "verify", "score", "wait")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A phase that began and has not ended: ``since`` is UTC, ``iteration`` None for a wait of the whole loop."""

    phase: str
    iteration: int | None
    candidate: int | None
    since: str
    detail: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The iteration that stands once a loop has ended.

    ``score`` (0–100) is the mean of ``readings`` readings, by which it was selected; ``start`` that of the start state, None
    without one. ``by`` is the person who chose it, empty where the rules did. ``highest`` says why the highest score in the
    loop is not it; empty when nothing needs to be said.
    """

    record: IterationRecord
    score: float | None
    readings: int = 1
    start: float | None = None
    by: str = ""
    highest: str = ""

    @property
    def notes(self) -> list[str]:
        """What is to be said of its score, safe for a terminal."""
        notes = [f"mean of {self.readings} readings"] if self.readings > 1 else []
        return [*notes, f"selected by {escape(self.by)}"] if self.by else notes

    def to_json(self) -> dict[str, Any]:
        rest = {"quality_score": self.score, "readings": self.readings, "by": self.by or None, "highest": self.highest or None}
        return {**_short(self.record), **rest}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStatus:
    """What there is to see of a loop now.

    ``state`` is one of ``new, running, waiting, finished, interrupted, dead, tracked, damaged``; of a damaged one only its
    ``problems`` are known. ``holder`` is who runs it, None when nobody does; ``stop`` why it ended. ``views`` are all
    iterations, ``rows`` the records of the last few with the one before them, ``best`` and ``last`` two of the records: the best
    so far, which is the one with the highest score once one is chosen, and the last one. ``chosen`` is None while the loop runs,
    and when nothing was decided. ``running`` are the phases that run, each with its seconds so far. ``budget`` is the limits,
    ``passes`` the limit on iterations; ``reserved_…`` is the part of ``spend`` that is set aside for attempts in flight.
    ``phase_seconds`` is where the time went, ``partial`` whether older events are gone. ``log`` is the end of ``log_name``.
    """

    loop_id: str
    state: str
    directory: str = ""
    detail: str = ""
    holder: Holder | None = None
    stop: StopDecision | None = None
    objective: str = ""
    views: tuple[IterationView, ...] = ()
    rows: tuple[IterationRecord, ...] = ()
    best: IterationRecord | None = None
    last: IterationRecord | None = None
    chosen: Chosen | None = None
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    threshold: float | None = None
    running: tuple[tuple[Running, float | None], ...] = ()
    spend: Spend = field(default_factory=Spend)
    budget: Budget = field(default_factory=Budget)
    passes: int | None = None
    reserved_cost_usd: float | None = None
    reserved_tokens: int | None = None
    phase_seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    partial: bool = False
    failures: Mapping[str, int] = field(default_factory=dict[str, int])
    log_name: str = ""
    log: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    last_event_at: str | None = None

    @property
    def live(self) -> bool:
        """Whether it runs, or waits to."""
        return self.state in LIVE

    @property
    def state_text(self) -> str:
        """The state for people: whoever ended it, a loop that can be resumed is interrupted."""
        return "interrupted" if self.state == "dead" else self.state

    @property
    def resumable(self) -> bool:
        """Whether nothing but a run is needed to resume it."""
        return self.state in {"new", "interrupted", "dead"}

    @property
    def done(self) -> int:
        """How many iterations there are, the start state not counted."""
        return sum(view.number > 0 for view in self.views)

    @property
    def passes_left(self) -> int | None:
        """How many iterations are left below the limit."""
        return None if self.passes is None else max(0, self.passes - self.done)

    @property
    def now_text(self) -> str:
        """What runs now: ``generate iteration 3 for 12s``; empty when nothing does."""
        if not self.running:
            return ""
        step, seconds = self.running[-1]
        since = ", cut off" if self.state == "dead" else "" if seconds is None else f" for {duration(round(seconds, 3))}"
        return f"{step.phase}{'' if step.iteration is None else f' iteration {step.iteration}'}{since}"

    @property
    def settled_spend(self) -> Spend:
        """What was spent without what the ledger charges for attempts in flight: that is reserved."""
        cost, tokens, spend = self.reserved_cost_usd or 0.0, self.reserved_tokens or 0, self.spend
        return replace(
            spend,
            assumed_cost_usd=max(0.0, spend.assumed_cost_usd - cost),
            assumed_tokens=max(0, spend.assumed_tokens - tokens),
            cost_usd=None if spend.cost_usd is None else max(0.0, spend.cost_usd - cost),
            tokens=None if spend.tokens is None else max(0, spend.tokens - tokens),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``jumar status --json``."""
        known = {"loop_id": self.loop_id, "directory": self.directory, "state": self.state}
        if self.state == "damaged":
            return {**known, "problems": list(self.problems)}
        step, seconds = self.running[-1] if self.running else (None, None)
        return {
            **known,
            "detail": self.detail,
            "pid": self.holder and self.holder.pid,
            "command": self.holder and self.holder.command,
            "iteration": step and step.iteration,
            "phase": step and step.phase,
            "since": step and step.since,
            "seconds": None if seconds is None else round(seconds, 3),
            "running": [{**asdict(step), "elapsed": seconds} for step, seconds in self.running],
            "iterations": self.done,
            "best": self.best and _short(self.best),
            "last": self.last and _short(self.last),
            "learned": learned_document(self.last),
            "auto": decided_document(self.last),
            "chosen": self.chosen and self.chosen.to_json(),
            "stop_reason": self.stop and self.stop.reason,
            "stop_detail": self.stop and self.stop.detail,
            "spend": self.spend.to_json(),
            "budget": {**self.budget.to_json(), "passes": self.passes},
            "budget_left": {**budget_left(self.spend, self.budget), "passes": self.passes_left},
            "reserved": {"cost_usd": self.reserved_cost_usd, "tokens": self.reserved_tokens},
            "phase_seconds": {name: round(seconds, 3) for name, seconds in self.phase_seconds.items()},
            "failures": dict(self.failures),
            "resumable": self.resumable,
            "problems": list(self.problems),
            "last_event_at": self.last_event_at,
        }


def _short(record: IterationRecord) -> dict[str, Any]:
    return {
        "iteration": record.iteration_number,
        "quality_score": record.quality_score,
        "verification_status": record.verification_status,
        "status": record.status,
        "dimensions": dict(record.dimensions),
    }


# ------------------------------------------------------------------------------------------------------------- the events


class Timeline:
    """Folds events, as they stand in ``events.jsonl``, in their order. Unknown ones, and odd fields, are passed over.

    ``seconds`` are those of the phases that ended, over every candidate and run; ``first`` is the number of the first event that
    was seen: above 1, older ones are gone and the sums begin later.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self.first: int | None = None
        self.last_at: str | None = None
        self.rules: Mapping[str, Any] = {}
        self.budget: Mapping[str, Any] = {}
        self.notices: list[str] = []
        self._run = ""
        self._open: dict[int | None, tuple[Running, float]] = {}

    def add(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Take in further events."""
        for event in events:
            self._add(event)

    def running(self) -> tuple[Running, ...]:
        """Return the phases that run now, by iteration; of a run that died, those that ran when it did."""
        return tuple(self._open[key][0] for key in sorted(self._open, key=lambda key: -1 if key is None else key))

    def _add(self, event: Mapping[str, Any]) -> None:
        if self.first is None:
            self.first = event.get("seq")
        run, now = str(event.get("run", "")), _number(event.get("monotonic"))
        if run != self._run:  # the clocks of two runs don't compare, and what the earlier one left open it never ended
            self._run = run
            self._open.clear()
        self.last_at = str(event.get("at", ""))
        kind, iteration = event.get("type"), event.get("iteration")
        iteration = iteration if isinstance(iteration, int) else None
        if kind != "notice":
            self._close(None, now)
        if kind == "phase_started":
            self._close(iteration, now)
            self._begin(event, str(event.get("phase")), iteration, now)
        elif kind == "waiting":
            self._begin(event, "wait", None, now)
        elif kind in {"attempt_ended", "iteration_recorded"}:
            self._close(iteration, now)
        elif kind == "loop_started":
            self.rules, self.budget = _mapping(event.get("rules")), _mapping(event.get("budget"))
        elif kind == "loop_ended":
            self._open.clear()
        elif kind == "notice":
            self.notices = [*self.notices[-4:], str(event.get("message", ""))]

    def _begin(self, event: Mapping[str, Any], phase: str, iteration: int | None, now: float) -> None:
        candidate = event.get("candidate")
        running = Running(
            phase=phase,
            iteration=event.get("iteration") if phase == "wait" else iteration,
            candidate=candidate if isinstance(candidate, int) else None,
            since=str(event.get("at", "")),
            detail=" ".join(str(event.get(name) or "") for name in ("why", "detail")).strip() if phase == "wait" else "",
            seconds=_number(event.get("seconds")) if phase == "wait" else None,
        )
        self._open[iteration if phase != "wait" else None] = (running, now)

    def _close(self, iteration: int | None, now: float) -> None:
        found = self._open.pop(iteration, None)
        if found is not None and found[0].phase in self.seconds:
            self.seconds[found[0].phase] += max(0.0, now - found[1])


def elapsed(since: str | None, now: datetime) -> float | None:
    """Return the seconds from an ISO 8601 time (UTC where it names no zone) to ``now``, at least 0; None when it is none."""
    try:
        then = datetime.fromisoformat(since or "")
    except ValueError:
        return None
    return max(0.0, (now - (then if then.tzinfo is not None else then.replace(tzinfo=UTC))).total_seconds())


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
