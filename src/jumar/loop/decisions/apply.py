"""Putting an iteration into the working directory, whole and undoable; and completing an apply or undo that was cut off."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jumar.core.codec import Fields
from jumar.errors import ConflictError, JumarError, UsageError
from jumar.loop.decisions.moves import Moves, carry_out, keep_copy
from jumar.loop.decisions.plan import ApplyPlan, snapshot_of, workdir_from_json, workdir_to_json
from jumar.loop.decisions.select import final_delta
from jumar.loop.snapshots.tree import Tree
from jumar.loop.store.in_force import last_applied, unfinished
from jumar.loop.store.layout import ARTIFACTS
from jumar.loop.store.loop_store import LoopStore
from jumar.model import Decision
from jumar.model.attempts import LEFT_NOTHING
from jumar.model.views import valid_score


def apply(
    store: LoopStore, plan: ApplyPlan, *, by: str, at: str, reason: str = "", data: Mapping[str, Any] = MappingProxyType({})
) -> Decision:
    """Carry out a plan of :func:`plan_apply` and return the decision, which can be undone; ``data`` is kept with it.

    A plan without changes is a decision too. Order: the plan with the hash of everything it touches, durable; a copy of all
    that will be replaced or removed, durable and compared with the plan; the new files beside the tree, durable and compared
    with the manifest; then the tree, path by path; its end. Errors, with nothing written to the tree: :class:`ConflictError`
    listing the paths that changed since the plan, :class:`jumar.errors.StoreDamagedError` for a damaged snapshot,
    :class:`jumar.errors.StoreWriteError` for a full disk, :class:`UsageError` while another apply is unfinished. An error in
    the middle leaves the apply unfinished.
    """
    with store.lock(), Tree(plan.workdir) as tree:
        refuse_unfinished(store)
        refuse_unrecorded(store)
        snapshot_of(store, plan.iteration)
        try:
            plan.moves.remaining(tree, resumed=False)
        except ConflictError as error:
            raise ConflictError(f"{error}; nothing was written, look at them and apply again") from error
        decision = store.add_decision("apply", by=by, at=at, reason=reason, **_fields(store, plan, data))
        try:
            with explaining(store, tree):
                complete(store, tree, decision, by=by, at=at, resumed=False)
        except JumarError as error:
            if not tree.touched:
                # A full disk takes no decision either; then the apply stays unfinished, as after a kill.
                with contextlib.suppress(JumarError):
                    end_without_effect(store, decision, by=by, at=at, reason=f"nothing was written: {error}")
            raise
        return decision


def finish(store: LoopStore, *, by: str, at: str) -> Decision:
    """Complete the apply or undo that was cut off, and return its decision.

    What has arrived stays, what stands at its beginning is moved. Errors: :class:`UsageError` when there is none,
    :class:`ConflictError` listing the paths that somebody changed meanwhile: put them back, or take the apply back.
    """
    with store.lock():
        found = unfinished(store)
        if found is None:
            raise UsageError(f"there is no interrupted apply or undo in loop '{store.loop_id}'")
        with Tree(workdir_of(store, found)) as tree, explaining(store, tree):
            try:
                complete(store, tree, found, by=by, at=at, resumed=True)
            except ConflictError as error:
                if tree.touched:
                    raise
                raise ConflictError(f"{error}; `jumar apply {store.loop_id} --undo --force` takes it back") from error
        return found


def _fields(store: LoopStore, plan: ApplyPlan, more: Mapping[str, Any]) -> dict[str, Any]:
    views = store.views()
    chosen = next(view for view in views if view.number == plan.iteration)
    before = last_applied(store)
    return {
        "best_iteration": plan.iteration,
        "final_iteration": views[-1].number,
        "delta": final_delta(valid_score(views[-1]), valid_score(chosen)),
        "replaced": before and before.best_iteration,
        "data": {
            "iteration": plan.iteration,
            "workdir": workdir_to_json(store, plan.workdir),
            "moves": plan.moves.to_json(),
            "unchanged": len(plan.unchanged),
            "skipped": list(plan.skipped),
            **more,
        },
    }


def data_of(decision: Decision) -> Fields:
    """Return what belongs to the decision's kind, with typed access."""
    return Fields(decision.data, f"decision {decision.number:04d}-{decision.kind}: data")


def workdir_of(store: LoopStore, decision: Decision) -> Path:
    """Return the working directory that an apply or an undo names."""
    return workdir_from_json(store, data_of(decision))


def refuse_unfinished(store: LoopStore) -> None:
    """Raise :class:`UsageError` that says how to go on when an apply or undo was cut off."""
    found = unfinished(store)
    if found is not None:
        raise UsageError(
            f"the {found.kind} of iteration {found.best_iteration} that began at {found.at} was interrupted; "
            f"`jumar apply {store.loop_id}` finishes it" + ("" if found.kind == "undo" else ", with --undo it is taken back")
        )


def complete(store: LoopStore, tree: Tree, decision: Decision, *, by: str, at: str, resumed: bool) -> None:
    """Carry an apply or undo out to its end, and write that. Errors: as :func:`jumar.loop.decisions.moves.carry_out`."""
    fields = data_of(decision)
    moves = Moves.from_json(fields.section("moves"))
    number = decision.number
    if decision.kind == "apply":
        iteration = fields.integer("iteration")
        _, artifacts = snapshot_of(store, iteration)
        keep_copy(store.paths, number, tree.root, moves)
        carry_out(store.paths, number, tree, moves, artifacts, resumed=resumed)
        end, data = "apply-end", {"apply": number}
    else:
        apply = fields.integer("apply")
        carry_out(store.paths, number, tree, moves, store.paths.undo_of(apply) / ARTIFACTS, resumed=resumed)
        end, data = "undo-end", {"undo": number, "apply": apply}
    store.add_decision(end, best_iteration=decision.best_iteration, by=by, at=at, data=data)


@contextlib.contextmanager
def explaining(store: LoopStore, tree: Tree) -> Generator[None]:
    """Add the way out to the message of a conflict that was met in the middle."""
    try:
        yield
    except ConflictError as error:
        if not tree.touched:
            raise
        way_out = f"`jumar apply {store.loop_id} --undo` takes back what was written, `jumar apply {store.loop_id}` finishes it"
        raise ConflictError(f"{error}; {way_out}") from error


def end_without_effect(store: LoopStore, apply: Decision, *, by: str, at: str, reason: str) -> None:
    """Write that an apply was taken back before it touched anything."""
    fields = data_of(apply)
    data = {
        "apply": apply.number,
        "iteration": fields.integer("iteration"),
        "workdir": fields.text("workdir"),
        "moves": Moves(changes=()).to_json(),
        "set_aside": None,
    }
    iteration = apply.best_iteration
    undo = store.add_decision("undo", best_iteration=iteration, reason=reason, by=by, at=at, data=data)
    ends = {"undo": undo.number, "apply": apply.number}
    store.add_decision("undo-end", best_iteration=iteration, by=by, at=at, data=ends)


def refuse_unrecorded(store: LoopStore) -> None:
    """Refuse to change the tree while it alone holds an iteration that was paid for and not yet recorded.

    Errors: :class:`ConflictError` that says how to record it.
    """
    attempts = store.attempts()
    last = attempts[-1] if attempts else None
    if last is None or last.end is None or last.end.outcome in LEFT_NOTHING or store.pending() is not None:
        return
    if last.start.iteration not in store.iteration_numbers():
        raise ConflictError(
            f"iteration {last.start.iteration} of loop '{store.loop_id}' was generated and is not recorded yet: "
            "it is in the working directory alone; run the loop once more, which records it, then try again"
        )
