"""Keep what is nearly as good as the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from jumar.topk.base import Evidence, RuleStrategy
from jumar.topk.contract import check_number, check_threshold, count_valid
from jumar.topk.types import Scale

__all__ = ["RatioToTopSelectionStrategy"]


@dataclass(frozen=True)
class RatioToTopSelectionStrategy(RuleStrategy):
    """Keep the scores of at least ``ratio`` × the best one, and of at least ``min_score``.

    With a best score of 0 or less there is no ratio and only ``min_k`` is kept. Errors: :class:`jumar.errors.StrategyError`
    unless 0 < ``ratio`` < 1.
    """

    NAME: ClassVar[str] = "ratio_to_top"
    SCALES: ClassVar[tuple[Scale, ...]] = ("similarity", "bm25", "rrf")

    ratio: float = 0.7
    min_score: float | None = None
    scale: Scale = "similarity"

    def _check(self) -> None:
        check_number("ratio", self.ratio, above=0, below=1)
        check_threshold("min_score", self.min_score, self.scale)

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        """Return how many reach ``threshold``, the score that the ratio came to."""
        if scores[0] <= 0:
            return min_k, {"ratio": self.ratio, "reason": "no_positive_score"}
        threshold = self.ratio * scores[0]
        if self.min_score is not None and self.min_score > threshold:
            threshold = self.min_score
        return count_valid(scores, threshold), {"ratio": self.ratio, "threshold": float(threshold)}

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> Evidence:
        """Return the share of the best score that the last kept item has, for each cut."""
        top = scores[0]
        shares = {k: score / top for k, score in enumerate(scores[:max_k], 1)} if top > 0 else {}
        kept, _ = self.cut(scores, max_k, min_k)
        if top > 0 and self.min_score is not None and self.min_score > self.ratio * top:
            values = dict(enumerate(scores[:max_k], 1))
            rule = f"scores of at least min_score {self.min_score:g}, more than {self.ratio:g} × the best"
            return Evidence(rule, "score", values, self.min_score, kept, at_least=True)
        return Evidence(
            f"scores of at least {self.ratio:g} × the best", "share of the best score", shares, self.ratio, kept, at_least=True
        )
