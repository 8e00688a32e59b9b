"""What a step is given: its prompt and feedback as files, the frozen context with its environment, the session to resume."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jumar.core.files import as_write_error, is_directory, make_directory
from jumar.core.leftovers import remove_any
from jumar.core.redaction import current
from jumar.core.text import escape
from jumar.errors import StoreDamagedError
from jumar.loop.engine.run_context import LoopRun
from jumar.loop.generators.generators import charged_before
from jumar.loop.generators.memory import Note, question
from jumar.loop.generators.prompt import BudgetLeft, Facts, render_feedback, render_prompt
from jumar.loop.ranking.choose import leader
from jumar.loop.ranking.repairs import Repairs, repairs
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.workspace.workspace import Workspace
from jumar.model import CheckResult, IterationRecord, IterationView, StepContext
from jumar.model.attempts import Purpose
from jumar.model.records import NOT_GENERATED
from jumar.processes.bytecode import agents_environment
from jumar.processes.environment import build_environment, step_seed, step_variables
from jumar.processes.process_tree import MARKER, within


def session_to_resume(store: LoopStore, number: int, parent: int | None) -> str | None:
    """Return the session id that iteration ``number`` resumes, None for a fresh session. A function of the records alone.

    It is the one that ``parent`` reported, else its own parent, and so on: failed and blocked iterations are passed over. Once a
    run of the generator from this parent has failed, the others from it begin afresh: an expired session would fail for ever.
    """
    if parent is None or _failed_from(store, number, parent):
        return None
    record = store.find_record(parent)
    while record is not None:
        if record.usage.session_id is not None and _usable(record):
            return record.usage.session_id
        record = store.find_record(record.parent)
    return None


def _usable(record: IterationRecord) -> bool:
    return record.status not in NOT_GENERATED and record.usage.blocked is None


def _failed_from(store: LoopStore, number: int, parent: int) -> bool:
    """Whether an earlier run from ``parent`` failed; of the parallel ones only the iteration's own, so that no order matters."""
    attempts = store.attempts()
    batch = next((attempt.start.batch for attempt in reversed(attempts) if attempt.start.iteration == number), None)
    for attempt in reversed(attempts):
        start, end = attempt.start, attempt.end
        if start.iteration <= parent:
            break
        if start.purpose != "generate" or start.parent != parent or end is None or end.outcome != "failed":
            continue
        if start.iteration == number or start.batch is None or start.batch != batch:
            return True
    return False


_REFLECTED = 5  # iterations whose reflections the prompt carries


def keep_directory(scratch: Path) -> None:
    """Put an empty directory where a generator replaced its scratch directory, so that no link is followed."""
    if os.path.lexists(scratch) and not is_directory(scratch):
        remove_any(scratch)
        make_directory(scratch)


