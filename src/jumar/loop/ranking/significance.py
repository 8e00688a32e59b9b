"""Which differences between two iterations are more than the noise of their scorers. Pure.

Two standard errors of a difference are the limit: some 95 % of the differences between two equal candidates are smaller.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

__all__ = ["EXACT", "Chance", "Errors"]

_LIMIT: Final = 2.0


class Errors(NamedTuple):
    """Standard errors of a score, in points of 0–100, and of its dimensions, in 0–1."""

    score: float
    dimensions: Mapping[str, float]


_NONE: Final = Errors(0.0, MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """How uncertain the scores of iterations are, by number; one that is not there is exact."""

    errors: Mapping[int, Errors] = field(default_factory=lambda: MappingProxyType({}))

    def width(self, before: int, after: int) -> float:
        """Return up to how many points the scores of two iterations may differ by chance; 0 when they are exact."""
        return _LIMIT * math.hypot(self.errors.get(before, _NONE).score, self.errors.get(after, _NONE).score)

    def dimension_width(self, before: int, after: int, dimension: str) -> float:
        """Return the same for one dimension, in 0–1."""
        errors = (self.errors.get(number, _NONE).dimensions.get(dimension, 0.0) for number in (before, after))
        return _LIMIT * math.hypot(*errors)


EXACT: Final = Chance()
"""Nothing is known of noise: every difference counts."""
