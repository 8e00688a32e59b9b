"""Verifying, scoring and acknowledging one snapshot that is on disk: an attempt of its own, because judges are paid too."""

from __future__ import annotations

import errno
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from jumar.core.codec import Fields
from jumar.core.text import escape, named
from jumar.errors import JumarError, StoreWriteError
from jumar.loop.checks.broken import troubles
from jumar.loop.checks.runners.suite import count_notes
from jumar.loop.engine.accounting import begin, ended_if_full, finish, refused_evaluation
from jumar.loop.engine.run_context import FAILED, Answers, LoopRun, Way, elsewhere, kept_answers, take
from jumar.loop.engine.step_context import Briefing, keep_logs
from jumar.loop.engine.verdict import Verdict, first_broken, refuse_broken_start, verdict, with_findings
from jumar.loop.events.events import PhaseStarted
from jumar.loop.generators.carry_over import carry_over
from jumar.loop.generators.failures import analyze, without_effect
from jumar.loop.hooks import reset_failure
from jumar.loop.ranking.score import resolve_weights
from jumar.loop.scorers.judge import JudgeScorer
from jumar.loop.scorers.reports import APART, ReportScorer
from jumar.loop.snapshots.snapshot import tell_planted
from jumar.loop.store.layout import LOGS
from jumar.loop.store.staging import Pending
from jumar.loop.workspace.clearing import why_of_the_tree
from jumar.loop.workspace.disk_space import disk_is_full, with_room
from jumar.loop.workspace.guard import Finding
from jumar.loop.workspace.workspace import Workspace, changed_paths
from jumar.model import CheckResult, IterationRecord, ScoreReading, StepContext, Usage
from jumar.model.attempts import Attempt, AttemptEnd, Outcome
from jumar.model.records import FailureKind, Status
from jumar.processes.bytecode import clear_bytecode
from jumar.processes.control import beating

_STATUS_OF: Mapping[Outcome, Status] = {
    "failed": "generator_failed",
    "timeout": "generator_timeout",
    "interrupted": "interrupted",
    "lost": "generator_failed",
}

