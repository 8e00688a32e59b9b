"""Always the same number: the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from jumar.topk.base import Evidence, RuleStrategy
from jumar.topk.contract import check_size, check_threshold, count_valid
from jumar.topk.types import Scale

__all__ = ["FixedKSelectionStrategy"]


@dataclass(frozen=True)
class FixedKSelectionStrategy(RuleStrategy):
    """Keep the best ``k`` whose scores are at least ``min_score``; fewer when there are fewer.

    Errors: :class:`jumar.errors.StrategyError` unless ``k`` is 1 or more.
    """

    NAME: ClassVar[str] = "fixed_k"

    k: int = 5
    min_score: float | None = None
    scale: Scale = "similarity"

    def _check(self) -> None:
        check_size("k", self.k)
        check_threshold("min_score", self.min_score, self.scale)

    @cached_property
    def floor(self) -> float | None:
        """The lowest score that counts; distances come negated."""
        return -self.min_score if self.scale == "distance" and self.min_score is not None else self.min_score

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        """Return ``k``, or how many reach ``min_score``."""
        floor = self.floor
        kept = self.k
        if floor is not None and scores[-1] < floor:
            kept = min(kept, count_valid(scores, floor))
        return kept, {"fixed_k": self.k}

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> Evidence:
        """Return nothing but the rule: there is no runner-up to a fixed number."""
        return Evidence(f"always {self.k}", "", {}, None, self.cut(scores, max_k, min_k)[0])
