"""What a person changed in a work tree that the loop leaves alone until its end, where each candidate has a tree of its own."""

from __future__ import annotations

from jumar.decide.operation import last_applied
from jumar.decide.plan import ApplyPlan
from jumar.decide.tree import same
from jumar.store.loop_store import LoopStore

__all__ = ["edited"]


def edited(store: LoopStore, plan: ApplyPlan) -> tuple[str, ...]:
    """Return the paths, sorted, that ``plan`` would replace or remove and that are not what the loop last saw or put there.

    That is the last apply that stands, else the start. What was deleted meanwhile is not among them: there is nothing to keep.
    """
    applied = last_applied(store)
    number = store.iteration_numbers()[0] if applied is None or applied.best_iteration is None else applied.best_iteration
    known = store.manifest(number).entries
    return tuple(
        sorted(change.path for change in plan.moves.changes if change.before and not same(change.before, known.get(change.path)))
    )
