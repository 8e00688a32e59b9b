"""Student's t distribution for whole degrees of freedom: what a noise that is itself only estimated does to a limit.

Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4: finite sums, exact up to rounding.
"""

from __future__ import annotations

import functools
import math
from typing import Final

__all__ = ["MOST_DEGREES", "student_cdf", "student_quantile"]

MOST_DEGREES: Final = 1000
"""More count as so many: the limit is then a thousandth part too wide, which is the safe side."""


def student_cdf(value: float, degrees: int) -> float:
    """Return the probability of a value of at most ``value``, with 1 degree of freedom or more."""
    degrees = min(degrees, MOST_DEGREES)
    if degrees < 1:
        raise ValueError(f"degrees of freedom are 1 or more, not {degrees}")
    angle = math.atan2(value, math.sqrt(degrees))
    cosine_squared = math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for step in range(degrees // 2):
        total += term
        term *= cosine_squared * (2 * step + 1 + odd) / (2 * step + 2 + odd)
    area = 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return (1 + area) / 2


@functools.lru_cache(maxsize=1024)
def student_quantile(probability: float, degrees: int) -> float:
    """Return the value that is not exceeded with ``probability``, from 0.5 up to, not including, 1."""
    if not 0.5 <= probability < 1:
        raise ValueError(f"the probability is from 0.5 up to, not including, 1, not {probability}")
    low, high = 0.0, 1.0
    while student_cdf(high, degrees) < probability:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if student_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return high
