"""Keep few when the scores point at few, more when they are all alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from jumar.errors import StrategyError
from jumar.topk.base import Evidence, RuleStrategy
from jumar.topk.contract import SimilarityDefault, check_size, check_threshold, count_valid
from jumar.topk.types import Scale

__all__ = ["EntropySelectionStrategy", "entropy_of"]


_LN2: Final = math.log(2)


@dataclass(frozen=True)
class EntropySelectionStrategy(RuleStrategy):
    """Keep ``low_entropy_k`` items below 1 nat of entropy, ``medium_entropy_k`` below 2, else ``high_entropy_k``.

    The entropy is that of the scores from ``min_score`` up, the first ``max_k`` of them, divided by their sum. It cannot exceed
    ln n: with fewer than 8 such scores, "high" is out of reach. Scores below 0 count as 0. Errors:
    :class:`jumar.errors.StrategyError` unless 1 ≤ low ≤ medium ≤ high. Source of the measure: C. E. Shannon, "A
    mathematical theory of communication", Bell System Technical Journal 27 (1948), section 6; of the bounds: the first version.
    """

    NAME: ClassVar[str] = "entropy"
    SCALES: ClassVar[tuple[Scale, ...]] = ("similarity", "bm25", "rrf")
    BOUNDS: ClassVar[tuple[float, float]] = (1.0, 2.0)

    low_entropy_k: int = 3
    medium_entropy_k: int = 5
    high_entropy_k: int = 10
    min_score: float | None = SimilarityDefault(0.3)
    scale: Scale = "similarity"

    def _check(self) -> None:
        sizes = (self.low_entropy_k, self.medium_entropy_k, self.high_entropy_k)
        for name, size in zip(("low_entropy_k", "medium_entropy_k", "high_entropy_k"), sizes, strict=True):
            check_size(name, size)
        if sorted(sizes) != list(sizes):
            raise StrategyError(
                f"low_entropy_k, medium_entropy_k and high_entropy_k are {sizes[0]}, {sizes[1]} and {sizes[2]}: "
                "less certain queries get as many items or more, so low ≤ medium ≤ high"
            )
        check_threshold("min_score", self.min_score, self.scale)

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:
        """Return the number that belongs to the entropy, ``entropy``, ``target_k`` and ``confidence``."""
        floor = self.min_score
        valid = len(scores) if floor is None or scores[-1] >= floor else count_valid(scores, floor)
        if valid < min_k:
            valid = min(min_k, len(scores))
        if not valid:
            return 0, {"entropy": 0.0}
        entropy = entropy_of(scores[: min(valid, max_k)])
        low, high = self.BOUNDS
        if entropy < low:
            target, confidence = self.low_entropy_k, "high"
        elif entropy < high:
            target, confidence = self.medium_entropy_k, "medium"
        else:
            target, confidence = self.high_entropy_k, "low"
        if target > valid or target > max_k or target < min_k:
            target = max(min_k, min(target, valid, max_k))
        return target, {"entropy": entropy, "target_k": target, "confidence": confidence}

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> Evidence:
        """Return how near the entropy is to each of the three numbers."""
        kept, metadata = self.cut(scores, max_k, min_k)
        entropy = float(metadata["entropy"])
        low, high = self.BOUNDS
        most = min(count_valid(scores, self.min_score), max_k)
        near: dict[int, float] = {}  # by the numbers that these scores have room for
        for size, distance in (
            (self.high_entropy_k, entropy - high),
            (self.medium_entropy_k, min(entropy - low, high - entropy)),
            (self.low_entropy_k, low - entropy),
        ):
            near[min(size, most)] = max(distance, near.get(min(size, most), distance))
        others = [value for size, value in near.items() if size != kept]
        if kept in near and others:  # where several sizes come to the same, only a bound to another one counts
            near[kept] = -max(others)
        rule = f"an entropy of {entropy:.3f}; below {low:g} keeps {self.low_entropy_k}, below {high:g} {self.medium_entropy_k}, "
        return Evidence(f"{rule}else {self.high_entropy_k}", "distance from the bound", near, 0.0, kept)


def entropy_of(scores: list[float]) -> float:
    """Return the Shannon entropy, in nats, of ``scores`` divided by their sum; those below 0 count as 0.

    H = ln S − (Σ s·ln s) ÷ S. Without any score above 0 their sizes count, as their shares of the negative sum are positive; when
    all are 0, or they add up to 0, they count the same: ln n. ``scores`` descend and are not empty.
    """
    if scores[-1] <= 0:
        positive = [abs(score) for score in scores if score > 0 or (score and scores[0] <= 0)]
        if not positive or not _added_up(scores):
            return math.log(len(scores))
        scores = sorted(positive, reverse=True)
    top = scores[0]
    if not 1e-100 < top < 1e100:  # sums and products stay finite
        scores = [score / top for score in scores]
        if scores[-1] == 0.0:
            scores = [score for score in scores if score > 0]
    total = sum(scores)
    log = math.log2  # takes one argument, and is twice as fast for it as math.log
    value = (log(total) - sum([score * log(score) for score in scores]) / total) * _LN2
    return max(value, 0.0)


def _added_up(values: list[float]) -> float:
    """Return the sum, added up one after the other: from Python 3.12 on ``sum`` makes up for rounding, and 0 is another case."""
    total = 0.0
    for value in values:
        total += value
    return total
