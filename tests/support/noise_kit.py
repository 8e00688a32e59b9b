"""Noisy iterations and later readings of them, with one scorer."""

from __future__ import annotations

import math

from jumar.loop.ranking.score import weighted_score
from jumar.model import IterationView, Reading, ScoreReading, SelectionCriteria
from jumar.model.records import ReadingKind, Repeats

HIGHEST = SelectionCriteria(mode="highest_quality", threshold=None)


def view(number: int, *scores: float, **fields) -> IterationView:
    mean = math.fsum(scores) / len(scores)
    values = {"dimensions": {"worth": mean}, "repeats": (Repeats("worth", scores),) if len(scores) > 1 else ()} | fields
    return IterationView(number=number, score=weighted_score({"worth": mean}, {"worth": 1}), **values)


def later(number: int, iteration: int, *scores: float, kind: ReadingKind = "rescore", **fields) -> Reading:
    made = ScoreReading(dimension="worth", score=math.fsum(scores) / len(scores), repeats=scores) if scores else None
    values = {
        "score": made and 100 * (made.score or 0),
        "status": "ok" if made else "scorer_broken",
        "readings": (made,) if made else (),
    } | fields
    return Reading(number=number, kind=kind, iteration=iteration, at="", attempt=None, **values)


NOISY = (view(0, 0.40, 0.44), view(1, 0.78, 0.82), view(2, 0.50, 0.54), view(3, 0.80, 0.86), view(4, 0.76, 0.80))
