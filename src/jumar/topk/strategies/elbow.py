"""Cut at the first large relative drop."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from jumar.topk.base import Evidence, RuleStrategy
from jumar.topk.contract import SimilarityDefault, check_number, check_threshold
from jumar.topk.types import Scale

__all__ = ["ElbowSelectionStrategy"]


@dataclass(frozen=True)
class ElbowSelectionStrategy(RuleStrategy):
    """Cut before the first item whose score fell by more than ``drop_threshold`` of the one before, or is below ``min_score``.

    The first ``min_k`` items are kept without looking at them. After a score of 0 every lower one is a drop; below 0, where a
    share means nothing, there are none. Errors: :class:`jumar.errors.StrategyError` unless 0 < ``drop_threshold`` < 1.
    Source: the relative drop of the first version; docs/topk/elbow.md lists where this one differs.
    """

    NAME: ClassVar[str] = "elbow"
    SCALES: ClassVar[tuple[Scale, ...]] = ("similarity", "bm25", "rrf")

    drop_threshold: float = 0.15
    min_score: float | None = SimilarityDefault(0.5)
    scale: Scale = "similarity"

    def _check(self) -> None:
        check_number("drop_threshold", self.drop_threshold, above=0, below=1)
        check_threshold("min_score", self.min_score, self.scale)

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

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> Evidence:
        """Return the relative drop after each rank."""
        pairs = pairwise(scores[:max_k])
        drops = {k: (before - after) / before for k, (before, after) in enumerate(pairs, 1) if k >= min_k and before > 0}
        kept, _ = self.cut(scores, max_k, min_k)
        return Evidence(
            f"the first drop above {self.drop_threshold:g} of the score before", "relative drop", drops, self.drop_threshold, kept
        )


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
