"""A loop as it is now, seen from outside: no lock, no write, and cheap to look at again and again."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jumar.core.lock import Holder, holder_of
from jumar.core.text import escape, points
from jumar.loop.events.log import EventTail
from jumar.loop.ranking.choose import leader
from jumar.loop.ranking.noise import Finals, finals
from jumar.loop.report.judged import decided_document, learned_document
from jumar.loop.report.watch.frame import Chosen, LiveView
from jumar.loop.report.watch.timeline import Running, Timeline, elapsed
from jumar.loop.store.config_in_force import config_now, criteria_of
from jumar.loop.store.current_selection import current, evidence_of
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.running_totals import Tally
from jumar.model import IterationRecord, IterationView
from jumar.model.attempts import Attempt, Spend
from jumar.model.budget import budget_left
from jumar.model.budget.ledger import count_failures
from jumar.model.budget.limits import Budget
from jumar.model.stopping import StopDecision
from jumar.processes.control import stop_file

__all__ = ["LoopObserver", "LoopStatus", "log_files"]

_ROWS: Final = 9  # records that a frame may show, and the one before the first
_LOG_LINES: Final = 8
_LOG_END: Final = 16 << 10
_WAITS: Final = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStatus:
    """The document of ``jumar status --json`` and what a frame is made of."""

    document: Mapping[str, Any]
    view: LiveView


class LoopObserver:
    """Looks at one loop; :meth:`look` reads only what changed since the last look. ``resume`` spells the command that resumes it.

    Errors: :class:`jumar.errors.NotFoundError`, :class:`jumar.errors.StoreDamagedError`.
    """

    def __init__(
        self, directory: Path, *, now: Callable[[], datetime] | None = None, resume: Callable[[LoopReader], str] | None = None
    ) -> None:
        self.reader = LoopReader(directory)
        self._resume = (lambda: "jumar run") if resume is None else lambda: resume(self.reader)
        self.timeline = Timeline()
        self._now = now or (lambda: datetime.now(UTC))
        self._tail = EventTail(self.reader.paths.events)
        self._records: dict[int, IterationRecord] = {}
        self._budget: Budget = Budget()
        self._tally = Tally(self.reader, self._budget)

    @property
    def running(self) -> bool:
        """Whether a living process holds the loop."""
        holder = holder_of(self.reader.paths.lock)
        return holder is not None and holder.held and holder.alive

    def look(self) -> LoopStatus:
        """Return the loop as it is now."""
        holder = holder_of(self.reader.paths.lock)  # before the records: what ends in between is seen as ended the next time
        self.timeline.add(self._tail.news())
        self.reader.refresh()
        views, attempts = self.reader.views(), self.reader.attempts()
        budget = self._limits()
        highest, spend = self._tally.best(), self._tally.spend()
        state, detail, stop = self._state(holder, attempts)
        live = state in {"running", "waiting"}
        now = self._now()
        running = tuple((one, elapsed(one.since, now)) for one in self.timeline.running()) if live or state == "dead" else ()
        flying = [attempt for attempt in attempts[-64:] if attempt.end is None] if live else []
        rows = tuple(self._record(view.number) for view in views[-_ROWS:])
        log_name, log = self._log(attempts, live=live or state == "dead")
        problems = self._problems(holder, state)
        failures = count_failures(attempts, views)
        config = config_now(self.reader)
        run: Mapping[str, Any] = config.get("run") or {}
        chosen = None if live else self._chosen(config, highest)
        best = leader(views, criteria_of(config)) if chosen is None else highest
        view = LiveView(
            loop_id=self.reader.loop_id,
            state=state,
            detail=detail,
            objective=str(run.get("loop", {}).get("objective", "")),
            views=views,
            rows=rows,
            best=None if best is None else self._record(best.number),
            last=rows[-1] if rows else None,
            chosen=chosen,
            weights=config.get("quality_weights") or {},
            threshold=run.get("selection", {}).get("threshold"),
            running=running,
            spend=_without_flying(spend, flying),
            budget=budget,
            passes=self._passes(run),
            reserved_cost_usd=_total([attempt.start.reserve_cost_usd for attempt in flying]),
            reserved_tokens=_whole(_total([attempt.start.reserve_tokens for attempt in flying])),
            phase_seconds=self._phase_seconds(running),
            partial=(self.timeline.first or 1) > 1,
            failures=failures,
            log_name=log_name,
            log=log,
            problems=problems,
        )
        return LoopStatus(document=self._document(view, spend, holder, stop, running), view=view)

    def _document(
        self,
        view: LiveView,
        spend: Spend,
        holder: Holder | None,
        stop: StopDecision | None,
        running: tuple[tuple[Running, float | None], ...],
    ) -> dict[str, Any]:
        live = view.state in {"running", "waiting"}
        now = running[-1] if running else None
        left = budget_left(spend, view.budget)
        done = sum(one.number > 0 for one in view.views)
        return {
            "loop_id": view.loop_id,
            "directory": str(self.reader.paths.directory),
            "state": view.state,
            "detail": view.detail,
            "pid": holder.pid if live and holder is not None else None,
            "command": holder.command if live and holder is not None else None,
            "iteration": now[0].iteration if now else None,
            "phase": now[0].phase if now else None,
            "since": now[0].since if now else None,
            "seconds": None if now is None or now[1] is None else round(now[1], 3),
            "running": [{**asdict(one), "elapsed": seconds} for one, seconds in running],
            "iterations": done,
            "best": _short(view.best),
            "last": _short(view.last),
            "learned": learned_document(view.last),
            "auto": decided_document(view.last),
            "chosen": _standing(view.chosen),
            "stop_reason": stop and stop.reason,
            "stop_detail": stop and stop.detail,
            "spend": spend.to_json(),
            "budget": {**view.budget.to_json(), "passes": view.passes},
            "budget_left": {**left, "passes": None if view.passes is None else max(0, view.passes - done)},
            "reserved": {"cost_usd": view.reserved_cost_usd, "tokens": view.reserved_tokens},
            "phase_seconds": {name: round(seconds, 3) for name, seconds in view.phase_seconds.items()},
            "failures": dict(view.failures),
            "resumable": view.state in {"new", "interrupted", "dead"},
            "problems": list(view.problems),
            "last_event_at": self.timeline.last_at,
        }

    def _state(self, holder: Holder | None, attempts: tuple[Attempt, ...]) -> tuple[str, str, StopDecision | None]:
        """Return the state, a phrase that goes with it, and why it ended, if it did."""
        if holder is not None and holder.held:
            if not holder.alive:
                return "dead", f"process {holder.pid} has ended, but a process that it started holds the lock", None
            waits = any(one.phase == _WAITS for one in self.timeline.running())
            return ("waiting" if waits else "running"), f"process {holder.pid}" if holder.pid else "", None
        stop = self.reader.recorded_stop()
        if stop is not None:
            return "finished", f"{stop.reason.replace('_', ' ')}: {stop.detail}", stop
        if "run" not in self.reader.config:
            return "tracked", "recorded by a program", None
        if not attempts and not self.reader.iteration_numbers():
            return "new", "", None
        if attempts and attempts[-1].end is None:
            who = f"process {attempts[-1].start.pid or (holder and holder.pid) or ''}".strip()
            return (
                "dead",
                f"{who} ended in the middle of iteration {attempts[-1].start.iteration}; {self._resume()} resumes it",
                None,
            )
        return "interrupted", f"{self._resume()} resumes it", None

    def _chosen(self, config: Mapping[str, Any], best: IterationView | None) -> Chosen | None:
        """Return the iteration that stands, with the score that it was selected by; ``best`` has the highest score."""
        decision = current(self.reader)
        if decision is None or decision.best_iteration is None:
            return None
        evidence = evidence_of(self.reader)
        found = finals(evidence, criteria_of(config)) if evidence.noisy else None
        means: Mapping[int, float] = {} if found is None else found.means
        record = self._record(decision.best_iteration)
        number = record.iteration_number
        start = next((view for view in evidence.views[:1] if view.number == 0), None)
        return Chosen(
            record=record,
            score=means.get(number, record.quality_score),
            readings=1 + len(evidence.scored(number)) if number in means else 1,
            start=None if start is None else means.get(0, start.score),
            by=decision.by if decision.kind == "override" else "",
            highest="" if best is None else _why_not(best, number, found),
        )

    def _record(self, number: int) -> IterationRecord:
        if number not in self._records:
            if len(self._records) > 4 * _ROWS:
                self._records.clear()
            self._records[number] = self.reader.record(number)
        return self._records[number]

    def _limits(self) -> Budget:
        """Return the limits of the run, as it told them; of one that told none, those of the configuration."""
        config: Mapping[str, Any] = config_now(self.reader).get("run") or {}
        budget = Budget.from_recorded(self.timeline.budget or config.get("budget") or {})
        stop: Mapping[str, Any] = self.timeline.rules or config.get("stop") or {}
        both = [value for value in (budget.max_seconds, stop.get("max_seconds")) if value is not None]
        budget = replace(budget, max_seconds=min(both, default=None))
        if budget != self._budget:
            self._budget, self._tally = budget, Tally(self.reader, budget)
        return budget

    def _passes(self, run: Mapping[str, Any]) -> int | None:
        told = self.timeline.rules.get("max_iterations")
        if isinstance(told, int) or not run:
            return told if isinstance(told, int) else None
        from jumar.model.budget.limits import DEFAULT_MAX_ITERATIONS

        given = run.get("loop", {}).get("max_iterations") or run.get("stop", {}).get("max_iterations")
        return given or DEFAULT_MAX_ITERATIONS

    def _phase_seconds(self, running: tuple[tuple[Running, float | None], ...]) -> dict[str, float]:
        total = dict(self.timeline.seconds)
        for one, seconds in running:
            if one.phase in total:
                total[one.phase] += seconds or 0.0
        return total

    def _log(self, attempts: tuple[Attempt, ...], *, live: bool) -> tuple[str, tuple[str, ...]]:
        files = log_files(self.reader, attempts, None, running=live)
        if not files:
            return "", ()
        newest = max(files, key=_modified)
        lines = [escape(line.rstrip()) for line in _end_of(newest).splitlines() if line.strip()]
        return escape(newest.name), tuple(lines[-_LOG_LINES:])

    def _problems(self, holder: Holder | None, state: str) -> tuple[str, ...]:
        found: list[str] = []
        asked = stop_file(self.reader.paths.stop_files())
        if asked is not None:
            found.append(f"{asked} asks it to stop; remove it to resume")
        decisions = self.reader.decisions()
        begun = [one for one in decisions if one.kind in {"apply", "undo"}]
        ended = sum(one.kind in {"apply-end", "undo-end"} for one in decisions)
        if len(begun) > ended and state not in {"running", "waiting"}:
            found.append(f"an apply was interrupted; {self._resume()} completes it")
        if state in {"dead", "interrupted"} and self.reader.pending() is not None:
            found.append(f"a snapshot waits to be scored; {self._resume()} does that")
        if state == "dead" and holder is not None and holder.held:
            found.append("end that process: nothing can write the loop while it has the lock")
        if self.timeline.notices and state in {"running", "waiting"}:
            found.append(self.timeline.notices[-1])
        return tuple(found)


def log_files(
    reader: LoopReader, attempts: tuple[Attempt, ...], iteration: int | None, *, running: bool = True
) -> tuple[Path, ...]:
    """Return the logs of an iteration, wherever they lie now; of the running step, else the last one, with ``iteration`` None.

    They begin in ``scratch/``, and go with the snapshot to ``pending/`` and then to ``iterations/``.
    """
    paths = reader.paths
    numbers = reader.iteration_numbers()
    if iteration is None:
        flying = attempts[-1].start.iteration if attempts and (attempts[-1].end is None or running) else None
        iteration = flying if flying is not None else (numbers[-1] if numbers else None)
    if iteration is None:
        return ()
    places = [paths.pending_iteration(iteration) / "logs", paths.iteration(iteration) / "logs"]
    scratch = [paths.attempt_scratch(one.start.number) for one in attempts if one.start.iteration == iteration]
    for place in (*places[::-1], *reversed(scratch)):
        found = tuple(sorted(place.glob("*.log"))) if place.is_dir() else ()
        if found:
            return found
    return ()


def _short(record: IterationRecord | None) -> dict[str, Any] | None:
    if record is None:
        return None
    return {
        "iteration": record.iteration_number,
        "quality_score": record.quality_score,
        "verification_status": record.verification_status,
        "status": record.status,
        "dimensions": dict(record.dimensions),
    }


def _standing(chosen: Chosen | None) -> dict[str, Any] | None:
    short = None if chosen is None else _short(chosen.record)
    if chosen is None or short is None:
        return None
    return {
        **short,
        "quality_score": chosen.score,
        "readings": chosen.readings,
        "by": chosen.by or None,
        "highest": chosen.highest or None,
    }


def _why_not(best: IterationView, chosen: int, found: Finals | None) -> str:
    """Return what keeps the highest score in the loop from being the choice, as far as it is known."""
    if best.verification == "failed":
        return "which fails its checks"
    if found is None:
        return ""
    if chosen in found.tied and best.number in found.tied:
        return "within the noise"
    mean = found.means.get(best.number)
    return "" if mean is None else f"{points(mean)} by all readings"


def _without_flying(spend: Spend, flying: list[Attempt]) -> Spend:
    """Return ``spend`` without what the ledger charges for attempts in flight: a frame shows that as reserved."""
    cost = _total([attempt.start.reserve_cost_usd for attempt in flying]) or 0.0
    tokens = _whole(_total([attempt.start.reserve_tokens for attempt in flying])) or 0
    return replace(
        spend,
        assumed_cost_usd=max(0.0, spend.assumed_cost_usd - cost),
        assumed_tokens=max(0, spend.assumed_tokens - tokens),
        cost_usd=None if spend.cost_usd is None else max(0.0, spend.cost_usd - cost),
        tokens=None if spend.tokens is None else max(0, spend.tokens - tokens),
    )


def _total(values: list[float | None] | list[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _end_of(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _LOG_END))
            return stream.read().decode("utf-8", "backslashreplace")
    except OSError:
        return ""
