"""Cut at the first gap that is large beside the mean gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from jumar.topk.base import RuleStrategy, SeenScores, grid
from jumar.topk.contract import SimilarityDefault, count_valid, number_field, score_field
from jumar.topk.result import CutEvidence, Scale

if TYPE_CHECKING:
    from jumar.topk.batch import BatchCuts, Bools, Counts, Floats

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

    alpha: float = number_field(
        1.5, "A gap of alpha × the mean gap cuts: higher keeps more", above=0, in_files={"ge": 0.5, "le": 5.0}
    )
    min_score: float | None = score_field(SimilarityDefault(0.4), "Absolute minimum score")
    scale: Scale = "similarity"

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

    def keep_many(self, table: Floats, max_k: int, min_k: int) -> BatchCuts:  # noqa: ARG002
        """Return the first large gap of each query."""
        import numpy as np

        from jumar.topk.batch import BatchCuts, at_least, leading, pick

        floor, alpha = self.floor, self.alpha
        size = len(table)
        valid = at_least(table, floor)
        if size < 2:
            return BatchCuts(valid)
        first = table[0]
        last = pick(table, np.maximum(valid, 1) - 1)
        mean = (first - last) / np.maximum(valid - 1, 1)
        margin = (np.abs(first) + np.abs(last)) * (_ROUNDING * alpha) * valid
        close = np.where(first > last, mean * alpha - margin, np.inf)
        gaps = table[:-1] - table[1:]
        hits = gaps > close
        if floor is not None:
            np.logical_and(hits, table[1:] >= floor, out=hits)
        before = leading(hits)
        # where the first large gap equals the limit up to rounding, the mean is added up as the seed does
        near = (before + 1 < valid) & (pick(gaps, np.minimum(before, size - 2)) <= close + 2 * margin)
        counts = np.minimum(before + 1, valid)
        if near.any():
            _decide_near(gaps, valid, near, alpha, counts)
        return BatchCuts(counts)

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence | None:
        """Return the gap after each rank."""
        valid = min(count_valid(scores, self.floor), max_k)
        if valid <= max(min_k, 1):
            return None
        _, metadata = self.cut(scores, max_k, min_k)
        gaps = {k: scores[k - 1] - scores[k] for k in range(max(min_k, 1), valid)}
        limit = float(metadata["mean_drop"]) * self.alpha
        return CutEvidence(f"the first gap above {self.alpha:g} × the mean gap", "gap", gaps, limit)

    @classmethod
    def search_space(cls, seen: SeenScores) -> list[dict[str, Any]]:
        """Return factors and lowest scores."""
        return grid(alpha=(1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0), min_score=seen.floors)


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


def _decide_near(gaps: Floats, valid: Counts, near: Bools, alpha: float, counts: Counts) -> None:
    """Decide the ``near`` queries with the mean that adds up every gap, in place."""
    import numpy as np

    from jumar.topk.batch import leading

    for size in np.unique(valid[near]):
        queries = np.flatnonzero(near & (valid == size))
        rows = np.ascontiguousarray(gaps[: size - 1, queries].T)  # numpy adds up in pairs along contiguous rows only
        limits = rows.sum(axis=1) / (size - 1) * alpha
        counts[queries] = leading(gaps[: size - 1, queries] > limits) + 1
