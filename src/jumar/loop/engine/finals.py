"""After the last iteration: finalists are scored again, the selected is confirmed and checked once more, and put in place.

What is still to be read follows from the records and readings alone (:func:`jumar.loop.ranking.confirmed.next_reading`), so a
run that was killed resumes what is missing and repeats nothing.

The recheck runs the checks of the selected iteration on what its snapshot holds and nothing else. The iteration is restored.
What is in no snapshot and is new or changed since the loop began (:mod:`jumar.loop.workspace.surroundings`) is out of the way
meanwhile (:mod:`jumar.loop.workspace.set_aside`), and the person's ``setup`` makes anew what it makes. A verdict against the
iteration is believed only when nothing was missing that cannot be made: what was changed in no snapshot cannot be put back.
Nothing is run where the answer is known: the selected iteration was the last thing that ran, the tree still holds its snapshot,
and around that everything is as when the loop began. Then its own checks saw just that.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from jumar.core.clock import current_user
from jumar.core.codec import FORMAT, decode, encode
from jumar.core.files import as_write_error, content_of, make_directory, replace_file
from jumar.core.leftovers import is_of_the_machine, remove_any
from jumar.core.text import named, points
from jumar.errors import JumarError, NothingEvaluatedError, StoreWriteError, UsageError
from jumar.loop.decisions.apply import apply
from jumar.loop.decisions.plan import ApplyPlan, plan_apply, unclaimed
from jumar.loop.engine.accounting import begin, ended_if_full, refused_reading
from jumar.loop.engine.evaluation import Evaluation
from jumar.loop.engine.iteration import Trees
from jumar.loop.engine.run_context import Answers, LoopRun
from jumar.loop.engine.step_context import Briefing
from jumar.loop.engine.verdict import Verdict, verdict, with_findings
from jumar.loop.events.events import PhaseStarted
from jumar.loop.hooks import reset_failure
from jumar.loop.ranking.confirmed import NextReading, next_reading
from jumar.loop.ranking.score import resolve_weights
from jumar.loop.snapshots.tree import same
from jumar.loop.store.in_force import evidence_of, last_applied, select_from, standing
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.trust import place_of
from jumar.loop.workspace.disk_space import disk_is_full, with_room
from jumar.loop.workspace.set_aside import Aside
from jumar.loop.workspace.surroundings import Differences
from jumar.loop.workspace.workspace import Workspace
from jumar.model import CheckResult, Reading, Scorer, StepContext, StopDecision
from jumar.model.attempts import Attempt
from jumar.model.decisions import Rechecked, rechecks
from jumar.model.selection import UNENDED_REASONS
from jumar.processes.bytecode import clear_bytecode
from jumar.processes.environment import step_seed
from jumar.processes.process_tree import end_strays

_SEED: Final = "JUMAR_SEED"
_LARGEST_LOG: Final = 64 << 20  # bytes of one that is copied
_WORDS: Final = {"rescore": "scored again", "confirm": "scored again, to confirm it", "holdout": "scored by the hold-out"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finals:
    """The end of one run. The caller holds the loop's lock; between readings the working directory is that of some iteration."""

    run: LoopRun
    trees: Trees

    def go(self, stop: StopDecision) -> StopDecision:
        """Read what is still to be read after a loop that ended with ``stop``; return that, or who asked to end it meanwhile.

        The tree is that of the last iteration afterwards. What the budget does not allow is left out and told. Errors: as of the
        store and the working directory; finished readings stay.
        """
        if stop.reason in UNENDED_REASONS:
            return stop
        touched = False
        try:
            while (wanted := self._wanted()) is not None:
                if self.run.switch.requested:
                    return self.run.switch.decision()
                refusal = refused_reading(self.run, wanted.kind)
                if refusal is not None:
                    self.run.notice(f"iteration {wanted.iteration} is not {_WORDS[wanted.kind]}: {refusal}")
                    return stop
                touched = True
                if not self._read(wanted):
                    return self.run.switch.decision()
        finally:
            if touched:
                self._put_back()
        return stop

    def _tree(self) -> Workspace:
        """Return the tree to read in: where candidates have their own, the person's is left alone."""
        return self.trees.of(None if self.run.settings.candidates == 1 else 1)

    def _wanted(self) -> NextReading | None:
        return next_reading(evidence_of(self.run.store), self.run.criteria, held_out=bool(self.run.parts.holdout))

    def _put_back(self) -> None:
        store = self.run.store
        with_snapshot = [number for number in store.iteration_numbers() if store.has_snapshot(number)]
        if with_snapshot:
            self._tree().restore(with_snapshot[-1])

    def _read(self, wanted: NextReading) -> bool:
        """Make one reading, durable when this returns; False when it was stopped in the middle, and there is none."""
        run, store, number = self.run, self.run.store, wanted.iteration
        why = self._unreadable(number)
        if why is not None:
            unread = Verdict(verification="skipped", status="scorer_broken", status_reason=why)
            self._note(wanted, None, unread, Answers())
            return True
        for left in range(run.settings.retries.broken, -1, -1):
            self._tree().restore(number)
            record = store.record(number, listed=False)
            attempt = begin(run, number, record.parent, secrets.token_hex(8), "confirm")
            evaluation = Evaluation(run=run, workspace=self._tree())
            held_out = wanted.kind == "holdout"
            with ended_if_full(run, attempt):
                brief = Briefing.of(run, number, record.parent, batch=record.batch, candidate=record.candidate)
                scratch = brief.scratch(attempt.start.number)
                label = f"{wanted.kind}-{number:03d}-{wanted.turn}"
                context = context_again(run, self._tree(), brief, scratch, nonce=attempt.start.nonce, label=label)
                found = run.found(number, run.guard.before_scoring(number, self._tree(), context.log_directory))
                try:
                    answers = evaluation.ask(context, attempt, held_out=record.checks if held_out else None)
                finally:
                    spoilt = run.found(number, (*evaluation.renewed(), *run.guard.after_scoring(number, self._tree())))
                found = (*found, *(replace(each, distrust=each.fails) for each in spoilt))
                answers = evaluation.not_spoilt(attempt, answers)
            if run.switch.immediate.is_set() or answers.full is not None:
                evaluation.close(attempt, answers, stopped=run.switch.immediate.is_set())
                return False
            scorers = run.parts.holdout if held_out else run.parts.scorers
            judged = with_findings(verdict(answers.checks, answers.readings, self._weights(wanted, scorers)), found)
            if judged.status in {"ok", "invalid_score"} or not left:
                self._note(wanted, attempt, judged, answers)  # before the attempt's end: what was read is never read again
                evaluation.close(attempt, answers, stopped=False)
                return True
            evaluation.close(attempt, answers, stopped=False)
            if refused_reading(run, wanted.kind) is not None:
                self._note(wanted, attempt, judged, answers)
                return True
        return True  # pragma: no cover - the last turn returns

    def _unreadable(self, number: int) -> str | None:
        """Return why an iteration cannot be read again; None where it can."""
        gone = self.run.store.without_snapshot(number)
        if gone is not None:
            return f"its snapshot {gone}"
        killed = self.run.killed(number, "confirm")
        return (
            f"jumar was killed {killed} times while it was read" if self.run.settings.retries.killed_too_often(killed) else None
        )

    def _note(self, wanted: NextReading, attempt: Attempt | None, judged: Verdict, answers: Answers) -> None:
        fields: dict[str, Any] = {
            "at": self.run.clock.now(),
            "attempt": None if attempt is None else attempt.start.number,
            "score": judged.quality,
            "status": judged.status,
            "status_reason": judged.status_reason,
            "dimensions": judged.dimensions,
            "readings": answers.readings,
            "checks": answers.checks,
            "seconds": round(answers.seconds, 6),
        }
        reading = with_room(self.run.space, lambda: self.run.store.add_reading(wanted.kind, wanted.iteration, **fields))
        self.run.notice(f"iteration {wanted.iteration} is {_WORDS[wanted.kind]}: {_found(reading)}")

    def _weights(self, wanted: NextReading, scorers: tuple[Scorer, ...]) -> dict[str, float]:
        """Return the weights of the scorers; a hold-out on the loop's dimensions has the loop's, unless it has its own."""
        settings = self.run.settings
        dimensions = [scorer.dimension for scorer in scorers]
        given = settings.weights
        if wanted.kind == "holdout":
            same = set(dimensions) == {scorer.dimension for scorer in self.run.parts.scorers}
            given = settings.holdout_weights or (settings.weights if same else {})
        return resolve_weights(dimensions, given or None)


