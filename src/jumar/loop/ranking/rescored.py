"""The iterations as they are seen once finalists were scored again: their scores by all readings, with their errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from jumar.loop.ranking.degradation import EXACT, Chance, Errors
from jumar.loop.ranking.noise import Answers, Evidence, Noise, all_answers, answers_of, finals
from jumar.model.records import IterationView
from jumar.model.selection import SelectionCriteria
from jumar.model.views import valid_score


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
