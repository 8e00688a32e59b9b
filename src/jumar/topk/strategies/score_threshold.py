"""Keep what is good enough."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from jumar.errors import StrategyError
from jumar.topk.base import Evidence, RuleStrategy
from jumar.topk.contract import SimilarityDefault, check_threshold, count_valid
from jumar.topk.types import Scale

__all__ = ["ScoreThresholdSelectionStrategy"]


@dataclass(frozen=True)
class ScoreThresholdSelectionStrategy(RuleStrategy):
    """Keep the scores of at least ``threshold``; of distances, those of at most ``threshold``.

    Errors: :class:`jumar.errors.StrategyError` for a threshold that means nothing on the ``scale``, such as 5 for similarities.
    """

    NAME: ClassVar[str] = "score_threshold"
    NEEDED: ClassVar[tuple[str, ...]] = ("threshold",)

    threshold: float = SimilarityDefault(0.5)
    scale: Scale = "similarity"

    def _check(self) -> None:
        if self.threshold is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise StrategyError("threshold is None: give the score from which on items are kept")
        check_threshold("threshold", self.threshold, self.scale)

    @cached_property
    def floor(self) -> float:
        """The lowest score that is kept; distances come negated."""
        return -self.threshold if self.scale == "distance" else self.threshold

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        """Return how many reach the threshold."""
        return count_valid(scores, self.floor), {"threshold": self.threshold}

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> Evidence:
        """Return the score of the last kept item, for each cut."""
        kept, _ = self.cut(scores, max_k, min_k)
        word = "at most" if self.scale == "distance" else "at least"
        values = dict(enumerate(scores[:max_k], 1))
        return Evidence(f"scores of {word} {self.threshold:g}", "score", values, self.floor, kept, at_least=True)
