"""One iteration, step by step: reserve, generate, snapshot, verify, score, acknowledge.

Every arrow is durable before the next begins; ``docs/design/store.md`` says what a reader may conclude in between.
"""

from __future__ import annotations

import itertools
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jumar.files import as_write_error, make_directory, remove_tree
from jumar.loop.analyzer import analyze
from jumar.loop.control import StopSwitch
from jumar.loop.environment import build_environment, step_variables
from jumar.loop.events import Listener, Notice, PhaseStarted, deliver
from jumar.loop.memory import Note, Notebook, question
from jumar.loop.planted import tell_planted
from jumar.loop.prompt import BudgetLeft, render_feedback, render_prompt
from jumar.loop.settings import LoopParts, LoopSettings
from jumar.loop.tally import Tally
from jumar.loop.verdict import Verdict, verdict
from jumar.loop.workspace import Workspace, changed_paths
from jumar.model import CheckResult, Clock, GenerateOutcome, IterationRecord, ScoreReading, StepContext, Usage
from jumar.model.attempts import AttemptEnd, Outcome
from jumar.model.codec import Fields
from jumar.model.records import Status
from jumar.ranking.score import resolve_weights
from jumar.redaction import current
from jumar.store.loop_store import LoopStore, Pending
from jumar.text import escape, last_line

__all__ = ["Step"]

