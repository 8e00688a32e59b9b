"""Noise: how much of a score is chance, who is scored again because of it, and what is selected then. Pure.

Scorers that were asked several times about one candidate show their noise. It is pooled over all iterations, scorer by scorer,

    σ²ₖ = Σᵢ Σⱼ (xᵢₖⱼ − x̄ᵢₖ)² ÷ Σᵢ (nᵢₖ − 1),    Var(scoreᵢ) = Σₖ cₖ² σ²ₖ ÷ nᵢₖ

where cₖ are points of the score for one of the scorer k. A scorer that was always asked once counts as exact. The degrees of
freedom of a sum are Welch and Satterthwaite's, rounded down.

*Finalists* are the leader and all peers of it (they break the same rules of the selection, if any) that are not behind it by more
than one-sided t at ``level``, shared among the comparisons (Bonferroni): then the truly best one is among them with at least that
probability, whichever it is (Gupta's subset selection). The final choice goes by the mean of all readings of each. A *tie* is a
difference of at most ``tie`` standard errors of it, and goes to the earlier iteration: the one-standard-error rule (Breiman,
Friedman, Olshen and Stone 1984), which a significance test would turn into keeping the start whenever little is known.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from types import MappingProxyType
from typing import Final, NamedTuple

from jumar.core.text import points
from jumar.errors import ScoreError
from jumar.loop.ranking.choose import choose, ordered, peers
from jumar.loop.ranking.score import resolve_weights, weighted_score
from jumar.model.ordering import difference, in_order, valid_score
from jumar.model.records import IterationView, Reading, ReadingKind, Repeats
from jumar.model.selection import NoiseRules, SelectionCriteria, SelectionResult

MOST_DEGREES: Final = 1000
"""More count as so many: the limit is then a thousandth part too wide, which is the safe side."""


def student_cdf(value: float, degrees: int) -> float:
    """Return the probability of a value of at most ``value``, with 1 degree of freedom or more."""
    degrees = min(degrees, MOST_DEGREES)
    if degrees < 1:
        raise ValueError(f"degrees of freedom are 1 or more, not {degrees}")
    angle = math.atan2(value, math.sqrt(degrees))
    cosine_squared = math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for step in range(degrees // 2):
        total += term
        term *= cosine_squared * (2 * step + 1 + odd) / (2 * step + 2 + odd)
    area = 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return (1 + area) / 2


@functools.lru_cache(maxsize=1024)
def student_quantile(probability: float, degrees: int) -> float:
    """Return the value that is not exceeded with ``probability``, from 0.5 up to, not including, 1."""
    if not 0.5 <= probability < 1:
        raise ValueError(f"the probability is from 0.5 up to, not including, 1, not {probability}")
    low, high = 0.0, 1.0
    while student_cdf(high, degrees) < probability:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if student_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return high


_RESCORE: Final[ReadingKind] = "rescore"
Answers = tuple[Repeats, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that a choice is made from: the iterations, what was read of them later, the weights, and the rules of noise.

    ``weights`` are those of the configuration; empty when all dimensions count the same.
    """

    views: tuple[IterationView, ...]
    readings: tuple[Reading, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    rules: NoiseRules = field(default_factory=NoiseRules)

    @property
    def noisy(self) -> bool:
        """Whether anything is known of noise: somebody was asked twice, or later."""
        return bool(self.readings) or any(view.repeats for view in self.views)

    def later(self, number: int, kind: ReadingKind = _RESCORE) -> tuple[Reading, ...]:
        """Return the later readings of one iteration, those without a score included."""
        return tuple(reading for reading in self.readings if reading.iteration == number and reading.kind == kind)

    def scored(self, number: int, kind: ReadingKind = _RESCORE) -> tuple[Reading, ...]:
        """Return the later readings of one iteration that have a score."""
        return tuple(reading for reading in self.later(number, kind) if reading.status == "ok" and reading.score is not None)


class Source(NamedTuple):
    """The noise of one scorer: the variance of one answer, in [0, 1] squared, and its degrees of freedom (1 or more)."""

    variance: float
    degrees: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise of a loop's scorers, each by its dimension and its place among those of the same dimension."""

    sources: Mapping[tuple[str, int], Source]
    weights: Mapping[str, float]

    def variance(self, *answers: Answers) -> tuple[float, int]:
        """Return the variance of the score of ``answers``, or of a difference of several, and its degrees of freedom.

        In points squared. Nothing noisy: 0, and 1 degree.
        """
        parts: dict[tuple[str, int], float] = {}
        for each in answers:
            keyed = _keyed(each)
            weights = resolve_weights([dimension for dimension, _ in keyed], _known(self.weights, keyed))
            total = math.fsum(weights.values())
            for key, scores in keyed.items():
                source = self.sources.get(key)
                if source is not None:
                    shared = sum(dimension == key[0] for dimension, _ in keyed)
                    coefficient = 100 * weights[key[0]] / total / shared
                    parts[key] = parts.get(key, 0.0) + coefficient**2 * source.variance / len(scores)
        whole = math.fsum(parts.values())
        if whole == 0:
            return 0.0, 1
        behind = math.fsum((part / whole) ** 2 / self.sources[key].degrees for key, part in parts.items())
        return whole, max(1, math.floor(1 / behind + 1e-9))

    def standard_error(self, *answers: Answers) -> float:
        """Return the standard error of the score of ``answers``, in points; of several, that of their difference."""
        return math.sqrt(self.variance(*answers)[0])

    def width(self, probability: float, *answers: Answers) -> float:
        """Return by how many points a difference exceeds the truth with a probability of ``1 − probability`` at most."""
        variance, degrees = self.variance(*answers)
        return 0.0 if variance == 0 else student_quantile(probability, degrees) * math.sqrt(variance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finals:
    """How noise bears on one choice.

    ``noise`` is None when nothing was asked twice. ``finalists`` are numbers, the leader first; ``rescored`` is whether the
    choice was made among them by all readings, ``means`` what those gave. ``among`` may be selected. ``tied`` are those within
    ``width`` points of the first one, itself included, by number; alone when nothing is. ``chosen`` is the earliest of them.
    """

    noise: Noise | None
    finalists: tuple[int, ...]
    rescored: bool
    means: Mapping[int, float]
    among: tuple[int, ...]
    leader: int
    tied: tuple[int, ...]
    width: float

    @property
    def chosen(self) -> int:
        return min(self.tied)

    @property
    def note(self) -> str:
        """A tie in words, empty when there is none."""
        if len(self.tied) < 2:
            return ""
        names = [str(number) for number in self.tied]
        told = f"iterations {', '.join(names[:-1])} and {names[-1]} are within the noise (±{points(self.width)})"
        return f"{told}: the {'earlier' if len(names) == 2 else 'earliest'} is kept"


def _keyed(answers: Iterable[Repeats]) -> dict[tuple[str, int], tuple[float, ...]]:
    """Return the answers by dimension and place among those of the same dimension."""
    found: dict[tuple[str, int], tuple[float, ...]] = {}
    places: dict[str, int] = {}
    for dimension, scores in answers:
        places[dimension] = places.get(dimension, -1) + 1
        found[dimension, places[dimension]] = scores
    return found


def _known(weights: Mapping[str, float], keyed: Iterable[tuple[str, int]]) -> dict[str, float]:
    """Return the weights of the dimensions that were scored; a configuration that changed may name others."""
    scored = {dimension for dimension, _ in keyed}
    found = {name: weight for name, weight in weights.items() if name in scored}
    return found if any(found.values()) else {}


def answers_of(view: IterationView) -> Answers:
    """Return what its scorers answered; one answer a dimension where nobody was asked twice."""
    return view.repeats or tuple(Repeats(dimension, (score,)) for dimension, score in view.dimensions.items())


def reading_answers(reading: Reading) -> Answers:
    """Return what the scorers answered in a later reading."""
    return tuple(Repeats(each.dimension, each.scores) for each in reading.readings if each.scores)


def merged(several: Sequence[Answers]) -> Answers:
    """Return all answers of several readings of one candidate as if they were one reading, scorer by scorer."""
    found: dict[tuple[str, int], tuple[float, ...]] = {}
    for answers in several:
        for key, scores in _keyed(answers).items():
            found[key] = (*found.get(key, ()), *scores)
    ordered = sorted(found, key=lambda key: (list(dict.fromkeys(name for name, _ in found)).index(key[0]), key[1]))
    return tuple(Repeats(key[0], found[key]) for key in ordered)


def measure(candidates: Iterable[Answers], weights: Mapping[str, float]) -> Noise | None:
    """Return the pooled noise of the scorers, each candidate with all of its answers; None when nobody was asked twice."""
    squares: dict[tuple[str, int], list[float]] = {}
    degrees: dict[tuple[str, int], int] = {}
    for answers in candidates:
        for key, scores in _keyed(answers).items():
            if len(scores) > 1:
                mean = math.fsum(scores) / len(scores)
                squares.setdefault(key, []).append(math.fsum((score - mean) ** 2 for score in scores))
                degrees[key] = degrees.get(key, 0) + len(scores) - 1
    if not degrees:
        return None
    sources = {key: Source(math.fsum(squares[key]) / count, count) for key, count in degrees.items()}
    return Noise(sources=MappingProxyType(sources), weights=weights)


def loop_noise(evidence: Evidence, *, rescored: bool = False) -> Noise | None:
    """Return the noise that the loop's own readings show; with ``rescored`` that of the later ones of the finalists, too."""
    candidates: list[Answers] = []
    for view in evidence.views:
        if valid_score(view) is not None:
            later = [reading_answers(reading) for reading in evidence.scored(view.number)] if rescored else []
            candidates.append(merged([answers_of(view), *later]) if later else view.repeats)
    return measure(candidates, evidence.weights)


def finalists(evidence: Evidence, criteria: SelectionCriteria, noise: Noise | None = None) -> tuple[int, ...]:
    """Return the numbers of those that may be the truly best, the leader first; empty when no iteration is valid.

    Only the loop's own readings count, so that the answer does not change while finalists are scored again. The leader alone:
    without noise, in the mode that goes by recency, and when no other is near. At most ``rules.finalists``.
    """
    ranked = peers(evidence.views, criteria)
    found = loop_noise(evidence) if noise is None else noise
    if not ranked or found is None:
        return tuple(view.number for view in ranked[:1])
    leader, others = ranked[0], ranked[1:]
    probability = 1 - (1 - evidence.rules.level) / max(1, len(others))
    near = [view.number for view in others if _within(found, probability, leader, view)]
    return (leader.number, *near)[: evidence.rules.finalists]


def _within(noise: Noise, probability: float, leader: IterationView, view: IterationView) -> bool:
    width = noise.width(probability, answers_of(leader), answers_of(view))
    return width > 0 and difference(valid_score(leader) or 0.0, valid_score(view) or 0.0) <= width


def finals(evidence: Evidence, criteria: SelectionCriteria) -> Finals | None:
    """Return how noise bears on the choice by ``criteria``; None when no iteration is valid.

    Finalists count as scored again when each of them has a later reading; one whose later readings all failed has nothing to show
    and drops out, unless all did.
    """
    noise = loop_noise(evidence)
    numbers = finalists(evidence, criteria, noise)
    if not numbers:
        return None
    views = {view.number: view for view in in_order(evidence.views)}
    means = {number: mean for number in numbers if (mean := _mean(evidence, views[number])) is not None}
    rescored = len(numbers) > 1 and bool(means) and all(evidence.later(number) for number in numbers)
    if rescored:
        noise = loop_noise(evidence, rescored=True)
        views = {number: replace(views[number], score=mean) for number, mean in means.items()}
    ranked = peers(views.values(), criteria)
    answers = {
        view.number: all_answers(evidence, view) if rescored else answers_of(view) for view in (ranked if noise else ranked[:1])
    }
    tied, width = _tie(noise, evidence.rules.tie, ranked, answers)
    return Finals(
        noise=noise,
        finalists=numbers,
        rescored=rescored,
        means=MappingProxyType(means if rescored else {}),
        among=tuple(sorted(views)),
        leader=ranked[0].number,
        tied=tied,
        width=width,
    )


def all_answers(evidence: Evidence, view: IterationView) -> Answers:
    """Return what its scorers answered in the loop and whenever it was scored again."""
    return merged([answers_of(view), *(reading_answers(reading) for reading in evidence.scored(view.number))])


def _mean(evidence: Evidence, view: IterationView) -> float | None:
    """Return the score by all readings, None without a later one that has a score."""
    if not evidence.scored(view.number):
        return None
    keyed = _keyed(all_answers(evidence, view))
    dimensions: dict[str, list[float]] = {}
    for (dimension, _), scores in keyed.items():
        dimensions.setdefault(dimension, []).append(math.fsum(scores) / len(scores))
    means = {dimension: math.fsum(each) / len(each) for dimension, each in dimensions.items()}
    try:
        return weighted_score(means, resolve_weights(means, _known(evidence.weights, keyed)))
    except ScoreError:  # a mean of numbers in [0, 1] that rounding put outside
        return None


def _tie(
    noise: Noise | None, errors: float, ranked: Sequence[IterationView], answers: Mapping[int, Answers]
) -> tuple[tuple[int, ...], float]:
    """Return the numbers that tie with the first one, ascending, and the widest difference that was a tie."""
    leader = ranked[0]
    tied, widest = [leader.number], 0.0
    probability = NormalDist().cdf(errors)
    for view in ranked[1:] if noise is not None else ():
        width = noise.width(probability, answers[leader.number], answers[view.number]) if noise is not None else 0.0
        if width > 0 and difference(valid_score(leader) or 0.0, valid_score(view) or 0.0) <= width:
            tied.append(view.number)
            widest = max(widest, width)
    return tuple(sorted(tied)), widest


def select(evidence: Evidence, criteria: SelectionCriteria) -> SelectionResult:
    """Return the choice: :func:`jumar.loop.ranking.choose.choose` where nothing is known of noise, else as the module says.

    The scores of finalists that were scored again are the means of all their readings. Errors: as of that function.
    """
    if not evidence.noisy:
        return choose(evidence.views, criteria)
    found = finals(evidence, criteria)
    if found is None:
        return choose(evidence.views, criteria)
    views = [replace(view, score=found.means.get(view.number, view.score)) for view in evidence.views]
    return choose(views, criteria, among=found.among, keep=found.chosen, note=found.note)


def ranked(evidence: Evidence, criteria: SelectionCriteria) -> tuple[int, ...]:
    """Return the numbers of the valid iterations as :func:`select` ranked them: its choice, the runner-up, and so on.

    Finalists that were scored again come before all others, by the means of their readings. Errors: as of that function, but
    without a valid score there is nothing to return.
    """
    found = finals(evidence, criteria)
    if found is None:
        return ()
    views = [replace(view, score=found.means.get(view.number, view.score)) for view in evidence.views]
    among = frozenset(found.among)
    numbers = (view.number for view in ordered(views, criteria))
    return tuple(sorted(numbers, key=lambda number: (number != found.chosen, number not in among)))
