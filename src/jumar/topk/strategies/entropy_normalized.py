"""Keep few when a few scores stand out, more when they fall evenly: the entropy, made comparable between lists."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from jumar.errors import StrategyError
from jumar.topk.base import Evidence, RuleStrategy
from jumar.topk.contract import check_number, check_size, check_threshold, count_valid
from jumar.topk.strategies.entropy import entropy_of
from jumar.topk.types import Scale

__all__ = ["NormalizedEntropySelectionStrategy", "evenness"]


@dataclass(frozen=True)
class NormalizedEntropySelectionStrategy(RuleStrategy):
    """Keep ``low_entropy_k`` items below an evenness of ``low``, ``medium_entropy_k`` below ``high``, else ``high_entropy_k``.

    The evenness, 0–1, is the entropy of how far each of the first ``max_k`` scores lies above the lowest of them, divided by the
    largest it could be. So it neither grows with the number of items nor drowns in what all scores have in common, as the plain
    entropy does. Scores below ``min_score`` don't count. Errors: :class:`jumar.errors.StrategyError` unless 1 ≤ low_k ≤ medium_k
    ≤ high_k and 0 < ``low`` ≤ ``high`` ≤ 1. Source of the measure: Pielou, J. Theor. Biol. 13 (1966) 131–144.
    """

    NAME: ClassVar[str] = "entropy_normalized"

    low_entropy_k: int = 3
    medium_entropy_k: int = 8
    high_entropy_k: int = 12
    low: float = 0.75
    high: float = 0.9
    min_score: float | None = None
    scale: Scale = "similarity"

    def _check(self) -> None:
        sizes = (self.low_entropy_k, self.medium_entropy_k, self.high_entropy_k)
        for name, size in zip(("low_entropy_k", "medium_entropy_k", "high_entropy_k"), sizes, strict=True):
            check_size(name, size)
        if sorted(sizes) != list(sizes):
            raise StrategyError(f"low, medium and high_entropy_k are {sizes[0]}, {sizes[1]} and {sizes[2]}: low ≤ medium ≤ high")
        check_number("low", self.low, above=0, below=1, closed=True)
        check_number("high", self.high, above=0, below=1, closed=True)
        if self.low > self.high:
            raise StrategyError(f"low is {self.low:g} and high {self.high:g}: low ≤ high")
        check_threshold("min_score", self.min_score, self.scale)

    @cached_property
    def floor(self) -> float | None:
        """The lowest score that counts; distances come negated."""
        return -self.min_score if self.scale == "distance" and self.min_score is not None else self.min_score

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:
        """Return the number that belongs to the evenness; ``entropy`` (the evenness), ``target_k`` and ``confidence``."""
        valid = min(count_valid(scores, self.floor), max_k)
        if valid <= min_k:
            return valid, {"reason": "below_min_k"}
        value = evenness(scores, valid)
        if value < self.low:
            target, confidence = self.low_entropy_k, "high"
        elif value < self.high:
            target, confidence = self.medium_entropy_k, "medium"
        else:
            target, confidence = self.high_entropy_k, "low"
        target = max(min_k, min(target, valid))
        return target, {"entropy": value, "target_k": target, "confidence": confidence}

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> Evidence | None:
        """Return how near the evenness is to each of the three numbers."""
        kept, metadata = self.cut(scores, max_k, min_k)
        if "entropy" not in metadata:
            return None
        value = float(metadata["entropy"])
        most = min(count_valid(scores, self.floor), max_k)
        near: dict[int, float] = {}  # by the numbers that these scores have room for
        for size, distance in (
            (self.high_entropy_k, value - self.high),
            (self.medium_entropy_k, min(value - self.low, self.high - value)),
            (self.low_entropy_k, self.low - value),
        ):
            near[min(size, most)] = max(distance, near.get(min(size, most), distance))
        others = [value for size, value in near.items() if size != kept]
        if kept in near and others:  # where several sizes come to the same, only a bound to another one counts
            near[kept] = -max(others)
        sizes = f"below {self.low:g} keeps {self.low_entropy_k}, below {self.high:g} {self.medium_entropy_k}"
        return Evidence(
            f"an evenness of {value:.3f}; {sizes}, else {self.high_entropy_k}", "distance from the bound", near, 0.0, kept
        )


def evenness(scores: list[float], count: int) -> float:
    """Return H(p) ÷ ln(count − 1), with p proportional to score − lowest, of the first ``count`` scores.

    1.0 when all are the same and when there are only one or two: nothing says that any of them stands out. Rounding apart, 0–1.
    """
    last = scores[count - 1]
    if count < 3 or not scores[0] > last:
        return 1.0
    return min(entropy_of([score - last for score in scores[:count]]) / math.log(count - 1), 1.0)
