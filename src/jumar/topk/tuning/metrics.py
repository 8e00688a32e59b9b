"""How good a selection is, against labels: set measures, what adaptivity adds, the best in hindsight; with intervals.

And every strategy on the same labelled queries, side by side. All of it is of whole runs, so it is numpy throughout. Measures of
sets: C. J. van Rijsbergen, Information Retrieval (1979), chapter 7; nDCG: K. Järvelin and J. Kekäläinen, Cumulated gain-based
evaluation of IR techniques (TOIS 2002), log2, with the grade itself as gain, as trec_eval does by default (not 2^grade − 1).
Measures of sets take every grade above 0 for relevant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from jumar.errors import ScoreError, StrategyError
from jumar.topk.base import SelectionStrategy
from jumar.topk.batch import select_batch
from jumar.topk.contract import check_limits, check_number, check_size, shown
from jumar.topk.result import Scale
from jumar.topk.strategies import STRATEGIES, create_selection_strategy
from jumar.topk.tuning import LabelledQuery, labelled

# without numpy, the import of what is above has said how to get it
# isort: split
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

METRICS: Final = ("f1", "precision", "recall", "ndcg")

_CELLS: Final = 4_000_000
"""Weights that are held at once: 32 MB."""


class Estimate(NamedTuple):
    """A figure with its percentile bootstrap interval over queries; all three None when there was no query to take it from."""

    value: float | None
    low: float | None
    high: float | None


NO_ESTIMATE: Final = Estimate(None, None, None)


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The labels of a run as arrays; shorter rankings are padded with what is not relevant."""

    queries: tuple[LabelledQuery, ...]
    max_k: int
    lengths: Ints  # (queries,): items that a prefix can keep, at most max_k
    relevant: Floats  # (queries, longest ranking): 0 or 1
    totals: Ints  # (queries,): relevant items, retrieved or not
    hits: Floats  # (queries, max_k + 1): relevant items among the first k
    worth: Floats  # (queries, longest ranking): the grades, 0 or 1 where there are none
    gains: Floats  # (queries, max_k + 1): discounted gain of the first k
    ideal: Floats  # (queries,): the highest discounted gain there is, 1 where nothing is relevant
    alike: tuple[tuple[Ints, Floats], ...]  # queries with rankings of one length: their rows, their scores (rows, length)

    @classmethod
    def of(cls, queries: Sequence[LabelledQuery], max_k: int) -> Labels:
        """Return the labels of ``queries``; none are fine."""
        width = max([max_k, *(len(query.relevant) for query in queries)])
        relevant = np.zeros((len(queries), width), dtype=np.float64)
        for row, query in enumerate(queries):
            relevant[row, : len(query.relevant)] = query.relevant
        worth = relevant
        if any(query.grades for query in queries):
            worth = relevant.copy()
            for row, query in enumerate(queries):
                if query.grades:
                    worth[row, : len(query.grades)] = query.grades
        return cls(
            tuple(queries),
            max_k,
            np.array([min(len(query.scores), max_k) for query in queries], dtype=np.int64),
            relevant,
            np.array([query.relevant_total for query in queries], dtype=np.int64),
            _cumulated(relevant[:, :max_k]),
            worth,
            _cumulated(worth[:, :max_k] / _discounts(max_k)),
            _ideal(queries, max_k),
            _alike(queries),
        )

    @property
    def in_scope(self) -> NDArray[np.bool_]:
        """Return which queries have anything that is relevant."""
        return self.totals > 0

    def prefix_quality(self, metric: str) -> Floats:
        """Return the metric of keeping the first k, for every query and k (queries × max_k + 1).

        Beyond its list a query keeps all it has. Queries out of scope have 0 everywhere.
        """
        ranks = np.minimum(np.arange(self.max_k + 1), self.lengths[:, None])
        rows = np.arange(len(self.queries))[:, None]
        if metric == "ndcg":
            return self.gains[rows, ranks] / self.ideal[:, None]
        return _of_sets(metric, ranks, self.hits[rows, ranks], self.totals[:, None])

    def mask_quality(self, metric: str, mask: NDArray[np.bool_]) -> Floats:
        """Return the metric of what ``mask`` (queries × longest ranking) keeps, for each query."""
        if metric == "ndcg":  # ranks count as they are after the others were left out
            ranks = np.maximum(mask.cumsum(axis=1), 1)
            return (self.worth * mask / np.log2(ranks + 1.0)).sum(axis=1) / self.ideal
        return _of_sets(metric, mask.sum(axis=1), (self.relevant * mask).sum(axis=1), self.totals)


