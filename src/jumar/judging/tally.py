"""Figures over any number of items, added up exactly: the same whatever the chunks and whoever evaluated them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeVar

from jumar.judging.cheap.scoring import CheapReading
from jumar.judging.component_health import cheap_health
from jumar.judging.models import ComponentHealthStatus, Unscored

Key = TypeVar("Key", str, int)

BIN_WIDTH: Final = 0.5
_BINS: Final = 8
_UNIT: Final = 1 << 52
"""A score from 1 to 5 is a multiple of 2**-52 or more, so that this makes it a whole number without rounding."""


@dataclass(slots=True)
class CheapTally:
    """Counts and exact sums. ``bins`` count scores by halves from 1 (the last of the 8 with 5); ``fired`` is by position.

    ``held`` counts what fired, good phrase or not, on items on which a scorecard's good phrases did not count.
    """

    items: int = 0
    scored: int = 0
    total: int = 0
    squares: int = 0
    lowest: float = 5.0
    highest: float = 1.0
    with_pattern: int = 0
    bins: list[int] = field(default_factory=lambda: [0] * _BINS)
    reasons: Counter[str] = field(default_factory=Counter[str])
    fired: Counter[int] = field(default_factory=Counter[int])
    held: Counter[int] = field(default_factory=Counter[int])
    unscored: Counter[str] = field(default_factory=Counter[str])

    def add(self, reading: CheapReading | Unscored) -> None:
        """Count one item."""
        self.items += 1
        if isinstance(reading, Unscored):
            self.unscored[reading.kind] += 1
            return
        gestalt = reading.gestalt
        whole = int(gestalt * _UNIT)
        self.scored += 1
        self.total += whole
        self.squares += whole * whole
        self.lowest = min(self.lowest, gestalt)
        self.highest = max(self.highest, gestalt)
        self.bins[min(_BINS - 1, int((gestalt - 1.0) / BIN_WIDTH))] += 1
        for reason in reading.reasons:
            self.reasons[reason] += 1
        if reading.fired:
            self.with_pattern += 1
            for index in reading.fired:
                self.fired[index] += 1
            if reading.withheld:
                self.held.update(reading.fired)

    def merge(self, other: CheapTally) -> None:
        """Add what another one counted."""
        self.items += other.items
        self.scored += other.scored
        self.total += other.total
        self.squares += other.squares
        self.lowest = min(self.lowest, other.lowest)
        self.highest = max(self.highest, other.highest)
        self.with_pattern += other.with_pattern
        self.bins = [mine + theirs for mine, theirs in zip(self.bins, other.bins, strict=True)]
        self.reasons.update(other.reasons)
        self.fired.update(other.fired)
        self.held.update(other.held)
        self.unscored.update(other.unscored)

    @property
    def mean(self) -> float | None:
        """The mean score, correctly rounded; None when nothing was scored."""
        return float(Fraction(self.total, self.scored * _UNIT)) if self.scored else None

    @property
    def variance(self) -> float:
        """The variance of a sample; 0.0 below two scores."""
        if self.scored < 2:
            return 0.0
        return float(Fraction(self.squares * self.scored - self.total**2, self.scored * (self.scored - 1) * _UNIT**2))

    def most_frequent(self, counts: Counter[Key]) -> list[tuple[Key, int]]:
        """Return counts, largest first; equal ones by name, so that the order never depends on who counted first."""
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    def health(self, patterns: int, *, scorecard: bool = False) -> ComponentHealthStatus:
        """Return the health of the cheap judge; of ``patterns`` that could have fired, in a ``scorecard`` the only reasons."""
        return cheap_health(
            count=self.scored,
            score_range=(self.lowest, self.highest) if self.scored else None,
            variance=self.variance,
            any_reason=self.with_pattern > 0 if scorecard else bool(self.reasons),
            any_pattern=self.with_pattern > 0,
            patterns=patterns,
        )
