"""One iteration, step by step: reserve, generate, snapshot, and on to its evaluation.

Every arrow is durable before the next begins; ``docs/design/store.md`` says what a reader may conclude in between. A step is a
way (:mod:`jumar.loop.engine.run_context`): only its programs run elsewhere, so that several can be under way at once.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace

from jumar.core.files import as_write_error, make_directory, replace_file
from jumar.core.leftovers import remove_any
from jumar.core.text import cut, escape
from jumar.errors import JumarError
from jumar.loop.engine.accounting import begin, ended_if_full, finish, may_begin, turned_away, wait_for
from jumar.loop.engine.evaluation import Evaluation
from jumar.loop.engine.run_context import LoopRun, Way, elsewhere, take, take_ended
from jumar.loop.engine.step_context import Briefing, keep_directory
from jumar.loop.events.events import PhaseStarted
from jumar.loop.generators.failures import last_words
from jumar.loop.hooks import reset_failure, set_up, tear_down
from jumar.loop.ranking.ratchet import BatchPlan
from jumar.loop.store.layout import LOGS, is_among_packages
from jumar.loop.workspace.clearing import open_folders
from jumar.loop.workspace.disk_space import disk_is_full
from jumar.loop.workspace.guard import history_findings
from jumar.loop.workspace.trees import discard_slots
from jumar.loop.workspace.workspace import Workspace
from jumar.model import GenerateOutcome, IterationRecord, StepContext, StopDecision, Usage
from jumar.model.attempts import LEFT_NOTHING, MOST_KILLED, AttemptEnd, AttemptStart, Outcome
from jumar.model.budget.gate import Stop, Wait
from jumar.model.budget.ledger import failure_of_attempt
from jumar.processes.control import beating
from jumar.processes.environment import build_environment
from jumar.processes.process_tree import MARKER, within

_LAST_LINE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationStep:
    """Runs single iterations of one loop in one working directory; holds no state between them."""

    run: LoopRun
    workspace: Workspace

    @property
    def evaluation(self) -> Evaluation:
        """The second half of the step."""
        return Evaluation(run=self.run, workspace=self.workspace)

    def start_state(self) -> Way[IterationRecord | None]:
        """Record the tree as it is as iteration 0: never worse than the start needs a start. None when it was stopped."""
        run, began = self.run, self.run.clock.monotonic()
        brief = Briefing.of(run, 0, None, batch=None, candidate=None)
        scratch = brief.scratch(0)
        brief.write(scratch)
        stage, nonce = {"since_ns": time.time_ns()}, secrets.token_hex(8)
        pending = take(run, self.workspace, stage, number=0, nonce=nonce, attempt=None, logs=scratch)
        return (yield from self.evaluation.complete(pending, seconds=run.clock.monotonic() - began))

    def generate(
        self, number: int, parent: int, *, batch: int | None = None, candidate: int | None = None
    ) -> Way[IterationRecord | None]:
        """Run the generator once and record what came of it.

        None when nothing is recorded: it was interrupted or has to wait, or its failure is to be tried again.
        """
        run = self.run
        run.guard.ready(self.workspace)
        nonce = secrets.token_hex(8)
        brief = Briefing.of(run, number, parent, batch=batch, candidate=candidate)
        attempt = begin(run, number, parent, nonce, "generate", batch=batch, candidate=candidate)
        outcome: GenerateOutcome | None = None
        with ended_if_full(run, attempt, lambda: outcome and self._attempt_end(outcome, ())):
            scratch = brief.scratch(attempt.start.number)
            brief.write(scratch)
            head = self.workspace.head()
            since = time.time_ns()
            run.tell(PhaseStarted(iteration=number, candidate=candidate, phase="generate"))
            context = brief.context(self.workspace, scratch, "generate", nonce=nonce, since=since)
            run.guard.before_generate(number, scratch)
            outcome = yield from elsewhere(lambda: self._ask(attempt.start, context))
            open_folders(self.workspace.directory, ("",))
            keep_directory(scratch)
            found = run.guard.after_generate(number)
            commits = self.workspace.commits_since(head)
            found = run.found(number, (*found, *history_findings(self.workspace, head, commits)))
        state = None if self.workspace.gone() else self.workspace.state(run.guard.guarded, parent)
        ended = replace(self._attempt_end(outcome, commits), tree=state)
        finish(run, attempt, ended)
        for note in outcome.notes:
            if not note.startswith("priced:"):  # what could not be used of its usage report: once, not with every iteration
                run.notice_once(note.partition(" is ")[0], f"iteration {number}: {note}")
        if ended.outcome in LEFT_NOTHING or self._try_again(number, ended):
            return None
        pending = take_ended(run, self.workspace, attempt.start, ended, scratch, since=since, found=found)
        return (yield from self.evaluation.complete(pending))

    def _ask(self, start: AttemptStart, context: StepContext) -> GenerateOutcome:
        """Run ``reset`` and the generator; touches no store."""
        run = self.run
        began = run.clock.monotonic()
        with beating(run.store.paths.heartbeat(start.number), run.clock):
            unready = reset_failure(run.parts.hooks, context, "generate", tries=2)
            if unready is not None:  # nothing was asked, so nothing was spent
                nothing = Usage(tokens_used=0, token_cost_usd=0.0)
                return GenerateOutcome(exit_code=None, seconds=run.clock.monotonic() - began, failure=unready, usage=nothing)
            return run.parts.generator.generate(context)

    def _try_again(self, number: int, ended: AttemptEnd) -> bool:
        again = self.is_tried_again(number, ended)
        if again:
            self.run.notice(f"iteration {number} is tried again: {ended.detail}")
        return again

    def is_tried_again(self, number: int, ended: AttemptEnd) -> bool:
        """Whether this failed run, the last of its iteration so far, is one that ``[retry]`` makes good for."""
        retries = self.run.settings.retries
        allowed = {"failed": retries.generator_failed, "timeout": retries.generator_timeout}.get(ended.outcome, 0)
        if not allowed:
            return False
        before = (end.outcome for start, end in self.run.ended_attempts(number) if start.purpose == "generate")
        return sum(outcome == ended.outcome for outcome in before) <= allowed

    def _attempt_end(self, outcome: GenerateOutcome, commits: tuple[str, ...]) -> AttemptEnd:
        kind = _outcome_of(outcome)
        return AttemptEnd(
            outcome=kind,
            seconds=outcome.seconds,
            ended_at=self.run.clock.now(),
            exit_code=outcome.exit_code,
            detail=_detail(outcome),
            output_tail=outcome.output_tail,
            usage=outcome.usage,
            commits=commits,
            errors=outcome.errors,
            notes=outcome.notes,
            wait_seconds=outcome.usage.retry_after if kind == "rate_limited" else None,
            printed=outcome.printed,
            said=outcome.said or None,
            failure=failure_of_attempt(kind),
        )


def _outcome_of(outcome: GenerateOutcome) -> Outcome:
    if outcome.interrupted:
        return "interrupted"
    if outcome.timed_out:
        return "timeout"
    if outcome.rate_limited:
        return "rate_limited"
    if outcome.blocked is not None:
        return "blocked"
    return "ok" if outcome.failure is None else "failed"


def _detail(outcome: GenerateOutcome) -> str:
    """Return what went wrong, with the last line that the generator printed: that is where the reason usually stands."""
    if outcome.failure is None:
        return outcome.blocked or ""
    last = last_words(outcome.output_tail)
    return outcome.failure if not last or last in outcome.failure else f"{outcome.failure}: {cut(last, _LAST_LINE)}"


class Trees:
    """Gives each candidate its tree, always the same one, also after a resume."""

    def __init__(self, run: LoopRun) -> None:
        self._run = run
        self._made: dict[int | None, Workspace] = {}
        self._set_up: dict[int | None, int] = {}

    def of(self, candidate: int | None) -> Workspace:
        """Return the tree of a candidate as it lies; None is the loop's own. Errors: as ``Workspace.prepare``."""
        if candidate not in self._made:
            workspace = Workspace(self._run.store, self._run.settings, slot=candidate, tell=self._run.notice)
            workspace.prepare()
            self._made[candidate] = workspace
        return self._made[candidate]

    def ready(self, candidate: int | None) -> Workspace:
        """Return the tree of a candidate, with the person's ``setup`` done in it, once in this run and each time it is made.

        What the loop keeps of it may have changed by that. Errors: those of :meth:`of`; :class:`JumarError` when ``setup`` fails.
        """
        workspace = self.of(candidate)
        if self._set_up.get(candidate) != workspace.made:
            self._set_up[candidate] = workspace.made
            if self._run.parts.hooks.setup is not None:
                with self._begun(workspace) as killed:
                    self._set_up_or_begin_anew(workspace, killed)
            self._run.surroundings.begin(workspace)
        return workspace

    @contextlib.contextmanager
    def _begun(self, workspace: Workspace) -> Generator[int]:
        """Have it on disk meanwhile that ``setup`` runs; give how often it ended with jumar killed."""
        path, killed = self._run.store.paths.directory / LOGS / f"setup-{workspace.name}.begun", 0
        with contextlib.suppress(OSError):
            killed = min(os.lstat(path).st_size, MOST_KILLED)
        with as_write_error("write", path):
            make_directory(path.parent)
            remove_any(path)
            replace_file(path, b"." * (killed + 1))
        try:
            yield killed
        finally:
            with as_write_error("remove", path):
                remove_any(path)

    def _set_up_or_begin_anew(self, workspace: Workspace, killed: int) -> None:
        """Run ``setup``; on the files of the start, where it works, if it fails on those of an iteration, or jumar died of it."""
        store = self._run.store
        try:
            if not self._run.settings.retries.killed_too_often(killed):
                self.set_up(workspace)
                return
            why = f"jumar was killed {killed} times while [loop] setup ran"
        except JumarError as error:
            if disk_is_full(error) or not store.has_snapshot(0) or workspace.holds(0):
                raise
            why = str(error).partition("; nothing was paid")[0]
        if store.has_snapshot(0):
            kept = workspace.carry_out(workspace.difference(0), set_aside=workspace.slot is None)
            aside = "" if kept is None else f"; what was there is in {escape(os.fspath(kept))}"
            self._run.notice(f"{why}; so it runs on the files of the start{aside}")
        self.set_up(workspace)

    def set_up(self, workspace: Workspace) -> None:
        """Run the person's ``setup`` in a tree, once more where it was: what it left running is ended first."""
        whose = {"JUMAR_LOOP_ID": self._run.settings.loop_id, MARKER: within(self._run.store.nonce)}
        told = {**whose, **workspace.variables()}
        set_up(
            self._run.parts.hooks,
            loop=self._run.store.paths.directory,
            tree=workspace.name,
            cwd=workspace.directory,
            environment=build_environment(os.environ, self._run.settings.environment, told),
        )

    def step(self, candidate: int | None) -> IterationStep:
        """Return what runs iterations in the tree of a candidate."""
        return IterationStep(run=self._run, workspace=self.of(candidate))

    def close(self) -> None:
        """End what ``setup`` left running in any tree. The trees stay."""
        for candidate in sorted(self._set_up, key=lambda slot: slot or 0):
            tear_down(self._run.parts.hooks, loop=self._run.store.paths.directory, tree=self.of(candidate).name)
        self._set_up.clear()

    def discard(self) -> tuple[str, ...]:
        """Remove the trees that go with the end of a loop, those of earlier runs too; return the refs that keep their commits.

        These are the candidates'; beside a ``package.json`` also the loop's own copy or worktree, of which a person's own
        ``npm test`` would run the tests too. In place nothing is removed.
        """
        store, settings = self._run.store, self._run.settings
        own = self._made.get(None) if not settings.in_place and is_among_packages(store.paths.root) else None
        if settings.candidates == 1 and own is None:
            return ()
        self.close()
        self._made = {None: self._made[None]} if own is None and None in self._made else {}
        refs = discard_slots(store, settings) if settings.candidates > 1 else ()
        kept = None if own is None else own.discard()
        return refs if kept is None else (*refs, kept)