def _of_sets(metric: str, kept: Ints, hits: Floats, totals: Ints) -> Floats:
    if metric == "precision":
        return hits / np.maximum(kept, 1)
    if metric == "recall":
        return hits / np.maximum(totals, 1)
    return 2.0 * hits / np.maximum(kept + totals, 1)


def _discounts(max_k: int) -> Floats:
    return np.log2(np.arange(2.0, max_k + 2.0))


def _ideal(queries: Sequence[LabelledQuery], max_k: int) -> Floats:
    """Return the discounted gain of the best ``max_k`` items of each query, those that were not retrieved among them."""
    table = _cumulated(1.0 / _discounts(max_k)[None, :])[0]
    found = table[[min(query.relevant_total, max_k) for query in queries]]
    for row, query in enumerate(queries):
        if query.grades or query.missed:
            unseen = 0 if query.missed else query.relevant_total - sum(query.relevant)
            known = [*(query.grades or map(float, query.relevant)), *query.missed, *[1.0] * min(unseen, max_k)]
            best = np.zeros(max(len(known), max_k))
            best[: len(known)] = known
            found[row] = float(np.cumsum(np.sort(best)[::-1][:max_k] / _discounts(max_k))[-1])
    return np.where(found > 0, found, 1.0)


def _cumulated(values: Floats) -> Floats:
    found = np.zeros((values.shape[0], values.shape[1] + 1), dtype=np.float64)
    np.cumsum(values, axis=1, out=found[:, 1:])
    return found


def check_metric(metric: object) -> None:
    """Refuse a metric that does not exist. Errors: :class:`jumar.errors.StrategyError`, a ValueError."""
    if metric not in METRICS:
        raise StrategyError(f"metric is {shown(metric)}: choose one of {', '.join(METRICS)}")


def choose(labels: Labels, strategy: object, *, min_k: int = 1) -> NDArray[np.bool_]:
    """Return what ``strategy`` keeps of every query (queries × longest ranking), queries of one length at a time.

    Errors: those of ``select_batch``.
    """
    mask = np.zeros(labels.relevant.shape, dtype=np.bool_)
    for rows, scores in labels.alike:
        found = select_batch(scores, strategy, labels.max_k, min_k, return_mask=True)
        mask[rows[:, None], np.arange(scores.shape[1])] = found
    return mask


def _alike(queries: Sequence[LabelledQuery]) -> tuple[tuple[Ints, Floats], ...]:
    groups: dict[int, list[int]] = {}
    for row, query in enumerate(queries):
        groups.setdefault(len(query.scores), []).append(row)
    return tuple(
        (np.array(rows, dtype=np.int64), np.array([queries[row].scores for row in rows], dtype=np.float64))
        for length, rows in groups.items()
        if length
    )


