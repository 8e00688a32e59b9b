"""What strategies learn from labelled queries: the probabilities of ``expected_f1``, the threshold of ``conformal``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from jumar.core.lazy import need_extra
from jumar.errors import ScoreError, StrategyError
from jumar.topk.contract import check_limits, check_number
from jumar.topk.result import Scale
from jumar.topk.strategies.conformal import ConformalSelectionStrategy
from jumar.topk.strategies.expected_f1 import ExpectedF1SelectionStrategy
from jumar.topk.tuning import LabelledQuery, labelled

need_extra("topk", "what is fitted to labelled queries", "numpy")

import numpy as np  # noqa: E402 - after the check that says how to get it
from numpy.typing import NDArray  # noqa: E402

Floats = NDArray[np.float64]

_STEPS = 50
_RIDGE = 1.0


class Points(NamedTuple):
    """Every retrieved item of a run as one row: ``features`` are score and ln(rank), ``query`` says whose it is."""

    features: Floats  # (items, 2)
    relevant: Floats  # (items,)
    query: NDArray[np.int64]  # (items,)
    unseen: Floats  # (queries,): relevant items that were not retrieved

    @classmethod
    def of(cls, queries: Sequence[LabelledQuery], scale: Scale) -> Points:
        """Return the items of ``queries``; distances are negated, as the strategy sees them."""
        sign = -1.0 if scale == "distance" else 1.0
        rows = [(sign * score, math.log(rank)) for query in queries for rank, score in enumerate(query.scores, 1)]
        return cls(
            np.array(rows, dtype=np.float64).reshape(len(rows), 2),
            np.array([label for query in queries for label in query.relevant], dtype=np.float64),
            np.array([number for number, query in enumerate(queries) for _ in query.scores], dtype=np.int64),
            np.array([query.relevant_total - sum(query.relevant) for query in queries], dtype=np.float64),
        )


def fit_probabilities(features: Floats, relevant: Floats) -> tuple[float, float, float]:
    """Return slope, rank_slope and intercept of a logistic regression of ``relevant`` on score and ln(rank).

    Newton's method with a small ridge on the standardised slopes, so that labels which the scores separate perfectly, or not at
    all, have finite coefficients; without any items all three are 0. Never a positive weight of rank or a negative one of score:
    a score that speaks against relevance within these labels is noise or a wrong ``scale``, and its slope is 0.
    """
    if not len(relevant):
        return 0.0, 0.0, 0.0
    centre, spread = features.mean(axis=0), features.std(axis=0)
    spread[spread == 0] = 1.0
    columns = np.column_stack([(features - centre) / spread, np.ones(len(relevant))])
    used = [0, 1, 2]
    while True:
        weights = _newton(columns[:, used], relevant, slopes=len(used) - 1)
        signs = {0: 1.0, 1: -1.0}
        against = [place for place, column in enumerate(used) if column in signs and signs[column] * weights[place] < 0]
        if not against:
            break
        del used[min(against, key=lambda place: signs[used[place]] * weights[place])]
    found = np.zeros(3)
    found[used] = weights
    slopes = found[:2] / spread
    return float(slopes[0]), float(slopes[1]), float(found[2] - slopes @ centre)


def _newton(columns: Floats, relevant: Floats, *, slopes: int) -> Floats:
    weights = np.zeros(columns.shape[1])
    ridge = np.array([_RIDGE] * slopes + [1e-3])
    for _ in range(_STEPS):
        chances = 1.0 / (1.0 + np.exp(-np.clip(columns @ weights, -30.0, 30.0)))
        gradient = columns.T @ (chances - relevant) + ridge * weights
        curvature = (columns * (chances * (1.0 - chances))[:, None]).T @ columns + np.diag(ridge)
        step = np.linalg.solve(curvature, gradient)
        weights -= np.clip(step, -2.0, 2.0)
        if float(np.abs(step).max()) < 1e-8:
            break
    return weights


def calibrate_expected_f1(
    runs: Iterable[LabelledQuery | Mapping[str, Any]], *, beta: float = 1.0, scale: Scale = "similarity"
) -> ExpectedF1SelectionStrategy:
    """Return ``expected_f1`` with probabilities fitted to labelled queries.

    Give it lists of the length that it will be used on: what is expected beyond them, ``unseen``, is the mean of these queries.
    Errors: :class:`jumar.errors.ScoreError` for labels that do not fit or no queries.
    """
    queries = labelled(runs, scale=scale)
    if not queries:
        raise ScoreError("there are no queries to fit to: give at least one labelled query")
    points = Points.of(queries, scale)
    slope, rank_slope, intercept = fit_probabilities(points.features, points.relevant)
    return ExpectedF1SelectionStrategy(
        slope=slope, intercept=intercept, rank_slope=rank_slope, unseen=float(points.unseen.mean()), beta=beta, scale=scale
    )


def calibrate_conformal(
    runs: Iterable[LabelledQuery | Mapping[str, Any]],
    *,
    recall: float = 0.9,
    on: Literal["score", "ratio"] = "score",
    scale: Scale = "similarity",
) -> ConformalSelectionStrategy:
    """Return ``conformal`` with the highest threshold that promises ``recall`` for a new query of the same kind.

    Recall is of the relevant items that were *retrieved*: what the search did not find no threshold can keep. Of n queries the
    promise holds when n/(n+1) of their mean miss + 1/(n+1) is at most 1 − recall; queries without anything relevant retrieved
    don't count. Errors: :class:`jumar.errors.StrategyError` when there are too few queries for that recall, with their number;
    :class:`jumar.errors.ScoreError` for labels that do not fit. Source: Angelopoulos et al., "Conformal Risk Control", ICLR 2024
    (arXiv 2208.02814), equation 4.
    """
    check_number("recall", recall, above=0, below=1)
    queries = [query for query in labelled(runs, scale=scale) if any(query.relevant)]
    needed = math.ceil(recall / (1.0 - recall) - 1e-9)
    if len(queries) < needed:
        raise StrategyError(
            f"a recall of {recall:g} needs at least {needed} labelled queries with something relevant retrieved; there are "
            f"{len(queries)}: label more, or ask for less"
        )
    per_query = [np.array(_comparable(query, on, scale)) for query in queries]
    steps = np.concatenate(per_query)
    losses = np.concatenate([np.full(len(values), 1.0 / len(values)) for values in per_query])
    order = np.argsort(steps, kind="stable")
    steps, lost = steps[order], np.cumsum(losses[order])
    # a threshold at steps[i] loses all that is strictly below it
    before = np.concatenate([[0.0], lost])[np.searchsorted(steps, steps, side="left")]
    fits = (before + 1.0) / (len(queries) + 1.0) <= 1.0 - recall + 1e-12
    best = float(steps[fits].max())
    threshold = -best if scale == "distance" else best
    return ConformalSelectionStrategy(threshold=threshold, recall=recall, on=on, queries=len(queries), scale=scale)


class Realised(NamedTuple):
    """What a fitted ``conformal`` does with ``max_k`` in its way, on the ``queries`` with something relevant retrieved."""

    recall: float  # of the relevant items that were retrieved, mean over the queries
    queries: int
    truncated: int  # queries whose threshold lets more through than max_k
    max_k: int  # the smallest that is enough for the recall it was fitted for, never below the one that was given


def realised_recall(
    strategy: ConformalSelectionStrategy, runs: Iterable[LabelledQuery | Mapping[str, Any]], *, max_k: int = 20, min_k: int = 1
) -> Realised:
    """Return the recall that ``strategy`` reaches on labelled queries, and how many of them ``max_k`` cuts off.

    Errors: :class:`jumar.errors.ScoreError` for labels that do not fit, and when nothing relevant was retrieved for any query;
    :class:`jumar.errors.StrategyError` for the limits.
    """
    max_k, min_k = check_limits(max_k, min_k)
    queries = [query for query in labelled(runs, scale=strategy.scale) if any(query.relevant)]
    if not queries:
        raise ScoreError("there is no query with anything relevant retrieved: give at least one")
    sign = -1.0 if strategy.scale == "distance" else 1.0
    wanted = [max(strategy.cut([sign * score for score in query.scores], max_k, min_k)[0], min_k) for query in queries]
    most = max(max_k, *wanted)
    found = np.zeros(most + 1)
    for query, count in zip(queries, wanted, strict=True):
        hits = np.cumsum([0, *query.relevant])
        found += hits[np.minimum(np.arange(most + 1), min(count, len(query.scores)))] / hits[-1]
    found /= len(queries)
    enough = np.flatnonzero(found[max_k:] >= strategy.recall - 1e-9)
    return Realised(
        recall=float(found[max_k]),
        queries=len(queries),
        truncated=sum(count > max_k for count in wanted),
        max_k=max_k + int(enough[0]) if len(enough) else most,
    )


def _comparable(query: LabelledQuery, on: str, scale: Scale) -> list[float]:
    """Return what the threshold is compared with, of the relevant items; more is better."""
    sign, top = (-1.0 if scale == "distance" else 1.0), query.scores[0]
    found = [sign * score for score, label in zip(query.scores, query.relevant, strict=True) if label]
    if on == "ratio":
        return [max(score / top, 0.0) if top > 0 else 1.0 for score in found]
    return found
