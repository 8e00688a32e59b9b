"""Keep what is nearly as good as the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from jumar.topk.base import RuleStrategy, SeenScores, grid
from jumar.topk.contract import count_valid, number_field, score_field
from jumar.topk.result import CutEvidence, Scale

if TYPE_CHECKING:
    from jumar.topk.batch import BatchCuts, Floats


@dataclass(frozen=True)
class RatioToTopSelectionStrategy(RuleStrategy):
    """Keep the scores of at least ``ratio`` × the best one, and of at least ``min_score``.

    With a best score of 0 or less there is no ratio and only ``min_k`` is kept. Errors: :class:`jumar.errors.StrategyError`
    unless 0 < ``ratio`` < 1.
    """

    NAME: ClassVar[str] = "ratio_to_top"
    SCALES: ClassVar[tuple[Scale, ...]] = ("similarity", "bm25", "rrf")

    ratio: float = number_field(0.7, "Smallest share of the best score that is kept", above=0, below=1)
    min_score: float | None = score_field(None)
    scale: Scale = "similarity"

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        """Return how many reach ``threshold``, the score that the ratio came to."""
        if scores[0] <= 0:
            return min_k, {"ratio": self.ratio, "reason": "no_positive_score"}
        threshold = self.ratio * scores[0]
        if self.min_score is not None and self.min_score > threshold:
            threshold = self.min_score
        return count_valid(scores, threshold), {"ratio": self.ratio, "threshold": float(threshold)}

    def keep_many(self, table: Floats, max_k: int, min_k: int) -> BatchCuts:  # noqa: ARG002
        """Return how many reach their query's threshold; ``min_k`` where the best score is 0 or less."""
        import numpy as np

        from jumar.topk.batch import BatchCuts, tally

        threshold = self.ratio * table[0]
        if self.min_score is not None:
            threshold = np.maximum(threshold, self.min_score)
        counts = tally(table >= threshold)
        counts[table[0] <= 0] = min_k
        return BatchCuts(counts)

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence:  # noqa: ARG002
        """Return the share of the best score that the last kept item has, for each cut."""
        top = scores[0]
        shares = {k: score / top for k, score in enumerate(scores[:max_k], 1)} if top > 0 else {}
        if top > 0 and self.min_score is not None and self.min_score > self.ratio * top:
            values = dict(enumerate(scores[:max_k], 1))
            rule = f"scores of at least min_score {self.min_score:g}, more than {self.ratio:g} × the best"
            return CutEvidence(rule, "score", values, self.min_score, at_least=True)
        rule = f"scores of at least {self.ratio:g} × the best"
        return CutEvidence(rule, "share of the best score", shares, self.ratio, at_least=True)

    @classmethod
    def search_space(cls, seen: SeenScores) -> list[dict[str, Any]]:
        """Return shares of the best score."""
        return grid(ratio=(0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95), min_score=seen.floors[::2])
