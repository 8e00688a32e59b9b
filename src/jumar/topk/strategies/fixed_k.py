"""Always the same number: the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from jumar.topk.base import RuleStrategy, SeenScores, grid
from jumar.topk.contract import count_valid, score_field, size_field
from jumar.topk.result import CutEvidence, Scale

if TYPE_CHECKING:
    from jumar.topk.batch import BatchCuts, Floats


@dataclass(frozen=True)
class FixedKSelectionStrategy(RuleStrategy):
    """Keep the best ``k`` whose scores are at least ``min_score``; fewer when there are fewer.

    Errors: :class:`jumar.errors.StrategyError` unless ``k`` is 1 or more.
    """

    NAME: ClassVar[str] = "fixed_k"

    k: int = size_field(5, "Items to keep")
    min_score: float | None = score_field(None)
    scale: Scale = "similarity"

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        """Return ``k``, or how many reach ``min_score``."""
        floor = self.floor
        kept = self.k
        if floor is not None and scores[-1] < floor:
            kept = min(kept, count_valid(scores, floor))
        return kept, {"fixed_k": self.k}

    def keep_many(self, table: Floats, max_k: int, min_k: int) -> BatchCuts:  # noqa: ARG002
        """Return ``k``, or how many reach ``min_score``, of each query."""
        import numpy as np

        from jumar.topk.batch import BatchCuts, at_least

        return BatchCuts(np.minimum(at_least(table, self.floor), self.k))

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence:  # noqa: ARG002
        """Return nothing but the rule: there is no runner-up to a fixed number."""
        return CutEvidence(f"always {self.k}")

    @classmethod
    def search_space(cls, seen: SeenScores) -> list[dict[str, Any]]:
        """Return every number."""
        return grid(k=range(1, seen.max_k + 1))
