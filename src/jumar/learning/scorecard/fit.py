"""A scorecard from items and what the expensive judge said of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from jumar.core.lazy import need_extra
from jumar.judging.agreement import Numbers, group_numbers, spearman
from jumar.judging.cheap.evidence import PatternEvidence
from jumar.judging.cheap.scoring import AppliedScorecard, words_of
from jumar.judging.items.item import Item
from jumar.judging.patterns.models import Curve, PatternGuard, PatternSet, PatternV2, Scorecard
from jumar.learning.scorecard.nested import ROUNDING, SCREEN, Nested, Rule, constant_curve
from jumar.learning.scorecard.pool import FitSettings, Pool, block_of, gather_candidates, measure_attack_gains

Kind = Literal["story", "text"]
Floats = NDArray[np.float64]
_UNIT: Final = 0.25
"""Points of a proposal of weight 1.0 before anything was fitted, as in an uncalibrated rubric."""

MIDDLE: Final = 3.0
"""The middle of the scale, for an item about which nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitReport:
    """How the set came to be.

    ``strengths`` of the ridge and ``blocks``, the factor of each, are by :data:`BLOCKS`; ``candidates`` and ``patterns`` are
    numbers by category. ``guard`` is that of the settings, ``calibration`` the kind of the curve. ``oof_mae`` and
    ``oof_spearman`` are of the out-of-fold predictions; the latter is None where scores or predictions are all the same.
    """

    items: int
    groups: int
    folds: int
    seed: int
    learning_rate: float
    guard: bool = True
    strengths: Mapping[str, float] = field(default_factory=dict[str, float])
    blocks: Mapping[str, float] = field(default_factory=dict[str, float])
    candidates: Mapping[str, int] = field(default_factory=dict[str, int])
    patterns: Mapping[str, int] = field(default_factory=dict[str, int])
    calibration: str = ""
    oof_mae: float = 0.0
    oof_spearman: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorecardFit:
    """A fitted set and what it predicts.

    ``patterns`` are all active, with their calibration: `evaluate --mode cheap --patterns` gives ``fitted`` with them.
    ``predictions`` are the ``(items,)`` scores of each item by a set that was fitted without its fold: what can be believed.
    ``fitted`` are those of the set itself, which saw them: what cannot.
    """

    patterns: PatternSet
    predictions: tuple[float, ...]
    fitted: tuple[float, ...]
    report: FitReport


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
    rubric: Kind = "text",
    settings: FitSettings | None = None,
) -> ScorecardFit:
    """Return the set of patterns that says best what the expensive judge would say of items it has not seen.

    ``targets`` are ``(items,)`` scores from 1 to 5; ``groups`` tie items that are never parted (None: an item by itself).
    ``proposals`` are candidates beside the steps of features and, where ``settings`` say so, the phrases of the items; a
    proposal never gets points against its ``type``. ``previous`` is the set before this one, whose weights (1.0 for what is
    new in ``proposals``) change by ``learning_rate`` of the way to the fitted ones. ``made`` is the date on new patterns.

    Everything follows from the arguments. Errors: ValueError for lengths that differ, no items, a score that is not from 1 to 5,
    or a learning rate that is not within 0 to 1; :class:`jumar.errors.MissingExtraError`.
    """
    chosen = settings or FitSettings()
    need_extra("learn", "fitting a scorecard", "numpy", "scipy", "sklearn", "threadpoolctl")
    y = _checked(items, targets, groups, learning_rate)
    numbers = group_numbers(groups)
    fold = group_folds(numbers, chosen.folds, seed)
    facts: dict[str, Any] = {"items": len(items), "groups": int(numbers.max()) + 1, "folds": int(fold.max()) + 1}
    facts |= {"seed": seed, "learning_rate": learning_rate, "guard": chosen.guard}
    if facts["folds"] < 3 or not np.ptp(y) > 0:
        return _without_patterns(items, y, fold, rubric, facts)
    pool = gather_candidates(items, proposals, settings=chosen, made=made)
    limits: Any = import_module("threadpoolctl").threadpool_limits
    with limits(limits=1, user_api="blas"):  # on matrices this small threads wait for each other, and sum in another order
        gaming = measure_attack_gains(items, pool, fold, seed=seed) if chosen.guard else None
        nested = Nested(pool, y, numbers, fold, chosen, _start(pool, previous), learning_rate, gaming)
        predictions, rule = nested.predictions(), nested.rule()
    if rule.choice.kind == "constant" and not is_related(pool, y, numbers, seed=seed):
        return _without_patterns(items, y, fold, rubric, facts)
    kept = _kept(pool, rule, chosen)
    patterns = _set_of(pool, rule, kept, rubric, facts)
    if chosen.guard:
        patterns = _guarded(patterns, pool.fires[:, kept], items)
    report = FitReport(
        **facts,
        strengths=rule.strengths,
        blocks=rule.factors,
        candidates=dict(Counter(pool.blocks)),
        patterns=dict(Counter(block_of(pattern) for pattern in patterns.patterns)),
        calibration=rule.choice.kind,
        oof_mae=float(np.abs(predictions - y).mean()),
        oof_spearman=spearman(predictions, y),
    )
    return ScorecardFit(
        patterns=patterns,
        predictions=tuple(predictions.tolist()),
        fitted=_applied(patterns, pool.fires[:, kept], items),
        report=report,
    )


