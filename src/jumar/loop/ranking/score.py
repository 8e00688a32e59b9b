"""One number of 0–100 from several dimensions of 0–1: a weighted mean.

    score = Σ weight·dimension ÷ Σ weight × 100, rounded to 4 decimals

The sums are exact (``math.fsum``), so the order of the dimensions never matters, and a better dimension never lowers the score.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from types import MappingProxyType
from typing import Final

from jumar.core.text import nearest
from jumar.errors import ScoreError
from jumar.model.ordering import shown

DEFAULT_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "validation": 0.30,
        "completeness": 0.25,
        "correctness": 0.25,
        "readability": 0.10,
        "efficiency": 0.10,
    }
)
"""The dimensions and weights of a tracker that was not told others."""


def check_weights(weights: Mapping[str, float]) -> dict[str, float]:
    """Return ``weights`` as floats. They need not add up to 1.

    Errors: :class:`jumar.errors.ScoreError` for a weight that is negative, not finite or not a number, for no weights at all, and
    when all of them are 0.
    """
    checked = {name: _weight(name, value) for name, value in weights.items()}
    if not checked:
        raise ScoreError("there are no weights: name at least one dimension")
    if not any(checked.values()):
        raise ScoreError("all weights are 0: give at least one dimension a weight above 0")
    return checked


def _weight(name: str, value: object) -> float:
    weight = _number(value)
    if not 0 <= weight < math.inf:
        raise ScoreError(f"the weight of {shown(name)} is {shown(value)}: give a number that is 0 or more")
    return weight


def _number(value: object) -> float:
    """Return ``value`` as a float, also one of another library; NaN when it is a bool or no number at all."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def merge_weights(partial: Mapping[str, float]) -> dict[str, float]:
    """Return :data:`DEFAULT_WEIGHTS` with those of ``partial`` in place of their defaults, or added to them.

    Errors: as :func:`check_weights`.
    """
    return check_weights({**DEFAULT_WEIGHTS, **partial})


def resolve_weights(dimensions: Iterable[str], weights: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return one weight for each of ``dimensions``, the ones that somebody scores, in their order.

    Without ``weights`` all count the same (1.0). With some given, a dimension that is not listed gets their mean.
    Errors: :class:`jumar.errors.ScoreError` as :func:`check_weights`, and for a weight of a dimension that nobody scores.
    """
    names = tuple(dict.fromkeys(dimensions))
    if not weights:
        return check_weights(dict.fromkeys(names, 1.0))
    given = {name: _weight(name, value) for name, value in weights.items()}
    for name in sorted(given.keys() - set(names)):
        scored = ", ".join(sorted(names)) or "none"
        raise ScoreError(f"there is a weight for {shown(name)}, which nobody scores{nearest(name, names)}; scored are: {scored}")
    scaled, exponent = _scaled(given)
    mean = math.ldexp(math.fsum(scaled.values()) / len(given), exponent)
    return check_weights({name: given.get(name, mean) for name in names})


def weighted_score(dimensions: Mapping[str, float], weights: Mapping[str, float] = DEFAULT_WEIGHTS) -> float:
    """Return the weighted mean of ``dimensions`` (each 0–1) as a score of 0–100, rounded to 4 decimals.

    A dimension whose weight is 0 may be missing. Errors: :class:`jumar.errors.ScoreError` that names the dimension when it is
    unknown, missing, not a number, not finite, below 0 or above 1; and as :func:`check_weights`.
    """
    checked = check_weights(weights)
    fractions = _check_dimensions(dimensions, checked)
    scaled, _ = _scaled(checked)
    part = math.fsum(scaled[name] * fraction for name, fraction in fractions.items())
    return round(part / math.fsum(scaled.values()) * 100, 4)


def _scaled(weights: Mapping[str, float]) -> tuple[dict[str, float], int]:
    """Return ``weights`` divided by 2 to the power of the number beside them, so that the largest is about 1.

    A power of two changes no digit, and keeps tiny and huge weights away from where floats underflow and overflow.
    """
    exponent = math.frexp(max(weights.values()))[1]
    return {name: math.ldexp(weight, -exponent) for name, weight in weights.items()}, exponent


def _check_dimensions(dimensions: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
    for name in sorted(dimensions.keys() - weights.keys(), key=str):
        known = tuple(sorted(weights))
        raise ScoreError(f"unknown dimension {shown(name)}{nearest(str(name), known)}; known are: {', '.join(known)}")
    fractions = {name: _fraction(name, value) for name, value in dimensions.items()}
    missing = [shown(name) for name, weight in sorted(weights.items()) if weight > 0 and name not in fractions]
    if missing:
        raise ScoreError(f"missing dimension {', '.join(missing)}: give a number from 0 to 1, or set its weight to 0")
    return fractions


def _fraction(name: str, value: object) -> float:
    fraction = _number(value)
    if 1 < fraction <= 100:
        raise ScoreError(f"dimension {shown(name)} is {shown(value)}, above 1: dimensions are 0 to 1, not percent")
    if not 0 <= fraction <= 1:
        raise ScoreError(f"dimension {shown(name)} is {shown(value)}: give a number from 0 to 1")
    return fraction
