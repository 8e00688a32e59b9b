"""How far the expensive judge is from itself when it is asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np

from jumar.judging.tracking.agreement import HALF, spearman

__all__ = ["JudgeNoise", "judge_noise"]


@dataclass(frozen=True, slots=True)
class JudgeNoise:
    """Over the items with several readings: ``mae`` is the mean distance of two readings of one item, in points.

    ``off_by_more_than_half`` is the share of pairs of readings so far apart, ``identical`` the share of items whose readings
    are all the same,
    ``spearman`` the mean rank correlation of two rounds over all these items (None where a round has no variance). A cheap
    judge cannot be
    expected to be closer to the expensive one than that one is to itself.
    """

    items: int
    readings: int
    mae: float
    off_by_more_than_half: float
    identical: float
    spearman: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def judge_noise(readings: Sequence[Sequence[float]]) -> JudgeNoise | None:
    """Return the noise of ``readings`` (one sequence an item), None when no item has two."""
    several = [one for one in readings if len(one) > 1]
    if not several:
        return None
    distances = [[abs(a - b) for a, b in combinations(one, 2)] for one in several]
    return JudgeNoise(
        items=len(several),
        readings=min(len(one) for one in several),
        mae=fmean(fmean(one) for one in distances),
        off_by_more_than_half=fmean(fmean(float(gap > HALF) for gap in one) for one in distances),
        identical=fmean(float(max(one) == min(one)) for one in several),
        spearman=_between_rounds(several),
    )


def _between_rounds(several: Sequence[Sequence[float]]) -> float | None:
    rounds = min(len(one) for one in several)
    table = np.array([list(one[:rounds]) for one in several], dtype=np.float64)
    found = [spearman(table[:, a], table[:, b]) for a, b in combinations(range(rounds), 2)]
    known = [one for one in found if one is not None]
    return fmean(known) if len(known) == len(found) else None
