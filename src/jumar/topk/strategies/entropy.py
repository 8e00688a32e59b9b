"""Keep few when the scores point at few, more when they are all alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Final

from jumar.errors import StrategyError
from jumar.topk.base import RuleStrategy, SeenScores
from jumar.topk.contract import SimilarityDefault, count_valid, score_field, size_field
from jumar.topk.result import CutEvidence, Scale

if TYPE_CHECKING:
    from jumar.topk.batch import BatchCuts, Bools, Counts, Floats

_LN2: Final = math.log(2)


class BandedStrategy(RuleStrategy):
    """A rule with three sizes: which, says the band that a measure of the scores falls into."""

    low_entropy_k: int
    medium_entropy_k: int
    high_entropy_k: int

    @property
    def bounds(self) -> tuple[float, float]:
        """Where the second band and the third begin: 1 and 2 nats."""
        return 1.0, 2.0

    def _check(self) -> None:
        sizes = (self.low_entropy_k, self.medium_entropy_k, self.high_entropy_k)
        if sorted(sizes) != list(sizes):
            raise StrategyError(
                f"low_entropy_k, medium_entropy_k and high_entropy_k are {sizes[0]}, {sizes[1]} and {sizes[2]}: "
                "less certain queries get as many items or more, so low ≤ medium ≤ high"
            )

    def size_of(self, value: float, least: int, most: int) -> tuple[int, dict[str, Any]]:
        """Return the size that belongs to the measure, within ``least`` and ``most``, and the metadata."""
        low, high = self.bounds
        if value < low:
            target, confidence = self.low_entropy_k, "high"
        elif value < high:
            target, confidence = self.medium_entropy_k, "medium"
        else:
            target, confidence = self.high_entropy_k, "low"
        target = max(least, min(target, most))
        return target, {"entropy": value, "target_k": target, "confidence": confidence}

    def many_of(self, value: Floats, valid: Counts, sure: Bools, min_k: int) -> BatchCuts:
        """Return the size that belongs to the measure of each query, at most its ``valid`` items; near a bound it is not sure."""
        import numpy as np

        from jumar.topk.batch import BatchCuts

        low, high = self.bounds
        target = np.where(value < high, self.medium_entropy_k, self.high_entropy_k)
        target[value < low] = self.low_entropy_k
        sure = sure & (np.abs(value - low) > 1e-9) & (np.abs(value - high) > 1e-9)
        # with no more than min_k the measure does not matter
        return BatchCuts(np.minimum(target, valid), ~sure & (valid > min_k))

    def evidence_of(self, measure: str, value: float, kept: int, room: int) -> CutEvidence:
        """Return how near ``value`` is to the band of each size that fits into ``room``."""
        low, high = self.bounds
        near: dict[int, float] = {}
        for size, distance in (
            (self.high_entropy_k, value - high),
            (self.medium_entropy_k, min(value - low, high - value)),
            (self.low_entropy_k, low - value),
        ):
            near[min(size, room)] = max(distance, near.get(min(size, room), distance))
        others = [distance for size, distance in near.items() if size != kept]
        if kept in near and others:  # where several sizes come to the same, only a bound to another one counts
            near[kept] = -max(others)
        sizes = f"below {low:g} keeps {self.low_entropy_k}, below {high:g} {self.medium_entropy_k}, else {self.high_entropy_k}"
        return CutEvidence(f"{measure} of {value:.3f}; {sizes}", "distance from the bound", near, 0.0)


@dataclass(frozen=True)
class EntropySelectionStrategy(BandedStrategy):
    """Keep ``low_entropy_k`` items below 1 nat of entropy, ``medium_entropy_k`` below 2, else ``high_entropy_k``.

    The entropy is that of the scores from ``min_score`` up, the first ``max_k`` of them, divided by their sum. It cannot exceed
    ln n: with fewer than 8 such scores, "high" is out of reach. Scores below 0 count as 0. Errors:
    :class:`jumar.errors.StrategyError` unless 1 ≤ low ≤ medium ≤ high. Source of the measure: C. E. Shannon, "A
    mathematical theory of communication", Bell System Technical Journal 27 (1948), section 6; of the bounds: the first version.
    """

    NAME: ClassVar[str] = "entropy"
    SCALES: ClassVar[tuple[Scale, ...]] = ("similarity", "bm25", "rrf")

    low_entropy_k: int = size_field(3, "Items below 1 nat")
    medium_entropy_k: int = size_field(5, "Items from 1 to 2 nats")
    high_entropy_k: int = size_field(10, "Items from 2 nats up")
    min_score: float | None = score_field(SimilarityDefault(0.3), "Absolute minimum score")
    scale: Scale = "similarity"

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:
        """Return the number that belongs to the entropy, ``entropy``, ``target_k`` and ``confidence``."""
        floor = self.min_score
        valid = len(scores) if floor is None or scores[-1] >= floor else count_valid(scores, floor)
        if valid < min_k:
            valid = min(min_k, len(scores))
        if not valid:
            return 0, {"entropy": 0.0}
        valid = min(valid, max_k)
        return self.size_of(entropy_of(scores[:valid]), min_k, valid)

    def keep_many(self, table: Floats, max_k: int, min_k: int) -> BatchCuts:  # noqa: ARG002
        """Return the number that belongs to the entropy of each query."""
        import numpy as np

        from jumar.topk.batch import at_least

        floor = self.min_score
        valid = at_least(table, floor)
        shares = table
        sure = np.ones(table.shape[1], np.bool_)
        if floor is not None and (table[-1] < floor).any():
            shares = np.where(table >= floor, table, 0.0)
        if floor is None or floor < 0:
            sums = np.add.reduce(shares, axis=0)
            sure = (np.abs(sums) > 1e-9) | (table[-1] >= 0)
            shares = np.maximum(shares, 0.0)
        entropy = entropies(shares, valid)
        top = table[0]
        sure &= (top < 1e100) & (top > 1e-100)
        return self.many_of(entropy, valid, sure, min_k)

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence:
        """Return how near the entropy is to each of the three numbers."""
        kept, metadata = self.cut(scores, max_k, min_k)
        room = min(count_valid(scores, self.min_score), max_k)
        return self.evidence_of("an entropy", float(metadata["entropy"]), kept, room)

    @classmethod
    def search_space(cls, seen: SeenScores) -> list[dict[str, Any]]:
        """Return two sizes, the smaller one for the first two bands, and lowest scores."""
        pairs = [(k, high) for k, high in product(seen.sizes, repeat=2) if k <= high]
        return [
            {"low_entropy_k": k, "medium_entropy_k": k, "high_entropy_k": high, "min_score": floor}
            for k, high in pairs
            for floor in seen.floors[::2]
        ]


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


def entropies(shares: Floats, counts: Counts) -> Floats:
    """Return ln S − (Σ s·ln s) ÷ S of each query; ln ``counts`` where S is 0. ``shares`` are 0 or more."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        logs = np.log(np.where(shares > 0, shares, 1.0) if shares[-1].min() <= 0 else shares)
        total = np.add.reduce(shares, axis=0)
        np.multiply(logs, shares, out=logs)
        entropy = np.log(total) - np.add.reduce(logs, axis=0) / total
        return np.where(total > 0, entropy, np.log(np.maximum(counts, 1)))
