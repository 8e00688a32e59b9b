"""Going on from what is on disk: an interrupted step is completed or charged, never forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from jumar.core.files import is_directory
from jumar.core.text import named, plural
from jumar.errors import ArtifactError, JumarError
from jumar.loop.engine.accounting import finish
from jumar.loop.engine.evaluation import paid
from jumar.loop.engine.iteration import Trees
from jumar.loop.engine.run_context import LoopRun, drive, take_ended
from jumar.loop.ranking.ratchet import choose_parent
from jumar.loop.snapshots.restore import RestorePlan
from jumar.loop.snapshots.snapshot import store_again
from jumar.loop.store.in_force import evidence_of, last_applied
from jumar.loop.store.layout import iteration_name
from jumar.loop.store.reading import given_up
from jumar.loop.store.staging import Pending
from jumar.loop.workspace.clearing import why_of_the_tree
from jumar.loop.workspace.workspace import Workspace
from jumar.model.attempts import LEFT_NOTHING, Attempt, AttemptEnd, AttemptStart
from jumar.processes.control import lost_seconds
from jumar.processes.process_tree import end_strays
from jumar.processes.usage import NOTHING_REPORTED, read_usage_file


def recover(run: LoopRun, trees: Trees) -> None:
    """Bring the loop to the state between two steps. The caller holds the lock; what is done is told.

    In this order: attempts that never ended are written off as lost, and what they left running is ended; snapshots that
    were taken are scored; attempts that ended without a snapshot get one from their working directory; a tree that differs from
    the recorded parent's is set aside and restored, and what of it is missing among the objects is stored again.
    """
    store = run.store
    for attempt in [attempt for attempt in store.attempts() if attempt.end is None]:
        _write_off(run, attempt)
    completed = _complete_pending(run, trees)
    completed = _complete_unstaged(run, trees) or completed
    views = store.views()
    if views and not completed and run.settings.candidates == 1:
        parent = choose_parent(evidence_of(store), run.criteria, run.settings.continue_from)
        applied = last_applied(store)
        ours = applied is not None and _holds(trees.of(None), applied.best_iteration)  # restored at the end of the run before
        anew = trees.of(None).made > 0  # a copy of the person's own directory, in which nobody has worked
        _put(run, trees.of(None), parent, set_aside=not (ours or anew))
        _store_again(run, trees.of(None), parent)
    store.discard_leftovers()


def _holds(workspace: Workspace, number: int | None) -> bool:
    try:
        return workspace.holds(number)
    except (JumarError, OSError, RecursionError) as error:
        if why_of_the_tree(error) is None:
            raise
        return False


def _put(run: LoopRun, workspace: Workspace, to: int | Pending, *, set_aside: bool) -> None:
    """Make a tree equal to an iteration; what differed is set aside, or moved to the quarantine where it cannot be copied."""
    try:
        plan = workspace.difference(to)
        kept = workspace.carry_out(plan, set_aside=set_aside)
        _tell_set_aside(run, plan, kept, to if isinstance(to, int) else to.number)
    except (JumarError, OSError, RecursionError) as error:
        if why_of_the_tree(error) is None or (isinstance(to, int) and not run.store.has_snapshot(to)):
            raise
        workspace.bring_back(to)


def _store_again(run: LoopRun, workspace: Workspace, number: int) -> None:
    """Store what an iteration lacks among the objects: the tree, which equals it and is changed next, may be the last place."""
    manifest, objects = run.store.manifest(number), run.store.objects
    lacking = tuple(objects.lacking(manifest.entries.values())) if manifest.by_hash else ()
    if lacking:
        store_again(objects, workspace.directory, lacking)
        what = f"the contents of {plural(len(lacking), 'file')} of iteration {number} were missing in objects/"
        run.notice(f"{what}; they are stored again, from the working directory")


def record_failed(run: LoopRun, trees: Trees) -> None:
    """Record the failed iterations that were to be tried again, now that the loop ends before that: they were paid for."""
    _complete_unstaged(run, trees, ends=True)


def _write_off(run: LoopRun, attempt: Attempt) -> None:
    """End an attempt whose process died: charged what was set aside for it, and its time up to the last heartbeat.

    Only a generator reports itself what it used; where its output tells, a usage file that says nothing may be another program's.
    """
    start = attempt.start
    end_strays(start.nonce)
    paths = run.store.paths
    most = run.parts.generator_timeout if start.purpose == "generate" else run.parts.evaluation_timeout
    reported = paths.attempt_scratch(start.number) / "usage.json"
    reading = read_usage_file(reported) if start.purpose == "generate" else NOTHING_REPORTED
    if run.parts.output_tells and not reading.usage.token_cost_usd:
        reading = NOTHING_REPORTED
    usage, known = reading.usage, None
    for noted in (each for each in run.store.readings() if each.attempt == start.number):  # written before the end
        usage, known = paid(noted.readings)
    end = AttemptEnd(
        outcome="lost",
        seconds=lost_seconds(paths.heartbeat(start.number), start.started_at, most=most),
        ended_at=run.clock.now(),
        detail="its process died before it ended",
        usage=usage,
        known_cost_usd=known,
        notes=reading.notes,
        failure="lost",
    )
    finish(run, attempt, end)
    what = {"generate": "the step", "score": "the scoring", "confirm": "a later reading"}[start.purpose]
    run.notice(f"{what} of iteration {start.iteration} did not end, because its process died: {_charged(start, end)}")


def _charged(start: AttemptStart, end: AttemptEnd) -> str:
    cost = end.usage.token_cost_usd
    if cost is not None:
        return f"${cost:.2f} are charged, as it had reported"
    if start.reserve_cost_usd is not None:
        return f"${start.reserve_cost_usd:.2f} are charged, as set aside for it"
    return "what it cost is not known"


def _tell_set_aside(run: LoopRun, plan: RestorePlan, kept: Path | None, number: int) -> None:
    if kept is None:
        return
    paths = sorted({*(entry.path for entry in plan.write), *plan.delete})
    what = f"the working directory differed from iteration {number}, from which the loop resumes: {named(paths)}"
    run.notice(f"{what}; what was there is in {kept}")


def _complete_pending(run: LoopRun, trees: Trees) -> bool:
    found = False
    waiting = [run.store.pending_of(number) for number in run.store.pending_numbers()]
    for pending in sorted(waiting, key=lambda each: each.record is None):  # first what only lacks being acknowledged
        found = True
        end_strays(pending.nonce)
        candidate: int | None = pending.stage.get("candidate")
        workspace = trees.ready(candidate)
        _put(run, workspace, pending, set_aside=candidate is None)
        if drive(trees.step(candidate).evaluation.complete(pending)) is not None:
            run.notice(f"iteration {pending.number} was generated before the interruption; it is scored now, not generated again")
    return found


def _complete_unstaged(run: LoopRun, trees: Trees, *, ends: bool = False) -> bool:
    """Snapshot what attempts left that ended just before the interruption, or at the end of the loop were not tried again."""
    found = False
    numbers = run.store.iteration_numbers()
    recorded = {*numbers, *run.store.pending_numbers()}
    attempts, accepted = _last_of_each(run.store.attempts()), given_up(run.store.decisions())
    for attempt in attempts:
        start, end = attempt.start, attempt.end
        if numbers and start.iteration < numbers[-1] and (start.batch is None or start.batch != attempts[-1].start.batch):
            continue  # of an iteration that was set aside: the tree is a later one's
        killed = run.killed(start.iteration, "generate")
        if end is None or start.parent is None or start.iteration in recorded:
            continue
        if end.outcome in LEFT_NOTHING and not run.settings.retries.killed_too_often(killed):
            continue
        places = (f"iterations/{iteration_name(each)}" for each in (start.iteration, start.parent))
        if any(start.number <= accepted.get(place, 0) for place in places):
            continue  # it is missing for good, or what it began from is
        if start.parent not in numbers:
            raise ArtifactError(
                f"iteration {start.parent}, from which iteration {start.iteration} began, is gone. After `jumar repair "
                f"{run.store.loop_id} -y` this loop goes on without it, from the working directory as it is; "
                "`jumar run --new` begins another"
            )
        step = trees.step(start.candidate)
        if not ends and step.is_tried_again(start.iteration, end):
            continue
        scratch = run.store.paths.attempt_scratch(start.number)
        if killed:
            end = replace(end, detail=f"jumar was killed {killed} times while its generator ran")
            run.notice(f"iteration {start.iteration} failed: {end.detail}")
            _put(run, trees.ready(start.candidate), start.parent, set_aside=start.candidate is None)
        lost = None if ends or killed else _lost(run, step.workspace, start.number)
        pending = take_ended(run, step.workspace, start, end, scratch if is_directory(scratch) else None, lost=lost)
        trees.ready(start.candidate)
        step.workspace.carry_out(step.workspace.difference(pending))
        if drive(step.evaluation.complete(pending)) is not None and not ends and lost is None and not killed:
            run.notice(
                f"iteration {start.iteration} was generated before the interruption; its working directory is taken as it lies"
            )
        found = True
    return found


def _lost(run: LoopRun, workspace: Workspace, attempt: int) -> str | None:
    """Return why a tree is not what an attempt that has ended left there; None where it is, or nobody knows."""
    if workspace.made:
        return "the directory that it worked in was deleted before a snapshot was taken"
    start, end = run.store.attempt(attempt).start, run.store.attempt(attempt).end
    if end is not None and end.tree is not None and workspace.state(run.guard.guarded, start.parent) != end.tree:
        return "the working directory was changed after it ended, before a snapshot was taken"
    return None


def _last_of_each(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Return the last run of the generator for each iteration, by iteration."""
    last = {attempt.start.iteration: attempt for attempt in attempts if attempt.start.purpose == "generate"}
    return [last[number] for number in sorted(last)]
