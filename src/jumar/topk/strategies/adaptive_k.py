"""Cut at the first gap that is large beside the mean gap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from jumar.topk.base import Evidence, RuleStrategy
from jumar.topk.contract import SimilarityDefault, check_number, check_threshold, count_valid
from jumar.topk.types import Scale

__all__ = ["AdaptiveKSelectionStrategy", "exact_mean", "pairwise_sum"]


_ROUNDING: Final = 4.5e-16
"""How far the telescoped mean and one that adds up every gap can be apart, generously: a share of the scores, for each gap."""


@dataclass(frozen=True)
class AdaptiveKSelectionStrategy(RuleStrategy):
    """Cut after the first gap between neighbours that is above ``alpha`` × the mean gap, among scores of at least ``min_score``.

    A higher ``alpha`` is less strict: it takes a larger gap to cut, so *more* is kept. With no such gap all are kept. The cut is
    then raised to ``min_k``. Errors: :class:`jumar.errors.StrategyError` unless ``alpha`` is above 0. Source: the first
    version's rule; docs/topk/adaptive_k.md lists where this one differs.
    """

    NAME: ClassVar[str] = "adaptive_k"

    alpha: float = 1.5
    min_score: float | None = SimilarityDefault(0.4)
    scale: Scale = "similarity"

    def _check(self) -> None:
        check_number("alpha", self.alpha, above=0)
        check_threshold("min_score", self.min_score, self.scale)

    @cached_property
    def floor(self) -> float | None:
        """The lowest score that counts; distances come negated."""
        return -self.min_score if self.scale == "distance" and self.min_score is not None else self.min_score

    def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:
        """Return the cut, ``mean_drop`` and ``cutoff_idx``; a ``reason`` instead where there was nothing to look at."""
        floor = self.floor
        valid = len(scores)
        if valid > max_k:  # noqa: PLR1730 - a call of min costs as much as the next three lines
            valid = max_k
        if floor is not None and scores[valid - 1] < floor:
            valid = count_valid(scores, floor)
        if valid <= min_k:
            return valid, {"reason": "below_min_k"}
        if valid == 1:
            return 1, {"reason": "no_variance"}
        first, last, alpha = scores[0], scores[valid - 1], self.alpha
        mean = (first - last) / (valid - 1)  # the gaps telescope
        # where a gap equals the limit up to rounding, the sum of the gaps decides, as in the seed
        margin = (abs(first) + abs(last)) * _ROUNDING * valid * alpha
        close = mean * alpha - margin
        kept = valid
        previous = first
        for index, score in enumerate(scores[1:valid], 1):
            if previous - score > close:
                if previous - score <= close + 2 * margin:
                    close = max(close, exact_mean(scores, valid) * alpha)
                    margin = 0.0
                if previous - score > close:
                    kept = index
                    break
            previous = score
        if kept < min_k:  # noqa: PLR1730 - as above
            kept = min_k
        return kept, {"alpha": alpha, "mean_drop": float(mean), "cutoff_idx": kept}

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> Evidence | None:
        """Return the gap after each rank."""
        valid = min(count_valid(scores, self.floor), max_k)
        if valid <= max(min_k, 1):
            return None
        kept, metadata = self.cut(scores, max_k, min_k)
        gaps = {k: scores[k - 1] - scores[k] for k in range(max(min_k, 1), valid)}
        limit = float(metadata["mean_drop"]) * self.alpha
        return Evidence(f"the first gap above {self.alpha:g} × the mean gap", "gap", gaps, limit, kept)


def exact_mean(scores: list[float], count: int) -> float:
    """Return the mean gap as numpy adds it up: what decides where a gap equals the limit up to rounding, as in the seed."""
    return pairwise_sum([scores[k] - scores[k + 1] for k in range(count - 1)]) / (count - 1)


def pairwise_sum(values: list[float]) -> float:
    """Return the sum in numpy's order of additions: eight sums side by side, in blocks of 128.

    Source: ``pairwise_sum`` in numpy/_core/src/umath/loops_utils.h.src.
    """
    size = len(values)
    if size < 8:
        total = 0.0
        for value in values:
            total += value
        return total
    if size <= 128:
        lanes = values[:8]
        whole = size - size % 8
        for start in range(8, whole, 8):
            for lane in range(8):
                lanes[lane] += values[start + lane]
        a, b, c, d, e, f, g, h = lanes
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
        for value in values[whole:]:
            total += value
        return total
    half = size // 2
    half -= half % 8
    return pairwise_sum(values[:half]) + pairwise_sum(values[half:])
