"""Taking an apply back: the work tree as it was just before it, deletions included."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumar.decide.moves import Change, Moves, conflict_message, directories
from jumar.decide.operation import (
    Unfinished,
    complete,
    data_of,
    explaining,
    last_applied,
    refuse_unrecorded,
    unfinished,
)
from jumar.decide.plan import workdir_from_json, workdir_to_json
from jumar.decide.tree import Tree, same
from jumar.errors import ConflictError, NotFoundError, UsageError
from jumar.model import Decision
from jumar.store.loop_store import LoopStore

__all__ = ["UndoPlan", "plan_undo", "undo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPlan:
    """How ``workdir`` becomes what it was before ``apply``, which put ``iteration`` there.

    ``conflicts`` are paths that are not what the apply left, or that appeared in the way; they are lost unless they are set
    aside first.
    """

    apply: Decision
    iteration: int
    workdir: Path
    moves: Moves
    conflicts: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the plan for ``--dry-run --json``."""
        return {
            "undo_of": self.apply.number,
            "iteration": self.iteration,
            "workdir": str(self.workdir),
            "changes": [{"path": change.path, "change": change.verb} for change in self.moves.changes],
            "conflicts": list(self.conflicts),
        }


def plan_undo(store: LoopStore) -> UndoPlan:
    """Work out what taking back the last apply means now; an interrupted one comes first. Nothing is written.

    Each undo goes one apply further back. Errors: :class:`NotFoundError` when there is none left; :class:`UsageError` for a
    file that cannot be read, or a FIFO, device or socket where a file has to be.
    """
    apply, whole = _to_undo(store)
    fields = data_of(apply)
    recorded = Moves.from_json(fields.section("moves"))
    if not whole and not store.paths.undo_of(apply.number).is_dir():
        recorded = Moves(changes=())  # it was cut off before its undo copy was there: the tree was never touched
    workdir = workdir_from_json(store, fields)
    with Tree(workdir) as tree:
        changes: list[Change] = []
        conflicts: set[str] = set()
        for change in recorded.changes:
            now = tree.look(change.path).detail
            if not same(now, change.before):
                changes.append(Change(path=change.path, before=now, after=change.before))
                if not same(now, change.after):
                    conflicts.add(change.path)
        obstacles = directories(tree, changes).obstacles
        changes += [Change(path=path, before=tree.look(path).detail, after=None) for path in obstacles]
        _refuse_special(changes)
        around = directories(tree, changes)
        made_then = {path: mode for path in recorded.make if (mode := tree.directory_mode(path)) is not None}
    return UndoPlan(
        apply=apply,
        iteration=fields.integer("iteration"),
        workdir=workdir,
        moves=Moves.of(changes, drop={**made_then, **around.replaced}, make={**around.needed, **recorded.drop}),
        conflicts=tuple(sorted(conflicts.union(obstacles))),
    )


def undo(store: LoopStore, *, by: str, at: str, reason: str = "", force: bool = False) -> Decision:
    """Restore the state just before the last apply that was not taken back yet, and return the decision.

    An apply or undo that was cut off comes first. With ``force``, files that changed since the apply are copied to
    ``set-aside/`` before they are replaced (``data["set_aside"]`` of the decision, relative to the loop's directory). Errors:
    as :func:`plan_undo`; :class:`ConflictError` listing what changed since, with nothing written.
    """
    with store.lock():
        refuse_unrecorded(store)
        plan = plan_undo(store)
        if plan.conflicts and not force:
            raise ConflictError(
                conflict_message(plan.conflicts, f"changed since iteration {plan.iteration} was applied")
                + "; nothing was written, --force sets them aside first"
            )
        with Tree(plan.workdir) as tree:
            plan.moves.remaining(tree, resumed=False)
            kept: str | None = None
            there = {change.path for change in plan.moves.changes if change.before is not None}
            if there.intersection(plan.conflicts):
                aside = store.set_aside(plan.workdir, sorted(there.intersection(plan.conflicts)))
                kept = aside.relative_to(store.paths.directory).as_posix()
            decision = store.add_decision("undo", by=by, at=at, reason=reason, **_fields(store, plan, kept))
            with explaining(store, tree):
                complete(store, tree, decision, by=by, at=at, resumed=False)
        return decision


def _to_undo(store: LoopStore) -> tuple[Decision, bool]:
    """Return the apply to take back, and whether it had come to its end."""
    found = unfinished(store)
    if found is not None:
        return _apply_of(store, found)
    last = last_applied(store)
    if last is None:
        raise NotFoundError(f"there is no apply to take back in loop '{store.loop_id}'")
    return last, True


def _apply_of(store: LoopStore, found: Unfinished) -> tuple[Decision, bool]:
    if found.kind == "apply":
        return found.decision, False
    number = data_of(found.decision).integer("apply")
    decisions = store.decisions()
    whole = any(decision.kind == "apply-end" and decision.data.get("apply") == number for decision in decisions)
    return next(decision for decision in decisions if decision.number == number), whole


def _refuse_special(changes: list[Change]) -> None:
    special = [change.path for change in changes if change.before is not None and change.before.kind == "special"]
    if special:
        raise UsageError(conflict_message(special, "in the way cannot be set aside (a FIFO, device or socket); move it away"))


def _fields(store: LoopStore, plan: UndoPlan, kept: str | None) -> dict[str, Any]:
    return {
        "best_iteration": plan.iteration,
        "final_iteration": plan.apply.final_iteration,
        "delta": plan.apply.delta,
        "data": {
            "apply": plan.apply.number,
            "iteration": plan.iteration,
            "workdir": workdir_to_json(store, plan.workdir),
            "moves": plan.moves.to_json(),
            "set_aside": kept,
        },
    }
