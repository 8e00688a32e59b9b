"""The selected iteration into the working directory at the end of a run, and what a person changed there meanwhile."""

from __future__ import annotations

import os

from jumar.core.refusals import is_of_the_machine
from jumar.core.text import named
from jumar.errors import StoreWriteError, UsageError
from jumar.loop.decisions.apply import apply
from jumar.loop.decisions.plan import ApplyPlan, plan_apply, unclaimed
from jumar.loop.engine.run_context import LoopRun
from jumar.loop.engine.workspaces import Trees
from jumar.loop.snapshots.tree import same
from jumar.loop.store.current_selection import last_applied, standing
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.workspace.bytecode import clear_bytecode


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
