"""How the points of patterns become a score from 1 to 5: the part ``calibration`` of a patterns file."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["Curve", "Guard", "Scorecard"]

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Least = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Gestalt = Annotated[float, Field(ge=1.0, le=5.0, allow_inf_nan=False)]


class Curve(BaseModel):
    """From totals to scores: ``x`` increases, ``y`` never falls; at least one point, as many of both."""

    model_config = ConfigDict(frozen=True)

    x: tuple[Finite, ...] = Field(..., min_length=1)
    y: tuple[Gestalt, ...] = Field(..., min_length=1)

    @model_validator(mode="after")
    def _increasing(self) -> Curve:
        if len(self.x) != len(self.y):
            raise ValueError(f"the curve has {len(self.x)} values of x and {len(self.y)} of y; give as many of both")
        if any(one >= other for one, other in pairwise(self.x)):
            raise ValueError("the curve's x must increase from each point to the next")
        if any(one > other for one, other in pairwise(self.y)):
            raise ValueError("the curve's y must not fall: more points never mean a lower score")
        return self

    def at(self, total: float) -> float:
        """Return the score of ``total``: linear between the points, that of the first or the last point beyond them."""
        x, y = self.x, self.y
        if not x[0] < total < x[-1]:
            return y[0] if total <= x[0] else y[-1]
        right = bisect_right(x, total)
        low, high = y[right - 1], y[right]
        # both ends are met exactly, and rounding leads out of neither
        return min(high, low + (high - low) * ((total - x[right - 1]) / (x[right] - x[right - 1])))


class Guard(BaseModel):
    """What keeps a score from being had for nothing.

    ``good_phrases`` times the root of an item's words are the points, before the curve, that good patterns without a feature
    give together at most: of an item on which they would give more, none of them counts. What is not known here is kept.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    good_phrases: Least

    def most(self, words: int) -> float:
        """Return the most points of good phrases that count in a text of ``words`` words; none has as many as one has."""
        return self.good_phrases * math.sqrt(max(1, words))


class Scorecard(BaseModel):
    """A calibrated judge: ``total = base + unit · Σ ±weight`` of the active patterns that fire, ``score = curve(total)``.

    ``guard`` bounds what good phrases give, None for no bound. ``rubric`` is the kind of items it was fitted on, None where
    that is not known. ``interval`` holds what ``--mode auto`` needs, ``fitted`` how it was made; neither has an effect on a
    score. What is not known here is kept.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    format: Literal[1] = 1
    kind: Literal["scorecard"] = "scorecard"
    rubric: Literal["story", "text"] | None = None
    base: Finite
    unit: Positive
    curve: Curve
    guard: Guard | None = None
    interval: dict[str, Any] | None = None
    fitted: dict[str, Any] = Field(default_factory=dict[str, Any])
