"""Putting an iteration into the working directory, whole and undoable; and completing an apply or undo that was cut off."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from jumar.errors import ConflictError, JumarError, UsageError
from jumar.loop.decisions.operation import (
    complete,
    end_without_effect,
    explaining,
    refuse_unfinished,
    refuse_unrecorded,
    unfinished,
)
from jumar.loop.decisions.plan import ApplyPlan, snapshot_of, workdir_to_json
from jumar.loop.decisions.select import final_delta
from jumar.loop.snapshots.tree import Tree
from jumar.loop.store.current_selection import last_applied
from jumar.loop.store.loop_store import LoopStore
from jumar.model import Decision
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
        with Tree(found.workdir) as tree, explaining(store, tree):
            try:
                complete(store, tree, found.decision, by=by, at=at, resumed=True)
            except ConflictError as error:
                if tree.touched:
                    raise
                raise ConflictError(f"{error}; `jumar apply {store.loop_id} --undo --force` takes it back") from error
        return found.decision


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
