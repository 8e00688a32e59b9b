"""Keep as many as make the expected F1 largest, given how likely each item is to be relevant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from jumar.topk.base import RuleStrategy
from jumar.topk.contract import SimilarityDefault, count_valid, number_field, score_field
from jumar.topk.result import CutEvidence, Scale

if TYPE_CHECKING:
    from jumar.topk.batch import BatchCuts, Floats

_LARGEST: Final = 1e100
_STRONGEST: Final = 1e6
"""Up to these every product and sum of the rule is finite; nobody has a use for more."""


def _coefficient(default: float, description: str) -> float:
    return number_field(default, description, above=-_LARGEST, below=_LARGEST, in_files={})


@dataclass(frozen=True)
class ExpectedF1SelectionStrategy(RuleStrategy):
    """Keep the ``k`` with the largest expected F, given how likely each item is to be relevant.

    P = 1 ÷ (1 + exp(−(slope·score + rank_slope·ln rank + intercept))). ``unseen`` is how many relevant items are expected beyond
    those given; ``beta`` above 1 weighs recall more. The expected F is the ratio of expectations, (1 + β²)·Σ_{i≤k} p ÷ (k +
    β²·(Σ p + unseen)); of equal ones the smallest k is taken. The default coefficients suit cosines of small sentence models;
    fit them on labelled queries. Errors: :class:`jumar.errors.StrategyError` for coefficients that are not finite, ``unseen``
    below 0 and ``beta`` not above 0. Source: Ye et al., "Optimizing F-measure: a tale of two approaches", ICML 2012 (arXiv
    1206.4625).
    """

    NAME: ClassVar[str] = "expected_f1"
    NEEDED: ClassVar[tuple[str, ...]] = ("slope", "intercept")
    WHOLE: ClassVar[bool] = True

    slope: float = _coefficient(SimilarityDefault(8.0), "Weight of the score in the logit")
    intercept: float = _coefficient(SimilarityDefault(-4.0), "The logit's constant")
    rank_slope: float = _coefficient(-0.5, "Weight of ln(rank) in the logit")
    unseen: float = number_field(
        0.0, "Relevant items expected beyond those given", above=0, below=_LARGEST, closed=True, in_files={"ge": 0}
    )
    beta: float = number_field(1.0, "Above 1, recall weighs more than precision", above=0, below=_STRONGEST, in_files={"gt": 0})
    min_score: float | None = score_field(None)
    scale: Scale = "similarity"

    def probabilities(self, scores: list[float]) -> list[float]:
        """Return how likely each item is to be relevant; ``scores`` descend, distances negated."""
        slope, intercept, rank_slope = self.slope, self.intercept, self.rank_slope
        return [_logistic(slope * score + rank_slope * math.log(rank) + intercept) for rank, score in enumerate(scores, 1)]

    def expected(self, scores: list[float], count: int) -> list[float]:
        """Return the expected F for each cut 1 … ``count``."""
        chances = self.probabilities(scores)
        weight = self.beta * self.beta
        share = weight * (math.fsum(chances) + self.unseen)
        values: list[float] = []
        found = 0.0
        for k, chance in enumerate(chances[:count], 1):
            found += chance
            values.append((1 + weight) * found / (k + share))
        return values

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        """Return the best cut and its ``expected_f1``."""
        valid = min(count_valid(scores, self.floor), max_k)
        if not valid:
            return 0, {"reason": "below_min_score"}
        values = self.expected(scores, valid)
        best = max(values)
        return values.index(best) + 1, {"expected_f1": best, "cutoff_idx": values.index(best) + 1}

    def keep_many(self, table: Floats, max_k: int, min_k: int) -> BatchCuts:  # noqa: ARG002
        """Return the best cut of each query."""
        import numpy as np

        from jumar.topk.batch import BatchCuts, at_least

        logs = np.array([[math.log(rank)] for rank in range(1, len(table) + 1)])
        with np.errstate(over="ignore", under="ignore"):
            chances = 1 / (1 + np.exp(-(self.slope * table + self.rank_slope * logs + self.intercept)))
        weight = self.beta * self.beta
        share = weight * (np.add.reduce(chances, axis=0) + self.unseen)
        valid = np.minimum(at_least(table, self.floor), max_k)
        counts = valid.copy()
        total = np.zeros(table.shape[1])
        best = np.full(table.shape[1], -1.0)
        second = best.copy()
        for k, chance in enumerate(chances[:max_k], 1):
            total += chance
            value = np.where(k <= valid, (1 + weight) * total / (k + share), -1.0)
            better = value > best
            second = np.where(better, best, np.maximum(second, value))
            np.copyto(counts, k, where=better)
            np.copyto(best, value, where=better)
        return BatchCuts(counts, ~(best - second > 1e-9 * best) & (valid > 0))

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence:  # noqa: ARG002
        """Return the expected F for each cut."""
        values = self.expected(scores, min(count_valid(scores, self.floor), max_k))
        return CutEvidence("the largest expected F1", "expected F1", dict(enumerate(values, 1)))


def _logistic(value: float) -> float:
    if value < -700:  # exp would overflow
        return 0.0
    return 1 / (1 + math.exp(-value))
