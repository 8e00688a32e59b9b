"""Cut at the natural break between high and low scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from jumar.topk.base import RuleStrategy, SeenScores, grid
from jumar.topk.contract import count_valid, score_field
from jumar.topk.result import CutEvidence, Scale

if TYPE_CHECKING:
    from jumar.topk.batch import BatchCuts, Floats


@dataclass(frozen=True)
class OtsuSelectionStrategy(RuleStrategy):
    """Cut where the two sides differ most: the largest variance between the groups above and below the cut.

    Only the first ``max_k`` scores of at least ``min_score`` count. Where two cuts are as good, the smaller one is taken; when
    all scores are the same there is no break and all are kept. Adding a number to all scores, or multiplying them, changes
    nothing. Source: Otsu, IEEE Trans. SMC 9 (1979) 62–66.
    """

    NAME: ClassVar[str] = "otsu"

    min_score: float | None = score_field(None)
    scale: Scale = "similarity"

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

    def keep_many(self, table: Floats, max_k: int, min_k: int) -> BatchCuts:  # noqa: ARG002
        """Return the break of each query, by the operations of :func:`separations` in their order."""
        import numpy as np

        from jumar.topk.batch import BatchCuts, at_least, pick

        counts = at_least(table, self.floor)
        valid = counts.copy()
        spread = table[0] - pick(table, np.maximum(valid, 1) - 1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            sums = (table[0] - table) / spread
            for k in range(1, len(sums)):
                np.add(sums[k], sums[k - 1], out=sums[k])
            total = pick(sums, np.maximum(valid, 1) - 1)
            best = np.full(table.shape[1], -1.0)
            for k in range(1, len(sums)):
                value = k * total - valid * sums[k - 1]
                value *= value
                value /= k * (valid - k)
                better = (value > best) & (k < valid) & (spread > 0)
                np.copyto(counts, k, where=better)
                np.copyto(best, value, where=better)
        return BatchCuts(counts)

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence | None:  # noqa: ARG002
        """Return the variance between the groups for each cut, as a share of the whole."""
        valid = min(count_valid(scores, self.floor), max_k)
        if valid < 2:
            return None
        values, total = separations(scores, valid)
        shares = {k: value / (total or 1.0) for k, value in enumerate(values, 1)}
        return CutEvidence("the break that explains most of the variance", "share of variance", shares)

    @classmethod
    def search_space(cls, seen: SeenScores) -> list[dict[str, Any]]:
        """Return lowest scores."""
        return grid(min_score=seen.floors)


def separations(scores: list[float], count: int) -> tuple[list[float], float]:
    """Return for each cut 1 … ``count − 1`` the variance between the two groups, times ``count``³; and the whole variance, too.

    With x = (first − score) ÷ (first − last), X_k its sum over the first k and n the count: (k·X_n − n·X_k)² ÷ (k·(n − k)). No
    values when all scores are the same. The same operations in the same order as :meth:`OtsuSelectionStrategy.keep_many`.
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
