"""A scorecard from items and what the expensive judge said of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jumar.judging.cheap.evidence import PatternEvidence
from jumar.judging.cheap.scorecard import AppliedScorecard
from jumar.judging.items import Item
from jumar.judging.tracking.agreement import spearman
from jumar.judging.tracking.folds import Numbers, group_numbers
from jumar.learning.scorecard.models import FitReport, FitSettings, ScorecardFit
from jumar.learning.scorecard.pool import Pool, gather
from jumar.patterns.calibration import Curve, Scorecard
from jumar.patterns.models import PatternSet, PatternV2

__all__ = ["fit_scorecard"]

Floats = NDArray[np.float64]
_STRENGTHS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


def fit_scorecard(
    items: Sequence[Item],
    targets: Sequence[float],
    *,
    groups: Sequence[str | None],
    made: datetime,
    proposals: Sequence[PatternV2] = (),
    previous: PatternSet | None = None,
    learning_rate: float = 1.0,
    seed: int = 0,
    rubric: Literal["story", "text"] = "text",
    settings: FitSettings | None = None,
) -> ScorecardFit:
    """Return the set of patterns that says best what the expensive judge would say of items it has not seen.

    ``targets`` are ``(items,)`` scores from 1 to 5; ``groups`` tie items that are never parted (None: an item by itself).
    ``proposals`` are candidates beside the steps of features and, where ``settings`` say so, the phrases of the items; a
    proposal never gets points against its ``type``. ``previous`` is the set before this one, whose weights (1.0 for what is
    new in ``proposals``) change by ``learning_rate`` of the way to the fitted ones. ``made`` is the date on new patterns.

    Everything follows from the arguments. Errors: ValueError for lengths that differ, no items, a score that is not from 1 to 5,
    or a learning rate that is not within 0 to 1; :class:`jumar.patterns.extra.MissingExtraError`.
    """
    chosen = settings or FitSettings()
    y = np.asarray(targets, dtype=np.float64)
    pool = gather(items, proposals, edges=chosen.edges, least=chosen.least_items, mine=chosen.mine_phrases, made=made)
    numbers = group_numbers(groups)
    fold = _folds(numbers, chosen.folds, seed)
    predictions = np.zeros_like(y)
    for one in np.unique(fold):
        inside = fold == one
        base, coefficients = _ridge(pool.fires[~inside], y[~inside], 100.0)
        predictions[inside] = np.clip(base + pool.fires[inside] @ coefficients, 1.0, 5.0)
    base, coefficients = _ridge(pool.fires, y, 100.0)
    coefficients += (1.0 - learning_rate) * (_points_before(pool, previous) - coefficients)
    patterns = _patterns(pool, base, coefficients, chosen, rubric)
    fitted = tuple(_applied(patterns, items))
    report = FitReport(
        items=len(items),
        groups=int(numbers.max()) + 1,
        folds=int(fold.max()) + 1,
        seed=seed,
        learning_rate=learning_rate,
        oof_mae=float(np.abs(predictions - y).mean()),
        oof_spearman=spearman(predictions, y),
    )
    return ScorecardFit(patterns=patterns, predictions=tuple(predictions.tolist()), fitted=fitted, report=report)


def _folds(groups: Numbers, count: int, seed: int) -> Numbers:
    total = int(groups.max()) + 1
    order = np.random.default_rng(seed).permutation(total)
    fold = np.empty(total, dtype=np.int64)
    fold[order] = np.arange(total) % max(1, min(count, total))
    return fold[groups]


def _ridge(fires: Any, y: Floats, strength: float) -> tuple[float, Floats]:
    x: Floats = fires.toarray()
    mean: Floats = x.mean(0)
    middle = float(y.mean())
    centred: Floats = x - mean
    gram: Floats = centred @ centred.T
    dual = np.asarray(np.linalg.solve(gram + strength * np.eye(len(y)), y - middle), dtype=np.float64)
    coefficients: Floats = centred.T @ dual
    return middle - float(mean @ coefficients), coefficients


def _points_before(pool: Pool, previous: PatternSet | None) -> Floats:
    """Return the signed points that each candidate had in the set before; 0.0 for what was not in it."""
    card = None if previous is None else previous.scorecard()
    if previous is None or card is None:
        return np.zeros(len(pool.patterns))
    signed = {
        one.id: card.unit * (one.weight if one.type == "good" else -one.weight)
        for one in previous.patterns
        if one.status == "active"
    }
    return np.array([signed.get(one.id, 0.0) for one in pool.patterns])


def _patterns(pool: Pool, base: float, coefficients: Floats, chosen: FitSettings, rubric: Literal["story", "text"]) -> PatternSet:
    largest = np.argsort(-np.abs(coefficients), kind="stable")[: chosen.most_patterns]
    kept = sorted(int(one) for one in largest if coefficients[one])
    unit = max((abs(float(coefficients[one])) for one in kept), default=2.0) / 2.0
    patterns = [
        pool.patterns[one].model_copy(
            update={
                "type": "good" if coefficients[one] > 0 else "bad",
                "weight": min(2.0, abs(float(coefficients[one])) / unit),
                "times_fired": int(pool.fires[:, one].sum()),
            }
        )
        for one in kept
    ]
    card = Scorecard(rubric=rubric, base=base, unit=unit, curve=Curve(x=(1.0, 5.0), y=(1.0, 5.0)))
    return PatternSet(version="2.0", patterns=patterns, calibration=card.model_dump(mode="json"))


def _applied(patterns: PatternSet, items: Sequence[Item]) -> list[float]:
    """Return what the set gives, by the code that applies it."""
    card = patterns.scorecard()
    evidence = PatternEvidence(patterns) if patterns.patterns else None
    if card is None:
        return []
    applied = AppliedScorecard(card, evidence)
    return [applied.score([] if evidence is None else evidence.fired(item, None)) for item in items]
