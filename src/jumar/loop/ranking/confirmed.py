"""What is left of a score when it is looked at again: the optimism of a selection, and best against last and first. Pure.

The best of several noisy scores is partly the luckiest, so the score that won is too high on average, and the more so the more
were compared. A reading that took no part in the choice has no such bias: one by the hold-out's scorers, else one more by the
loop's own. The last iteration and the first are selected by their number, so their own scores are fair as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from jumar.core.record import Record, stored
from jumar.loop.ranking.degradation import EXACT, Chance, Errors
from jumar.loop.ranking.noise import Answers, Evidence, Finals, Noise, all_answers, answers_of, finals, merged, reading_answers
from jumar.model.ordering import difference, in_order, valid_points, valid_score
from jumar.model.records import IterationView, Reading, ReadingKind
from jumar.model.selection import SelectionCriteria, SelectionResult

By = Literal["holdout", "confirm"]
_BOTH_SIDES: Final = 0.975


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed(Record):
    """The selected iteration read again: ``score`` is 0–100 by the hold-out's scorers or by the loop's own (``by``)."""

    iteration: int
    score: float
    by: By


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalist(Record):
    """One that was scored again or should be: its score in the loop, the later ones, and their mean over single answers.

    ``standard_error`` is that of ``mean``, else that of ``score``, in points.
    """

    iteration: int
    score: float
    later: tuple[float, ...]
    mean: float | None
    standard_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Record):
    """The best, the last or the first for the same spend. ``score`` is the loop's, ``fair`` the one that no choice made too high.

    ``by`` says what gave ``fair``; "loop" is the iteration's own, which is fair for one that was not selected by it.
    """

    which: Literal["best", "last", "first"]
    iteration: int
    score: float
    fair: float | None
    by: Literal["holdout", "confirm", "loop"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Certainty(Record):
    """How sure a choice is. Scores and errors are in points of 0–100.

    ``standard_error`` is that of the selected one's score in the loop, with ``degrees`` of freedom; None when nothing was asked
    twice. ``tied`` are the iterations within ``width`` of the first one, by number. ``optimism`` is the score that won minus the
    one confirmed, None when nothing confirmed it on the same dimensions; it is off by at most ``optimism_width`` with 95 %
    (None: not known). ``problems`` are later readings that gave no score, in words.
    """

    standard_error: float | None
    degrees: int | None
    finalists: tuple[Finalist, ...]
    rescored: bool
    tied: tuple[int, ...]
    width: float = field(metadata=stored("tie_width"))
    chosen: int
    won: float
    confirmed: Confirmed | None
    optimism: float | None
    optimism_width: float | None
    compared: tuple[Compared, ...]
    problems: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Whether there is anything to tell: noise, or a later reading."""
        return self.standard_error is not None or self.confirmed is not None or bool(self.problems)


def certainty(evidence: Evidence, criteria: SelectionCriteria, selection: SelectionResult) -> Certainty | None:
    """Return how sure ``selection`` is, the choice by ``criteria`` from ``evidence``; None where that has no valid score."""
    found = finals(evidence, criteria)
    views = {view.number: view for view in in_order(evidence.views)}
    chosen = selection.selected_iteration
    if found is None or chosen not in views:
        return None
    confirmed = _confirmed(evidence, views[chosen])
    optimism = None
    if confirmed is not None and _same_scale(evidence, views[chosen], confirmed):
        optimism = difference(selection.quality_score, confirmed.score)
    error, degrees = _loop_error(found, views[chosen])
    return Certainty(
        standard_error=error,
        degrees=degrees,
        finalists=tuple(_finalist(evidence, found, views[number]) for number in found.finalists),
        rescored=found.rescored,
        tied=found.tied,
        width=found.width,
        chosen=chosen,
        won=selection.quality_score,
        confirmed=confirmed,
        optimism=optimism,
        optimism_width=_optimism_width(evidence, found, views[chosen], confirmed) if optimism is not None else None,
        compared=_compared(evidence, chosen),
        problems=tuple(_problem(reading) for reading in evidence.readings if reading.score is None),
    )


def comparable(view: IterationView, reading: Reading) -> bool:
    """Return whether a later reading scores the same dimensions as the loop, so that their difference means something."""
    return reading.score is not None and set(reading.dimensions) == set(view.dimensions)


def _confirmed(evidence: Evidence, view: IterationView) -> Confirmed | None:
    """Return the reading that confirms: the hold-out's; one on other dimensions only where there is no other."""
    held_out = evidence.scored(view.number, "holdout")
    own = evidence.scored(view.number, "confirm")
    ranked = [*(each for each in held_out if comparable(view, each)), *own, *held_out]
    if not ranked or ranked[0].score is None:
        return None
    return Confirmed(iteration=view.number, score=ranked[0].score, by="holdout" if ranked[0].kind == "holdout" else "confirm")


def _same_scale(evidence: Evidence, view: IterationView, confirmed: Confirmed) -> bool:
    return any(comparable(view, each) for each in evidence.scored(view.number, confirmed.by))


def _loop_error(found: Finals, view: IterationView) -> tuple[float | None, int | None]:
    if found.noise is None:
        return None, None
    variance, degrees = found.noise.variance(answers_of(view))
    return math.sqrt(variance), degrees if variance else max(source.degrees for source in found.noise.sources.values())


def _finalist(evidence: Evidence, found: Finals, view: IterationView) -> Finalist:
    later = evidence.scored(view.number)
    answers = merged([answers_of(view), *(reading_answers(each) for each in later)]) if found.rescored else answers_of(view)
    return Finalist(
        iteration=view.number,
        score=valid_score(view) or 0.0,
        later=tuple(each.score for each in later if each.score is not None),
        mean=found.means.get(view.number),
        standard_error=0.0 if found.noise is None else found.noise.standard_error(answers),
    )


