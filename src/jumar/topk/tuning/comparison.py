"""Every strategy on the same labelled queries, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumar.errors import ScoreError, StrategyError
from jumar.topk.base import SelectionStrategy
from jumar.topk.contract import check_limits
from jumar.topk.registry import STRATEGIES, create_selection_strategy
from jumar.topk.result import Scale
from jumar.topk.tuning.labelled import LabelledQuery, labelled
from jumar.topk.tuning.metrics import NO_ESTIMATE, Estimate, Labels, Resamples, choose

# without numpy, the import of what is above has said how to get it
# isort: split
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