_FULL = "cut off: "
_QUIET_TRIES: Final = 2
_LOOK: Final = 0.2  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Evaluates the snapshots of one working directory."""

    run: LoopRun
    workspace: Workspace

    def complete(self, pending: Pending, *, seconds: float = 0.0) -> Way[IterationRecord | None]:
        """Verify, score and acknowledge a snapshot that lies in the tree too. ``seconds`` is time already spent on it.

        One that was scored before an interruption, and only not yet acknowledged, keeps its record: no judge is paid twice.
        None when it was stopped in the middle: half a verdict is none, and the next run scores the snapshot again.
        """
        if pending.record is not None:
            scored = pending.record
            return with_room(self.run.space, lambda: self.run.store.commit(pending, scored))
        ended = ended_of(pending.stage)
        answers: Answers | None = Answers()
        if _failed(pending, ended) is None:
            answers = yield from self._answers(pending, ended)
            if answers is None:
                return None
            if self._beginning:
                refuse_broken_start(answers, pending.logs)
        if not pending.whole and pending.stage.get("parent") is not None:
            deleted = Finding(message="its snapshot was deleted while it was scored")
            answers = replace(answers, found=(*answers.found, *self.run.found(pending.number, (deleted,))))
            pending = self._saved_again(pending, deleted.message)
        judged, found = self._judged(pending, ended, answers)
        spent = seconds + answers.seconds + ((ended and ended.seconds) or 0.0)
        record = self._record(pending, ended, judged, answers, found, seconds=spent)
        entries = pending.manifest.entries
        changed = entries if record.parent is None else record.analysis.artifacts_modified
        details = (entries[path] for path in changed if path in entries)
        tell_planted(self.run.settings.loop_id, pending.content, details, self.run.notice)
        for check, note in count_notes(record.checks):
            self.run.notice_once(f"counts of {check}", note)
        return with_room(self.run.space, lambda: self.run.store.commit(pending, record))

    def _judged(self, pending: Pending, ended: AttemptEnd | None, answers: Answers) -> tuple[Verdict, tuple[Finding, ...]]:
        failed = _failed(pending, ended)
        if failed is None:
            judged = verdict(answers.checks, answers.readings, self._weights())
        else:
            noted = (f"thrown away, as it cannot be kept: {failed[1]}",) if failed[0] == "snapshot_failed" else ()
            judged = Verdict(verification="skipped", status=failed[0], status_reason=failed[1], reflections=noted)
        said = carry_over(ended, verified=judged.verification == "passed")
        judged = replace(judged, reflections=(*judged.reflections, *said))
        found = tuple(dict.fromkeys((*_findings(pending.stage), *answers.found)))
        return with_findings(judged, found), found

    def _answers(self, pending: Pending, ended: AttemptEnd | None) -> Way[Answers | None]:
        """Ask validators and scorers, once more where one of them could not answer. None when it was stopped.

        What was said before an interruption, and paid for, is taken up.
        """
        found: tuple[Finding, ...] = ()
        before = sum(end.outcome == "broken" for end in self._ended(pending.number, pending.nonce))
        retries = self.run.settings.retries.broken
        _, kept = kept_answers(self.run, pending)
        if kept is not None:
            if first_broken(kept.checks, kept.readings) is None or before > retries or refused_evaluation(self.run) is not None:
                return kept
            found = kept.found
        given_up = self._given_up(pending)
        if given_up is not None:
            return Answers((CheckResult(name="evaluation", passed=False, broken=given_up),), found=found)
        for left in range(max(0, retries - before), -1, -1):
            answers = yield from self._undisturbed(pending, ended)
            if answers is None:
                return None
            found = (*found, *answers.found)
            answers = replace(answers, found=found)
            broken = self._broken(answers)
            if broken is None or not left or refused_evaluation(self.run) is not None or not self._may_pass(answers):
                return answers
            self.run.notice(f"iteration {pending.number} is evaluated again: {broken[1]}")
        return None  # pragma: no cover - the last turn returns

    @property
    def _beginning(self) -> bool:
        """Whether the start is judged now, and the loop begins only where that can be done."""
        return not (self.run.settings.allow_broken_start or self.run.store.iteration_numbers())

    def _broken(self, answers: Answers) -> tuple[FailureKind, str] | None:
        """As :func:`first_broken`; of a start also what would be held against an iteration, and says nothing of it either."""
        found = troubles(answers.checks, answers.readings) if self._beginning else ()
        broken = first_broken(answers.checks, answers.readings)
        if not found:
            return broken
        kind: FailureKind = "scorer_broken" if found[0].dimension is not None else "validator_broken"
        return broken or (kind, f"{found[0].part} {found[0].what}")

    def _may_pass(self, answers: Answers) -> bool:
        """Whether what broke may not break again; only of a start it is known that it does."""
        return not self._beginning or any(trouble.passing for trouble in troubles(answers.checks, answers.readings))

    def _given_up(self, pending: Pending) -> str | None:
        """Return why a snapshot whose evaluation did not survive is not evaluated again; None where it is, and for the start.

        Each try is paid for, so that all but the first need room; and what they run may be what kills jumar.
        """
        ends = [] if pending.stage.get("parent") is None else list(self._ended(pending.number, pending.nonce))
        lost = sum(end.outcome == "lost" for end in ends)
        tries = lost + sum(end.outcome == "interrupted" and _has_paid(end) for end in ends)
        refused = refused_evaluation(self.run) if tries else None
        if refused is None and not self.run.settings.retries.killed_too_often(lost):
            return None
        times, ended = "once" if tries == 1 else f"{tries} times", "killed" if lost else "stopped"
        return f"jumar was {ended} {times} while it was evaluated" + (f", and {refused}" if refused else "")

    def _ended(self, number: int, nonce: str) -> Iterator[AttemptEnd]:
        """Yield how the evaluations of this snapshot ended so far."""
        attempts = self.run.ended_attempts(number)
        return (end for start, end in attempts if start.nonce == nonce and start.purpose == "score")

    def _undisturbed(self, pending: Pending, ended: AttemptEnd | None) -> Way[Answers | None]:
        """Evaluate once; again, when nothing else runs, where another candidate may have changed the tree meanwhile."""
        answers: Answers | None = None
        for left in range(_QUIET_TRIES, -1, -1):
            answers, disturbed = yield from self._attempt(pending, ended, again=left > 0)
            if not disturbed:
                break
            while self._others() and not self.run.switch.requested:
                yield from elsewhere(lambda: self.run.sleep(_LOOK))
        return answers

    def _others(self, since: int = 0) -> bool:
        """Whether programs of another candidate run, or began after attempt ``since``: they can write wherever they like."""
        if not self._reachable:
            return False
        starts = (each.start for each in self.run.store.attempts() if each.end is None or each.start.number > since > 0)
        return any(start.candidate != self.workspace.slot for start in starts)

    @property
    def _reachable(self) -> bool:
        return self.run.settings.workers > 1 and self.run.settings.isolation != "sandbox"

    def _attempt(self, pending: Pending, ended: AttemptEnd | None, *, again: bool) -> Way[tuple[Answers | None, bool]]:
        """Return what was said, None when it was stopped; and whether it was thrown away, as it may be asked ``again``."""
        run, number, stage = self.run, pending.number, pending.stage
        candidate: int | None = stage.get("candidate")
        brief = Briefing.of(run, number, stage.get("parent"), batch=stage.get("batch"), candidate=candidate)
        keep_logs(run.store, pending.logs)
        if not (prompt := pending.logs / "prompt.md").is_file() or prompt.is_symlink():
            brief.write(pending.logs)
        others, since = self._others(), self._since()
        attempt = begin(run, number, stage.get("parent"), pending.nonce, "score", batch=stage.get("batch"), candidate=candidate)
        context = brief.context(
            self.workspace,
            pending.logs,
            "score",
            nonce=pending.nonce,
            since=stage.get("since_ns") if since is None else since,
            artifacts=tuple(pending.manifest.entries),
            generator_exit=None if ended is None else ended.exit_code,
        )
        answers: Answers | None = None
        with ended_if_full(run, attempt, lambda: answers and self._end(attempt, answers, stopped=True)):
            found = run.found(number, run.guard.before_scoring(number, self.workspace, pending.logs))
            beginning = self._beginning
            if self._reachable and self.workspace.gone() is None and pending.whole:
                self.workspace.carry_out(self.workspace.difference(pending))
            run.look_around(self.workspace, pending)
            before = self.workspace.stamps((*pending.manifest.entries, *run.guard.guarded)) if self._reachable else {}
            answers = yield from elsewhere(lambda: self.ask(context, attempt, beginning=beginning))
            found = (*found, *run.found(number, self._tree_gone(pending)))
            disturbed = self._disturbed(pending, before, others=others or self._others(attempt.start.number))
            again = again and bool(disturbed) and refused_evaluation(run) is None
            found = (*found, *run.found(number, () if again else disturbed))
            found = (*found, *run.found(number, (*run.guard.after_scoring(number, self.workspace), *self._forged())))
        answers = self.not_spoilt(attempt, replace(answers, found=found, snapshot=pending.file.seal))
        stopped = run.switch.immediate.is_set()
        self.close(attempt, answers, stopped=stopped or again)
        return None if stopped else answers, again and not stopped

    def _since(self) -> int | None:
        """Return a time between the generator's last write and the checks' first, where reports are to be the checks' own."""
        read = (scorer for scorer in self.run.parts.scorers if isinstance(scorer, ReportScorer) and scorer.command is None)
        if not self.run.parts.validators or next(read, None) is None:
            return None
        time.sleep(APART)
        return time.time_ns()

    def _disturbed(self, pending: Pending, before: Mapping[str, str], *, others: bool) -> tuple[Finding, ...]:
        """Return that other files may have been scored than the snapshot has; what changes where no ``others`` ran is theirs."""
        if not self._reachable or self.workspace.gone() is not None or not pending.whole:
            return ()
        changed, theirs = self.workspace.changed_since(before, pending), self.run.surroundings.theirs
        if not others:
            theirs.update(changed)
        paths = [path for path in changed if path not in theirs]
        what = f"while it was scored, other candidates ran and {named(paths)} changed: what was scored is not its snapshot"
        return (Finding(message=what, distrust=True),) if paths else ()

    def _tree_gone(self, pending: Pending) -> tuple[Finding, ...]:
        found = self.renewed()
        if found and pending.whole:
            self.workspace.carry_out(self.workspace.difference(pending))
        return found

    def renewed(self) -> tuple[Finding, ...]:
        """Make the tree anew where what ran in the checks took it away; what they looked at then is not known."""
        gone = self.workspace.gone()
        if gone is None:
            return ()
        self.workspace.renew()
        return (Finding(message=f"while the checks ran, {gone}; it is made anew", distrust=True),)

    def _saved_again(self, pending: Pending, why: str) -> Pending:
        """Return a snapshot that a program deleted, taken again where the tree is still what it was; else one that failed."""
        run, logs = self.run, None
        if os.path.lexists(pending.directory):
            logs = run.store.paths.directory / run.store.quarantine(pending.directory) / LOGS
        again = partial(
            take,
            run,
            self.workspace,
            pending.stage,
            number=pending.number,
            nonce=pending.nonce,
            attempt=pending.attempt,
            logs=logs,
        )
        try:
            plan = self.workspace.difference(pending)
            if not plan.write and not plan.delete:
                return again()
        except (JumarError, OSError, RecursionError) as error:
            if why_of_the_tree(error) is None:
                raise
        return again(failed=why)

    def ask(
        self,
        context: StepContext,
        attempt: Attempt,
        *,
        held_out: tuple[CheckResult, ...] | None = None,
        beginning: bool = False,
    ) -> Answers:
        """Run checks and scorers once; touches no store. A disk that is full for them is told in the answers.

        With ``held_out`` the hold-out's scorers are asked, and see these checks; then ``checks`` of the answers is empty.
        ``beginning``: no scorer is asked, or paid, where a check could not begin.
        """
        run = self.run
        began = run.clock.monotonic()
        checks: list[CheckResult] = []
        readings: list[ScoreReading] = []
        full: str | None = None
        try:
            with beating(run.store.paths.heartbeat(attempt.start.number), run.clock):
                unready = reset_failure(run.parts.hooks, context, "score", tries=1)
                if unready is not None:
                    seconds = run.clock.monotonic() - began
                    return Answers((CheckResult(name="reset", passed=False, broken=unready, seconds=seconds),), (), seconds)
                if held_out is None:
                    run.tell(PhaseStarted(iteration=context.iteration, candidate=context.candidate, phase="verify"))
                    checks += (validator.validate(self.cleared(context)) for validator in run.parts.validators)
                if beginning and troubles(checks, ()):
                    return Answers(tuple(checks), (), run.clock.monotonic() - began)
                run.tell(PhaseStarted(iteration=context.iteration, candidate=context.candidate, phase="score"))
                scored = replace(context, checks=tuple(checks) if held_out is None else held_out)
                scorers = run.parts.scorers if held_out is None else run.parts.holdout
                for scorer in scorers:
                    readings.append(scorer.score(self.cleared(scored)))  # noqa: PERF401 - what was paid for stays known when the next one fails
        except (JumarError, OSError) as error:
            if not disk_is_full(error):
                raise
            full = str(error)
        return Answers(tuple(checks), tuple(readings), run.clock.monotonic() - began, full=full)

    def _forged(self) -> tuple[Finding, ...]:
        names = [name for scorer in self.run.parts.scorers if isinstance(scorer, JudgeScorer) for name in scorer.shared.forged()]
        if not names:
            return ()
        said = "a reply of the judge was" if len(names) == 1 else f"{len(names):,} replies of the judge were"
        return (Finding(message=f"{said} not written by jumar and not taken: the judge was asked again ({escape(names[0])})"),)

    def cleared(self, context: StepContext) -> StepContext:
        """Return ``context`` when its directory is free of bytecode that programs before it left, and its logs have a place."""
        keep_logs(self.run.store, context.log_directory)
        if self.workspace.gone() is not None:
            return context
        clear_bytecode(
            context.workdir,
            context.artifacts,
            context.environment,
            known=lambda path, status: self.run.surroundings.had(self.workspace, path, status),
        )
        return context

    def not_spoilt(self, attempt: Attempt, answers: Answers) -> Answers:
        """Return the answers as they are; those against a candidate on a full disk are none. Once only, or it could hide so."""
        failed = any(not check.passed for check in answers.checks) or any(reading.score is None for reading in answers.readings)
        if not failed or answers.full is not None or self.run.space is None or not self.run.space.used_up():
            return answers
        of = attempt.start
        same = (earlier for earlier in self.run.store.attempts() if earlier.start.iteration == of.iteration)
        if any(_was_full(earlier) for earlier in same if earlier.start.purpose == of.purpose):
            return answers
        return replace(
            answers, full=f"the disk is full, and iteration {of.iteration} failed on it: free some space and run again"
        )

    def close(self, attempt: Attempt, answers: Answers, *, stopped: bool) -> None:
        """Write how an evaluation ended, and what its judges were paid: durable when this returns.

        Errors: :class:`StoreWriteError` after that, when a full disk was the reason that there is no verdict.
        """
        finish(self.run, attempt, self._end(attempt, answers, stopped=stopped or answers.full is not None))
        if answers.full is not None and not stopped:
            raise StoreWriteError(answers.full) from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _end(self, attempt: Attempt, answers: Answers, *, stopped: bool) -> AttemptEnd:
        broken = None if stopped else self._broken(answers)
        ends = [end for end in self._ended(attempt.start.iteration, attempt.start.nonce) if end.outcome != "lost"]
        usage, known = paid(answers.readings, charged=math.fsum(_charged(end) for end in ends))
        return AttemptEnd(
            outcome="interrupted" if stopped else "ok" if broken is None else "broken",
            seconds=answers.seconds,
            ended_at=self.run.clock.now(),
            detail=f"{_FULL}{answers.full}" if answers.full is not None else "" if broken is None else broken[1],
            usage=usage,
            known_cost_usd=known,
            failure=None if broken is None else broken[0],
            answers=None if stopped else answers.to_json(),
        )

    def _weights(self) -> dict[str, float]:
        return resolve_weights([scorer.dimension for scorer in self.run.parts.scorers], self.run.settings.weights or None)

    def _record(
        self,
        pending: Pending,
        ended: AttemptEnd | None,
        judged: Verdict,
        answers: Answers,
        found: tuple[Finding, ...],
        *,
        seconds: float,
    ) -> IterationRecord:
        store, stage = self.run.store, pending.stage
        parent: int | None = stage.get("parent")
        known = store.find_record(parent)
        before = None if known is None else store.manifest(known.iteration_number).entries
        modified = () if before is None else changed_paths(before, pending.manifest.entries)
        usage = Usage() if ended is None else ended.usage
        return IterationRecord(
            iteration_number=pending.number,
            timestamp=self.run.clock.now(),
            quality_score=judged.quality,
            quality_delta=self._delta(pending, judged),
            dimensions=judged.dimensions,
            tokens_used=usage.tokens_used,
            token_cost_usd=usage.token_cost_usd,
            execution_time_ms=round(seconds * 1000, 3),
            verification_status=judged.verification,
            reflections=judged.reflections,
            status=judged.status,
            status_reason=judged.status_reason,
            readings=answers.readings,
            checks=answers.checks,
            reasons=(*judged.reasons, *(() if ended is None else ended.notes)),
            analysis=analyze(ended, modified),
            usage=usage,
            attempt=pending.attempt,
            parent=parent,
            batch=stage.get("batch"),
            candidate=stage.get("candidate"),
            nonce=pending.nonce,
            commits=() if ended is None else ended.commits,
            tampering=tuple(finding.message for finding in found if finding.fails),
            failure=_failure(ended, judged, modified=bool(modified) or known is None),
        )

    def _delta(self, pending: Pending, judged: Verdict) -> float | None:
        """Return the difference to the iteration before; of a parallel candidate, or where that has no score, to the parent."""
        store, views, parent = self.run.store, self.run.store.views(), pending.stage.get("parent")
        before = views[-1].score if views and pending.stage.get("batch") is None else None
        if before is None and (started_from := store.find_record(parent)) is not None:
            before = started_from.quality_score
        return None if judged.quality is None or before is None else round(judged.quality - before, 4)


