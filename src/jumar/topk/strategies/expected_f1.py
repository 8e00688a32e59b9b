"""Keep as many as make the expected F1 largest, given how likely each item is to be relevant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from jumar.topk.base import Evidence, RuleStrategy
from jumar.topk.contract import SimilarityDefault, check_number, check_threshold, count_valid
from jumar.topk.types import Scale

__all__ = ["ExpectedF1SelectionStrategy"]


_LARGEST: Final = 1e100
_STRONGEST: Final = 1e6
"""Up to these every product and sum of the rule is finite; nobody has a use for more."""


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

    slope: float = SimilarityDefault(8.0)
    intercept: float = SimilarityDefault(-4.0)
    rank_slope: float = -0.5
    unseen: float = 0.0
    beta: float = 1.0
    min_score: float | None = None
    scale: Scale = "similarity"

    def _check(self) -> None:
        for name in ("slope", "intercept", "rank_slope"):
            check_number(name, getattr(self, name), above=-_LARGEST, below=_LARGEST)
        check_number("unseen", self.unseen, above=0, below=_LARGEST, closed=True)
        check_number("beta", self.beta, above=0, below=_STRONGEST)
        check_threshold("min_score", self.min_score, self.scale)

    @cached_property
    def floor(self) -> float | None:
        """The lowest score that counts; distances come negated."""
        return -self.min_score if self.scale == "distance" and self.min_score is not None else self.min_score

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

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> Evidence:
        """Return the expected F for each cut."""
        values = self.expected(scores, min(count_valid(scores, self.floor), max_k))
        kept, _ = self.cut(scores, max_k, min_k)
        return Evidence("the largest expected F1", "expected F1", dict(enumerate(values, 1)), None, kept)


def _logistic(value: float) -> float:
    if value < -700:  # exp would overflow
        return 0.0
    return 1 / (1 + math.exp(-value))
