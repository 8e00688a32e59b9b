"""One loop from start to end: run steps until a rule says stop, then choose the best and put it in place."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from jumar.decide.apply import apply, finish, plan_apply, unfinished
from jumar.decide.evidence import select_from
from jumar.decide.select import record_selection
from jumar.decide.standing import standing
from jumar.decide.treelock import locked_tree
from jumar.errors import ConflictError, NothingEvaluatedError, StoreWriteError, UsageError
from jumar.loop.clock import SystemClock
from jumar.loop.control import StopSwitch
from jumar.loop.event_log import EventLog
from jumar.loop.events import IterationRecorded, Listener, LoopStarted, Notice, deliver
from jumar.loop.identity import current_user
from jumar.loop.listeners import Listeners
from jumar.loop.outcome import LoopOutcome
from jumar.loop.resume import choose_parent, recover
from jumar.loop.settings import LoopParts, LoopSettings, achievable
from jumar.loop.step import Step
from jumar.loop.tally import Tally
from jumar.loop.workspace import Workspace
from jumar.model import Clock, IterationRecord, SelectionResult, StopDecision
from jumar.model.stopping import REQUESTED_REASONS
from jumar.ranking.score import resolve_weights
from jumar.ranking.stopping import check_rules, evaluate_stop
from jumar.report.views import refresh_views
from jumar.store.loop_store import LoopStore

__all__ = ["Loop", "check_settings"]

_PERFECT = 100.0


def check_settings(settings: LoopSettings, parts: LoopParts) -> None:
    """Refuse settings that cannot work with the parts, before anything is created or paid for.

    Errors: :class:`UsageError` without a scorer, :class:`jumar.errors.ScoreError` for weights or rules that cannot be used.
    """
    if not parts.scorers:
        raise UsageError("a loop needs at least one scorer; the built-in 'checks' scores the share of validators that pass")
    resolve_weights([scorer.dimension for scorer in parts.scorers], settings.weights or None)
    check_rules(settings.stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop with its store and parts; :meth:`run` starts it, or goes on with it.

    The same records always lead to the same decisions: whether to stop, what to go on from and what is best are recomputed from
    the store, so that a run that was killed continues as if it had not been.
    """

    store: LoopStore
    settings: LoopSettings
    parts: LoopParts
    clock: Clock
    switch: StopSwitch
    tally: Tally
    listener: Listener | None = None

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
    ) -> Loop:
        """Check the settings against the parts and return the loop. Errors: :class:`UsageError` and its kinds.

        ``listener`` and then ``listeners`` hear every event after ``events.jsonl`` has it; see :class:`Listeners`.
        """
        check_settings(settings, parts)
        switch = switch or StopSwitch()
        switch.watch(store.paths.stop_files())
        heard_by = [EventLog(store.paths.events).hear, *([] if listener is None else [listener]), *listeners]
        return cls(
            store=store,
            settings=settings,
            parts=parts,
            clock=clock or SystemClock(),
            switch=switch,
            tally=Tally(store),
            listener=Listeners(heard_by),
        )

    def stopped(self) -> StopDecision | None:
        """Return why the loop is at its end, from what is on disk; None when it may go on."""
        if self.store.pending() is not None or not self.store.iteration_numbers():
            return None
        decision = evaluate_stop(self.store.views(), self.settings.stop, seconds=self.tally.spend().seconds)
        if decision is not None and decision.reason == "consecutive_failures" and self._forgiven():
            return None
        return decision

    def _forgiven(self) -> bool:
        """Whether a person changed the configuration after the last failed pass: the next one deserves its chance."""
        accepted = [decision.final_iteration for decision in self.store.decisions() if decision.kind == "accept"]
        return bool(accepted) and accepted[-1] == self.store.views()[-1].number

    def finished(self) -> bool:
        """Return whether the last iteration was followed by everything that belongs to the end: choice, apply and all."""
        ends = [decision for decision in self.store.decisions() if decision.kind == "end"]
        numbers = self.store.iteration_numbers()
        return bool(ends and numbers) and ends[-1].final_iteration == numbers[-1]

    def run(self) -> LoopOutcome:
        """Run until a stop rule fires or somebody asks to stop; choose, apply, and return the outcome.

        Errors: :class:`LockedError` when another process writes this loop or works in this tree, :class:`StoreWriteError` when
        the disk refuses, :class:`ArtifactError` when the tree is over its quota. Whatever was acknowledged stays.
        """
        with self._locks():
            ended = self.stopped()
            if ended is not None and self.finished():
                self.store.discard_leftovers()
                return self._outcome(ended, resumed=True, already_finished=True)
            workspace = Workspace(self.store, self.settings)
            workspace.prepare()
            step = Step(
                store=self.store,
                settings=self.settings,
                parts=self.parts,
                workspace=workspace,
                clock=self.clock,
                switch=self.switch,
                tally=self.tally,
                listener=self.listener,
            )
            return self._run_steps(step)

    @contextlib.contextmanager
    def _locks(self) -> Generator[None]:
        """Hold the loop's lock and, in place, the work tree's: two loops must not change one tree."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.store.lock())
            if self.settings.in_place:
                stack.enter_context(locked_tree(self.store, self.settings.workdir))
            yield

    def _run_steps(self, step: Step) -> LoopOutcome:
        resumed = bool(self.store.attempts()) or bool(self.store.iteration_numbers())
        self._finish_apply()
        started = LoopStarted(
            loop_id=self.settings.loop_id,
            resumed=resumed,
            rules=self.settings.stop,
            recorded=tuple(self.store.records()),
            weights=self.settings.weights,
        )
        deliver(started, self.listener)
        if not self.parts.validators and self.settings.criteria.mode == "highest_quality_verified":
            self._notice("there are no validators, so nothing is verified and the choice is by score alone")
        threshold = self.settings.criteria.threshold
        if threshold is not None and 0 < threshold <= 1:
            self._notice(f"the threshold {threshold:g} is on a scale of 0 to 100; did you mean {100 * threshold:g}?")
        known = set(self.store.iteration_numbers())
        for notice in recover(step).notices:
            self._notice(notice)
        for number in self.store.iteration_numbers():
            if number not in known:
                self._recorded(self.store.record(number))
        if not self.store.iteration_numbers() and not self.switch.requested:
            self._recorded(step.start_state())
            self._warn_of_a_perfect_start()
        stop = self._iterate(step)
        return self._finish(stop, step, resumed=resumed)

    def _warn_of_a_perfect_start(self) -> None:
        views = self.store.views()
        if views and views[0].score == _PERFECT:
            self._notice(
                "the start already has the highest score there is: no pass can beat it, and among equals the earlier is kept; "
                "add a check that is still red, or a scorer that tells good from better"
            )

    def _finish_apply(self) -> None:
        """Complete an apply that was cut off, so that the tree is one state and not half of two."""
        if unfinished(self.store) is None:
            return
        try:
            finish(self.store, by=current_user(), at=self.clock.now())
        except ConflictError as error:
            way_out = f"`jumar apply {self.settings.loop_id} --undo` takes it back"
            raise ConflictError(f"an apply of loop '{self.settings.loop_id}' was interrupted: {error}; {way_out}") from error
        self._notice("an apply that was interrupted is complete now")

    def _iterate(self, step: Step) -> StopDecision:
        while True:
            stop = self.stopped() or self._asked_to_stop()
            if stop is not None:
                return stop
            views = self.store.views()
            parent = choose_parent(views, self.settings.continue_from, self.tally.best())
            step.workspace.restore(parent)
            self._recorded(step.generate(views[-1].number + 1, parent))

    def _asked_to_stop(self) -> StopDecision | None:
        if not self.switch.requested:
            return None
        return self.switch.decision()

    def _recorded(self, record: IterationRecord | None) -> None:
        if record is None:
            return
        best = self.tally.best()
        deliver(IterationRecorded(record=record, best=best and best.number, spend=self.tally.spend()), self.listener)

    def _notice(self, message: str) -> None:
        deliver(Notice(message=message), self.listener)

    def _finish(self, stop: StopDecision, step: Step, *, resumed: bool) -> LoopOutcome:
        applied: int | None = None
        problem: str | None = None
        selection = self._selection()
        interrupted = stop.reason in REQUESTED_REASONS
        if selection is not None and not interrupted:
            at, by = self.clock.now(), current_user()
            record_selection(self.store, selection, by=by, at=at)
            if self.settings.apply == "auto":
                applied, problem = self._apply(step, by=by, at=at)
        if not interrupted:
            self._record_end(stop, selection)
        return self._outcome(stop, resumed=resumed, applied=applied, problem=problem)

    def _apply(self, step: Step, *, by: str, at: str) -> tuple[int | None, str | None]:
        """Restore the iteration that stands: the chosen one, unless a person chose another.

        A refusal is reported; a disk that failed is an error, and the next run tries again.
        """
        stands = standing(self.store)
        if stands.iteration is None or stands.decision is None:
            return None, None
        if stands.decision.kind == "override":
            self._notice(f"iteration {stands.iteration} stands by choice of {stands.decision.by}: {stands.decision.reason}")
        reason = f"end of the loop: {stands.decision.reason}"
        try:
            plan = plan_apply(self.store, stands.iteration, self.settings.workdir, self.settings.artifacts)
            if plan.write or plan.delete:
                return apply(self.store, plan, by=by, at=at, reason=reason).number, None
        except UsageError as error:
            if isinstance(error.__cause__, OSError):  # not refused: the disk failed, and the next run tries again
                raise StoreWriteError(f"the best was not put into {step.workspace.directory}: {error}") from error
            self._notice(f"the best was not put into {step.workspace.directory}: {error}")
            return None, str(error)
        return None, None

    def _record_end(self, stop: StopDecision, selection: SelectionResult | None) -> None:
        self.store.add_decision(
            "end",
            best_iteration=selection and selection.selected_iteration,
            final_iteration=self.store.iteration_numbers()[-1],
            delta=None,
            decision=None,
            reason=stop.detail,
            by=current_user(),
            at=self.clock.now(),
            data={"stop_reason": stop.reason},
        )

    def _selection(self) -> SelectionResult | None:
        try:
            criteria = achievable(self.settings.criteria, has_validators=bool(self.parts.validators))
            return select_from(self.store, criteria)
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
        refresh_views(self.store, at=self.clock.now())
        selection = self._selection()
        views = self.store.views()
        return LoopOutcome(
            loop_id=self.settings.loop_id,
            directory=self.store.paths.directory,
            workdir=self.settings.workdir,
            selection=selection,
            chosen=None if selection is None else self.store.record(selection.selected_iteration),
            stop=stop,
            spend=self.tally.spend(),
            output=self.store.paths.final_output.resolve(),
            passes_ok=sum(view.status == "ok" and view.number > 0 for view in views),
            has_validators=bool(self.parts.validators),
            resumed=resumed,
            applied=applied,
            apply_problem=problem,
            writes_back=self.settings.apply == "auto",
            already_finished=already_finished,
        )