def ended_of(stage: Mapping[str, Any]) -> AttemptEnd | None:
    """Return how the attempt of a staged snapshot ended; None for the start state."""
    section = Fields(stage, "stage.json").section_or_none("ended")
    return None if section is None else AttemptEnd.from_json(section)


def _findings(stage: Mapping[str, Any]) -> list[Finding]:
    return [Finding.from_json(item) for item in Fields(stage, "stage.json").sections("guard")]


def _failed(pending: Pending, ended: AttemptEnd | None) -> tuple[Status, str] | None:
    """Return the status, and why, of an iteration that left nothing to evaluate: it, or its snapshot, failed."""
    if FAILED in pending.stage:
        return "snapshot_failed", str(pending.stage[FAILED])
    status = None if ended is None else _STATUS_OF.get(ended.outcome)
    return None if status is None or ended is None else (status, ended.detail)


def _was_full(attempt: Attempt) -> bool:
    return attempt.end is not None and attempt.end.detail.startswith(_FULL)


def _charged(end: AttemptEnd) -> float:
    cost = end.usage.token_cost_usd
    return (end.known_cost_usd or 0.0) if cost is None else cost


def _has_paid(end: AttemptEnd) -> bool:
    return end.usage.token_cost_usd is None or bool(_charged(end) or end.usage.tokens)