def _optimism_width(evidence: Evidence, found: Finals, view: IterationView, confirmed: Confirmed | None) -> float | None:
    """Return the half-width of the optimism's 95 % interval; None for a hold-out, whose scorers have a noise of their own.

    The score that won is what it is, so only the reading that confirms it is uncertain.
    """
    if confirmed is None or confirmed.by == "holdout" or found.noise is None:
        return None
    return found.noise.width(_BOTH_SIDES, reading_answers(evidence.scored(view.number, "confirm")[0]))


def _compared(evidence: Evidence, chosen: int) -> tuple[Compared, ...]:
    points = valid_points(in_order(evidence.views))
    scores = {view.number: score for view, score in points}
    first, last = points[0].view.number, points[-1].view.number
    numbers: dict[Literal["best", "last", "first"], int] = {"best": chosen, "last": last, "first": first}
    held_out = {number: each[0].score for number in numbers.values() if (each := evidence.scored(number, "holdout"))}
    if len(held_out) == len(set(numbers.values())):  # all by the same scorers, or none
        return tuple(
            Compared(which=which, iteration=number, score=scores[number], fair=held_out[number], by="holdout")
            for which, number in numbers.items()
        )
    own = [each.score for each in evidence.scored(chosen, "confirm")]
    fair = {number: scores[number] for number in (last, first) if number != chosen}
    by: dict[int, Literal["confirm", "loop"]] = dict.fromkeys(fair, "loop")
    if own and own[0] is not None:
        fair[chosen], by[chosen] = own[0], "confirm"
    return tuple(
        Compared(which=which, iteration=number, score=scores[number], fair=fair.get(number), by=by.get(number))
        for which, number in numbers.items()
    )


def _problem(reading: Reading) -> str:
    what = {
        "rescore": "scoring iteration {} again",
        "confirm": "confirming iteration {}",
        "holdout": "the hold-out of iteration {}",
    }
    return f"{what[reading.kind].format(reading.iteration)} gave no score: {reading.status_reason or reading.status}"


class NextReading(NamedTuple):
    """What is to be read next: which iteration, and what for. ``turn`` is the how-manieth of this kind it is, from 1."""

    kind: ReadingKind
    iteration: int
    turn: int


def next_reading(evidence: Evidence, criteria: SelectionCriteria, *, held_out: bool) -> NextReading | None:
    """Return what is to be read next after the last iteration, None when everything was; each reading counts, whatever it gave.

    First the finalists, all once, then all a second time; then, with scorers of a hold-out (``held_out``), the selected one, the
    first and the last by these; then the selected one by the loop's own, where its scores are noisy, it had a rival, and no
    hold-out on the same dimensions has confirmed it. ``rescore = 0`` asks for none of the loop's own readings.
    """
    found = finals(evidence, criteria)
    if found is None:
        return None
    times = evidence.rules.rescore
    if len(found.finalists) > 1:
        for turn in range(1, times + 1):
            for number in found.finalists:
                if len(evidence.later(number)) < turn:
                    return NextReading("rescore", number, turn)
    points = valid_points(in_order(evidence.views))
    if held_out:
        for number in dict.fromkeys((found.chosen, points[0].view.number, points[-1].view.number)):
            if not evidence.later(number, "holdout"):
                return NextReading("holdout", number, 1)
    chosen = next(view for view, _ in points if view.number == found.chosen)
    noisy = found.noise is not None and found.noise.standard_error(answers_of(chosen)) > 0
    confirmed = any(comparable(chosen, reading) for reading in evidence.scored(found.chosen, "holdout"))
    if times and noisy and len(points) > 1 and not confirmed and not evidence.later(found.chosen, "confirm"):
        return NextReading("confirm", found.chosen, 1)
    return None


class Seen(NamedTuple):
    """The iterations with their scores by all readings, and how uncertain these are."""

    views: tuple[IterationView, ...]
    chance: Chance


def seen(evidence: Evidence, criteria: SelectionCriteria) -> Seen:
    """Return what is known of the iterations when ``criteria`` have chosen: of finalists that were scored again, all readings."""
    found = finals(evidence, criteria)
    if found is None or found.noise is None:
        return Seen(evidence.views, EXACT)
    views: list[IterationView] = []
    errors: dict[int, Errors] = {}
    known: dict[tuple[tuple[str, int], ...], Errors] = {}
    for view in evidence.views:
        views.append(replace(view, score=found.means.get(view.number, view.score)))
        if valid_score(view) is None:
            continue
        answers = all_answers(evidence, view) if view.number in found.means else answers_of(view)
        shape = tuple((dimension, len(scores)) for dimension, scores in answers)
        if shape not in known:
            known[shape] = Errors(found.noise.standard_error(answers), _of_dimensions(found.noise, answers))
        errors[view.number] = known[shape]
    return Seen(tuple(views), Chance(errors=MappingProxyType(errors)))


def _of_dimensions(noise: Noise, answers: Answers) -> Mapping[str, float]:
    """Return the standard error of each dimension, the mean of its scorers; those that are exact are left out."""
    variances: dict[str, list[float]] = {}
    for dimension, scores in answers:
        place = len(variances.setdefault(dimension, []))
        source = noise.sources.get((dimension, place))
        variances[dimension].append(0.0 if source is None else source.variance / len(scores))
    return {name: math.sqrt(math.fsum(each)) / len(each) for name, each in variances.items() if any(each)}
