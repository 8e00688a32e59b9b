"""What the patterns of a set did on the test items of an iteration: how often each fired, and how often that was right. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.models import IterationMetrics, Unscored
from jumar.judging.patterns.models import PatternSet
from jumar.judging.patterns.provisional import GOOD_FROM
from jumar.judging.patterns.storage import update_calibration_history
from jumar.learning.material import Material

__all__ = ["counted", "with_metrics"]


def counted(patterns: PatternSet, material: Material) -> PatternSet:
    """Return the set with ``times_fired`` and ``accuracy`` of each pattern that can fire, over the test items.

    The accuracy is that of proposals: the share of the items on which firing and the judge agree, which finds an item good from
    4.0 on. It says as little about one phrase as it does there, and decides nothing. Patterns that are rejected or pruned keep
    what they had; so do all where there is nothing to count on.
    """
    evaluator = CheapModeEvaluator(patterns, rubric=material.rubric)
    if evaluator.evidence is None:
        return patterns
    size = len(evaluator.evidence.ids)
    fired, fired_good = [0] * size, [0] * size
    items = good = 0
    for one in material.tested:
        reading = evaluator.read(one.item)
        if isinstance(reading, Unscored):
            continue
        found_good = one.score >= GOOD_FROM
        items += 1
        good += found_good
        for place in reading.fired:
            fired[place] += 1
            fired_good[place] += found_good
    if not items:
        return patterns
    places = {id(one): place for place, one in enumerate(evaluator.evidence.live)}
    made = list(patterns.patterns)
    for number, one in enumerate(made):
        place = places.get(id(one))
        if place is None:
            continue
        # as a good pattern: fired on good ones, and did not on the others
        right = fired_good[place] + (items - good) - (fired[place] - fired_good[place])
        accuracy = (right if one.type == "good" else items - right) / items
        made[number] = one.model_copy(update={"times_fired": fired[place], "accuracy": accuracy})
    return patterns.model_copy(update={"patterns": made})


def with_metrics(patterns: PatternSet, history: Sequence[Mapping[str, Any]], metrics: IterationMetrics) -> PatternSet:
    """Return the set with an iteration's metrics at the end of ``history``, its date and its items apart."""
    entry = metrics.model_dump(mode="json", exclude={"timestamp", "story_ids"})
    return patterns.model_copy(update={"calibration_history": update_calibration_history(history, entry)})
