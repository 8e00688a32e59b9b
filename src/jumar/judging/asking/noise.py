"""How much a judge disagrees with itself: what no cheap judge can be expected to beat."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

HIGH_VARIANCE: Final = 0.5
"""Mean absolute difference between two readings above which a judge is noisier than the gap that it is to measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeNoise:
    """Figures over the items with at least two readings, in points of the scale from 1 to 5.

    ``items`` counts them, ``readings`` is the mean number of readings of each. ``mean_sd`` is the mean of the items' standard
    deviations (n − 1), ``mean_range`` and ``max_range`` are of highest minus lowest; ``mean_abs_difference`` is the mean over
    items of the mean absolute difference over all pairs of readings; ``identical_share`` is the share of items whose readings
    are all equal.
    """

    items: int
    readings: float
    mean_sd: float
    mean_range: float
    max_range: float
    mean_abs_difference: float
    identical_share: float

    @property
    def high_variance(self) -> bool:
        """Whether two readings of one item differ by more than half a point on average."""
        return self.mean_abs_difference > HIGH_VARIANCE

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "high_variance": self.high_variance}


def judge_noise(readings: Iterable[Sequence[float]]) -> JudgeNoise | None:
    """Return the noise of a judge from the readings of each item; None when no item has two."""
    tally = NoiseTally()
    for reading in readings:
        tally.add(reading)
    return tally.noise()


def mean_abs_difference(readings: Sequence[float]) -> float:
    """Return the mean absolute difference over all pairs of at least two readings.

    Each gap between neighbours in order counts once for every pair that it lies between, so that many readings cost no more than
    sorting them.
    """
    count = len(readings)
    gaps = itertools.pairwise(sorted(readings))
    return math.fsum((high - low) * below * (count - below) for below, (low, high) in enumerate(gaps, 1)) / math.comb(count, 2)


class NoiseTally:
    """Adds up noise item by item, so that a stream need not be kept."""

    def __init__(self) -> None:
        self._items = 0
        self._readings = 0
        self._identical = 0
        self._widest = 0.0
        self._sd = self._range = self._difference = 0.0

    def add(self, readings: Sequence[float]) -> None:
        """Take an item's readings into account; fewer than two say nothing."""
        count = len(readings)
        if count < 2:
            return
        mean = math.fsum(readings) / count
        width = max(readings) - min(readings)
        self._items += 1
        self._readings += count
        self._identical += width == 0
        self._widest = max(self._widest, width)
        self._sd += math.sqrt(math.fsum((value - mean) ** 2 for value in readings) / (count - 1))
        self._range += width
        self._difference += mean_abs_difference(readings)

    def noise(self) -> JudgeNoise | None:
        """Return the figures so far; None before the first item with two readings."""
        if not self._items:
            return None
        return JudgeNoise(
            items=self._items,
            readings=self._readings / self._items,
            mean_sd=self._sd / self._items,
            mean_range=self._range / self._items,
            max_range=self._widest,
            mean_abs_difference=self._difference / self._items,
            identical_share=self._identical / self._items,
        )
