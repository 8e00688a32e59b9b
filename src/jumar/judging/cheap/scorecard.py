"""A calibrated set of patterns, applied: points of what fires, added up and read off a curve. No numpy, nothing but arithmetic.

It is the same arithmetic that the fit predicts with, so that a set read back from its file gives what the fit promised, to the
last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jumar.judging.cheap.evidence import PatternEvidence
from jumar.judging.cheap.phrases import lowered_words
from jumar.judging.items.item import Item
from jumar.judging.models import Contribution
from jumar.judging.patterns.models import Scorecard

BASE: Final = "base"
CURVE: Final = "calibration"
"""Names of the contributions that no pattern gives: where the adding begins, and what the curve makes of the total."""

_SEEN: Final = 0.005  # points; less is ±0.00 with two decimals


class AppliedScorecard:
    """A scorecard with the patterns whose points it adds up. An instance is immutable.

    ``fired`` are positions in the evidence's ``ids``, ascending, ``item`` is what they fire on.
    """

    def __init__(self, card: Scorecard, evidence: PatternEvidence | None) -> None:
        self.card = card
        self._evidence = evidence
        live = () if evidence is None else evidence.live
        self._good = frozenset(
            index for index, one in enumerate(live) if one.type == "good" and one.status == "active" and one.feature is None
        )

    def total(self, fired: Sequence[int], item: Item) -> float:
        """Return base and points of the active patterns among ``fired``."""
        return self.card.base + sum(points for _, points in self.points(fired, item))

    def score(self, fired: Sequence[int], item: Item) -> float:
        """Return the score from 1 to 5. More points never give less; good phrases over the guard's limit give none."""
        return self.card.curve.at(self.total(fired, item))

    def read(self, fired: Sequence[int], item: Item) -> tuple[float, bool]:
        """Return :meth:`score`, and whether good phrases were withheld."""
        counted = self._counted(fired, item)
        given = [] if self._evidence is None else self._evidence.points(counted, self.card.unit)
        return self.card.curve.at(self.card.base + sum(points for _, points in given)), counted is not fired

    def points(self, fired: Sequence[int], item: Item) -> list[tuple[str, float]]:
        """Return ids and signed points, in points of the scale before the curve, of the active ones that count."""
        return [] if self._evidence is None else self._evidence.points(self._counted(fired, item), self.card.unit)

    def good_phrases(self, fired: Sequence[int]) -> float:
        """Return the points that the good phrases among ``fired`` give together where all of them count."""
        if self._evidence is None:
            return 0.0
        own = [index for index in fired if index in self._good]
        return sum(points for _, points in self._evidence.points(own, self.card.unit))

    def withheld(self, fired: Sequence[int], item: Item) -> float:
        """Return the points of good phrases that do not count, because no text of that length should have so many; else 0.0."""
        guard = self.card.guard
        if guard is None:
            return 0.0
        given = self.good_phrases(fired)
        # most items are below what a single word may have, and need no counting
        return given if given > guard.most(1) and given > guard.most(words_of(item)) else 0.0

    def counted(self, fired: Sequence[int], *, withheld: bool) -> Sequence[int]:
        """Return ``fired``, without the good phrases where they are withheld."""
        return [index for index in fired if index not in self._good] if withheld else fired

    def contributions(self, counted: Sequence[int], *, most: int | None = None) -> list[Contribution]:
        """Return what adds up to the score: the base, the points of each pattern that counts, and what the curve adds to them.

        A ``share`` is of the patterns' points; base and curve have 0.0. With ``most`` only so many, the largest first.
        """
        points = [] if self._evidence is None else self._evidence.points(counted, self.card.unit)
        whole = sum(abs(one) for _, one in points)
        total = self.card.base + sum(one for _, one in points)
        given = [(BASE, self.card.base), *points, (CURVE, self.card.curve.at(total) - total)]
        last = len(given) - 1
        places: Sequence[int] = range(len(given))
        if most is not None:
            places = sorted(places, key=lambda place: -abs(given[place][1]))[:most]
        return [
            Contribution(
                name=given[place][0],
                points=given[place][1],
                share=min(1.0, abs(given[place][1]) / whole) if whole and 0 < place < last else 0.0,
            )
            for place in places
        ]

    def reasons(
        self, counted: Sequence[int], fired: Sequence[int], item: Item, *, withheld: bool, most: int | None = None
    ) -> list[str]:
        """Return what moved the score, as ``+0.31 DESCRIPTION``, the largest first; what would read ``±0.00`` is left out.

        With ``most`` only so many of these.
        The last one says so where good phrases were withheld.
        """
        if self._evidence is None:
            return []
        live = self._evidence.live
        given = ((points, live[index].description) for index, points in self._evidence.moves(counted, self.card.unit))
        moved = sorted((one for one in given if abs(one[0]) >= _SEEN), key=lambda one: -abs(one[0]))
        said = [f"{points:+.2f} {said}" for points, said in moved[:most]]
        if withheld and self.card.guard is not None:
            limit, lost = self.card.guard.most(words_of(item)), self.good_phrases(fired)
            said.append(f"+0.00 good phrases do not count: {lost:.2f} of them is over {limit:.2f}, the most for this length")
        return said

    def _counted(self, fired: Sequence[int], item: Item) -> Sequence[int]:
        """Return ``fired`` without the good phrases that are withheld."""
        return self.counted(fired, withheld=bool(self.withheld(fired, item)))


def words_of(item: Item) -> int:
    """Return the length that the guard goes by, in words."""
    return len(lowered_words(item.text))
