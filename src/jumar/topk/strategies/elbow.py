"""Cut at the first large relative drop."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from jumar.topk.base import RuleStrategy, SeenScores, grid
from jumar.topk.contract import SimilarityDefault, number_field, score_field
from jumar.topk.result import CutEvidence, Scale

if TYPE_CHECKING:
    from jumar.topk.batch import BatchCuts, Floats


@dataclass(frozen=True)
class ElbowSelectionStrategy(RuleStrategy):
    """Cut before the first item whose score fell by more than ``drop_threshold`` of the one before, or is below ``min_score``.

    The first ``min_k`` items are kept without looking at them. After a score of 0 every lower one is a drop; below 0, where a
    share means nothing, there are none. Errors: :class:`jumar.errors.StrategyError` unless 0 < ``drop_threshold`` < 1.
    Source: the relative drop of the first version; docs/topk/elbow.md lists where this one differs.
    """

    NAME: ClassVar[str] = "elbow"
    SCALES: ClassVar[tuple[Scale, ...]] = ("similarity", "bm25", "rrf")

    drop_threshold: float = number_field(0.15, "Smallest relative drop that cuts", above=0, below=1)
    min_score: float | None = score_field(SimilarityDefault(0.5), "Absolute minimum score")
    scale: Scale = "similarity"

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:
        """Return where the first drop is."""
        threshold, floor = self.drop_threshold, self.min_score
        kept = min_k
        # rank 1 is no drop from itself; past the end there is nothing to compare
        previous = scores[min_k - 1 if min_k else 0] if min_k < len(scores) else 0.0
        if floor is not None and floor > 0:
            for score in scores[min_k:max_k]:
                # below the floor first: from there on the score before is above 0
                if score < floor or (previous - score) / previous > threshold:
                    break
                kept += 1
                previous = score
        else:
            kept += _count(scores[min_k:max_k], previous, threshold, floor)
        return kept, {"drop_threshold": threshold, "min_score": floor}

    def keep_many(self, table: Floats, max_k: int, min_k: int) -> BatchCuts:  # noqa: ARG002
        """Return where the first drop of each query is."""
        import numpy as np

        from jumar.topk.batch import BatchCuts, leading

        start = max(min_k, 1)
        size, queries = table.shape
        if start > size:
            return BatchCuts(np.full(queries, size, np.intp))
        before, after = table[start - 1 : -1], table[start:]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            drops = np.subtract(before, after)
            # 0 ÷ 0 is no drop and x ÷ 0 an infinite one, as it should be; adding 0 makes 0 of −0
            np.divide(drops, before if before.size == 0 or table[-1].min() > 0 else before + 0.0, out=drops)
            hits = drops > self.drop_threshold
        if self.min_score is not None:
            np.logical_or(hits, after < self.min_score, out=hits)
        counts = leading(hits) + start
        if not min_k and self.min_score is not None:
            counts[table[0] < self.min_score] = 0
        return BatchCuts(counts)

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence:
        """Return the relative drop after each rank."""
        pairs = pairwise(scores[:max_k])
        drops = {k: (before - after) / before for k, (before, after) in enumerate(pairs, 1) if k >= min_k and before > 0}
        rule = f"the first drop above {self.drop_threshold:g} of the score before"
        return CutEvidence(rule, "relative drop", drops, self.drop_threshold)

    @classmethod
    def search_space(cls, seen: SeenScores) -> list[dict[str, Any]]:
        """Return drops and lowest scores."""
        return grid(drop_threshold=(0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5), min_score=seen.floors)


def _count(scores: list[float], previous: float, threshold: float, floor: float | None) -> int:
    """Return how many of ``scores`` come before the first drop, where scores of 0 and less are possible."""
    for kept, score in enumerate(scores):
        if floor is not None and score < floor:
            return kept
        # a score of 0 or less has no share of itself to lose
        if (previous > 0 and (previous - score) / previous > threshold) or score < previous == 0:
            return kept
        previous = score
    return len(scores)
