"""What comes next, from the records alone: which iterations, side by side or alone, and from which tree. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jumar.loop.ranking.choose import running_best
from jumar.loop.ranking.noise import Evidence
from jumar.loop.ranking.ratchet import latest_best
from jumar.model import IterationView, SelectionCriteria
from jumar.model.records import NOT_GENERATED


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """The next ones, all from ``parent``. ``candidates`` are the slots of ``numbers``, from 1; ``batch`` None: a lone one."""

    numbers: tuple[int, ...]
    parent: int
    batch: int | None = None
    candidates: tuple[int | None, ...] = (None,)


def choose_parent(evidence: Evidence, criteria: SelectionCriteria, continue_from: str) -> int:
    """Return the iteration whose tree the next one starts from. There is one at least.

    ``best`` is :func:`jumar.loop.ranking.ratchet.latest_best`, else the previous. ``previous`` is the last iteration whose
    generator succeeded: what a failed one left lying is in its snapshot, and not in the way of the next; of a batch it is the
    best.
    """
    views = evidence.views
    best = latest_best(evidence, criteria) if continue_from == "best" else None
    if best is not None:
        return best
    usable = [view for view in reversed(views) if view.status not in NOT_GENERATED]
    if not usable:
        return views[-1].number
    if usable[0].batch is None:
        return usable[0].number
    of_batch = running_best(view for view in usable if view.batch == usable[0].batch)
    return usable[0].number if of_batch is None else of_batch.number


def missing_of_batch(views: Sequence[IterationView], *, candidates: int, max_iterations: int) -> tuple[int, ...]:
    """Return the numbers of the last batch that are not recorded: it was cut off, and is completed before anything is decided."""
    last = views[-1] if views else None
    if candidates == 1 or last is None or last.batch is None or last.candidate is None:
        return ()
    first = last.number - last.candidate + 1
    there = {view.number for view in views if view.batch == last.batch}
    return tuple(number for number in range(first, min(first + candidates, max_iterations + 1)) if number not in there)


def plan_next(
    evidence: Evidence, criteria: SelectionCriteria, *, candidates: int, max_iterations: int, continue_from: str
) -> BatchPlan:
    """Return the next iterations; ``evidence`` holds iteration 0 at least. A batch that was cut off keeps its parent."""
    views, last = evidence.views, evidence.views[-1]
    if candidates == 1:
        return BatchPlan(numbers=(last.number + 1,), parent=choose_parent(evidence, criteria, continue_from))
    missing = missing_of_batch(views, candidates=candidates, max_iterations=max_iterations)
    if missing:
        first = last.number - (last.candidate or 1) + 1
        usable = any(view.number == last.parent and view.status not in NOT_GENERATED for view in views)
        return BatchPlan(
            numbers=missing,
            parent=last.parent if usable and last.parent is not None else choose_parent(evidence, criteria, continue_from),
            batch=last.batch,
            candidates=tuple(number - first + 1 for number in missing),
        )
    first = last.number + 1
    numbers = tuple(range(first, min(first + candidates, max_iterations + 1)))
    return BatchPlan(
        numbers=numbers,
        parent=choose_parent(evidence, criteria, continue_from),
        batch=max((view.batch or 0 for view in views), default=0) + 1,
        candidates=tuple(range(1, len(numbers) + 1)),
    )
