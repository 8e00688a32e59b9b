"""After the last iteration: finalists are scored again, and the selected is confirmed, one attempt and one durable reading each.

What is still to be read follows from the records and readings alone (:func:`jumar.loop.ranking.confirmed.next_reading`), so a
run that was killed resumes what is missing and repeats nothing.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from jumar.core.files import as_write_error
from jumar.core.text import points
from jumar.loop.engine.accounting import begin, ended_if_full, refused_evaluation
from jumar.loop.engine.evaluation import Evaluation
from jumar.loop.engine.run_context import Answers, LoopRun
from jumar.loop.engine.step_context import Briefing
from jumar.loop.engine.verdict import Verdict, verdict
from jumar.loop.engine.workspaces import Trees
from jumar.loop.ranking.confirmed import NextReading, next_reading
from jumar.loop.ranking.score import resolve_weights
from jumar.loop.seeding import step_seed
from jumar.loop.store.current_selection import evidence_of
from jumar.loop.workspace.disk_space import with_room
from jumar.loop.workspace.workspace import Workspace
from jumar.model import Reading, Scorer, StepContext, StopDecision
from jumar.model.attempts import Attempt
from jumar.model.stopping import UNENDED_REASONS

_SEED: Final = "JUMAR_SEED"
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
                refusal = refused_evaluation(self.run)
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
        if not store.has_snapshot(number):
            gone = Verdict(verification="skipped", status="scorer_broken", status_reason="its snapshot was cleaned up")
            self._note(wanted, None, gone, Answers())
            return True
        for left in range(run.settings.retries.broken, -1, -1):
            self._tree().restore(number)
            record = store.record(number)
            attempt = begin(run, number, record.parent, secrets.token_hex(8), "confirm")
            evaluation = Evaluation(run=run, workspace=self._tree())
            held_out = wanted.kind == "holdout"
            with ended_if_full(run, attempt):
                brief = Briefing.of(run, number, record.parent, batch=record.batch, candidate=record.candidate)
                scratch = brief.scratch(attempt.start.number)
                label = f"{wanted.kind}-{number:03d}-{wanted.turn}"
                context = context_again(run, self._tree(), brief, scratch, nonce=attempt.start.nonce, label=label)
                run.found(number, run.guard.put_back(self._tree(), context.log_directory))
                answers = evaluation.ask(context, attempt, held_out=record.checks if held_out else None)
                answers = evaluation.not_spoilt(attempt, answers)
            if run.switch.immediate.is_set() or answers.full is not None:
                evaluation.close(attempt, answers, stopped=run.switch.immediate.is_set())
                return False
            scorers = run.parts.holdout if held_out else run.parts.scorers
            judged = verdict(answers.checks, answers.readings, self._weights(wanted, scorers))
            if judged.status in {"ok", "invalid_score"} or not left:
                self._note(wanted, attempt, judged, answers)  # before the attempt's end: what was read is never read again
                evaluation.close(attempt, answers, stopped=False)
                return True
            evaluation.close(attempt, answers, stopped=False)
            if refused_evaluation(run) is not None:
                self._note(wanted, attempt, judged, answers)
                return True
        return True  # pragma: no cover - the last turn returns

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
    number, record = brief.number, run.store.record(brief.number)
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
    """Copy a log; of one that a program removed, or put something else in the place of, there is an empty one."""
    with contextlib.suppress(OSError):
        shutil.copyfile(source, target, follow_symlinks=False)
        return
    target.write_bytes(b"")