_CHANCE: Final = 0.1
"""Kept by chance, an order that is none moves a score by a thousandth of a point; lost, one that is there is lost whole."""

_FLIPS: Final = 199


def is_related(pool: Pool, y: Floats, groups: Numbers, *, seed: int) -> bool:
    """Return whether scores go with what fires on the items, beyond chance.

    All candidates at once, each with little weight, as a ridge regression takes them: the sum of their squared covariances with
    the ranks of the scores (the global test of Goeman and others, 2004), against the same with the signs of whole groups drawn
    anew (the wild bootstrap of Cameron, Gelbach and Miller, 2008). On a hundred items that finds four times as much as the order
    of predictions that were made out of fold. Proposals are left out: scores were looked at when they were made. From fewer than
    six groups nothing follows.
    """
    rank: Any = import_module("scipy.stats").rankdata
    fires = pool.fires[:, np.flatnonzero(pool.claims == 0)]
    share = np.asarray(fires.mean(axis=0), dtype=np.float64).ravel()
    ranks = rank(y) - (y.size + 1) / 2.0
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), size=(int(groups.max()) + 1, _FLIPS))
    drawn = np.column_stack([ranks, ranks[:, None] * signs[groups]])
    together = np.asarray(fires.T @ (drawn - drawn.mean(axis=0)))
    sums = (together**2 / (y.size * share * (1.0 - share) + SCREEN)[:, None]).sum(axis=0)
    as_large = 1 + int(np.count_nonzero(sums[1:] >= sums[0] * (1.0 - ROUNDING)))
    return as_large <= _CHANCE * (_FLIPS + 1)


def group_folds(groups: Numbers, count: int, seed: int) -> Numbers:
    """Return each item's fold, from 0 to ``count`` - 1 or fewer: whole groups, drawn by ``seed``, about as many in each."""
    total = int(groups.max()) + 1
    order = np.random.default_rng(seed).permutation(total)
    fold = np.empty(total, dtype=np.int64)
    fold[order] = np.arange(total) % max(1, min(count, total))
    return fold[groups]


def _applied(patterns: PatternSet, fires: Any, items: Sequence[Item]) -> tuple[float, ...]:
    """Return the scores that the set gives, by the arithmetic that applies it; ``fires`` is ``(items, patterns)`` of it."""
    card = patterns.scorecard()
    if card is None or not patterns.patterns:
        return () if card is None else (card.curve.at(card.base),) * fires.shape[0]
    ready = AppliedScorecard(card, PatternEvidence(patterns))
    return tuple(ready.score(np.sort(row.indices).tolist(), item) for row, item in zip(fires, items, strict=True))


def _guarded(patterns: PatternSet, fires: Any, items: Sequence[Item]) -> PatternSet:
    """Return the set with its guard: what good phrases give on the items, for their length; none of these is withheld any."""
    card = patterns.scorecard()
    if card is None or not patterns.patterns:
        return patterns
    ready = AppliedScorecard(card, PatternEvidence(patterns))
    given = [ready.good_phrases(np.sort(row.indices).tolist()) for row in fires]
    most = max(points / math.sqrt(max(1, words_of(item))) for points, item in zip(given, items, strict=True))
    most *= 1.0 + ROUNDING
    guarded = card.model_copy(update={"guard": PatternGuard(good_phrases=most)})
    return patterns.model_copy(update={"calibration": guarded.model_dump(mode="json")})


def _checked(items: Sequence[Item], targets: Sequence[float], groups: Sequence[str | None], rate: float) -> Floats:
    if not len(items) == len(targets) == len(groups):
        raise ValueError(f"{len(items)} items, {len(targets)} targets, {len(groups)} groups: give as many of each")
    y = np.asarray(targets, dtype=np.float64)
    if not y.size:
        raise ValueError("there are no items to fit on")
    if not ((y >= 1.0) & (y <= 5.0)).all():
        raise ValueError("targets are scores from 1 to 5")
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"learning_rate is from 0 to 1, not {rate}")
    return y


