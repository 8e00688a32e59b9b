"""Cut at the largest gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from jumar.topk.base import Evidence, RuleStrategy
from jumar.topk.contract import check_threshold, count_valid
from jumar.topk.types import Scale

__all__ = ["LargestGapSelectionStrategy"]


@dataclass(frozen=True)
class LargestGapSelectionStrategy(RuleStrategy):
    """Cut after the largest gap between neighbours among the first ``max_k`` scores; the first of equal ones.

    A gap says where the ranking breaks, not whether its top is any good: when the best score is below ``min_top``, nothing but
    ``min_k`` is kept. Scores below ``min_score`` don't count. When all scores are the same, all are kept. Source: Taguchi,
    Maekawa and Bhutani, "Adaptive-k", EMNLP 2025 (arXiv 2506.08479), without their buffer.
    """

    NAME: ClassVar[str] = "largest_gap"

    min_top: float | None = None
    min_score: float | None = None
    scale: Scale = "similarity"

    def _check(self) -> None:
        check_threshold("min_top", self.min_top, self.scale)
        check_threshold("min_score", self.min_score, self.scale)

    @property
    def floors(self) -> tuple[float | None, float | None]:
        """The lowest top and the lowest score that count; distances come negated."""
        if self.scale != "distance":
            return self.min_top, self.min_score
        return tuple(None if one is None else -one for one in (self.min_top, self.min_score))  # pyright: ignore[reportReturnType]

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:
        """Return the cut and ``gap``; a ``reason`` where there is none."""
        weakest_top, floor = self.floors
        if weakest_top is not None and scores[0] < weakest_top:
            return min_k, {"reason": "weak_top"}
        valid = min(count_valid(scores, floor), max_k)
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

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> Evidence | None:
        """Return the gap after each rank."""
        kept, metadata = self.cut(scores, max_k, min_k)
        if metadata.get("reason") == "weak_top":
            return Evidence(f"the best score is below min_top {self.min_top:g}", "", {}, None, kept)
        valid = min(count_valid(scores, self.floors[1]), max_k)
        gaps = {k: scores[k - 1] - scores[k] for k in range(1, valid)}
        return Evidence("the largest gap", "gap", gaps, None, kept)
