"""What a person decides of a loop: another iteration, its apply, and the way back. Takes the lock, leaves the views fresh."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jumar.core.clock import SystemClock, current_user
from jumar.core.files import as_write_error
from jumar.errors import NothingEvaluatedError, UsageError
from jumar.loop.decisions.apply import apply, finish, plan_undo, undo, workdir_of
from jumar.loop.decisions.git import CommitResult, make_branch, make_commit
from jumar.loop.decisions.plan import ApplyPlan, plan_apply
from jumar.loop.decisions.select import override, program_of, record_selection, refuse_program
from jumar.loop.report.views import refresh_views
from jumar.loop.store.in_force import artifact_rules, config_now, criteria_of, imported_commit, select_from, standing, unfinished
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.running import locked_tree
from jumar.model import Decision, SelectionCriteria


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What came of an apply: the ``plan`` that was carried out, or the ``commit``.

    Without either an apply or undo that had been interrupted was finished, which ``decision`` is.
    """

    decision: Decision | None
    iteration: int | None = None
    plan: ApplyPlan | None = None
    commit: CommitResult | None = None


def select_iteration(
    store: LoopStore,
    use: Literal["best", "final"] | int,
    *,
    reason: str,
    criteria: SelectionCriteria | None = None,
    by: str | None = None,
    confirm: Callable[[str], bool] | None = None,
) -> Decision:
    """Let ``use`` be selected whatever the rules say; the working directory is not touched.

    Asked by a program of the loop, or while one runs, the decision is of kind ``held`` until a person confirms it; so it is after
    jumar was killed while one ran, until the loop was resumed, unless ``confirm``, told what ran then, says yes. ``criteria``
    None: the loop's own; ``by`` None: the user. Errors: those of :func:`jumar.loop.decisions.select.override`;
    :class:`jumar.errors.LockedError`.
    """
    clock = SystemClock()
    with store.lock():
        program = program_of(store, confirm)
        decision = override(
            store,
            use,
            reason=reason,
            by=by or current_user(),
            at=clock.now(),
            criteria=criteria_of(config_now(store)) if criteria is None else criteria,
            made_by=program,
        )
        refresh_views(store, at=clock.now())
    return decision


def selected_iteration(store: LoopStore) -> tuple[int, Decision | None]:
    """Return the iteration that is selected, or would be by the rules, and the decision where there is one.

    Errors: :class:`NothingEvaluatedError` where no iteration has a valid score.
    """
    current = standing(store, criteria_of(config_now(store)))
    if current.iteration is None:
        raise NothingEvaluatedError(
            f"nothing to apply: no iteration of loop '{store.loop_id}' has a valid score; `jumar show` says why for each"
        )
    return current.iteration, current.decision


def workdir_for(store: LoopStore) -> Path:
    """Return the working directory. Errors: :class:`UsageError` where the loop names none, or git has what it holds."""
    if store.workdir is None:
        imported = "was imported without its files: there is nothing to apply"
        none = f"names no working directory to apply to; its selected files are in {store.paths.final_output}"
        raise UsageError(f"loop '{store.loop_id}' {imported if 'origin' in store.config else none}")
    iteration = standing(store, criteria_of(config_now(store))).iteration
    commit = None if iteration is None else imported_commit(store, iteration)
    if commit is not None:
        raise UsageError(f"loop '{store.loop_id}' is a branch of git: iteration {iteration} is `git switch --detach {commit}`")
    return store.workdir


def plan_selected(store: LoopStore) -> ApplyPlan:
    """Return what :func:`apply_selected` would change. Errors: as there; nothing is written and no lock is taken."""
    iteration, _ = selected_iteration(store)
    return plan_apply(store, iteration, workdir_for(store), artifact_rules(store))


def apply_selected(store: LoopStore, *, by: str | None = None) -> Applied:
    """Put the selected iteration into the working directory; an apply that was interrupted is finished instead.

    One that changes nothing is written down too: an undo takes back the last one, not the one before it. Errors:
    :class:`NothingEvaluatedError`, :class:`UsageError`, :class:`jumar.errors.LockedError`, and those of the file system.
    """
    workdir = workdir_for(store)
    begun = unfinished(store)
    with _changing(store, workdir if begun is None else workdir_of(store, begun), by) as (who, at):
        if unfinished(store) is not None:
            return Applied(decision=finish(store, by=who, at=at))
        iteration, reason = _decided(store, by=who, at=at)
        plan = plan_apply(store, iteration, workdir, artifact_rules(store))
        return Applied(iteration=iteration, decision=apply(store, plan, by=who, at=at, reason=reason), plan=plan)


def commit_selected(store: LoopStore, branch: str | None) -> Applied:
    """Commit the selected iteration on a new ``branch``; for None apply it, and commit it on the current one.

    An apply that was interrupted is finished instead. Errors: as :func:`apply_selected`.
    """
    workdir, rules = workdir_for(store), artifact_rules(store)
    with _changing(store, workdir) as (by, at):
        if unfinished(store) is not None:
            return Applied(decision=finish(store, by=by, at=at))
        iteration, reason = _decided(store, by=by, at=at)
        if branch is not None:
            made = make_branch(store, iteration, workdir, branch, rules=rules, by=by, at=at)
        else:
            made = make_commit(store, iteration, workdir, rules=rules, by=by, at=at, reason=reason)
        return Applied(iteration=iteration, decision=made.decision, commit=made)


def undo_apply(store: LoopStore, *, force: bool = False, by: str | None = None) -> Decision:
    """Take back the last apply; where none is left, put back the start of a loop in place. ``force``: over changed files too.

    Errors: :class:`UsageError` where there is nothing to take back or, without ``force``, files changed since.
    """
    with _changing(store, plan_undo(store).workdir, by) as (who, at):
        return undo(store, by=who, at=at, force=force)


def ask_to_stop(path: Path) -> bool:
    """Make the file ``path`` that asks a loop, or all of a root, to end after its step; return whether it was not there."""
    with as_write_error("create", path):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
        except FileExistsError:
            return False
    return True


@contextlib.contextmanager
def _changing(store: LoopStore, workdir: Path, by: str | None = None) -> Generator[tuple[str, str]]:
    """Hold both locks, give who and when, and bring the views up to date at the end; no program of the loop may."""
    refuse_program(store.loop_id, "apply", store.nonce)
    clock = SystemClock()
    with store.lock(), locked_tree(store, workdir):
        yield by or current_user(), clock.now()
        refresh_views(store, at=clock.now())


def _decided(store: LoopStore, *, by: str, at: str) -> tuple[int, str]:
    """Return the selected iteration and why; record the selection first when nobody decided yet. The lock is held."""
    iteration, decision = selected_iteration(store)
    if decision is None:
        decision = record_selection(store, select_from(store, criteria_of(config_now(store))), by=by, at=at)
    return iteration, decision.reason
