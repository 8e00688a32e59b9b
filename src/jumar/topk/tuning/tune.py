"""Choose a strategy and its parameters from labelled queries, and say what the choice is worth on queries not seen.

Everything that is chosen, the strategy too, is chosen again inside each fold of a cross-validation by query, from the other folds
alone; the figures are of the queries that were left out. So the best of a thousand candidates is not flattered by having been the
luckiest. Source of the nesting: Cawley and Talbot, "On over-fitting in model selection and subsequent selection bias in
performance evaluation", JMLR 11 (2010) 2079–2107.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from jumar.errors import ScoreError, StrategyError
from jumar.topk.base import RuleStrategy, SeenScores, SelectionStrategy, three_digits
from jumar.topk.contract import check_limits
from jumar.topk.result import Scale
from jumar.topk.strategies import STRATEGIES, create_selection_strategy
from jumar.topk.strategies.expected_f1 import ExpectedF1SelectionStrategy
from jumar.topk.tuning import LabelledQuery, labelled
from jumar.topk.tuning.calibrate import Points, fit_probabilities
from jumar.topk.tuning.metrics import Estimate, Labels, Resamples, check_metric, choose

# without numpy, the import of what is above has said how to get it
# isort: split
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

LEAST: Final = 4
"""Queries without which nothing can be held out twice."""

SIMPLEST_FIRST: Final = (
    "fixed_k",
    "score_threshold",
    "ratio_to_top",
    "largest_gap",
    "otsu",
    "elbow",
    "adaptive_k",
    "expected_f1",
    "entropy",
    "entropy_normalized",
    "clustering",
)
"""By how much they take to explain to somebody who wonders where an item went; those that are not here come last."""

_FOLDS: Final = 5
_INNER: Final = 3
_REPEATS: Final = 3
_BETAS: Final = (0.5, 0.7, 1.0, 1.4, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """A strategy with the parameters that are best on all queries; ``quality`` is what such tuning reached on held-out ones.

    ``in_scope_quality`` is the same of the queries in scope alone: what ``compare`` calls F1.
    """

    strategy: SelectionStrategy
    quality: Estimate
    in_scope_quality: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What was selected and what it is worth.

    ``quality`` is what is made as large as possible, on held-out queries, of choosing strategy and parameters this way: the mean
    over all queries, in which a query in scope counts its metric and one out of scope 1 when nothing is kept for it, else 0.
    ``in_scope_quality`` is the metric of the queries in scope alone, as ``compare`` has it, and ``wrongly_answered`` the share of
    the others that got something; without queries out of scope the first two are the same.

    ``fixed_k`` is the best fixed number, tuned the same way, ``gain`` the difference to it, query by query. ``default`` is the
    best of all untuned strategies, picked with the labels in hand, ``over_default`` the difference to that; a strategy that has
    no defaults on the scale is not among them. ``oracle`` is the best number for each query in hindsight. ``alternatives`` are
    all strategies, best first.
    """

    strategy: SelectionStrategy
    metric: str
    max_k: int
    min_k: int
    scale: Scale
    queries: int
    in_scope: int
    folds: int
    repeats: int
    quality: Estimate
    in_scope_quality: Estimate
    wrongly_answered: Estimate
    fixed_k: Tuned
    gain: Estimate
    default: Tuned
    over_default: Estimate
    oracle: Estimate
    in_scope_oracle: Estimate
    alternatives: tuple[Tuned, ...]

    @property
    def params(self) -> dict[str, Any]:
        """Return the parameters of the chosen strategy."""
        return self.strategy.params()

    @property
    def fixed_k_as_good(self) -> bool:
        """Whether a fixed number does as well as far as these queries can tell: the gain's interval holds 0 or less."""
        return self.gain.low is None or self.gain.low <= 0.0


