"""What a loop is doing now, in two lines: iteration, phase, time and what is left of the budget; and the agent's last words."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumar.core.rendering.figures import count, dollars, duration
from jumar.core.text import cut, escape, fit, last_line, without_escapes
from jumar.loop.events.events import (
    AttemptEnded,
    AttemptStarted,
    Event,
    IterationRecorded,
    LoopStarted,
    PhaseStarted,
    StopDecided,
    Waiting,
)
from jumar.loop.store.layout import LoopPaths
from jumar.model.attempts import Spend
from jumar.model.budget.limits import Budget
from jumar.processes.captured_output import SHOWN_AT_ONCE

_PHASES: Final = {"generate": "agent", "verify": "checks", "score": "scoring", "confirm": "re-scoring"}
_LOG: Final = "generator.log"
_END: Final = 4 << 10  # bytes of a log in which its last line is looked for
_WHY: Final = 60


@dataclass(frozen=True, slots=True)
class _Step:
    """A phase of one iteration that runs since ``began``; ``log`` is where the agent's output goes."""

    iteration: int
    phase: str
    began: float
    log: Path | None = None


class Progress:
    """Follows the events of a run; ``clock`` counts seconds. Before :meth:`begin` it knows of no output."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._paths: LoopPaths | None = None
        self._spend = Spend()
        self._budget = Budget()
        self._most = 0
        self._steps: dict[int, _Step] = {}
        self._attempts: dict[int, int] = {}
        self._waiting: tuple[Waiting, float] | None = None

    def begin(self, paths: LoopPaths) -> None:
        """Take where the loop is."""
        self._paths = paths

    def hear(self, event: Event) -> None:
        """Take in one event. Replaced, never changed in place: another thread draws."""
        steps = dict(self._steps)
        if isinstance(event, LoopStarted):
            self._most, self._budget, self._spend = event.rules.max_iterations, event.budget or Budget(), event.spend
        elif isinstance(event, AttemptStarted):
            self._attempts[event.iteration] = event.attempt
            self._waiting = None
            if event.purpose == "confirm":
                steps[event.iteration] = _Step(event.iteration, event.purpose, self._clock())
        elif isinstance(event, PhaseStarted):
            self._waiting = None
            steps[event.iteration] = _Step(event.iteration, event.phase, self._clock(), self._log(event))
        elif isinstance(event, AttemptEnded):
            if event.purpose == "confirm" or event.outcome != "ok":  # what came of it may still be checked
                steps.pop(event.iteration, None)
        elif isinstance(event, IterationRecorded):
            steps.pop(event.record.iteration_number, None)
            self._spend = event.spend
        elif isinstance(event, Waiting):
            self._waiting = (event, self._clock())
        elif isinstance(event, StopDecided):
            steps, self._waiting = {}, None
        self._steps = steps

    def _log(self, event: PhaseStarted) -> Path | None:
        attempt = self._attempts.get(event.iteration)
        if event.phase != "generate" or self._paths is None or attempt is None:
            return None
        return self._paths.attempt_scratch(attempt) / _LOG

    def lines(self, width: int) -> list[str]:
        """Return the lines, of at most ``width`` columns; none while nothing runs."""
        steps, waiting, now = list(self._steps.values()), self._waiting, self._clock()
        if waiting is not None:
            event, since = waiting
            return [fit(f"  waiting {waiting_text(event)} · {whole_seconds(now - since)}", width)]
        if not steps:
            return []
        parts = [_which(steps, self._most), *_doing(steps, now), *self._left(now - min(step.began for step in steps))]
        said = last_words([step.log for step in steps if step.log is not None])
        return [fit("  " + " · ".join(parts), width), *([fit(f"  > {said}", width)] if said else [])]

    def _left(self, running: float) -> list[str]:
        """Return what is used of each limit that there is, and the dollars known of where there is none."""
        spend, budget, found = self._spend, self._budget, list[str]()
        if budget.max_cost_usd is not None:
            found.append(f"{dollars(spend.charged_cost_usd, places=2)} of {dollars(budget.max_cost_usd, places=2)}")
        elif spend.charged_cost_usd:
            found.append(dollars(spend.charged_cost_usd, places=2))
        if budget.max_tokens is not None:
            found.append(f"{count(spend.charged_tokens)} of {count(budget.max_tokens)} tokens")
        if budget.max_seconds is not None:
            found.append(f"{whole_seconds(spend.seconds + running)} of {duration(budget.max_seconds)}")
        return found


def _which(steps: list[_Step], most: int) -> str:
    numbers = sorted(step.iteration for step in steps)
    if numbers == [0]:
        return "the start"
    limit = f" of {most:,}" if most and numbers[-1] <= most else ""
    return f"iteration {numbers[0]}{limit}" if len(numbers) == 1 else f"iterations {numbers[0]}-{numbers[-1]}{limit}"


def _doing(steps: list[_Step], now: float) -> list[str]:
    """Return each phase with its time, that of the oldest where several candidates are in it."""
    phases = Counter(step.phase for step in steps)
    found: list[str] = []
    for phase, name in _PHASES.items():
        if phases[phase]:
            oldest = min(step.began for step in steps if step.phase == phase)
            several = f"{phases[phase]}× " if phases[phase] > 1 else ""
            found.append(f"{several}{name} {whole_seconds(now - oldest)}")
    return found


def whole_seconds(seconds: float) -> str:
    """Return ``3s``, ``1m 12s``: a time that is drawn again each second."""
    return f"{max(0, int(seconds))}s" if seconds < 60 else duration(seconds)


def last_words(logs: list[Path]) -> str:
    """Return the last line of the log that was written last, safe for a terminal; empty when they say nothing.

    A log that has reached what is written as it comes has newer lines that nobody sees yet: it says nothing.
    """
    known = [(found, log) for log in logs if (found := _stat(log)) is not None and 0 < found.st_size < SHOWN_AT_ONCE]
    if not known:
        return ""
    newest = max(known, key=lambda one: one[0].st_mtime_ns)[1]
    try:
        with newest.open("rb") as stream:
            stream.seek(max(0, newest.stat().st_size - _END))
            text = stream.read().decode("utf-8", "backslashreplace")
    except OSError:
        return ""
    return escape(last_line(without_escapes(text)))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def waiting_text(event: Waiting) -> str:
    """Return for how long, and why: ``up to 31s (rate limited: try again in 30 seconds)``."""
    why = {"rate_limited": "rate limited", "calls_per_hour": "calls per hour", "budget": "the budget"}[event.why]
    detail = f": {escape(cut(event.detail, _WHY))}" if event.detail else ""
    return f"up to {duration(event.seconds)} ({why}{detail})"
