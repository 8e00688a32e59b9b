"""What the events say of now and of where the time went: which step runs since when, and the seconds in each phase. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

__all__ = ["PHASES", "Running", "Timeline", "elapsed"]

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


class Timeline:
    """Folds events, as they stand in ``events.jsonl``, in their order. Unknown ones, and odd fields, are passed over.

    ``seconds`` are those of the phases that ended, over every candidate and run; ``first`` is the number of the first event that
    was seen: above 1, older ones are gone and the sums begin later.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self.first: int | None = None
        self.last_at: str | None = None
        self.ended = False
        self.rules: Mapping[str, Any] = {}
        self.budget: Mapping[str, Any] = {}
        self.outcome: Mapping[str, Any] | None = None
        self.notices: list[str] = []
        self.seen = 0
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
        self.seen += 1
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
            self.ended, self.outcome = False, None
            self.rules, self.budget = _mapping(event.get("rules")), _mapping(event.get("budget"))
        elif kind == "loop_ended":
            self.ended, self.outcome = True, _mapping(event.get("outcome"))
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


def elapsed(since: str, now: datetime) -> float | None:
    """Return the seconds from an ISO 8601 time to ``now``, at least 0; None when it is none."""
    try:
        return max(0.0, (now - datetime.fromisoformat(since)).total_seconds())
    except (ValueError, TypeError):
        return None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