def keep_logs(store: LoopStore, logs: Path) -> None:
    """Make the directory of a step's ``logs``; what a program put there, or on the way, is not followed.

    Errors: :class:`StoreDamagedError` where the loop's own directory is gone, or another.
    """
    directory = store.paths.directory
    store.check_place()
    if not is_directory(directory):
        raise StoreDamagedError(f"{escape(str(directory))} was deleted while the loop was at work; `jumar run` begins again")
    with as_write_error("create", logs):
        for place in reversed((logs, *logs.parents)):
            if place.is_relative_to(directory):
                keep_directory(place)
        make_directory(logs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """The briefing of one iteration. ``before`` are the iterations that it may know of: those before its batch."""

    run: LoopRun
    number: int
    parent: int | None
    candidate: int | None = None
    before: tuple[IterationView, ...]

    @classmethod
    def of(cls, run: LoopRun, number: int, parent: int | None, *, batch: int | None, candidate: int | None) -> Briefing:
        """Return the briefing of iteration ``number``; parallel candidates of one batch don't hear of each other."""
        views = run.store.views()
        if batch is not None:
            views = tuple(view for view in views if view.batch is None or view.batch < batch)
        return cls(run=run, number=number, parent=parent, candidate=candidate, before=views)

    def scratch(self, attempt: int) -> Path:
        """Return a new, empty scratch directory for an attempt."""
        scratch = self.run.store.paths.attempt_scratch(attempt)
        with as_write_error("create", scratch):
            remove_any(scratch)
            make_directory(scratch)
        return scratch

    def write(self, scratch: Path) -> None:
        """Write the prompt and the feedback into ``scratch``, in the place of what lies there: it may lead to a person's file."""
        settings, stop = self.run.settings, self.run.settings.stop
        last = self.run.store.find_record(self.parent)
        left = BudgetLeft(
            iterations=max(0, stop.max_iterations - self.number + 1),
            seconds=None if stop.max_seconds is None else max(0.0, stop.max_seconds - self.run.tally.spend().seconds),
        )
        facts = Facts(
            objective=settings.objective,
            iteration=self.number,
            max_iterations=stop.max_iterations,
            history=self.before,
            last=last,
            best=self._best(),
            reflections=self._reflections() if self.run.parts.memory is None else [],
            memory=self._remembered(last),
            budget=left,
            progress=self._progress(),
        )
        prompt = render_prompt(facts, completion_promise=settings.completion_promise, template=settings.prompt_template)
        feedback = render_feedback(facts, loop_id=settings.loop_id)
        with as_write_error("write the prompt to", scratch):
            for name, text in (("prompt.md", current().redact(prompt)), ("feedback.json", feedback)):
                remove_any(scratch / name)
                with (scratch / name).open("x", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(text)

    def _best(self) -> IterationView | None:
        """Return the best of what this step knows; of a lone iteration that is everything, and the tally has it ready."""
        return self.run.tally.best() if self.candidate is None else leader(self.before, self.run.criteria)

    def _remembered(self, last: IterationRecord | None) -> Sequence[Note]:
        """Return the earlier notes that fit; none without a memory, before the first iteration, and when it fails (told)."""
        run, memory = self.run, self.run.parts.memory
        if memory is None or self.number == 0:
            return ()
        try:
            notes = run.notebook.gather(run.store, self._others(), everywhere=memory.everywhere)
            query = question(run.settings.objective, last)
            said = set[str]() if last is None else {text.strip() for text in last.reflections}  # the prompt has them anyway
            notes = [note for note in notes if note.text.strip() not in said]
            return memory.recall(query, notes, turn=f"{run.settings.loop_id}:{self.number}")
        except Exception as error:  # noqa: BLE001 - a prompt without memories is better than no iteration
            why = escape(f"{type(error).__name__}: {error}")
            run.notice(f"the memory failed and the prompt goes without: {why}; see [memory] embedder")
            return ()

    def _progress(self) -> list[tuple[int, Repairs]]:
        """Return what the iteration that this one starts from repaired and broke, and what the latest one did."""
        found: list[tuple[int, Repairs]] = []
        numbers = {self.parent or 0, self.before[-1].number if self.before else 0}
        for number in sorted(numbers - {0}):
            record = self.run.store.find_record(number)
            if record is not None:
                found.append((number, repairs(record, self.run.store.find_record(record.parent))))
        return found

    def _reflections(self) -> list[tuple[int, tuple[str, ...]]]:
        """Return the notes of the latest iterations but ``parent``, whose own come with its record.

        Those that came after it count most: they tell what was tried from where this one starts, and was not kept.
        """
        return [(number, self.run.store.record(number, listed=False).reflections) for number in self._others()[-_REFLECTED:]]

    def _others(self) -> list[int]:
        """Return the numbers of all iterations that this step may know of, but for the one that it starts from."""
        return [view.number for view in self.before if view.number != self.parent]

    def _baseline(self) -> tuple[CheckResult, ...]:
        """Return the start's checks, and behind them those of later iterations in which a check's tests ran for the first time.

        Only what lies before this iteration's batch counts, so that parallel candidates agree on it.
        """
        if self.number == 0:
            return ()
        first: dict[str, int] = {}
        for view in self.before:
            for name in view.counted if view.number < self.number else ():
                first.setdefault(name, view.number)
        numbers = sorted({0, *first.values()})
        records = {number: record for number in numbers if (record := self.run.store.find_record(number)) is not None}
        return tuple(
            check
            for number, record in records.items()
            for check in record.checks
            if number == 0 or first.get(check.name) == number
        )

    def context(
        self,
        workspace: Workspace,
        scratch: Path,
        purpose: Purpose,
        *,
        nonce: str,
        since: int | None,
        artifacts: tuple[str, ...] = (),
        generator_exit: int | None = None,
    ) -> StepContext:
        """Return what the programs of one step get."""
        settings, store = self.run.settings, self.run.store
        seed = step_seed(settings.seed, iteration=self.number, candidate=self.candidate, purpose=purpose)
        files = {name: scratch / name for name in ("prompt.md", "feedback.json", "usage.json")}
        variables = step_variables(
            loop_id=settings.loop_id,
            iteration=self.number,
            prompt_file=files["prompt.md"],
            feedback_file=files["feedback.json"],
            usage_file=files["usage.json"],
            seed=seed,
            candidate=self.candidate,
        )
        session = (
            session_to_resume(store, self.number, self.parent) if purpose == "generate" and settings.resume_session else None
        )
        variables |= workspace.variables() | {"JUMAR_SESSION_ID": session or ""}
        variables[MARKER] = within(store.nonce)
        variables["JUMAR_PROJECT_DIR"] = str(settings.workdir)  # what lies beside it is not in a copy
        environment = build_environment(os.environ, settings.environment, variables)
        return StepContext(
            loop_id=settings.loop_id,
            iteration=self.number,
            workdir=workspace.directory,
            prompt_file=files["prompt.md"],
            feedback_file=files["feedback.json"],
            usage_file=files["usage.json"],
            log_directory=scratch,
            environment=agents_environment(environment) if purpose == "generate" else environment,
            objective=settings.objective,
            artifacts=artifacts,
            baseline_checks=self._baseline(),
            generator_exit=generator_exit,
            history=self.before,
            nonce=nonce,
            since_ns=since,
            session_id=session,
            session_usage=None if session is None else charged_before(store.attempts(), session),
            seed=seed,
            candidate=self.candidate,
        )