def tune(
    runs: Iterable[LabelledQuery | Mapping[str, Any]],
    metric: str = "f1",
    max_k: int = 20,
    min_k: int = 1,
    *,
    scale: Scale = "similarity",
    seed: int = 0,
    resamples: int = 2000,
) -> Tuning:
    """Return the strategy and parameters that suit labelled queries best, cross-validated by query.

    Some 10–50 queries are enough to start; the intervals say whether they are enough to know. Metrics are ``f1``, ``precision``,
    ``recall`` and ``ndcg``; recall and nDCG alone are best served by keeping everything. The same queries and seed give the same
    answer. Errors: :class:`jumar.errors.ScoreError` for labels that do not fit or fewer than 4 queries,
    :class:`jumar.errors.StrategyError` for metric and limits.
    """
    check_metric(metric)
    max_k, min_k = check_limits(max_k, min_k)
    queries = labelled(runs, scale=scale)
    if len(queries) < LEAST:
        raise ScoreError(f"there are {len(queries)} labelled queries: give at least {LEAST}, better 10 to 50")
    labels = Labels.of(queries, max_k)
    search = _Search(labels, metric, min_k, scale, seed)
    left_out = search.held_out()
    alone = {name: search.held_out_of(name) for name in search.families}
    untuned = {name: found for name in alone if (found := default(name, scale)) is not None}
    defaults = {name: search.quality(one) for name, one in untuned.items()}
    easiest = max(defaults, key=lambda name: float(defaults[name].mean()))
    gains = [left_out - alone["fixed_k"], left_out - defaults[easiest]]
    columns = [*gains, left_out, defaults[easiest], search.oracle(), *alone.values()]
    gain, over_default, *of_all = Resamples(len(queries), resamples=resamples, seed=seed).means(_stacked(columns))
    inside = labels.in_scope
    _, _, *of_inside = Resamples(int(inside.sum()), resamples=resamples, seed=seed).means(_stacked(columns)[inside])
    outside = Resamples(int((~inside).sum()), resamples=resamples, seed=seed).means(1.0 - left_out[~inside][:, None])
    tuned = {
        name: Tuned(strategy=search.fitted(name, search.everything), quality=quality, in_scope_quality=in_scope)
        for name, quality, in_scope in zip(alone, of_all[3:], of_inside[3:], strict=True)
    }
    return Tuning(
        strategy=tuned[search.best_of(search.everything)].strategy,
        metric=metric,
        max_k=max_k,
        min_k=min_k,
        scale=scale,
        queries=len(queries),
        in_scope=int(inside.sum()),
        folds=search.folds,
        repeats=search.repeats,
        quality=of_all[0],
        in_scope_quality=of_inside[0],
        wrongly_answered=outside[0],
        fixed_k=tuned["fixed_k"],
        gain=gain,
        default=Tuned(strategy=untuned[easiest], quality=of_all[1], in_scope_quality=of_inside[1]),
        over_default=over_default,
        oracle=of_all[2],
        in_scope_oracle=of_inside[2],
        alternatives=tuple(sorted(tuned.values(), key=lambda one: -(one.quality.value or 0.0))),
    )


def space(name: str, queries: Sequence[LabelledQuery], *, max_k: int, scale: Scale) -> list[SelectionStrategy]:
    """Return the candidates of the strategy called ``name``, its defaults first if it has any.

    None for a strategy that refuses the scale, and none for one that is not searched: ``conformal`` is for a promised recall,
    ``expected_f1`` is fitted.
    """
    strategy = STRATEGIES[name]
    rows = strategy.search_space(_seen(queries, max_k, scale)) if issubclass(strategy, RuleStrategy) else None
    built = [] if rows is None else [_built(name, row, scale) for row in ({}, *rows)]
    return [one for one in built if one is not None and getattr(one, "k", 1) <= max_k]  # a number above max_k is none


def default(name: str, scale: Scale) -> SelectionStrategy | None:
    """Return the strategy called ``name`` with its defaults; None where it has none for the scale."""
    return _built(name, {}, scale)


def _built(name: str, row: dict[str, Any], scale: Scale) -> SelectionStrategy | None:
    try:
        return create_selection_strategy(name, **row, **({} if scale == "similarity" else {"scale": scale}))
    except StrategyError:
        return None


def _seen(queries: Sequence[LabelledQuery], max_k: int, scale: Scale) -> SeenScores:
    pooled = np.array([score for query in queries for score in query.scores[:max_k]] or [0.0])
    tops = np.array([query.scores[0] for query in queries if query.scores] or [0.0])
    shares = np.arange(0.1, 0.95, 0.1)
    if scale == "distance":
        none, shares = float(pooled.max()), 1.0 - shares
    else:
        none = min(0.0, float(pooled.min()))
    lowest = 0.0 if scale == "similarity" else -np.inf  # a file of settings takes no lower minimum for similarities
    floors, tops = ((none, *three_digits(np.quantile(values, shares))) for values in (pooled, tops))
    unit = 1.0 if scale == "similarity" else float(pooled.max() - pooled.min()) or 1.0
    return SeenScores(tuple(dict.fromkeys(max(floor, lowest) for floor in floors)), tops, max_k, unit)


def _stacked(columns: Sequence[Floats]) -> Floats:
    return np.stack(columns, axis=1)


class _Scored(NamedTuple):
    """Candidates and what each reaches on every query (candidates × queries)."""

    candidates: Sequence[SelectionStrategy]
    quality: Floats


