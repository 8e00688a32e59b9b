"""Scores that were given on a scale of their own: ranked between 0 and 100 as every score, shown as they were given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self, cast

_SHORT = 10  # characters up to which a value is shown as it was written
_WHOLE = 1e6  # from here on what stands behind the point is left out


def better_words(direction: Literal["max", "min"]) -> str:
    """Return which way is better, in words."""
    return "higher is better" if direction == "max" else "lower is better"


class OwnScale(NamedTuple):
    """A metric, which way is better, and the values that stand at 0 (``worst``) and at 100 (``best``); all are finite."""

    metric: str
    direction: Literal["max", "min"]
    worst: float
    best: float

    def at(self, position: float) -> float:
        """Return the value at a position of 0–100."""
        share = position / 100
        return self.worst * (1 - share) + self.best * share

    def apart(self, positions: float) -> Given:
        """Return a difference of two positions as one of values."""
        return Given(positions, _clean(self.at(positions) - self.at(0.0)), self)

    def position(self, value: float) -> float:
        """Return where between 0 and 100 a value of the scale stands; 100 where the scale has one value only."""
        unit = max(abs(self.worst), abs(self.best)) or 1.0
        low, high = self.worst / unit, self.best / unit
        return 100.0 if low == high else min(100.0, max(0.0, 100 * ((value / unit - low) / (high - low))))


class Given(float):
    """A score of 0–100, or a difference of two, that stands for ``value`` on ``scale``.

    It compares and counts by its position. Where it is shown, and in JSON that is printed, it is the value.
    """

    __slots__ = ("scale", "value")
    value: float
    scale: OwnScale

    def __new__(cls, position: float, value: float, scale: OwnScale) -> Self:
        made = super().__new__(cls, position)
        made.value, made.scale = value, scale
        return made

    def __getnewargs__(self) -> Any:  # what copies and pickles are made with
        return float(self), self.value, self.scale

    def __sub__(self, other: float) -> float:
        apart = float.__sub__(self, other)
        return Given(apart, _clean(self.value - other.value), self.scale) if isinstance(other, Given) else apart

    def __abs__(self) -> Given:
        return Given(float.__abs__(self), abs(self.value), self.scale)

    def __round__(self, _places: Any = None) -> Any:
        """Return the score itself: on a scale of its own nobody knows how many places matter."""
        return self

    def text(self, *, sign: bool = False) -> str:
        """Return the value for people: as it was written where that is short, else with six significant digits."""
        form = ".6g" if abs(self.value) < _WHOLE else ",.0f"
        written = repr(self.value)
        shown = f"{self.value:{form}}" if len(written) > _SHORT else written.removesuffix(".0")
        shown = f"+{shown}" if sign and self.value > 0 else shown
        return "0" if shown == "-0" else shown


def _clean(value: float) -> float:
    """Return a difference with six digits, without the noise of its last bits: 0.9753 − 0.9752 is 0.0001."""
    return float(f"{value:.6g}")


def extreme(score: float) -> str:
    """Return the word for the best of all scores: ``highest``, or ``lowest`` on a scale of its own where lower is better."""
    return "lowest" if isinstance(score, Given) and score.scale.direction == "min" else "highest"


def superlative(score: float, what: str) -> str:
    """Return how the best score is called: ``Highest`` and ``what``; on a scale of its own the metric, ``Lowest val_bpb``."""
    return f"{extreme(score).capitalize()} {score.scale.metric if isinstance(score, Given) else what}"


def sides(score: float, lower: str, higher: str) -> tuple[str, str]:
    """Return the words for a worse and a better score: where lower is better, it is not ``lower`` that is worse."""
    return ("worse", "better") if isinstance(score, Given) else (lower, higher)


def as_given(document: Any) -> Any:
    """Return ``document`` with every :class:`Given` as its value; what holds none stays the same object."""
    if isinstance(document, Given):
        return document.value
    if isinstance(document, Mapping):
        found = cast("Mapping[Any, Any]", document)
        changed = {key: made for key, value in found.items() if (made := as_given(value)) is not value}
        return {**found, **changed} if changed else found
    if isinstance(document, list | tuple):
        items = cast("list[Any]", document)
        made = [as_given(item) for item in items]
        return items if all(one is other for one, other in zip(made, items, strict=True)) else made
    return document
