"""A loop as it is now, seen from outside: no lock, no write, and cheap to look at again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from jumar.core.files import is_directory, read_from
from jumar.core.lock import Holder, holder_of
from jumar.core.text import escape, points
from jumar.errors import JumarError, NotFoundError
from jumar.loop.events.log import EventTail
from jumar.loop.ranking.choose import leader
from jumar.loop.ranking.noise import Finals, finals
from jumar.loop.report.read import is_run
from jumar.loop.report.spending import spend_of_records
from jumar.loop.report.status import LIVE, Chosen, LoopStatus, Running, Timeline, elapsed
from jumar.loop.store.creation import is_foreign
from jumar.loop.store.in_force import RunningTotals, config_now, criteria_of, current, evidence_of, standing
from jumar.loop.store.layout import loop_folders
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.takeover import take_over
from jumar.model import IterationRecord, IterationView
from jumar.model.attempts import Attempt, Spend
from jumar.model.budget.ledger import count_failures
from jumar.model.budget.pricing import DEFAULT_MAX_ITERATIONS, Budget
from jumar.model.ordering import valid_score
from jumar.model.selection import StopDecision
from jumar.processes.control import stop_file

StateName = Literal["new", "running", "finished", "interrupted", "dead", "tracked", "imported", "foreign", "damaged"]

_ROWS: Final = 9  # records that a frame may show, and the one before the first
_LOG_LINES: Final = 8
_LOG_END: Final = 16 << 10
_WAITS: Final = "wait"


class LoopObserver:
    """Looks at one loop; :meth:`look` reads only what changed since the last look. ``resume`` spells the command that resumes it.

    Errors: :class:`jumar.errors.NotFoundError`, :class:`jumar.errors.StoreDamagedError`.
    """

    def __init__(
        self, directory: Path, *, now: Callable[[], datetime] | None = None, resume: Callable[[LoopReader], str] | None = None
    ) -> None:
        self.reader = LoopReader(directory)
        take_over(self.reader)
        self._resume = (lambda: "jumar run") if resume is None else lambda: resume(self.reader)
        self.timeline = Timeline()
        self._now = now or (lambda: datetime.now(UTC))
        self._tail = EventTail(self.reader.paths.events)
        self._records: dict[int, IterationRecord] = {}
        self._budget: Budget = Budget()
        self._of_records: tuple[int, Spend] | None = None
        self._tally = RunningTotals(self.reader, self._budget)

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
        highest = self._tally.best()
        state, detail, stop = self._state(holder, attempts)
        live, now = state in LIVE, self._now()
        running = tuple((step, elapsed(step.since, now)) for step in self.timeline.running()) if live or state == "dead" else ()
        flying = [attempt.start for attempt in attempts[-64:] if attempt.end is None] if live else []
        reserved_tokens = _total(start.reserve_tokens for start in flying)
        rows = tuple(self._record(view.number) for view in views[-_ROWS:])
        log_name, log = self._log(attempts, live=live or state == "dead")
        config = config_now(self.reader)
        run: Mapping[str, Any] = config.get("run") or {}
        chosen = None if live else self._chosen(config, highest)
        best = leader(views, criteria_of(config)) if chosen is None else highest
        return LoopStatus(
            loop_id=self.reader.loop_id,
            directory=str(self.reader.paths.directory),
            state=state,
            detail=detail,
            holder=holder if live else None,
            stop=stop,
            objective=str(run.get("loop", {}).get("objective", "")),
            views=views,
            rows=rows,
            best=None if best is None else self._record(best.number),
            last=rows[-1] if rows else None,
            chosen=chosen,
            weights=config.get("quality_weights") or {},
            threshold=run.get("selection", {}).get("threshold"),
            running=running,
            spend=self._tally.spend() if attempts or is_run(config) else self._recorded(len(views)),
            budget=budget,
            passes=self._passes(run),
            reserved_cost_usd=_total(start.reserve_cost_usd for start in flying),
            reserved_tokens=None if reserved_tokens is None else int(reserved_tokens),
            phase_seconds=self._phase_seconds(running),
            partial=(self.timeline.first or 1) > 1,
            failures=count_failures(attempts, views),
            log_name=log_name,
            log=log,
            problems=self._problems(holder, state),
            last_event_at=self.timeline.last_at,
        )

    def _state(self, holder: Holder | None, attempts: tuple[Attempt, ...]) -> tuple[str, str, StopDecision | None]:
        """Return the state, a phrase that goes with it, and why it ended, if it did."""
        state, stop = _state_of(self.reader, holder)
        if holder is not None and holder.held:
            if state == "dead":
                return state, f"process {holder.pid} has ended, but a process that it started holds the lock", None
            waits = any(step.phase == _WAITS for step in self.timeline.running())
            return ("waiting" if waits else state), f"process {holder.pid}" if holder.pid else "", None
        if stop is not None:
            return state, f"{stop.reason.replace('_', ' ')}: {stop.detail}", stop
        if state == "dead":
            who = f"process {attempts[-1].start.pid or (holder and holder.pid) or ''}".strip()
            way = f"{self._resume()} resumes it"
            return state, f"{who} ended in the middle of iteration {attempts[-1].start.iteration}; {way}", None
        origin: Mapping[str, Any] = self.reader.config.get("origin") or {}
        details = {"tracked": "recorded by a program", "imported": f"from {escape(str(origin.get('path')))}"}
        details["interrupted"] = f"{self._resume()} resumes it"
        return state, details.get(state, ""), None

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
            self._records[number] = self.reader.record(number, listed=False)
        return self._records[number]

    def _recorded(self, count: int) -> Spend:
        """Return what the records say was used, where a program writes them and there are no attempts."""
        if self._of_records is None or self._of_records[0] != count:
            self._of_records = (count, spend_of_records(self.reader.records()))
        return self._of_records[1]

    def _limits(self) -> Budget:
        """Return the limits of the run, as it told them; of one that told none, those of the configuration."""
        config: Mapping[str, Any] = config_now(self.reader).get("run") or {}
        budget = Budget.from_recorded(self.timeline.budget or config.get("budget") or {})
        stop: Mapping[str, Any] = self.timeline.rules or config.get("stop") or {}
        both = [value for value in (budget.max_seconds, stop.get("max_seconds")) if value is not None]
        budget = replace(budget, max_seconds=min(both, default=None))
        if budget != self._budget:
            self._budget, self._tally = budget, RunningTotals(self.reader, budget)
        return budget

    def _passes(self, run: Mapping[str, Any]) -> int | None:
        told = self.timeline.rules.get("max_iterations")
        if isinstance(told, int) or not run:
            return told if isinstance(told, int) else None
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
        lines = [escape(line.rstrip()) for line in end_of(newest, _LOG_END).splitlines() if line.strip()]
        return escape(newest.name), tuple(lines[-_LOG_LINES:])

    def _problems(self, holder: Holder | None, state: str) -> tuple[str, ...]:
        found: list[str] = []
        asked = stop_file(self.reader.paths.stop_files())
        if asked is not None:
            found.append(f"{asked} asks it to stop; remove it to resume")
        decisions = self.reader.decisions()
        begun = [one for one in decisions if one.kind in {"apply", "undo"}]
        ended = sum(one.kind in {"apply-end", "undo-end"} for one in decisions)
        if len(begun) > ended and state not in LIVE:
            found.append(f"an apply was interrupted; {self._resume()} completes it")
        if state in {"dead", "interrupted"} and self.reader.pending() is not None:
            found.append(f"a snapshot waits to be scored; {self._resume()} does that")
        if state == "dead" and holder is not None and holder.held:
            found.append("end that process: nothing can write the loop while it has the lock")
        if self.timeline.notices and state in LIVE:
            found.append(self.timeline.notices[-1])
        return tuple(found)


def _state_of(reader: LoopReader, holder: Holder | None) -> tuple[StateName, StopDecision | None]:
    """Return where a loop is in its life, told from its records and its lock, and why it ended; dead is one cut off in a step."""
    if holder is not None and holder.held:
        return ("running" if holder.alive else "dead"), None
    if not is_run(reader.config):
        return ("imported" if "origin" in reader.config else "tracked"), None
    stop, attempts = reader.recorded_stop(), reader.attempts()
    if stop is not None:
        return "finished", stop
    if not attempts and not reader.iteration_numbers():
        return "new", None
    return ("dead" if attempts and attempts[-1].end is None else "interrupted"), None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """What `jumar list` and `jumar show` say of where a loop is in its life.

    ``stop`` says why a finished loop ended; ``holder`` who is writing a running one .

    ``tracked`` are loops that a program of the person's own records with ``BestOutputTracker``: when they end is for that program
    to know. ``imported`` are those that `jumar import` made. ``foreign`` are directories of the original tool; the first command
    that names one imports it.
    """

    name: StateName
    stop: StopDecision | None = None
    holder: Holder | None = None

    @property
    def text(self) -> str:
        """One phrase for a table."""
        if self.name == "running" and self.holder is not None:
            return "running" if self.holder.pid is None else f"running (process {self.holder.pid})"
        if self.name == "finished" and self.stop is not None:
            return f"finished: {self.stop.reason.replace('_', ' ')}"
        return {"tracked": "recorded by a program", "foreign": "of another tool, not imported yet"}.get(self.name, self.name)

    def to_json(self) -> dict[str, Any]:
        holder = self.holder and {key: getattr(self.holder, key) or None for key in ("pid", "command", "since")}
        return {
            "state": self.name,
            "stop_reason": self.stop and self.stop.reason,
            "stop_detail": self.stop and self.stop.detail,
            "running": holder,
        }


def loop_state(reader: LoopReader) -> LoopState:
    """Return the state of a loop; takes no lock and writes nothing. Whoever holds its lock runs it, and who can resume it may."""
    holder = holder_of(reader.paths.lock)
    name, stop = _state_of(reader, holder)
    if holder is not None and holder.held:
        return LoopState(name="running", holder=holder)
    return LoopState(name="interrupted" if name == "dead" else name, stop=stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSummary:
    """A loop below a root as a list shows it: where it is, its state and its best; unknown is None. Scores are 0–100.

    ``iterations`` counts them, the start state not included; ``chosen`` is the one that stands; times are UTC.
    ``scores`` are those of all iterations, None where one has none.
    """

    directory: Path
    state: LoopState
    iterations: int = 0
    best_iteration: int | None = None
    best_score: float | None = None
    chosen: int | None = None
    created_at: str | None = None
    updated_at: str | None = None
    problem: str | None = None
    scores: tuple[float | None, ...] = ()
    spend: Spend = field(default_factory=Spend)

    @property
    def age_seconds(self) -> float | None:
        """How long ago it was written to last."""
        return elapsed(self.updated_at, datetime.now(UTC))

    def to_json(self) -> dict[str, Any]:
        age = self.age_seconds
        return {
            "loop_id": self.directory.name,
            **self.state.to_json(),
            "iterations": self.iterations,
            "best_iteration": self.best_iteration,
            "best_score": self.best_score,
            "chosen": self.chosen,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "age_seconds": None if age is None else round(age, 3),
            "directory": str(self.directory),
            "problem": self.problem,
        }


def list_summaries(root: Path) -> list[LoopSummary]:
    """Return every loop below ``root`` by name; what cannot be read is among them as damaged."""
    return [summary for folder in loop_folders(root) if (summary := summarize(folder)) is not None]


def summarize(directory: Path) -> LoopSummary | None:
    """Return what a list shows of one loop; None where none is. What cannot be read is damaged."""
    if is_foreign(directory):  # opening it would import it: not what looking at a list should do
        return LoopSummary(directory=directory, state=LoopState(name="foreign"))
    damaged = LoopSummary(directory=directory, state=LoopState(name="damaged"))
    if not (directory / "loop.json").exists():
        if not (directory / "iterations").is_dir():
            return None
        return replace(damaged, problem=f"{directory / 'loop.json'} is missing, but iterations are there")
    try:
        store = LoopStore.open(directory)
        views = store.views()
        run: Mapping[str, Any] = config_now(store).get("run") or {}
        best = leader(views, criteria_of(config_now(store)))
        last = [store.record(views[-1].number, listed=False).timestamp] if views else []
        return LoopSummary(
            directory=directory,
            state=loop_state(store),
            iterations=sum(view.number > 0 for view in views),
            best_iteration=best and best.number,
            best_score=best and best.score,
            chosen=standing(store).iteration,
            created_at=store.created_at,
            updated_at=max([store.created_at, *(decision.at for decision in store.decisions()), *last]),
            scores=tuple(valid_score(view) for view in views),
            spend=RunningTotals(store, Budget.from_recorded(run.get("budget") or {})).spend()
            if store.attempts()
            else spend_of_records(tuple(store.record(view.number, listed=False) for view in views)),
        )
    except NotFoundError:
        return None
    except (JumarError, OSError) as error:
        return replace(damaged, problem=str(error))


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
        found = tuple(sorted(place.glob("*.log"))) if is_directory(place) else ()
        if found:
            return found
    return ()


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


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def end_of(path: Path, most: int) -> str:
    """Return the last ``most`` bytes of a log as text; empty where it cannot be read."""
    try:
        return read_from(path, -most).decode("utf-8", "backslashreplace")
    except OSError:
        return ""