class Resamples:
    """Bootstrap resamples of queries, the same ones for everything that is asked of them, so that differences are paired."""

    def __init__(self, size: int, *, resamples: int = 2000, seed: int = 0, level: float = 0.95) -> None:
        """Draw ``resamples`` resamples of ``size`` queries with a generator of their own.

        Errors: :class:`jumar.errors.StrategyError`, a ValueError, unless ``resamples`` is a whole number from 1, ``seed`` one
        from 0 and ``level`` between 0 and 1.
        """
        check_size("resamples", resamples)
        check_size("seed", seed, least=0)
        check_number("level", level, above=0, below=1)
        self.size, self._resamples, self._seed, self._level = size, resamples, seed, level
        self._kept: Floats | None = None

    def _weights(self) -> Iterator[Floats]:
        """Yield how often each query is in each resample, in blocks that fit into memory; a single block is drawn once."""
        if self.size * self._resamples > _CELLS:
            yield from self._drawn()
            return
        if self._kept is None:
            self._kept = next(self._drawn())
        yield self._kept

    def _drawn(self) -> Iterator[Floats]:
        random = np.random.default_rng(self._seed)
        shares = np.full(self.size, 1.0 / self.size)
        block = max(1, _CELLS // self.size)
        for begin in range(0, self._resamples, block):
            rows = min(block, self._resamples - begin)
            yield random.multinomial(self.size, shares, size=rows).astype(np.float64)

    def means(self, columns: Floats) -> list[Estimate]:
        """Return the mean of every column of ``columns`` (queries × columns) with its interval."""
        if not self.size:
            return [NO_ESTIMATE] * columns.shape[1]
        return self._estimates(columns.mean(axis=0), lambda weights: weights @ columns / self.size)

    def skill(self, quality: Floats, kept: Ints, table: Floats) -> Estimate:
        """Return how much better the numbers kept fit their own query than the same numbers dealt out among all queries.

        ``quality`` is what was reached (queries), ``kept`` how many were kept, ``table`` what keeping the first k gives
        (queries × max_k + 1). The mean over all shuffles is exact: that of every query with every query's number. It is 0 for a
        strategy that keeps the same number everywhere, and None without queries.
        """
        if not self.size:
            return NO_ESTIMATE
        numbers: Ints = np.arange(table.shape[1], dtype=np.int64)
        dealt: Floats = np.equal(kept[:, None], numbers).astype(np.float64)
        value = float(quality.mean()) - float(np.dot(dealt.mean(axis=0), table.mean(axis=0)))

        def resampled(weights: Floats) -> Floats:
            shuffled: Floats = ((weights @ dealt) * (weights @ table)).sum(axis=1) / self.size**2
            return (weights @ quality / self.size - shuffled)[:, None]

        return self._estimates(np.array([value]), resampled)[0]

    def _estimates(self, values: Floats, resampled: Callable[[Floats], Floats]) -> list[Estimate]:
        found = np.concatenate([resampled(weights) for weights in self._weights()])
        tail = 50.0 * (1.0 - self._level)
        lows, highs = np.percentile(found, [tail, 100.0 - tail], axis=0)
        return [Estimate(*map(_rounded, three)) for three in zip(values, lows, highs, strict=True)]


def _rounded(value: float) -> float:
    """Return a figure without the last digits, which differ between machines; never −0."""
    return round(float(value), 9) + 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """How one strategy did.

    F1, precision, recall, nDCG@max_k, skill and the gap are means over the queries in scope, those with anything relevant;
    ``mean_k`` over all. ``skill`` is F1 minus F1 with the same numbers dealt out among the queries; ``oracle_gap`` is what the
    best number for each query, known in hindsight, would have added. ``wrongly_empty`` is the share of queries in scope for
    which nothing was kept, ``wrongly_answered`` the share of those out of scope for which something was.
    """

    strategy: str
    params: Mapping[str, Any]
    f1: Estimate
    precision: Estimate
    recall: Estimate
    ndcg: Estimate
    mean_k: Estimate
    skill: Estimate
    oracle_gap: Estimate
    wrongly_empty: Estimate
    wrongly_answered: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The rows, best F1 first, and what they have in common; ``refused`` says why a strategy has no row."""

    queries: int
    in_scope: int
    max_k: int
    min_k: int
    scale: Scale
    oracle_f1: Estimate
    rows: tuple[ComparisonRow, ...]
    refused: Mapping[str, str]


def compare(
    runs: Iterable[LabelledQuery | Mapping[str, Any]],
    strategies: Iterable[object] | None = None,
    *,
    max_k: int = 20,
    min_k: int = 1,
    scale: Scale = "similarity",
    resamples: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Return how every strategy does on labelled queries, with 95 % intervals.

    ``strategies`` are names, configurations or strategies; all there are by default, with their defaults. A name that cannot work
    on ``scale``, or has no defaults there, has no row but a reason in ``refused``; when none is left, that is an error. Intervals
    are percentile bootstraps over queries, the same resamples for all. Errors: :class:`jumar.errors.ScoreError` for labels that
    do not fit or no queries at all, :class:`jumar.errors.StrategyError` for strategies and limits.
    """
    max_k, min_k = check_limits(max_k, min_k)
    queries = labelled(runs, scale=scale)
    if not queries:
        raise ScoreError("there are no queries to compare on: give at least one labelled query")
    built, refused = build(STRATEGIES if strategies is None else strategies, scale)
    if not built:
        raise StrategyError("; ".join(refused.values()) or "there are no strategies to compare: name at least one")
    frame = _Frame(Labels.of(queries, max_k), min_k, resamples, seed)
    rows = [frame.row(strategy) for strategy in built]
    rows.sort(key=lambda row: -(row.f1.value or 0.0))
    return Comparison(
        queries=len(queries),
        in_scope=int(frame.inside.sum()),
        max_k=max_k,
        min_k=min_k,
        scale=scale,
        oracle_f1=frame.oracle,
        rows=tuple(rows),
        refused=refused,
    )


def build(strategies: Iterable[object], scale: Scale) -> tuple[list[SelectionStrategy], dict[str, str]]:
    """Return the strategies, names among them for ``scale``, and for the names that refuse that scale why."""
    built: list[SelectionStrategy] = []
    refused: dict[str, str] = {}
    for strategy in strategies:
        if not isinstance(strategy, str) or scale == "similarity":
            built.append(create_selection_strategy(strategy))
            continue
        create_selection_strategy(strategy)  # an unknown name is an error, not a refusal
        try:
            built.append(create_selection_strategy(strategy, scale=scale))
        except StrategyError as error:
            refused[strategy] = str(error)
    return built, refused


class _Frame:
    """What the rows of a comparison share: labels, resamples, the best in hindsight."""

    def __init__(self, labels: Labels, min_k: int, resamples: int, seed: int) -> None:
        self.labels, self.min_k, self.inside = labels, min_k, labels.in_scope
        inside = int(self.inside.sum())
        self._all = Resamples(len(labels.queries), resamples=resamples, seed=seed)
        self._in = Resamples(inside, resamples=resamples, seed=seed)
        self._out = Resamples(len(labels.queries) - inside, resamples=resamples, seed=seed)
        self._table = labels.prefix_quality("f1")[self.inside]
        self._best = self._table[:, min_k:].max(axis=1)
        self.oracle = self._in.means(self._best[:, None])[0]

    def row(self, strategy: SelectionStrategy) -> ComparisonRow:
        mask = choose(self.labels, strategy, min_k=self.min_k)
        kept: NDArray[np.int64] = mask.sum(axis=1)
        inside = self.inside
        f1, precision, recall, ndcg = (
            self.labels.mask_quality(metric, mask)[inside] for metric in ("f1", "precision", "recall", "ndcg")
        )
        empty = kept == 0
        columns = np.stack([f1, precision, recall, ndcg, self._best - f1, empty[inside]], axis=1)
        of_f1, of_precision, of_recall, of_ndcg, gap, wrongly_empty = self._in.means(columns)
        return ComparisonRow(
            strategy=strategy.name,
            params=strategy.params(),
            f1=of_f1,
            precision=of_precision,
            recall=of_recall,
            ndcg=of_ndcg,
            mean_k=self._all.means(kept[:, None].astype(np.float64))[0],
            skill=self._in.skill(f1, kept[inside], self._table),
            oracle_gap=gap,
            wrongly_empty=wrongly_empty,
            wrongly_answered=self._out.means((~empty[~inside])[:, None].astype(np.float64))[0]
            if not inside.all()
            else NO_ESTIMATE,
        )