def context_again(run: LoopRun, workspace: Workspace, brief: Briefing, scratch: Path, *, nonce: str, label: str) -> StepContext:
    """Return what the checks and scorers of an iteration get that is looked at again: its own prompt, and a seed of ``label``.

    ``scratch`` is an empty directory, ``nonce`` marks the processes.
    """
    number, record = brief.number, run.store.record(brief.number, listed=False)
    with as_write_error("create", scratch):
        for name in ("prompt.md", "feedback.json"):
            _copy(run.store.paths.iteration(number) / "logs" / name, scratch / name)
    generated = None if record.attempt is None else run.store.attempt(record.attempt).end
    context = brief.context(
        workspace,
        scratch,
        "confirm",
        nonce=nonce,
        since=time.time_ns(),
        artifacts=tuple(run.store.manifest(number).entries),
        generator_exit=None if generated is None else generated.exit_code,
    )
    seed = step_seed(run.settings.seed, iteration=number, candidate=record.candidate, purpose=label)
    environment = {**context.environment, _SEED: str(seed)}
    return replace(context, seed=seed, environment=environment, fresh=f"{run.settings.loop_id}/{label}")


def _found(reading: Reading) -> str:
    return points(reading.score) if reading.score is not None else f"no score: {reading.status_reason or reading.status}"