def _without_patterns(items: Sequence[Item], y: Floats, fold: Numbers, rubric: Kind, facts: dict[str, Any]) -> ScorecardFit:
    """Return an empty set that gives the median.

    All scores are the same, there are too few groups to choose anything by, or nothing that was tried came closer than the median
    and nothing that fires goes with the scores.
    """
    predictions = np.full_like(y, MIDDLE)
    if facts["folds"] > 1:
        for one in range(facts["folds"]):
            predictions[fold == one] = np.median(y[fold != one])
    score = float(np.median(y))
    fitted = {**facts, "calibration": "constant"}
    card = Scorecard(rubric=rubric, base=score, unit=1.0, curve=constant_curve(score), fitted=fitted)
    patterns = _marked([], card, facts)
    report = FitReport(**facts, calibration="constant", oof_mae=float(np.abs(predictions - y).mean()))
    return ScorecardFit(patterns=patterns, predictions=tuple(predictions.tolist()), fitted=(score,) * len(items), report=report)


def _start(pool: Pool, previous: PatternSet | None) -> Floats:
    """Return the signed points that each candidate begins with: those it had, those it proposes with, else 0.0."""
    card = None if previous is None else previous.scorecard()
    # a line's slope went into the points: what they were before it is what a fit can begin from
    unit = _UNIT if card is None else card.unit / float(card.fitted.get("slope", 1.0))
    known = {} if previous is None else {pattern.id: pattern for pattern in previous.patterns if pattern.status == "active"}
    points = np.zeros(len(pool.patterns))
    fires = np.asarray(pool.fires.sum(axis=0)).ravel()
    for index in np.flatnonzero(fires).tolist():  # what fires nowhere here has nothing to begin with
        one = pool.patterns[index]
        before = known.get(one.id) or (one if pool.claims[index] else None)
        if before is not None:
            points[index] = unit * (before.weight if before.type == "good" else -before.weight)
    return points


def _kept(pool: Pool, rule: Rule, chosen: FitSettings) -> list[int]:
    """Return the candidates that have points, in their order; of too many those that move the scores most."""
    share = np.asarray(pool.fires.mean(axis=0), dtype=np.float64).ravel()
    effect = np.abs(rule.points) * np.sqrt(share * (1.0 - share) + 1e-12)
    largest = np.argsort(-effect, kind="stable")[: chosen.most_patterns]
    least = 1e-9 * float(np.abs(rule.points).max(initial=0.0))  # below that it is rounding
    return sorted(int(one) for one in largest if abs(rule.points[one]) > least)


def _on_the_scale(rule: Rule) -> tuple[float, Floats, Curve, float]:
    """Return base, points, curve and slope, with the slope of a line in the points: they are then points of the scale."""
    curve = rule.choice.curve
    if rule.choice.kind == "isotonic" or len(curve.x) != 2:
        return rule.base, rule.points, curve, 1.0
    slope = (curve.y[1] - curve.y[0]) / (curve.x[1] - curve.x[0])
    return curve.y[0] + slope * (rule.base - curve.x[0]), slope * rule.points, Curve(x=(1.0, 5.0), y=(1.0, 5.0)), slope


def _set_of(pool: Pool, rule: Rule, kept: Sequence[int], rubric: Kind, facts: dict[str, Any]) -> PatternSet:
    base, points, curve, slope = _on_the_scale(rule)
    times = np.asarray(pool.fires.sum(axis=0), dtype=np.float64).ravel()
    unit = max((abs(float(points[one])) for one in kept), default=2.0) / 2.0
    patterns = [
        pool.patterns[one].model_copy(
            update={
                "type": "good" if points[one] > 0 else "bad",
                "weight": min(2.0, abs(float(points[one])) / unit),
                "times_fired": int(times[one]),
            }
        )
        for one in kept
    ]
    fitted = {**facts, "strengths": rule.strengths, "blocks": rule.factors, "calibration": rule.choice.kind, "slope": slope}
    card = Scorecard(rubric=rubric, base=base, unit=unit, curve=curve, fitted=fitted)
    return _marked(patterns, card, facts)


def _marked(patterns: list[PatternV2], card: Scorecard, facts: Mapping[str, Any]) -> PatternSet:
    """Return the set, which says whether it was made with the guard."""
    marked: dict[str, Any] = {"robust": bool(facts["guard"])}
    return PatternSet(version="2.0", patterns=patterns, calibration=card.model_dump(mode="json"), **marked)
