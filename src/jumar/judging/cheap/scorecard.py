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
        self._most = None if card.guard is None else card.guard.good_phrases
        live = () if evidence is None else evidence.live
        self._good_phrases = frozenset(
            index for index, one in enumerate(live) if one.type == "good" and one.status == "active" and one.feature is None
        )

    def total(self, fired: Sequence[int]) -> float:
        """Return base and points of the active patterns among ``fired``, positions in the evidence's ``ids``, ascending."""
        return self.card.base + sum(points for _, points in self.points(fired))

    def score(self, fired: Sequence[int]) -> float:
        """Return the score from 1 to 5. More points never give less; points that the guard withholds are none."""
        return self.card.curve.at(self.total(fired))

    def points(self, fired: Sequence[int]) -> list[tuple[str, float]]:
        """Return ids and signed points, in points of the scale before the curve, of the active ones among ``fired``.

        Good phrases that the guard withholds have 0.0.
        """
        if self._evidence is None:
            return []
        if not self.suspicious(fired):
            return self._evidence.points(fired, self.card.unit)
        good = {self._evidence.ids[index] for index in fired if index in self._good_phrases}
        return [(name, 0.0 if name in good else points) for name, points in self._evidence.points(fired, self.card.unit)]

    def good_phrases(self, fired: Sequence[int]) -> float:
        """Return the points that the good phrases among ``fired`` give together, before the guard."""
        if self._evidence is None:
            return 0.0
        own = [index for index in fired if index in self._good_phrases]
        return sum(points for _, points in self._evidence.points(own, self.card.unit))

    def suspicious(self, fired: Sequence[int]) -> bool:
        """Whether good phrases would give more than the guard allows, so that none of them counts."""
        return self._most is not None and self.good_phrases(fired) > self._most

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
        suspicious = self.suspicious(fired)
        counted = [index for index in fired if index not in self._good_phrases] if suspicious else fired
        moved = [(points, live[index].description) for index in counted for _, points in self._evidence.points([index], unit)]
        moved.sort(key=lambda one: -abs(one[0]))
        said = [f"{points:+.2f} {said}" for points, said in moved if points]
        if suspicious:
            wanted = self.good_phrases(fired)
            said.append(f"+0.00 good phrases do not count here: they would give {wanted:.2f}, and {self._most:.2f} is the most")
        return said
