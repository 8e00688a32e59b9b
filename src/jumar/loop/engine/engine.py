"""One loop from start to end: run steps until a rule says stop, then choose the best and put it in place."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from jumar.core.clock import SystemClock, current_user
from jumar.errors import ConflictError, JumarError, NothingEvaluatedError, StoreWriteError, UsageError
from jumar.loop.decisions.apply import finish
from jumar.loop.decisions.select import record_selection
from jumar.loop.engine.accounting import may_begin, refused_text, refused_too_often, turned_away, wait_for
from jumar.loop.engine.finals import Finals, Recheck, put_in_place, recheck_of
from jumar.loop.engine.iteration import Batch, Trees
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.engine.resume import record_failed, recover
from jumar.loop.engine.run_context import LoopRun, drive
from jumar.loop.engine.verdict import words_on_start
from jumar.loop.events.events import LATEST, IterationRecorded, Listener, Listeners, LoopEnded, LoopStarted, StopDecided
from jumar.loop.events.log import EventLog
from jumar.loop.ranking.confirmed import Certainty, certainty
from jumar.loop.ranking.ratchet import BatchPlan, missing_of_batch, plan_next
from jumar.loop.ranking.score import resolve_weights
from jumar.loop.ranking.stopping import check_rules, evaluate_stop
from jumar.loop.report.views import held_output, refresh_views
from jumar.loop.scorers.checks import ChecksScorer
from jumar.loop.settings import LoopParts, LoopSettings
from jumar.loop.store.in_force import RunningTotals, evidence_of, held, select_from, standing, unfinished
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.repair import quarantined
from jumar.loop.store.running import locked_tree
from jumar.loop.workspace.disk_space import Space, disk_is_full, with_room
from jumar.model import Clock, IterationRecord, SelectionResult, StopDecision
from jumar.model.budget.gate import Go, Stop, Wait, check_budget
from jumar.model.budget.ledger import count_failures
from jumar.model.selection import REQUESTED_REASONS, UNENDED_REASONS
from jumar.processes.control import StopSwitch


def check_settings(settings: LoopSettings, parts: LoopParts) -> None:
    """Refuse settings that cannot work with the parts, before anything is created or paid for.

    Errors: :class:`UsageError` without a scorer, :class:`jumar.errors.ScoreError` for weights or rules that cannot be used.
    """
    if not parts.scorers:
        raise UsageError("a loop needs at least one scorer; the built-in 'checks' scores how far the checks pass")
    resolve_weights([scorer.dimension for scorer in parts.scorers], settings.weights or None)
    if parts.holdout:
        resolve_weights([scorer.dimension for scorer in parts.holdout], settings.holdout_weights or None)
    check_rules(settings.stop)
    if settings.candidates < 1 or settings.workers < 1:
        raise UsageError(f"candidates = {settings.candidates} and workers = {settings.workers} should be 1 or more")
    check_budget(settings.budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop with its store and parts; :meth:`run` starts it, or resumes it.

    The same records always lead to the same decisions: whether to stop, what to go on from and what is best are recomputed from
    the store, so that a run that was killed continues as if it had not been.
    """

    shared: LoopRun

    @classmethod
    def of(
        cls,
        store: LoopStore,
        settings: LoopSettings,
        parts: LoopParts,
        *,
        clock: Clock | None = None,
        switch: StopSwitch | None = None,
        listener: Listener | None = None,
        listeners: Sequence[Listener] = (),
        steps: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Loop:
        """Check the settings against the parts and return the loop. Errors: :class:`UsageError` and its kinds.

        ``listener`` and then ``listeners`` hear every event after ``events.jsonl`` has it; see :class:`Listeners`. ``steps`` is
        how many iterations a run may make before it rests, None for all. ``sleep`` waits, where the loop has to, for seconds of
        ``clock``.
        """
        check_settings(settings, parts)
        switch = switch or StopSwitch()
        switch.watch(store.paths.stop_files())
        heard_by = [EventLog(store.paths.events).hear, *([] if listener is None else [listener]), *listeners]
        shared = LoopRun(
            store=store,
            settings=settings,
            parts=parts,
            clock=clock or SystemClock(),
            switch=switch,
            tally=RunningTotals(store, settings.budget, settings.criteria),
            listener=Listeners(heard_by),
            space=Space(store, settings.workdir),
            steps=steps,
            sleep=sleep,
        )
        return cls(shared=shared)

    @property
    def store(self) -> LoopStore:
        """Where the loop is kept."""
        return self.shared.store

    @property
    def settings(self) -> LoopSettings:
        """What the loop was told."""
        return self.shared.settings

    @property
    def parts(self) -> LoopParts:
        """The programs of the loop."""
        return self.shared.parts

    def stopped(self) -> StopDecision | None:
        """Return why the loop is at its end, from what is on disk; None when it may go on."""
        if not self.store.iteration_numbers():
            return None
        answer = may_begin(self.shared)
        refused = answer.decision if isinstance(answer, Stop) else None
        views, stop = self.store.views(), self.settings.stop
        if missing_of_batch(views, candidates=self.settings.candidates, max_iterations=stop.max_iterations):
            return refused  # half a batch is no ground for a judgement
        decision = evaluate_stop(views, stop, seconds=self.shared.tally.spend().seconds)
        if decision is not None and self._forgiven(decision):
            return refused
        return decision or refused

    def _forgiven(self, decision: StopDecision) -> bool:
        """Whether a person saw to what ended the loop, so that the next pass deserves its chance.

        Failures in a row are forgiven when the configuration was changed after the last of them; a generator that is blocked,
        when the loop has ended for it before and somebody runs it again.
        """
        if decision.reason == "blocked":
            return self.finished()
        if decision.reason != "consecutive_failures":
            return False
        accepted = [decision.final_iteration for decision in self.store.decisions() if decision.kind == "accept"]
        return bool(accepted) and accepted[-1] == self.store.views()[-1].number

    def finished(self) -> bool:
        """Return whether the last iteration was followed by everything that belongs to the end: choice, apply and all."""
        return self.store.end() is not None

    def run(self) -> LoopOutcome:
        """Run until a stop rule fires or somebody asks to stop; choose, apply, and return the outcome.

        Errors: :class:`LockedError` when another process writes this loop or works in this tree, :class:`StoreWriteError` when
        the disk refuses, :class:`ArtifactError` when the tree is over its quota. Whatever was acknowledged stays.
        """
        with self._locks():
            told = quarantined(self.store)
            ended = self.stopped()
            if ended is not None and self.finished() and not self.store.pending_numbers():
                self.store.discard_leftovers()
                refresh_views(self.store, at=self.shared.clock.now())
                return self._outcome(ended, resumed=True, already_finished=True)
            with contextlib.closing(Trees(self.shared)) as trees:
                made = (*self.store.iteration_numbers(), *self.store.pending_numbers())
                resumed = bool(made) or any(attempt.start.purpose == "generate" for attempt in self.store.attempts())
                stop = self._unless_full(lambda: self._steps(trees, told, resumed=resumed))
                self.shared.tell(StopDecided(reason=stop.reason, detail=stop.detail))
                outcome = self._finish(stop, trees, resumed=resumed)
                self.shared.tell(LoopEnded(outcome=outcome.to_json()))
                return outcome

    @contextlib.contextmanager
    def _locks(self) -> Generator[None]:
        """Hold the loop's lock and, in place, the working directory's: two loops must not change one tree."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.store.lock())
            if self.settings.in_place:
                stack.enter_context(locked_tree(self.store, self.settings.workdir))
            yield

    def _unless_full(self, action: Callable[[], StopDecision]) -> StopDecision:
        """Do ``action`` and return why the loop ends; a disk that is full in the middle of it is such a reason.

        What was kept back is given up then: decisions are small.
        """
        try:
            return action()
        except (JumarError, OSError) as error:
            if not disk_is_full(error):
                raise
            if self.shared.space is not None:
                self.shared.space.release()
            return StopDecision(reason="disk_full", detail=str(error))

    def _steps(self, trees: Trees, told: Sequence[str], *, resumed: bool) -> StopDecision:
        trees.of(None)
        numbers = self.store.iteration_numbers()
        best = self.shared.tally.best()
        self._finish_apply()
        started = LoopStarted(
            loop_id=self.settings.loop_id,
            resumed=resumed,
            rules=self.settings.stop,
            recorded=len(numbers),
            latest=tuple(self.store.record(number, listed=False) for number in numbers[-LATEST:]),
            best=best and best.number,
            weights=self.settings.weights,
            budget=self.settings.budget,
            spend=self.shared.tally.spend(),
        )
        self.shared.tell(started)
        self._warn(told)
        for notice in self.shared.guard.begin(trees.of(None)):
            self._notice(notice)
        pays = self.stopped() is None or self.store.pending_numbers()  # what waits may have to be scored
        full = self._disk_full() if pays else None
        if full is not None:
            return full
        self._telling(lambda: recover(self.shared, trees))
        if not self.store.iteration_numbers():
            self._make_ready(trees, (None, *range(1, self.settings.candidates + 1)) if self.settings.candidates > 1 else (None,))
        if not self.store.iteration_numbers() and not self.shared.switch.requested:
            self._recorded(drive(trees.step(None).start_state()))
            for words in self._words_on_start():
                self._notice(words)
        self.shared.surroundings.note_checks(trees.of(None))
        stop = self._iterate(trees)
        if stop.reason not in REQUESTED_REASONS:
            self._telling(lambda: record_failed(self.shared, trees))
        stop = Finals(run=self.shared, trees=trees).go(stop)
        return Recheck(run=self.shared, trees=trees).go(stop)

    def _words_on_start(self) -> tuple[str, ...]:
        if not self.store.iteration_numbers():
            return ()
        of_checks = [isinstance(scorer, ChecksScorer) for scorer in self.parts.scorers]
        start, rules = self.store.record(0, listed=False), self.settings.stop
        return words_on_start(start, rules, own_scorers=not all(of_checks), checks_score=any(of_checks))

    def _warn(self, told: Sequence[str]) -> None:
        for notice in (*told, *self.settings.notices):
            self._notice(notice)
        waiting = held(self.store.decisions())
        if waiting is not None:
            wanted, who = waiting.data.get("wanted"), waiting.data.get("made_by")
            self._notice(f"iteration {wanted} is not selected, because {who} was there when that was asked for; a person says so")
        if not self.parts.validators and self.settings.criteria.mode == "highest_quality_verified":
            self._notice("there are no checks, so nothing is verified and the selection is by score alone")
        if self.settings.completion_promise and not self.parts.validators and self.settings.stop.target is None:
            self._notice("nothing can agree with the completion promise, so it ends nothing: add [[checks]] or [stop] target")
        threshold = self.settings.criteria.threshold
        if threshold is not None and 0 < threshold <= 1:
            self._notice(f"the threshold {threshold:g} is on a scale of 0 to 100; did you mean {100 * threshold:g}?")

    def _finish_apply(self) -> None:
        """Complete an apply that was cut off, so that the tree is one state and not half of two."""
        if unfinished(self.store) is None:
            return
        try:
            finish(self.store, by=current_user(), at=self.shared.clock.now())
        except ConflictError as error:
            raise ConflictError(f"an apply of loop '{self.settings.loop_id}' was interrupted: {error}") from error
        self._notice("an apply that was interrupted is complete now")

    def _iterate(self, trees: Trees) -> StopDecision:
        made = 0
        while True:
            stop = self.stopped() or self._asked_to_stop() or self._rests(made) or self._disk_full()
            if stop is not None:
                return stop
            plan = plan_next(
                evidence_of(self.store),
                self.shared.criteria,
                candidates=self.settings.candidates,
                max_iterations=self.settings.stop.max_iterations,
                continue_from=self.settings.continue_from,
            )
            stop = self._wait(plan)
            if stop is not None:
                return stop
            self._make_ready(trees, plan.candidates)
            if self.shared.switch.requested:
                continue
            made += len(plan.numbers)
            if plan.batch is None:
                trees.of(None).restore(plan.parent)
                self._recorded(drive(trees.step(None).generate(plan.numbers[0], plan.parent)))
                continue
            stop = Batch(run=self.shared, trees=trees, plan=plan, recorded=self._recorded).go()
            if stop is not None:
                return stop

    def _make_ready(self, trees: Trees, candidates: Iterable[int | None]) -> None:
        """Have the person's ``setup`` done in the trees of ``candidates``, before anything is paid for them."""
        for candidate in candidates:
            if not self.shared.switch.requested:
                trees.ready(candidate)

    def _wait(self, plan: BatchPlan) -> StopDecision | None:
        """Wait as a provider that refused has asked for, and until another call is allowed; or say why the loop gives up."""
        for number in plan.numbers:
            gives_up = refused_too_often(self.shared, number)
            if gives_up is not None:
                return gives_up
            refused, seconds = turned_away(self.shared, number)
            wait_for(self.shared, "rate_limited", seconds, iteration=number, detail=refused_text(refused))
        answer = may_begin(self.shared)
        while isinstance(answer, Wait) and not self.shared.switch.requested:
            wait_for(self.shared, "calls_per_hour", answer.seconds or 0.0, iteration=plan.numbers[0], detail=answer.why)
            answer = may_begin(self.shared)
        if isinstance(answer, Go) and answer.note is not None:
            self.shared.notice_once("what the budget does not count", answer.note)
        return None

    def _disk_full(self) -> StopDecision | None:
        """Look for room before an iteration is paid for; what is kept back for its end is laid in where it was used up."""
        space = self.shared.space
        full = None if space is None else space.check()
        if space is not None and full is None and not space.rebuild():
            full = f"the disk or a quota is full where {space.directory} lies: free some space, and run the same command again"
        return None if full is None else StopDecision(reason="disk_full", detail=full)

    def _asked_to_stop(self) -> StopDecision | None:
        return self.shared.switch.decision() if self.shared.switch.requested else None

    def _rests(self, made: int) -> StopDecision | None:
        if self.shared.steps is None or made < self.shared.steps:
            return None
        detail = "as many iterations as were asked for are made; run the same command again to resume"
        return StopDecision(reason="paused", detail=detail)

    def _telling(self, action: Callable[[], None]) -> None:
        """Do ``action``, then tell of the iterations that it recorded."""
        known = set(self.store.iteration_numbers())
        action()
        for number in self.store.iteration_numbers():
            if number not in known:
                self._recorded(self.store.record(number, listed=False))

    def _recorded(self, record: IterationRecord | None) -> None:
        if record is None:
            return
        best = self.shared.tally.best()
        self.shared.tell(IterationRecorded(record=record, best=best and best.number, spend=self.shared.tally.spend()))

    def _notice(self, message: str) -> None:
        self.shared.notice(message)

    def _finish(self, stop: StopDecision, trees: Trees, *, resumed: bool) -> LoopOutcome:
        applied: int | None = None
        problem: str | None = None
        for notice in self.shared.guard.end():
            self._notice(notice)
        selection = self._selection()

        def settle() -> StopDecision:
            nonlocal applied, problem
            if selection is not None:
                at, by = self.shared.clock.now(), current_user()
                record_selection(self.store, selection, by=by, at=at)
                if self.settings.apply == "auto":
                    applied, problem = put_in_place(self.shared, trees, by=by, at=at)
            self._record_end(stop, selection)
            for ref in trees.discard():
                self._notice(f"what was committed in a worktree that was removed stays reachable as {ref}")
            return stop

        ends = stop if stop.reason in UNENDED_REASONS else self._unless_full(settle)
        if ends.reason == "disk_full":
            self._choose_on_a_full_disk(selection)
        ends = self._unless_full(lambda: self._refreshed(ends))
        if ends is not stop:
            self.shared.tell(StopDecided(reason=ends.reason, detail=ends.detail))
        return self._outcome(ends, resumed=resumed, applied=applied, problem=problem)

    def _choose_on_a_full_disk(self, selection: SelectionResult | None) -> None:
        """Put the choice so far on record, with the room that was kept back; where even that is used, the next run does it."""
        if selection is None:
            return
        with contextlib.suppress(StoreWriteError):
            write = partial(record_selection, self.store, selection, by=current_user(), at=self.shared.clock.now())
            with_room(self.shared.space, write)

    def _refreshed(self, stop: StopDecision) -> StopDecision:
        try:
            refresh_views(self.store, at=self.shared.clock.now())
        except JumarError as error:
            if stop.reason != "disk_full" or not disk_is_full(error):
                raise
        return stop

    def _record_end(self, stop: StopDecision, selection: SelectionResult | None) -> None:
        self.store.add_decision(
            "end",
            best_iteration=selection and selection.stands,
            final_iteration=self.store.iteration_numbers()[-1],
            delta=None,
            decision=None,
            reason=stop.detail,
            by=current_user(),
            at=self.shared.clock.now(),
            data={
                "stop_reason": stop.reason,
                "attempts": self.store.last_attempt(),
                "budget": self.settings.budget.to_json(),
            },
        )

    def _selection(self) -> SelectionResult | None:
        try:
            return select_from(self.store, self.shared.criteria)
        except NothingEvaluatedError:
            return None

    def _outcome(
        self,
        stop: StopDecision,
        *,
        resumed: bool,
        applied: int | None = None,
        problem: str | None = None,
        already_finished: bool = False,
    ) -> LoopOutcome:
        selection = self._selection()
        views = self.store.views()
        return LoopOutcome(
            loop_id=self.settings.loop_id,
            directory=self.store.paths.directory,
            workdir=self.settings.workdir,
            selection=selection,
            chosen=None if selection is None else self.store.record(selection.stands, listed=False),
            start=self.store.record(0, listed=False) if 0 in self.store.iteration_numbers() else None,
            stop=stop,
            spend=self.shared.tally.spend(),
            output=self.store.paths.final_output.resolve(),
            output_holds=held_output(self.store),
            passes_ok=sum(view.status == "ok" and view.number > 0 for view in views),
            has_validators=bool(self.parts.validators),
            resumed=resumed,
            applied=applied,
            apply_problem=problem,
            writes_back=self.settings.apply == "auto",
            already_finished=already_finished,
            failures=count_failures(self.store.attempts(), views),
            budget=self.settings.budget,
            certainty=self._certainty(selection),
            tie_with_start=selection is not None and selection.kept is not None and not self._overridden(),
            recheck=recheck_of(self.shared, selection and selection.stands),
        )

    def _overridden(self) -> bool:
        decision = standing(self.store).decision
        return decision is not None and decision.kind == "override"

    def _certainty(self, selection: SelectionResult | None) -> Certainty | None:
        evidence = evidence_of(self.store)
        if selection is None or not evidence.noisy:
            return None
        return certainty(evidence, self.shared.criteria, selection)
