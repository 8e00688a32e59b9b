"""Deleting snapshots that nobody needs any more. Records, manifests and logs stay for ever; so does what a decision rests on."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from jumar.core.files import as_write_error, rename_new
from jumar.core.leftovers import folders_of, remove_tree
from jumar.errors import NotFoundError, StoreDamagedError, UsageError
from jumar.loop.decisions.apply import data_of, refuse_unfinished
from jumar.loop.ranking.choose import running_best
from jumar.loop.ranking.degradation import detect_degradation
from jumar.loop.ranking.ratchet import latest_best
from jumar.loop.store.collect import collect
from jumar.loop.store.in_force import config_now, criteria_of, evidence_of, standing, trail
from jumar.loop.store.loop_store import LoopStore
from jumar.model import Decision, IterationView
from jumar.model.ordering import valid_points

_TRASH = ".trash-"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupResult:
    """What was deleted, and why the rest was not.

    ``removed`` are iterations whose snapshot is gone now, ``kept`` says for each of the others why it stays. ``freed`` is in
    bytes: what another snapshot holds too is not freed. ``decision`` is None when there was nothing to delete, and for a plan.
    """

    removed: tuple[int, ...]
    kept: Mapping[int, str]
    freed: int = 0
    decision: Decision | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "removed": list(self.removed),
            "kept": [{"iteration": number, "why": why} for number, why in self.kept.items()],
            "freed_bytes": self.freed,
            "decision": self.decision and self.decision.number,
        }


def plan_cleanup(store: LoopStore, *, keep: int | None = None, keep_iterations: Iterable[int] = ()) -> CleanupResult:
    """Return what :func:`cleanup` would delete now, without deleting it; ``freed`` is 0."""
    with_snapshot = [number for number in store.iteration_numbers() if store.has_snapshot(number)]
    reasons = _reasons(store, keep, tuple(keep_iterations))
    return CleanupResult(
        removed=tuple(number for number in with_snapshot if number not in reasons),
        kept=MappingProxyType({number: reasons[number] for number in with_snapshot if number in reasons}),
    )


def cleanup(
    store: LoopStore, *, keep: int | None = None, keep_iterations: Iterable[int] = (), by: str, at: str, reason: str = ""
) -> CleanupResult:
    """Delete the snapshots of all iterations but the ``keep`` best ones, ``keep_iterations``, and those that are always kept.

    Always kept: what stands, the running best, the best before each degradation, the last, iteration 0, what was applied and
    may be taken back, and what an interrupted step goes on from. Without ``keep`` and ``keep_iterations`` only these stay.
    "Best" is the score, the earlier of equals. A cleanup that was cut off is completed first, without what is kept for a
    reason by now.

    Order: the decision, durable; then each ``artifacts/`` loses its name, then its files; last, the objects that no loop of the
    root names any more. Errors: :class:`UsageError` for a
    negative ``keep`` and while an apply is unfinished, :class:`NotFoundError` for an iteration that is not there,
    :class:`jumar.errors.StoreWriteError`.
    """
    with store.lock():
        refuse_unfinished(store)
        plan = plan_cleanup(store, keep=keep, keep_iterations=keep_iterations)
        freed = _complete_earlier(store, plan.kept)
        removed = tuple(number for number in plan.removed if store.has_snapshot(number))
        decision: Decision | None = None
        if removed:
            stands = standing(store).iteration
            decision = store.add_decision(
                "cleanup",
                best_iteration=stands,
                final_iteration=store.iteration_numbers()[-1],
                reason=reason or f"keep {'what is needed' if keep is None else f'the {keep} best'}",
                by=by,
                at=at,
                replaced=stands,
                data={
                    "iterations": list(removed),
                    "kept": [{"iteration": number, "why": why} for number, why in plan.kept.items()],
                    "keep": keep,
                },
            )
            freed += sum(_remove(store, number, decision.number) for number in removed)
        freed += collect(store.paths.root)
        return CleanupResult(removed=plan.removed, kept=plan.kept, freed=freed, decision=decision)


def _reasons(store: LoopStore, keep: int | None, wanted: tuple[int, ...]) -> dict[int, str]:
    """Return why each iteration that stays stays; the weightiest reason first."""
    views = store.views()
    numbers = {view.number for view in views}
    missing = sorted(set(wanted) - numbers)
    if missing:
        raise NotFoundError(f"there is no iteration {missing[0]} in loop '{store.loop_id}'")
    if keep is not None and keep < 0:
        raise UsageError(f"--keep takes how many of the best snapshots to keep, 0 or more, not {keep}")
    found: dict[int, str] = {}

    def note(number: int | None, why: str) -> None:
        if number is not None and number in numbers:
            found.setdefault(number, why)

    note(standing(store).iteration, "selected")
    best = running_best(views)
    note(best and best.number, "best")
    note(latest_best(evidence_of(store), criteria_of(config_now(store))), "the next iteration starts from it")
    for number in _before_degradations(views):
        note(number, "best before a degradation")
    for number in wanted:
        note(number, "asked for")
    note(views[-1].number if views else None, "last")
    note(0, "start")
    for number in _applied(store):
        note(number, "applied, may be taken back")
    for attempt in store.attempts()[-1:]:
        note(attempt.start.parent, "the last step started from it")
    ranked = sorted(valid_points(views), key=lambda point: (-point.score, point.view.number))
    for point in ranked[: keep or 0]:
        note(point.view.number, f"one of the {keep} best")
    return found


def _before_degradations(views: tuple[IterationView, ...]) -> list[int]:
    found: list[int] = []
    for at in detect_degradation(views).iterations:
        best = running_best(view for view in views if view.number < at)
        if best is not None:
            found.append(best.number)
    return found


def _applied(store: LoopStore) -> list[int]:
    applies = [entry.decision for entry in trail(store) if entry.decision.kind == "apply" and entry.state != "undone"]
    return [data_of(decision).integer("iteration") for decision in applies]


def _complete_earlier(store: LoopStore, kept: Mapping[int, str]) -> int:
    """Delete what earlier decisions said and a crash left; return the bytes freed."""
    freed = 0
    for number in store.iteration_numbers():
        for name in sorted(os.listdir(store.paths.iteration(number))):
            if name.startswith(_TRASH):
                freed += _delete(store.paths.iteration(number) / name)
    for decision in store.decisions():
        if decision.kind == "cleanup":
            for number in _iterations_of(decision):
                if number not in kept and store.has_snapshot(number):
                    freed += _remove(store, number, decision.number)
    return freed


def _iterations_of(decision: Decision) -> list[int]:
    fields = data_of(decision)
    listed = fields.data.get("iterations")
    if not isinstance(listed, list) or not all(type(number) is int for number in cast("list[object]", listed)):
        raise StoreDamagedError(f"{fields.where}: field 'iterations' should be a list of whole numbers")
    return cast("list[int]", listed)


def _remove(store: LoopStore, number: int, decision: int) -> int:
    """Take a snapshot its name, so that half of it is never found under it; then delete it. Returns the bytes freed."""
    trash = store.paths.iteration(number) / f"{_TRASH}{decision:04d}"
    with as_write_error("clean up", trash.parent):
        rename_new(store.artifacts(number), trash)
    return _delete(trash)


def _delete(trash: Path) -> int:
    freed = 0
    with as_write_error("clean up", trash):
        for directory, _, names in folders_of(trash):
            for name in names:
                status = os.lstat(os.path.join(directory, name))
                if status.st_nlink == 1 and stat.S_ISREG(status.st_mode):
                    freed += status.st_size
        remove_tree(trash)
    return freed
