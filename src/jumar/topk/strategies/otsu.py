"""Cut at the natural break between high and low scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from jumar.topk.base import Evidence, RuleStrategy
from jumar.topk.contract import check_threshold, count_valid
from jumar.topk.types import Scale

__all__ = ["OtsuSelectionStrategy", "separations"]


@dataclass(frozen=True)
class OtsuSelectionStrategy(RuleStrategy):
    """Cut where the two sides differ most: the largest variance between the groups above and below the cut.

    Only the first ``max_k`` scores of at least ``min_score`` count. Where two cuts are as good, the smaller one is taken; when
    all scores are the same there is no break and all are kept. Adding a number to all scores, or multiplying them, changes
    nothing. Source: Otsu, IEEE Trans. SMC 9 (1979) 62–66.
    """

    NAME: ClassVar[str] = "otsu"

    min_score: float | None = None
    scale: Scale = "similarity"

    def _check(self) -> None:
        check_threshold("min_score", self.min_score, self.scale)

    @cached_property
    def floor(self) -> float | None:
        """The lowest score that counts; distances come negated."""
        return -self.min_score if self.scale == "distance" and self.min_score is not None else self.min_score

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        """Return the break and ``separation``, the share of the variance that it explains; a ``reason`` where there is none."""
        valid = min(count_valid(scores, self.floor), max_k)
        if valid < 2:
            return valid, {"reason": "too_few_items"}
        values, total = separations(scores, valid)
        if not values:
            return valid, {"reason": "no_variance"}
        best = max(values)
        kept = values.index(best) + 1
        return kept, {"cutoff_idx": kept, "separation": min(best / total, 1.0) if total > 0 else 1.0}

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> Evidence | None:
        """Return the variance between the groups for each cut, as a share of the whole."""
        valid = min(count_valid(scores, self.floor), max_k)
        if valid < 2:
            return None
        values, total = separations(scores, valid)
        kept, _ = self.cut(scores, max_k, min_k)
        shares = {k: value / (total or 1.0) for k, value in enumerate(values, 1)}
        return Evidence("the break that explains most of the variance", "share of variance", shares, None, kept)


def separations(scores: list[float], count: int) -> tuple[list[float], float]:
    """Return for each cut 1 … ``count − 1`` the variance between the two groups, times ``count``³; and the whole variance, too.

    With x = (first − score) ÷ (first − last), X_k its sum over the first k and n the count: (k·X_n − n·X_k)² ÷ (k·(n − k)). No
    values when all scores are the same. The same operations in the same order as the batch kernel.
    """
    first = scores[0]
    spread = first - scores[count - 1]
    if not spread > 0:
        return [], 0.0
    sums: list[float] = []
    total = squares = 0.0
    for score in scores[:count]:
        share = (first - score) / spread
        total += share
        squares += share * share
        sums.append(total)
    values = [(k * total - count * sums[k - 1]) * (k * total - count * sums[k - 1]) / (k * (count - k)) for k in range(1, count)]
    return values, count * squares - total * total