def _copy(source: Path, target: Path) -> None:
    """Copy a log; of one that a program removed, or put something else or far too much in the place of, there is an empty one."""
    data = b""
    with contextlib.suppress(OSError):
        if os.lstat(source).st_size <= _LARGEST_LOG:
            data = content_of(source) or b""
    target.write_bytes(data)


_TRIES: Final = 3
_LOGS: Final = "logs"
_MADE_BY: Final = {
    "node_modules": "npm ci",
    ".venv": "pip install -e .",
    "venv": "pip install -e .",
    "vendor": "composer install",
}


def recheck_of(run: LoopRun, number: int | None) -> Rechecked:
    """Return what the recheck of iteration ``number`` came to, and where there was none, why; None is no iteration at all."""
    found = None if number is None else rechecks(run.store.decisions()).get(number)
    if found is not None:
        return found
    why = "its checks were not run once more"
    if not run.parts.validators:
        why = "there are no checks"
    elif run.settings.recheck == "off":
        why = '[loop] recheck = "off"'
    elif number is None or not _passed(run, number):
        why = "no iteration passed all checks"
    return Rechecked(iteration=number or 0, rechecked=None, because=why)


def _passed(run: LoopRun, number: int) -> bool:
    return any(view.number == number and view.verification == "passed" for view in evidence_of(run.store).views)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck:
    """The recheck at the end of one run. The caller holds the loop's lock."""

    run: LoopRun
    trees: Trees

    def go(self, stop: StopDecision) -> StopDecision:
        """Run the checks of what is selected once more, after a loop that ended with ``stop``; return that, or who asked to end.

        With ``recheck = "strict"`` one that fails is not verified, and the next best is tried, three at most. The tree is as
        before afterwards. Errors: as of the store and the working directory; what was set aside is back then too.
        """
        run, mode = self.run, self.run.settings.recheck
        if stop.reason in UNENDED_REASONS or mode == "off" or not run.parts.validators:
            return stop
        for _ in range(_TRIES):
            number = self._selected()
            known = None if number is None else rechecks(run.store.decisions()).get(number)
            answered = known is not None and (
                known.rechecked or (known.rechecked is False and known.strict == (mode == "strict"))
            )
            if number is None or answered:
                return stop
            if run.switch.requested:
                return run.switch.decision()
            began = run.clock.monotonic()
            nonce = secrets.token_hex(8)
            with self._begun(number, nonce) as killed:
                if run.settings.retries.killed_too_often(killed):
                    found = self._of(number, f"jumar was killed {killed} times while its checks ran once more")
                else:
                    found = self._answer(number, nonce)
            if found is None:
                return run.switch.decision()
            found = replace(found, seconds=round(run.clock.monotonic() - began, 6))
            self._record(found)
            if not found.refused:
                return stop
        return stop

    @contextlib.contextmanager
    def _begun(self, number: int, nonce: str) -> Generator[int]:
        """Have it on disk meanwhile that a recheck runs; give how many before it ended with jumar killed."""
        store, path, killed = self.run.store, self.run.store.paths.recheck_begun, 0
        with contextlib.suppress(JumarError):  # whatever else lies there says nothing
            before = decode(store.trust.read(path), os.fspath(path))
            killed = before.integer("times") if before.integer("iteration") == number else 0
            end_strays(before.text("nonce"))
        document = {"format": FORMAT, "iteration": number, "times": killed + 1, "nonce": nonce}
        with as_write_error("write", path):
            make_directory(path.parent)
            remove_any(path)
            replace_file(path, encode(document, sealed=True, place=place_of(store.nonce, path)))
        try:
            yield killed
        finally:
            with as_write_error("remove", path):
                remove_any(path)

    def _selected(self) -> int | None:
        """Return the number of the iteration that is selected now, if it has passed its checks."""
        with contextlib.suppress(NothingEvaluatedError):
            number = select_from(self.run.store, self.run.criteria).stands
            if _passed(self.run, number):
                return number
        return None

    def _answer(self, number: int, nonce: str) -> Rechecked | None:
        """Return what came of it; None when it was stopped in the middle."""
        run, store = self.run, self.run.store
        limit = run.settings.stop.max_seconds
        gone = store.without_snapshot(number)
        if gone is not None:
            return self._of(number, f"its snapshot {gone}")
        if limit is not None and run.tally.spend().seconds >= limit:
            return self._of(number, "the time is used up ([stop] max_seconds)")
        workspace = self.trees.of(None if run.settings.candidates == 1 else 1)
        before = [each for each in store.iteration_numbers() if store.has_snapshot(each)][-1]
        try:
            workspace.unlock()
            plan = workspace.difference(number)
            workspace.carry_out(plan)
            found = run.surroundings.differences(workspace, (*store.manifest(number).entries, *run.guard.guarded))
            if found is None:
                return self._of(number, "what lay beside its files at the start is not known any more")
            if found.nothing and not plan.write and self._was_last(number) and run.surroundings.alone == number:
                because = "nothing ran after its checks, and beside its files everything is as at the start"
                return replace(self._of(number, because, rechecked=True), ran=False)
            return self._checked(number, workspace, found, nonce)
        except (JumarError, OSError) as error:
            if disk_is_full(error):
                raise
            return self._of(number, f"they could not be run once more: {error}")
        finally:
            workspace.restore(before)

    def _was_last(self, number: int) -> bool:
        attempts = self.run.store.attempts()
        last = attempts[-1].start if attempts else None
        return self.run.settings.candidates == 1 and last is not None and (last.iteration, last.purpose) == (number, "score")

    def _checked(self, number: int, workspace: Workspace, found: Differences, nonce: str) -> Rechecked | None:
        run = self.run
        away = found.roots((*found.new, *found.changed))
        logs = self._logs()
        with Aside(run.store, workspace).away(away, nonce):
            run.found(number, run.guard.before_scoring(number, workspace, logs))
            try:
                self.trees.set_up(workspace)
                workspace.restore(number)  # setup may have changed what the snapshot holds
                missing = [path for path in (*found.changed, *found.gone) if not os.path.lexists(workspace.directory / path)]
                problem, failures = self._failures(number, workspace, nonce, logs)
            finally:
                renewed = Evaluation(run=run, workspace=workspace).renewed()
                spoilt = run.found(number, (*renewed, *run.guard.after_scoring(number, workspace)))
        failures += [finding.message for finding in spoilt if finding.fails]
        if run.switch.immediate.is_set():
            return None
        they = "which is" if len(away) == 1 else "which are"
        without = f" without {named(away)}" if away else ""
        why = f", {they} in no snapshot and new or changed since the start" if away else ""
        if problem is not None:
            return self._of(number, f"they could not be run once more: {problem}")
        if not failures:
            return self._of(number, f"all checks pass{without}{why}", rechecked=True)
        which = failures[0] if len(failures) == 1 else f"{len(failures)} checks fail"
        if missing:
            return self._of(number, f"{which}{without}; {_not_as_before(found.roots(missing))}")
        maker = _maker(away)
        made = f'; [loop] setup = "{maker}" would make it' if maker and run.parts.hooks.setup is None else ""
        return self._of(number, f"{which}{without}{why}{made}", rechecked=False)

    def _logs(self) -> Path:
        logs = self.run.store.paths.recheck / _LOGS
        with as_write_error("create", logs):
            remove_any(logs)
            make_directory(logs)
        return logs

    def _failures(self, number: int, workspace: Workspace, nonce: str, logs: Path) -> tuple[str | None, list[str]]:
        """Run the checks once in a tree that holds the iteration; return why one of them could not answer, and what failed."""
        run = self.run
        record = run.store.record(number, listed=False)
        brief = Briefing.of(run, number, record.parent, batch=record.batch, candidate=record.candidate)
        context = context_again(run, workspace, brief, logs, nonce=nonce, label="recheck")
        evaluation = Evaluation(run=run, workspace=workspace)
        run.tell(PhaseStarted(iteration=number, candidate=record.candidate, phase="verify"))
        run.found(number, run.guard.put_back(workspace, logs))
        problem = reset_failure(run.parts.hooks, context, "score", tries=1)
        checks: list[CheckResult] = []
        if problem is None:
            checks += (validator.validate(evaluation.cleared(context)) for validator in run.parts.validators)
        problem = next((f"check '{check.name}': {check.broken}" for check in checks if check.broken is not None), problem)
        return problem, [f"check '{check.name}' fails" for check in checks if not check.passed]

    def _of(self, number: int, because: str, *, rechecked: bool | None = None) -> Rechecked:
        return Rechecked(iteration=number, rechecked=rechecked, because=because, strict=self.run.settings.recheck == "strict")

    def _record(self, found: Rechecked) -> None:
        run, store = self.run, self.run.store
        data: dict[str, Any] = {name: getattr(found, name) for name in ("iteration", "rechecked", "ran", "strict", "seconds")}
        fields = {"best_iteration": None, "final_iteration": store.iteration_numbers()[-1], "delta": None, "decision": None}
        at, by = run.clock.now(), current_user()
        with_room(run.space, lambda: store.add_decision("recheck", reason=found.because, by=by, at=at, data=data, **fields))
        if found.rechecked is not True:
            run.notice(f"iteration {found.iteration} was checked once more, from its snapshot alone: {found.because}")


