"""What a loop goes on from, so that it does not slip: the best and, among equals, the latest. Pure.

*The best* is what would be selected now, verification and all. *Equals* of it are those that nothing but their score could set
apart from it (:func:`jumar.loop.ranking.choose.peers`), with the same score or, where noise is known, with one that is behind
by no more than a tie of :mod:`jumar.loop.ranking.noise`: a tie with the best, not with the one before, so that small losses
don't add up. Nor may their checks say anything worse than those of the earliest of them: a score of one's own need not see
what they see.

The selection keeps the earliest of equals, because an iteration has to earn its place. The next iteration starts from the latest:
work that did no measurable harm is not undone, and where nothing is measured that is simply the last. Nor is it undone at the
end: where the start is selected, the latest of its equals stands (:func:`select_kept`).

An iteration that is held to have tampered with its checks or with the records is passed over, however high it scored: what it
changed may be why it did, and every iteration from then on would start with it. It is only used where nothing else has a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jumar.core.given import Given
from jumar.core.text import percent
from jumar.loop.ranking.choose import peers, running_best
from jumar.loop.ranking.noise import Evidence, finals, select
from jumar.model.ordering import difference, valid_score
from jumar.model.records import NO_EFFECT, NOT_GENERATED, IterationView
from jumar.model.selection import SelectionCriteria, SelectionResult


def equals_of_best(evidence: Evidence, criteria: SelectionCriteria) -> tuple[IterationView, ...]:
    """Return the best and its equals, first the one with the highest score, the earlier of two; empty when none is valid.

    Of those whose scores are equal the earliest counts, and the others as far as their checks say nothing worse than its own.
    Scores of finalists that were scored again are the means of all their readings, and then only these are looked at. In the
    mode that goes by recency the most recent is alone. Errors: as of :func:`jumar.loop.ranking.choose.ordered`.
    """
    honest = tuple(view for view in evidence.views if not view.tampered)
    if any(valid_score(view) is not None for view in honest):
        evidence = replace(evidence, views=honest)
    found = finals(evidence, criteria) if evidence.noisy else None
    views, tied = evidence.views, frozenset[int]()
    if found is not None:
        means, tied = found.means, frozenset(found.tied)
        views = tuple(replace(view, score=means.get(view.number, view.score)) for view in views if view.number in found.among)
    ranked = peers(views, criteria)
    best = valid_score(ranked[0]) if ranked else None
    equals = [view for view in ranked if view.number in tied or _same(view, best)]
    earliest = min(equals, key=lambda view: view.number, default=None)
    return tuple(view for view in equals if earliest is None or _no_worse(view, earliest))


def latest_best(evidence: Evidence, criteria: SelectionCriteria) -> int | None:
    """Return the number of the best, the latest of equals; None when no iteration is valid.

    Candidates of one batch are equally late: among them it is the one with the highest score, the earliest of these.
    """
    equals = equals_of_best(evidence, criteria)
    return max(equals, key=_moment).number if equals else None  # of several that are equally late the first, which is the best


def select_kept(evidence: Evidence, criteria: SelectionCriteria) -> SelectionResult:
    """Return :func:`jumar.loop.ranking.noise.select`; where that is the start, ``kept`` is the latest iteration that is as good.

    So the work of an iteration that no check or score can tell from the start stands, and something worse, or without a score,
    which nothing vouches for, gives way to it. None is kept that changed nothing, no candidate of a batch that only noise makes
    an equal, because its work lies in no directory of a person's, none of an imported history, and none in the records of a
    program of a person's own, where 0 is a number like any other. Errors: as of that function.
    """
    result = select(evidence, criteria)
    if result.selected_iteration != 0 or isinstance(result.quality_score, Given):
        return result
    equals = [
        view
        for view in equals_of_best(evidence, criteria)
        if view.parent is not None and view.failure not in NO_EFFECT and (view.batch is None or _same(view, result.quality_score))
    ]
    if not equals:
        return result
    kept = max(equals, key=_moment).number
    return replace(result, kept=kept, reason=f"As good as the start, and the latest that is: {percent(result.quality_score)}")


def _no_worse(view: IterationView, earlier: IterationView) -> bool:
    """Whether no check of ``view`` fails that passed ``earlier``, no fewer of its known tests pass, and none of them is gone."""
    before = {verdict.name: verdict for verdict in earlier.verdicts}
    return all(
        now.passed >= then.passed and now.missing <= then.missing and (then.tests is None or (now.tests or 0) >= then.tests)
        for now in view.verdicts
        if (then := before.get(now.name)) is not None
    )


def _same(view: IterationView, best: float | None) -> bool:
    return difference(best or 0.0, valid_score(view) or 0.0) == 0


def _moment(view: IterationView) -> int:
    """Return when an iteration came, as a number to compare: of a batch that of its first candidate."""
    return view.number if view.batch is None else view.number - (view.candidate or 1) + 1


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
