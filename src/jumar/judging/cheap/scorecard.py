"""A calibrated set of patterns, applied: points of what fires, added up and read off a curve. No numpy, nothing but arithmetic.

It is the same arithmetic that the fit predicts with, so that a set read back from its file gives what the fit promised, to the
last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jumar.judging.cheap.evidence import PatternEvidence
from jumar.judging.models import Contribution
from jumar.patterns.calibration import Scorecard

__all__ = ["BASE", "CURVE", "AppliedScorecard"]

BASE: Final = "base"
CURVE: Final = "calibration"
"""Names of the contributions that no pattern gives: where the adding begins, and what the curve makes of the total."""


class AppliedScorecard:
    """A scorecard with the patterns whose points it adds up. An instance is immutable."""

    def __init__(self, card: Scorecard, evidence: PatternEvidence | None) -> None:
        self.card = card
        self._evidence = evidence

    def total(self, fired: Sequence[int]) -> float:
        """Return base and points of the active patterns among ``fired``, positions in the evidence's ``ids``, ascending."""
        return self.card.base + sum(points for _, points in self.points(fired))

    def score(self, fired: Sequence[int]) -> float:
        """Return the score from 1 to 5. More points never give less."""
        return self.card.curve.at(self.total(fired))

    def points(self, fired: Sequence[int]) -> list[tuple[str, float]]:
        """Return ids and signed points, in points of the scale before the curve, of the active ones among ``fired``."""
        return [] if self._evidence is None else self._evidence.points(fired, self.card.unit)

    def contributions(self, fired: Sequence[int]) -> list[Contribution]:
        """Return what adds up to the score: the base, each pattern's points, and what the curve adds to their total.

        A ``share`` is of the patterns' points; base and curve have 0.0.
        """
        given = self.points(fired)
        whole = sum(abs(points) for _, points in given)
        total = self.card.base + sum(points for _, points in given)
        shares = [min(1.0, abs(points) / whole) if whole else 0.0 for _, points in given]
        return [
            Contribution(name=BASE, points=self.card.base, share=0.0),
            *(Contribution(name=name, points=points, share=share) for (name, points), share in zip(given, shares, strict=True)),
            Contribution(name=CURVE, points=self.card.curve.at(total) - total, share=0.0),
        ]

    def reasons(self, fired: Sequence[int]) -> list[str]:
        """Return what moved the score, as ``+0.31 DESCRIPTION``, the largest first; what gives no points is left out."""
        if self._evidence is None:
            return []
        live, unit = self._evidence.live, self.card.unit
        moved = [(points, live[index].description) for index in fired for _, points in self._evidence.points([index], unit)]
        moved.sort(key=lambda one: -abs(one[0]))
        return [f"{points:+.2f} {said}" for points, said in moved if points]