def _not_as_before(folders: Sequence[str]) -> str:
    """Return what to say of directories and files that changed or went and are in no snapshot, and the way out."""
    maker = _maker(folders)
    they, it = ("is", "it") if len(folders) == 1 else ("are", "them")
    way_out = f'[loop] setup = "{maker}" makes {it} anew' if maker else f"name the command that makes {it} in [loop] setup"
    return f"{named(folders)} {they} not as at the start, and no snapshot holds {it}: {way_out}"


def _maker(folders: Sequence[str]) -> str | None:
    """Return the usual command that makes one of the directories; None where nobody knows."""
    return next((_MADE_BY[part] for folder in folders for part in PurePosixPath(folder).parts if part in _MADE_BY), None)


def put_in_place(run: LoopRun, trees: Trees, *, by: str, at: str) -> tuple[int | None, str | None]:
    """Restore the iteration that stands: the selected one, unless a person selected another.

    Returns the number of the apply, None when nothing had to be written, and why it was refused, None when it was not. Bytecode
    that the last programs left belongs to no iteration, and goes. Errors: :class:`StoreWriteError` when the disk failed; the next
    run tries again.
    """
    applied, problem = _apply(run, by=by, at=at)
    if run.settings.in_place:
        workspace = trees.of(None)
        kept, had = workspace.paths(), run.surroundings.had
        clear_bytecode(workspace.directory, kept, os.environ, known=lambda path, status: had(workspace, path, status))
    return applied, problem