def paid(readings: tuple[ScoreReading, ...], *, charged: float = 0.0) -> tuple[Usage, float | None]:
    """Return what the judges of ``readings`` used (nothing without judges), and what is known of a cost not known whole.

    Without what earlier tries were ``charged`` already.
    """
    judged = [reading.judgement for reading in readings if reading.judgement is not None]
    costs = [judgement.cost_usd for judgement in judged]
    again = min(charged, math.fsum(judgement.earlier_cost_usd or 0.0 for judgement in judged))
    known = max(0.0, math.fsum(judgement.known_cost_usd for judgement in judged) - again)
    sums = [_total([getattr(judgement, name) for judgement in judged]) for name in ("input_tokens", "output_tokens")]
    tokens = None if None in sums else sum(count or 0 for count in sums)
    cost = None if None in costs else max(0.0, math.fsum([*(cost or 0.0 for cost in costs), -again]))
    usage = Usage(token_cost_usd=cost, tokens_used=tokens, input_tokens=sums[0], output_tokens=sums[1])
    return usage, known if cost is None else None


def _total(counts: list[int | None]) -> int | None:
    return None if None in counts else sum(count or 0 for count in counts)


def _failure(ended: AttemptEnd | None, judged: Verdict, *, modified: bool) -> FailureKind | None:
    if ended is not None and ended.outcome == "blocked":
        return "blocked"
    if judged.status not in ("ok", "interrupted", "crashed", "unranked"):
        return judged.status
    if ended is None or ended.outcome != "ok" or ended.usage.completed is True:
        return None
    return without_effect(modified=modified, printed=ended.printed)
