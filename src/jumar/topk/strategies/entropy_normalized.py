"""Keep few when a few scores stand out, more when they fall evenly: the entropy, made comparable between lists."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, ClassVar

from jumar.errors import StrategyError
from jumar.topk.base import SeenScores
from jumar.topk.contract import count_valid, number_field, score_field, size_field
from jumar.topk.result import CutEvidence, Scale
from jumar.topk.strategies.entropy import BandedStrategy, entropies, entropy_of

if TYPE_CHECKING:
    from jumar.topk.batch import BatchCuts, Floats


@dataclass(frozen=True)
class NormalizedEntropySelectionStrategy(BandedStrategy):
    """Keep ``low_entropy_k`` items below an evenness of ``low``, ``medium_entropy_k`` below ``high``, else ``high_entropy_k``.

    The evenness, 0–1, is the entropy of how far each of the first ``max_k`` scores lies above the lowest of them, divided by the
    largest it could be. So it neither grows with the number of items nor drowns in what all scores have in common, as the plain
    entropy does. Scores below ``min_score`` don't count. Errors: :class:`jumar.errors.StrategyError` unless 1 ≤ low_k ≤ medium_k
    ≤ high_k and 0 < ``low`` ≤ ``high`` ≤ 1. Source of the measure: Pielou, J. Theor. Biol. 13 (1966) 131–144.
    """

    NAME: ClassVar[str] = "entropy_normalized"

    low_entropy_k: int = size_field(3, "Items below an evenness of low")
    medium_entropy_k: int = size_field(8, "Items from low to high")
    high_entropy_k: int = size_field(12, "Items from high up")
    low: float = number_field(0.75, "Evenness below which the scores point at few", above=0, below=1, closed=True)
    high: float = number_field(0.9, "Evenness from which on the scores are all alike", above=0, below=1, closed=True)
    min_score: float | None = score_field(None)
    scale: Scale = "similarity"

    def _check(self) -> None:
        super()._check()
        if self.low > self.high:
            raise StrategyError(f"low is {self.low:g} and high {self.high:g}: low ≤ high")

    @property
    def bounds(self) -> tuple[float, float]:
        """``low`` and ``high``."""
        return self.low, self.high

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:
        """Return the number that belongs to the evenness; ``entropy`` (the evenness), ``target_k`` and ``confidence``."""
        valid = min(count_valid(scores, self.floor), max_k)
        if valid <= min_k:
            return valid, {"reason": "below_min_k"}
        return self.size_of(evenness(scores, valid), min_k, valid)

    def keep_many(self, table: Floats, max_k: int, min_k: int) -> BatchCuts:  # noqa: ARG002
        """Return the number that belongs to the evenness of each query."""
        import numpy as np

        from jumar.topk.batch import at_least, pick

        valid = at_least(table, self.floor)
        last = pick(table, np.maximum(valid, 1) - 1)
        spread = table[0] - last
        shares = np.maximum(table - last, 0.0)
        plain = (valid >= 3) & (spread > 0)
        value = np.where(plain, entropies(shares, valid) / np.log(np.maximum(valid - 1, 2)), 1.0)
        sure = (spread < 1e100) & ((spread > 1e-100) | (spread <= 0))
        return self.many_of(value, valid, sure, min_k)

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence | None:
        """Return how near the evenness is to each of the three numbers."""
        kept, metadata = self.cut(scores, max_k, min_k)
        if "entropy" not in metadata:
            return None
        return self.evidence_of("an evenness", float(metadata["entropy"]), kept, min(count_valid(scores, self.floor), max_k))

    @classmethod
    def search_space(cls, seen: SeenScores) -> list[dict[str, Any]]:
        """Return three sizes and two pairs of bounds."""
        names = ("low_entropy_k", "medium_entropy_k", "high_entropy_k")
        return [
            {**dict(zip(names, sizes, strict=True)), "low": low, "high": high}
            for sizes in combinations_with_replacement(seen.sizes, 3)
            for low, high in ((0.75, 0.9), (0.85, 0.95))
        ]


def evenness(scores: list[float], count: int) -> float:
    """Return H(p) ÷ ln(count − 1), with p proportional to score − lowest, of the first ``count`` scores.

    1.0 when all are the same and when there are only one or two: nothing says that any of them stands out. Rounding apart, 0–1.
    """
    last = scores[count - 1]
    if count < 3 or not scores[0] > last:
        return 1.0
    return min(entropy_of([score - last for score in scores[:count]]) / math.log(count - 1), 1.0)