def _apply(run: LoopRun, *, by: str, at: str) -> tuple[int | None, str | None]:
    store, workdir = run.store, run.settings.workdir
    stands = standing(store)
    if stands.iteration is None or stands.decision is None:
        return None, None
    if stands.decision.kind == "override":
        run.notice(f"iteration {stands.iteration} was selected by {stands.decision.by}: {stands.decision.reason}")
    try:
        plan = plan_apply(store, stands.iteration, workdir, run.settings.artifacts, exact=_alone(run))
        if plan.left_alone:
            run.notice(f"left alone in {workdir}: {unclaimed(plan.left_alone)}")
        if plan.write or plan.delete:
            _set_edits_aside(run, plan)
            return apply(store, plan, by=by, at=at, reason=f"end of the loop: {stands.decision.reason}").number, None
    except UsageError as error:
        message = f"the best was not put into {workdir}: {error}"
        if isinstance(error.__cause__, OSError) or is_of_the_machine(
            error
        ):  # not refused: the disk failed, and the next run tries again
            raise StoreWriteError(message) from error
        run.notice(message)
        return None, str(error)
    return None, None


def _alone(run: LoopRun) -> bool:
    """Whether the iterations were made in the person's own directory, so that what lies there now is the last one's."""
    return run.settings.candidates == 1 and run.settings.in_place


def _set_edits_aside(run: LoopRun, plan: ApplyPlan) -> None:
    """Keep what a person changed meanwhile in a tree that no candidate works in, and say so; the best takes its place."""
    if _alone(run):
        return  # what differs there is an iteration's, or was set aside by the resume
    paths = _edited(run.store, plan)
    if paths:
        kept = run.store.set_aside(plan.workdir, paths)
        run.notice(f"the working directory was changed while the loop ran: {named(paths)}; what was there is in {kept}")


def _edited(store: LoopStore, plan: ApplyPlan) -> tuple[str, ...]:
    """Return the paths, sorted, that ``plan`` would replace or remove and that are not what the loop last saw or put there.

    That is the last apply that stands, else the start. What was deleted meanwhile is not among them: there is nothing to keep.
    """
    applied = last_applied(store)
    number = store.iteration_numbers()[0] if applied is None or applied.best_iteration is None else applied.best_iteration
    known = store.manifest(number).entries
    return tuple(
        sorted(change.path for change in plan.moves.changes if change.before and not same(change.before, known.get(change.path)))
    )