_LAST_LINE = 200
_REFLECTED = 5  # iterations whose reflections the prompt carries
_STATUS_OF: Mapping[str, Status] = MappingProxyType(
    {"failed": "generator_failed", "timeout": "generator_timeout", "interrupted": "interrupted"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Runs single iterations of one loop; holds no state between them but the store's, and the notes that it read."""

    store: LoopStore
    settings: LoopSettings
    parts: LoopParts
    workspace: Workspace
    clock: Clock
    switch: StopSwitch
    tally: Tally
    listener: Listener | None = None
    notebook: Notebook = field(default_factory=Notebook)

    def start_state(self) -> IterationRecord | None:
        """Record the tree as it is as iteration 0: never worse than the start needs a start. None when it was stopped."""
        began = self.clock.monotonic()
        scratch = self._scratch(0)
        self._context_files(scratch, 0, None)
        pending = self.store.stage(
            0,
            source=self.workspace.directory,
            paths=self.workspace.paths(),
            nonce=secrets.token_hex(8),
            attempt=None,
            stage={"since_ns": time.time_ns()},
            logs=scratch,
            quota=self.settings.artifacts,
        )
        return self.complete(pending, seconds=self.clock.monotonic() - began)

    def generate(self, number: int, parent: int) -> IterationRecord | None:
        """Run the generator once and record what came of it; None when it was interrupted and nothing is recorded."""
        nonce = secrets.token_hex(8)
        attempt = self.store.begin_attempt(number, parent, nonce, self.clock.now()).start.number
        scratch = self._scratch(attempt)
        self._context_files(scratch, number, parent)
        head = self.workspace.head()
        since = time.time_ns()
        deliver(PhaseStarted(iteration=number, phase="generate"), self.listener)
        outcome = self.parts.generator.generate(self._context(number, scratch, nonce=nonce, since=since))
        ended = self._attempt_end(outcome, self.workspace.commits_since(head))
        self.store.end_attempt(attempt, ended)
        if ended.outcome == "interrupted":
            return None
        pending = self.stage_ended(number, parent, nonce, attempt, ended, scratch, since=since)
        return self.complete(pending)

    def stage_ended(
        self,
        number: int,
        parent: int,
        nonce: str,
        attempt: int,
        ended: AttemptEnd,
        scratch: Path | None,
        *,
        since: int | None = None,
    ) -> Pending:
        """Snapshot the work tree after an attempt that has ended; ``since`` is the wall clock when it began, if that is known."""
        return self.store.stage(
            number,
            source=self.workspace.directory,
            paths=self.workspace.paths(),
            nonce=nonce,
            attempt=attempt,
            stage={"parent": parent, "since_ns": since, "ended": ended.to_json()},
            logs=scratch,
            quota=self.settings.artifacts,
        )

    def complete(self, pending: Pending, *, seconds: float = 0.0) -> IterationRecord | None:
        """Verify, score and acknowledge a snapshot that is on disk. ``seconds`` is time already spent on it.

        One that was scored before an interruption, and only not yet acknowledged, keeps its record: no judge is paid twice.
        None when it was stopped in the middle: half a verdict is none, and the next run scores the snapshot again.
        """
        if pending.record is not None:
            return self.store.commit(pending, pending.record)
        began = self.clock.monotonic()
        ended = _ended(pending.stage)
        parent: int | None = pending.stage.get("parent")
        since: int | None = pending.stage.get("since_ns")
        number = pending.number
        failed = None if ended is None else _STATUS_OF.get(ended.outcome)
        checks: tuple[CheckResult, ...] = ()
        readings: tuple[ScoreReading, ...] = ()
        if failed is None:
            if not (pending.logs / "prompt.md").exists():
                self._context_files(pending.logs, number, parent)
            context = self._context(number, pending.logs, nonce=pending.nonce, since=since, pending=pending, ended=ended)
            checks, readings = self._evaluate(context)
            if self.switch.immediate.is_set():
                return None
            judged = verdict(checks, readings, self._weights())
        else:
            judged = Verdict(verification="skipped", status=failed, status_reason="" if ended is None else ended.detail)
        spent = seconds + (self.clock.monotonic() - began) + ((ended and ended.seconds) or 0.0)
        record = self._record(pending, ended, judged, checks, readings, milliseconds=round(spent * 1000, 3), parent=parent)
        changed = pending.manifest.entries if parent is None else record.analysis.artifacts_modified
        tell_planted(self.settings.loop_id, pending.artifacts, changed, self.listener)
        return self.store.commit(pending, record)

    def _evaluate(self, context: StepContext) -> tuple[tuple[CheckResult, ...], tuple[ScoreReading, ...]]:
        deliver(PhaseStarted(iteration=context.iteration, phase="verify"), self.listener)
        checks = tuple(validator.validate(context) for validator in self.parts.validators)
        deliver(PhaseStarted(iteration=context.iteration, phase="score"), self.listener)
        scored = replace(context, checks=checks)
        return checks, tuple(scorer.score(scored) for scorer in self.parts.scorers)

    def _weights(self) -> dict[str, float]:
        return resolve_weights([scorer.dimension for scorer in self.parts.scorers], self.settings.weights or None)

    def _record(
        self,
        pending: Pending,
        ended: AttemptEnd | None,
        judged: Verdict,
        checks: tuple[CheckResult, ...],
        readings: tuple[ScoreReading, ...],
        *,
        milliseconds: float,
        parent: int | None,
    ) -> IterationRecord:
        views = self.store.views()
        previous = views[-1].score if views else None
        delta = None if judged.quality is None or previous is None else round(judged.quality - previous, 4)
        modified = () if parent is None else changed_paths(self.store.manifest(parent).entries, pending.manifest.entries)
        usage = Usage() if ended is None else ended.usage
        return IterationRecord(
            iteration_number=pending.number,
            timestamp=self.clock.now(),
            quality_score=judged.quality,
            quality_delta=delta,
            dimensions=judged.dimensions,
            tokens_used=usage.tokens_used,
            token_cost_usd=usage.token_cost_usd,
            execution_time_ms=milliseconds,
            verification_status=judged.verification,
            reflections=judged.reflections,
            status=judged.status,
            status_reason=judged.status_reason,
            readings=readings,
            checks=checks,
            reasons=(*judged.reasons, *(() if ended is None else ended.notes)),
            analysis=analyze(ended, modified),
            usage=usage,
            attempt=pending.attempt,
            parent=parent,
            nonce=pending.nonce,
            commits=() if ended is None else ended.commits,
        )

    def _attempt_end(self, outcome: GenerateOutcome, commits: tuple[str, ...]) -> AttemptEnd:
        kind: Outcome = "ok"
        if outcome.interrupted:
            kind = "interrupted"
        elif outcome.timed_out:
            kind = "timeout"
        elif outcome.failure is not None:
            kind = "failed"
        return AttemptEnd(
            outcome=kind,
            seconds=outcome.seconds,
            ended_at=self.clock.now(),
            exit_code=outcome.exit_code,
            detail=_detail(outcome),
            output_tail=outcome.output_tail,
            usage=outcome.usage,
            commits=commits,
            errors=outcome.errors,
            notes=outcome.notes,
        )

    def _scratch(self, attempt: int) -> Path:
        scratch = self.store.paths.scratch / f"{attempt:06d}"
        with as_write_error("create", scratch):
            remove_tree(scratch)
            make_directory(scratch)
        return scratch

    def _context_files(self, scratch: Path, number: int, parent: int | None) -> None:
        """Write the prompt and the feedback of an iteration into its scratch directory."""
        views = self.store.views()
        stop = self.settings.stop
        last = None if parent is None else self.store.record(parent)
        best = self.tally.best()
        used = self.tally.spend()
        remembered = self._remembered(number, parent, last)
        reflections = self._reflections(parent) if self.parts.memory is None else []
        left = BudgetLeft(
            iterations=max(0, stop.max_iterations - number + 1),
            seconds=None if stop.max_seconds is None else max(0.0, stop.max_seconds - used.seconds),
        )
        prompt = render_prompt(
            objective=self.settings.objective,
            iteration=number,
            max_iterations=stop.max_iterations,
            history=views,
            last=last,
            best=best,
            reflections=reflections,
            memory=remembered,
            budget=left,
            completion_promise=self.settings.completion_promise,
            template=self.settings.prompt_template,
        )
        feedback = render_feedback(
            loop_id=self.settings.loop_id,
            objective=self.settings.objective,
            iteration=number,
            max_iterations=stop.max_iterations,
            history=views,
            last=last,
            best=best,
            reflections=reflections,
            memory=remembered,
            budget=left,
        )
        with as_write_error("write the prompt to", scratch):
            (scratch / "prompt.md").write_text(current().redact(prompt), encoding="utf-8", errors="backslashreplace")
            (scratch / "feedback.json").write_text(feedback, encoding="utf-8", errors="backslashreplace")

    def _remembered(self, number: int, parent: int | None, last: IterationRecord | None) -> Sequence[Note]:
        """Return the earlier notes that fit; none without a memory, before the first pass, and when it fails, which is told."""
        memory = self.parts.memory
        if memory is None or number == 0:
            return ()
        try:
            notes = self.notebook.gather(self.store, parent, everywhere=memory.everywhere)
            query = question(self.settings.objective, last)
            said = set[str]() if last is None else {text.strip() for text in last.reflections}  # the prompt has them anyway
            notes = [note for note in notes if note.text.strip() not in said]
            return memory.recall(query, notes, turn=f"{self.settings.loop_id}:{number}")
        except Exception as error:  # noqa: BLE001 - a prompt without memories is better than no pass
            why = escape(f"{type(error).__name__}: {error}")
            deliver(Notice(message=f"the memory failed and the prompt goes without: {why}; see [memory] embedder"), self.listener)
            return ()

    def _reflections(self, parent: int | None) -> list[tuple[int, tuple[str, ...]]]:
        """Return the notes of the iterations before ``parent``; those of ``parent`` come with its record."""
        if parent is None:
            return []
        newest_first = (view.number for view in reversed(self.store.views()) if view.number < parent)
        earlier = reversed(list(itertools.islice(newest_first, _REFLECTED)))
        return [(number, self.store.record(number).reflections) for number in earlier]

    def _context(
        self,
        number: int,
        scratch: Path,
        *,
        nonce: str,
        since: int | None,
        pending: Pending | None = None,
        ended: AttemptEnd | None = None,
    ) -> StepContext:
        files = {name: scratch / name for name in ("prompt.md", "feedback.json", "usage.json")}
        variables = step_variables(
            loop_id=self.settings.loop_id,
            iteration=number,
            prompt_file=files["prompt.md"],
            feedback_file=files["feedback.json"],
            usage_file=files["usage.json"],
        )
        start = self.store.record(0) if number > 0 else None
        return StepContext(
            loop_id=self.settings.loop_id,
            iteration=number,
            workdir=self.workspace.directory,
            prompt_file=files["prompt.md"],
            feedback_file=files["feedback.json"],
            usage_file=files["usage.json"],
            log_directory=scratch,
            environment=build_environment(os.environ, self.settings.environment, {**variables, **self.workspace.variables()}),
            objective=self.settings.objective,
            artifacts=() if pending is None else tuple(pending.manifest.entries),
            baseline_checks=() if start is None else start.checks,
            generator_exit=None if ended is None else ended.exit_code,
            history=self.store.views(),
            nonce=nonce,
            since_ns=since,
        )


def _detail(outcome: GenerateOutcome) -> str:
    """Return what went wrong, with the last line that the generator printed: that is where the reason usually stands."""
    if outcome.failure is None:
        return ""
    last = last_line(outcome.output_tail)
    return outcome.failure if not last or last in outcome.failure else f"{outcome.failure}: {last[:_LAST_LINE]}"


def _ended(stage: Mapping[str, Any]) -> AttemptEnd | None:
    """Return how the attempt of a staged snapshot ended; None for the start state."""
    section = Fields(stage, "stage.json").section_or_none("ended")
    return None if section is None else AttemptEnd.from_json(section)
