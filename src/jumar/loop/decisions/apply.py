"""Putting an iteration into the working directory, whole and undoable; completing what was cut off; and taking an apply back.

Taken back, the working directory is as it was just before the apply, deletions included; at last as the loop found it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from jumar.core.codec import Fields
from jumar.errors import ConflictError, JumarError, NotFoundError, UsageError
from jumar.loop.decisions.moves import Change, Moves, carry_out, conflict_message, directories, keep_copy
from jumar.loop.decisions.plan import ApplyPlan, plan_apply, snapshot_of, workdir_from_json, workdir_to_json
from jumar.loop.decisions.select import final_delta
from jumar.loop.snapshots.content import PlainFiles
from jumar.loop.snapshots.tree import Tree, same
from jumar.loop.store.in_force import artifact_rules, last_applied, unfinished, works_in_place
from jumar.loop.store.layout import ARTIFACTS
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.reading import damaged_iterations
from jumar.model import Decision
from jumar.model.attempts import LEFT_NOTHING
from jumar.model.ordering import valid_score


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
        _, content = snapshot_of(store, iteration)
        keep_copy(store.paths, number, tree.root, moves)
        carry_out(store.paths, number, tree, moves, content, resumed=resumed)
        end, data = "apply-end", {"apply": number}
    else:
        apply = fields.integer("apply")
        carry_out(store.paths, number, tree, moves, PlainFiles(store.paths.undo_of(apply) / ARTIFACTS), resumed=resumed)
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


_TO_START: Final = "start"
"""In the data of an apply: it put back the state before the loop, and there is nothing before that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPlan:
    """How ``workdir`` becomes what it was before ``apply``, which put ``iteration`` there, or before the loop (None).

    ``conflicts`` are paths that are not what the apply, or the loop, left, or that appeared in the way; they are lost unless they
    are set aside first. ``left_alone`` is that of an apply.
    """

    apply: Decision | None
    iteration: int
    workdir: Path
    moves: Moves
    conflicts: tuple[str, ...]
    left_alone: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the plan for ``--dry-run --json``."""
        return {
            "undo_of": self.apply and self.apply.number,
            "iteration": self.iteration,
            "workdir": str(self.workdir),
            "changes": [{"path": change.path, "change": change.verb} for change in self.moves.changes],
            "conflicts": list(self.conflicts),
            "left_alone": list(self.left_alone),
        }


def way_back(store: LoopReader) -> Literal["apply", "start"] | None:
    """Return what an undo would take back: the last apply, all that a loop did that worked in place, or nothing.

    An apply that a loop in place was run after is no more what the directory holds.
    """
    last, numbers, in_place = last_applied(store), store.iteration_numbers(), works_in_place(store)
    if last is not None and (not in_place or numbers[-1:] == (last.final_iteration,)):
        return None if last.data.get("undo") == _TO_START else "apply"
    return "start" if in_place and store.workdir is not None and len(numbers) > 1 and store.has_snapshot(0) else None


def plan_undo(store: LoopStore) -> UndoPlan:
    """Work out what taking back the last apply means now; an interrupted one comes first. Nothing is written.

    Each undo goes one apply further back; of a loop that worked in place the last one leads to its start. Errors:
    :class:`NotFoundError` when there is none left; :class:`UsageError` for a file that cannot be read, or a FIFO, device or
    socket where a file has to be.
    """
    found = _to_undo(store)
    if found is None:
        return _plan_start(store)
    made, whole = found
    fields = data_of(made)
    recorded = Moves.from_json(fields.section("moves"))
    if not store.paths.undo_of(made.number).is_dir():
        if whole and any(change.before is not None for change in recorded.changes):
            replaced = f"what the apply of iteration {fields.integer('iteration')} replaced"
            raise UsageError(f"{replaced} was damaged and is set aside: it cannot be undone")
        recorded = Moves(changes=()) if not whole else recorded  # it was cut off before its copy: the tree was never touched
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
        apply=made,
        iteration=fields.integer("iteration"),
        workdir=workdir,
        moves=Moves.of(changes, drop={**made_then, **around.replaced}, make={**around.needed, **recorded.drop}),
        conflicts=tuple(sorted(conflicts.union(obstacles))),
    )


def _plan_start(store: LoopStore) -> UndoPlan:
    if way_back(store) is None or store.workdir is None:
        nothing = "the start is back already" if last_applied(store) is not None else "there is no apply to take back"
        if works_in_place(store) and 0 in damaged_iterations(store.decisions()):
            nothing = "the snapshot of the start was damaged, and a repair set it aside: there is no way back to it"
        raise NotFoundError(f"{nothing} in loop '{store.loop_id}'; `jumar apply {store.loop_id}` applies the selected iteration")
    plan = plan_apply(store, 0, store.workdir, artifact_rules(store))
    left = store.manifest(store.iteration_numbers()[-1]).entries
    strange = (
        change.path
        for change in plan.moves.changes
        if change.before is not None and not same(change.before, left.get(change.path))
    )
    return UndoPlan(
        apply=None, iteration=0, workdir=plan.workdir, moves=plan.moves, conflicts=tuple(strange), left_alone=plan.left_alone
    )


def undo(store: LoopStore, *, by: str, at: str, reason: str = "", force: bool = False) -> Decision:
    """Restore the state just before the last apply that was not taken back yet, and return the decision.

    Where that is the start of the loop, it is applied: so what is cut off is mended, and what was there is kept, as by any apply.
    An apply or undo that was cut off comes first. With ``force``, files that changed since the apply are copied to
    ``set-aside/`` before they are replaced (``data["set_aside"]`` of the decision, relative to the loop's directory); so are,
    always, those that the snapshot has no more.

    Errors: as :func:`plan_undo`; :class:`ConflictError` listing what changed since, with nothing written.
    """
    with store.lock():
        refuse_unrecorded(store)
        plan = plan_undo(store)
        if plan.conflicts and not force:
            since = "the loop left it" if plan.apply is None else f"iteration {plan.iteration} was applied"
            raise ConflictError(
                conflict_message(plan.conflicts, f"changed since {since}")
                + "; nothing was written, --force sets them aside first"
            )
        with Tree(plan.workdir) as tree:
            plan.moves.remaining(tree, resumed=False)
            kept: str | None = None
            there = {change.path for change in plan.moves.changes if change.before is not None}
            alone = there.intersection(plan.conflicts).union(_in_no_snapshot(store, plan))
            if alone:
                aside = store.set_aside(plan.workdir, sorted(alone))
                kept = aside.relative_to(store.paths.directory).as_posix()
            if plan.apply is None:
                start = ApplyPlan(iteration=0, workdir=plan.workdir, moves=plan.moves, unchanged=())
                back = {"undo": _TO_START, "set_aside": kept}
                return apply(store, start, by=by, at=at, reason=reason or "back to the start", data=back)
            decision = store.add_decision("undo", by=by, at=at, reason=reason, **_undo_fields(store, plan, plan.apply, kept))
            with explaining(store, tree):
                complete(store, tree, decision, by=by, at=at, resumed=False)
        return decision


def _in_no_snapshot(store: LoopStore, plan: UndoPlan) -> set[str]:
    """Return the paths that the iteration put there, and that its snapshot has no more because it is damaged or gone."""
    put = [change.before for change in plan.moves.changes if change.before is not None]
    gone = plan.iteration not in store.iteration_numbers() or not store.has_snapshot(plan.iteration)
    return {each.path for each in (put if gone else store.content(plan.iteration).lacking(put))} if plan.apply else set()


def _to_undo(store: LoopStore) -> tuple[Decision, bool] | None:
    """Return the apply to take back, and whether it had come to its end; None where there is none."""
    found = unfinished(store)
    if found is not None:
        return _apply_of(store, found)
    last = last_applied(store) if way_back(store) == "apply" else None
    return None if last is None else (last, True)


def _apply_of(store: LoopStore, found: Decision) -> tuple[Decision, bool]:
    if found.kind == "apply":
        return found, False
    number = data_of(found).integer("apply")
    decisions = store.decisions()
    whole = any(decision.kind == "apply-end" and decision.data.get("apply") == number for decision in decisions)
    return next(decision for decision in decisions if decision.number == number), whole


def _refuse_special(changes: list[Change]) -> None:
    special = [change.path for change in changes if change.before is not None and change.before.kind == "special"]
    if special:
        raise UsageError(conflict_message(special, "in the way cannot be set aside (a FIFO, device or socket); move it away"))


def _undo_fields(store: LoopStore, plan: UndoPlan, apply: Decision, kept: str | None) -> dict[str, Any]:
    return {
        "best_iteration": plan.iteration,
        "final_iteration": apply.final_iteration,
        "delta": apply.delta,
        "data": {
            "apply": apply.number,
            "iteration": plan.iteration,
            "workdir": workdir_to_json(store, plan.workdir),
            "moves": plan.moves.to_json(),
            "set_aside": kept,
        },
    }
