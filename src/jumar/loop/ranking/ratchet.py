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

from dataclasses import replace

from jumar.core.text import percent
from jumar.loop.ranking.choose import peers
from jumar.loop.ranking.noise import Evidence, finals, select
from jumar.model.records import NO_EFFECT, IterationView
from jumar.model.selection import SelectionCriteria, SelectionResult
from jumar.model.views import difference, valid_score


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
    an equal, because its work lies in no directory of a person's, and none in the records of a program of a person's own, where 0
    is a number like any other. Errors: as of that function.
    """
    result = select(evidence, criteria)
    if result.selected_iteration != 0:
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
