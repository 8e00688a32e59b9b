"""From items, what the judge said of them and candidates to a set of patterns, with predictions that can be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from jumar.judging.cheap.evaluator import CheapModeEvaluator, RubricChoice
from jumar.judging.models import Unscored
from jumar.judging.patterns.models import PatternSet, PatternV2
from jumar.learning.targets import Target

__all__ = ["AdditiveMaker", "Made", "Maker", "ScorecardMaker", "cheap_scores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A set, and a prediction of each item that it was made from, by its id: out of fold where something was fitted.

    ``report`` says how it was fitted, empty where nothing was.
    """

    patterns: PatternSet
    predictions: Mapping[str, float]
    report: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Maker(Protocol):
    """Makes a set from ``targets``. ``base`` is the set so far; ``candidates`` have to earn their weight."""

    def make(
        self, targets: Sequence[Target], base: PatternSet, candidates: Sequence[PatternV2], *, learning_rate: float = 1.0
    ) -> Made: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveMaker:
    """The first design's way: a rubric, and patterns that each add their weight. Nothing is fitted, and no extra is needed."""

    rubric: RubricChoice = None

    def make(
        self, targets: Sequence[Target], base: PatternSet, candidates: Sequence[PatternV2], *, learning_rate: float = 1.0
    ) -> Made:
        """Return ``base`` with the candidates, as active as they are.

        What is in ``base`` keeps its weight; what is new gets its own times ``learning_rate``: that is the change.
        """
        new = {one.id: one for one in candidates}
        kept = [
            one if (other := new.pop(one.id, None)) is None else other.model_copy(update={"weight": one.weight})
            for one in base.patterns
        ]
        added = [one.model_copy(update={"weight": one.weight * learning_rate}) for one in new.values()]
        patterns = base.model_copy(update={"patterns": [*kept, *added]})
        return Made(patterns=patterns, predictions=cheap_scores(patterns, targets, self.rubric))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorecardMaker:
    """Points fitted to what the judge said; needs the extra ``learn``. ``made`` is the date on new patterns."""

    made: datetime
    rubric: Literal["story", "text"]
    seed: int = 0

    def make(
        self, targets: Sequence[Target], base: PatternSet, candidates: Sequence[PatternV2], *, learning_rate: float = 1.0
    ) -> Made:
        """Return a fitted set; below a ``learning_rate`` of 1 its weights go only part of the way from those of ``base``.

        Errors: those of :func:`jumar.learning.scorecard.fit_scorecard`.
        """
        from jumar.learning.scorecard import FitSettings, fit_scorecard

        found = fit_scorecard(
            [one.item for one in targets],
            [one.score for one in targets],
            groups=[one.group for one in targets],
            made=self.made,
            proposals=candidates,
            previous=base if base.calibration is not None and learning_rate < 1.0 else None,
            learning_rate=learning_rate,
            seed=self.seed,
            rubric=self.rubric,
            settings=FitSettings(mine_phrases=False),
        )
        predictions = dict(zip((one.item.id for one in targets), found.predictions, strict=True))
        return Made(patterns=found.patterns, predictions=predictions, report=found.report.to_json())


def cheap_scores(patterns: PatternSet, targets: Sequence[Target], rubric: RubricChoice) -> dict[str, float]:
    """Return the scores of a set as it is, by the id of the item; items that the rubric abstains from are left out."""
    if not targets:
        return {}
    evaluator = CheapModeEvaluator(patterns, rubric=rubric)
    found = ((one.item.id, evaluator.read(one.item)) for one in targets)
    return {name: reading.gestalt for name, reading in found if not isinstance(reading, Unscored)}
