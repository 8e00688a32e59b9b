"""Cut at the largest gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from jumar.topk.base import RuleStrategy, SeenScores, grid
from jumar.topk.contract import count_valid, score_field
from jumar.topk.result import CutEvidence, Scale

if TYPE_CHECKING:
    from jumar.topk.batch import BatchCuts, Floats


@dataclass(frozen=True)
class LargestGapSelectionStrategy(RuleStrategy):
    """Cut after the largest gap between neighbours among the first ``max_k`` scores; the first of equal ones.

    A gap says where the ranking breaks, not whether its top is any good: when the best score is below ``min_top``, nothing but
    ``min_k`` is kept. Scores below ``min_score`` don't count. When all scores are the same, all are kept. Source: Taguchi,
    Maekawa and Bhutani, "Adaptive-k", EMNLP 2025 (arXiv 2506.08479), without their buffer.
    """

    NAME: ClassVar[str] = "largest_gap"

    min_top: float | None = score_field(None, "With a best score below it, only min_k is kept")
    min_score: float | None = score_field(None)
    scale: Scale = "similarity"

    @property
    def weakest_top(self) -> float | None:
        """The lowest top that counts; distances come negated."""
        return -self.min_top if self.scale == "distance" and self.min_top is not None else self.min_top

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:
        """Return the cut and ``gap``; a ``reason`` where there is none."""
        weakest_top = self.weakest_top
        if weakest_top is not None and scores[0] < weakest_top:
            return min_k, {"reason": "weak_top"}
        valid = min(count_valid(scores, self.floor), max_k)
        if valid < 2:
            return valid, {"reason": "too_few_items"}
        widest = 0.0
        kept = valid
        previous = scores[0]
        for index, score in enumerate(scores[1:valid], 1):
            if previous - score > widest:
                widest = previous - score
                kept = index
            previous = score
        return kept, {"cutoff_idx": kept, "gap": float(widest)} if widest else {"reason": "no_variance"}

    def keep_many(self, table: Floats, max_k: int, min_k: int) -> BatchCuts:  # noqa: ARG002
        """Return the first of the largest gaps of each query."""
        import numpy as np

        from jumar.topk.batch import BatchCuts, at_least

        weakest_top, floor = self.weakest_top, self.floor
        counts = at_least(table, floor)
        gaps = table[:-1] - table[1:]
        if floor is not None:
            gaps[table[1:] < floor] = 0.0
        widest = np.zeros(table.shape[1])
        for k, gap in enumerate(gaps, 1):
            wider = gap > widest
            np.copyto(counts, k, where=wider)
            np.copyto(widest, gap, where=wider)
        if weakest_top is not None:
            counts[table[0] < weakest_top] = min_k
        return BatchCuts(counts)

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence | None:
        """Return the gap after each rank."""
        if self.cut(scores, max_k, min_k)[1].get("reason") == "weak_top":
            return CutEvidence(f"the best score is below min_top {self.min_top:g}")
        valid = min(count_valid(scores, self.floor), max_k)
        gaps = {k: scores[k - 1] - scores[k] for k in range(1, valid)}
        return CutEvidence("the largest gap", "gap", gaps)

    @classmethod
    def search_space(cls, seen: SeenScores) -> list[dict[str, Any]]:
        """Return weakest tops and lowest scores."""
        return grid(min_top=seen.tops[::2], min_score=seen.floors)