class _Search:
    """The candidates on the queries, and what is best on some of them."""

    def __init__(self, labels: Labels, metric: str, min_k: int, scale: Scale, seed: int) -> None:
        self.labels, self._metric, self._min_k, self._seed = labels, metric, min_k, seed
        size = len(labels.queries)
        self.everything: Rows = np.arange(size, dtype=np.int64)
        self.folds = min(_FOLDS, size)
        self.repeats = max(1, min(_REPEATS, 300 // size))
        self.families: dict[str, list[SelectionStrategy]] = {}
        for name in sorted(STRATEGIES, key=lambda name: name != "fixed_k"):
            candidates = space(name, labels.queries, max_k=labels.max_k, scale=scale)
            if candidates:
                self.families[name] = candidates
        self.families["expected_f1"] = []  # its candidates depend on the training queries
        self._points = Points.of(labels.queries, scale)
        self._scale: Scale = scale
        self._known: dict[tuple[str, bytes], _Scored] = {}

    def scored(self, name: str, train: Rows) -> _Scored:
        """Return the candidates of a strategy and what each reaches; those of ``expected_f1`` are fitted to ``train``."""
        key = (name, b"" if self.families[name] else train.tobytes())
        if key not in self._known:
            candidates = self.families[name] or self._fitted_to(train)
            self._known[key] = _Scored(candidates, _stacked([self.quality(candidate) for candidate in candidates]).T)
        return self._known[key]

    def _fitted_to(self, train: Rows) -> Sequence[SelectionStrategy]:
        """Return ``expected_f1`` with the probabilities of the training queries; only ``beta`` is searched."""
        mine = np.isin(self._points.query, train)
        fitted = fit_probabilities(self._points.features[mine], self._points.relevant[mine])
        rounded = [float(f"{value:.4g}") for value in (*fitted, float(self._points.unseen[train].mean()))]
        named = dict(zip(("slope", "rank_slope", "intercept", "unseen"), rounded, strict=True))
        return [ExpectedF1SelectionStrategy(**named, beta=beta, scale=self._scale) for beta in _BETAS]

    def quality(self, strategy: SelectionStrategy) -> Floats:
        """Return what ``strategy`` reaches on every query."""
        mask = choose(self.labels, strategy, min_k=self._min_k)
        return np.where(self.labels.in_scope, self.labels.mask_quality(self._metric, mask), ~mask.any(axis=1))

    def oracle(self) -> Floats:
        """Return what the best number for each query reaches."""
        table = self.labels.prefix_quality(self._metric)[:, self._min_k :].max(axis=1)
        return np.where(self.labels.in_scope, table, float(self._min_k == 0))

    def fitted(self, name: str, train: Rows) -> SelectionStrategy:
        """Return the best candidate of a strategy on the training queries, the first of equal ones."""
        scored = self.scored(name, train)
        return scored.candidates[int(scored.quality[:, train].mean(axis=1).argmax())]

    def splits(self, rows: Rows, repeat: int) -> list[tuple[Rows, Rows]]:
        """Return training and held-out queries of each fold."""
        shuffled = np.random.default_rng([self._seed, repeat]).permutation(rows)
        parts = np.array_split(shuffled, min(_FOLDS, len(rows)))
        return [(np.sort(np.setdiff1d(rows, part)), np.sort(part)) for part in parts]

    def reached(self, name: str, train: Rows, test: Rows) -> Floats:
        """Return what a strategy, tuned on ``train``, reaches on ``test``."""
        scored = self.scored(name, train)
        return scored.quality[int(scored.quality[:, train].mean(axis=1).argmax()), test]

    def best_of(self, train: Rows) -> str:
        """Return ``fixed_k``, or the strategy that beats it most clearly, each tuned on parts of ``train`` and tried on the rest.

        Clearly is by more than one standard error of the gain, query by query: of many strategies one is always lucky on few
        queries. Of equal ones the simplest is taken. Source of the rule: Breiman et al., Classification and Regression Trees
        (1984), section 3.4.3, with the fixed number as the simplest model.
        """
        splits = [split for repeat in range(min(self.repeats, _INNER)) for split in self.splits(train, repeat)]
        plain = self._mean_reached("fixed_k", splits)[train]
        best, clearest = "fixed_k", 0.0
        for name in dict.fromkeys((*SIMPLEST_FIRST, *self.families)):
            if name not in self.families:
                continue
            gain = self._mean_reached(name, splits)[train] - plain
            margin = float(gain.mean() - gain.std(ddof=1) / len(train) ** 0.5)
            if margin > clearest + 1e-9:
                best, clearest = name, margin
        return best

    def _mean_reached(self, name: str, splits: Sequence[tuple[Rows, Rows]]) -> Floats:
        """Return what a strategy reaches on each query that some split holds out, mean over those splits; 0 elsewhere."""
        found, times = np.zeros(len(self.everything)), np.zeros(len(self.everything))
        for train, test in splits:
            found[test] += self.reached(name, train, test)
            times[test] += 1.0
        return found / np.maximum(times, 1.0)

    def held_out_of(self, name: str) -> Floats:
        """Return what tuning this strategy reaches on every query when it is held out, mean over the repeats."""
        return self._mean_reached(
            name, [split for repeat in range(self.repeats) for split in self.splits(self.everything, repeat)]
        )

    def held_out(self) -> Floats:
        """Return what choosing a strategy and tuning it reaches on every query when it is held out, mean over the repeats."""
        found = np.zeros(len(self.everything))
        for repeat in range(self.repeats):
            for train, test in self.splits(self.everything, repeat):
                found[test] += self.reached(self.best_of(train), train, test)
        return found / self.repeats
