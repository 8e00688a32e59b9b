"""Keep what is good enough."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from jumar.errors import StrategyError
from jumar.topk.base import RuleStrategy, SeenScores, grid
from jumar.topk.contract import SimilarityDefault, count_valid, score_field
from jumar.topk.result import CutEvidence, Scale

if TYPE_CHECKING:
    from jumar.topk.batch import BatchCuts, Floats


@dataclass(frozen=True)
class ScoreThresholdSelectionStrategy(RuleStrategy):
    """Keep the scores of at least ``threshold``; of distances, those of at most ``threshold``.

    Errors: :class:`jumar.errors.StrategyError` for a threshold that means nothing on the ``scale``, such as 5 for similarities.
    """

    NAME: ClassVar[str] = "score_threshold"
    NEEDED: ClassVar[tuple[str, ...]] = ("threshold",)

    threshold: float = score_field(SimilarityDefault(0.5), "Score from which on items are kept; of distances, up to which")
    scale: Scale = "similarity"

    def _check(self) -> None:
        if self.threshold is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise StrategyError("threshold is None: give the score from which on items are kept")

    @cached_property
    def lowest(self) -> float:
        """The lowest score that is kept; distances come negated."""
        return -self.threshold if self.scale == "distance" else self.threshold

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        """Return how many reach the threshold."""
        return count_valid(scores, self.lowest), {"threshold": self.threshold}

    def keep_many(self, table: Floats, max_k: int, min_k: int) -> BatchCuts:  # noqa: ARG002
        """Return how many reach the threshold, of each query."""
        from jumar.topk.batch import BatchCuts, at_least

        return BatchCuts(at_least(table, self.lowest))

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence:  # noqa: ARG002
        """Return the score of the last kept item, for each cut."""
        word = "at most" if self.scale == "distance" else "at least"
        values = dict(enumerate(scores[:max_k], 1))
        return CutEvidence(f"scores of {word} {self.threshold:g}", "score", values, self.lowest, at_least=True)

    @classmethod
    def search_space(cls, seen: SeenScores) -> list[dict[str, Any]]:
        """Return quantiles of all scores and of the best ones."""
        return grid(threshold=(*seen.floors, *seen.tops[1:]))