_Future = concurrent.futures.Future[object]
_Pass = Way[IterationRecord | None]


@dataclass
class Batch:
    """Runs the iterations of one plan, at most ``workers`` at a time. ``recorded`` is told of each that is acknowledged."""

    run: LoopRun
    trees: Trees
    plan: BatchPlan
    recorded: Callable[[IterationRecord], None]
    _todo: deque[tuple[int, int | None]] = field(init=False)
    _under_way: dict[_Future, _Pass] = field(init=False, default_factory=dict[_Future, _Pass])
    _refused: StopDecision | None = field(init=False, default=None)
    _full: Exception | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._todo = deque(zip(self.plan.numbers, self.plan.candidates, strict=True))

    def go(self) -> StopDecision | None:
        """Run them; return why the budget ends the loop, if it does. What could not be recorded is simply still missing then.

        After an error the programs that run are ended, and the error is raised; after a full disk they may end by themselves.
        """
        with concurrent.futures.ThreadPoolExecutor(self.run.settings.workers, thread_name_prefix="jumar-candidate") as pool:
            try:
                while self._begin(pool) or self._under_way:
                    self._take_results(pool)
            except BaseException:
                self.run.switch.immediate.set()
                raise
        if self._full is not None:
            raise self._full
        return self._refused

    @contextlib.contextmanager
    def _going_on(self) -> Generator[None]:
        """A disk that is full for one iteration begins no other; those that run come to their end, and are on record with it."""
        try:
            yield
        except (JumarError, OSError) as error:
            if not disk_is_full(error):
                raise
            self._full = self._full or error
            self._todo.clear()

    def _begin(self, pool: concurrent.futures.Executor) -> bool:
        """Start what may start; return whether there is more that may still come."""
        while self._todo and not self.run.switch.requested and len(self._under_way) < self.run.settings.workers:
            answer = may_begin(self.run, running=len(self._under_way))
            if isinstance(answer, Stop):
                self._refused = answer.decision
                self._todo.clear()
            elif isinstance(answer, Wait):
                if self._under_way:
                    break
                wait_for(self.run, "calls_per_hour", answer.seconds or 0.0, detail=answer.why)
            else:
                number, candidate = self._todo.popleft()
                with self._going_on():
                    self._start(pool, number, candidate)
        return bool(self._todo) and not self.run.switch.requested

    def _start(self, pool: concurrent.futures.Executor, number: int, candidate: int | None) -> None:
        workspace = self.trees.of(candidate)
        workspace.restore(self.plan.parent)
        way = self.trees.step(candidate).generate(number, self.plan.parent, batch=self.plan.batch, candidate=candidate)
        self._under_way[pool.submit(next(way))] = way

    def _take_results(self, pool: concurrent.futures.Executor) -> None:
        if not self._under_way:
            return
        done, _ = concurrent.futures.wait(self._under_way, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in done:
            with self._going_on():
                self._go_on(pool, self._under_way.pop(future), future)

    def _go_on(self, pool: concurrent.futures.Executor, way: _Pass, future: _Future) -> None:
        error = future.exception()
        try:
            work = way.send(future.result()) if error is None else way.throw(error)
        except StopIteration as end:
            record: IterationRecord | None = end.value
            if record is not None:
                self.recorded(record)
            elif any(turned_away(self.run, number)[0] for number in self.plan.numbers):
                self._todo.clear()  # the provider wants us to wait: the rest comes after that, with the one that was refused
        else:
            self._under_way[pool.submit(work)] = way
