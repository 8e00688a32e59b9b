"""What every rule of this package sees first: iterations in order of their number, and which of their scores count.

Nothing here or in the modules above it depends on the order in which iterations are handed in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple, TypeGuard

from jumar.errors import ScoreError
from jumar.model.records import IterationView
from jumar.text import escape

__all__ = ["Point", "difference", "in_order", "invalid_reason", "is_finite", "shown", "valid_points", "valid_score"]


def is_finite(value: object) -> TypeGuard[float]:
    """Return whether ``value`` is an int or a float other than NaN and the infinities. A bool is not a number here."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def shown(value: object) -> str:
    """Return ``value`` for an error message: one line, at most 60 characters."""
    try:
        return f"{escape(repr(value)):.60}"
    except ValueError:  # Python refuses to print integers of more than some thousand digits
        return "a number of thousands of digits"


def invalid_reason(view: IterationView) -> str | None:
    """Return why ``view`` can be neither chosen nor best, or None when it can.

    Valid is: ``status`` is "ok" and ``score`` is a finite number of 0–100, both included.
    """
    if view.status != "ok":
        return view.status
    if view.score is None:
        return "no score"
    if not is_finite(view.score) or not 0 <= view.score <= 100:
        return f"the score is {shown(view.score)}, not a number of 0–100"
    return None


def valid_score(view: IterationView) -> float | None:
    """Return the score of ``view``, as it is, or None when the view is invalid; see :func:`invalid_reason`."""
    return view.score if invalid_reason(view) is None else None


class Point(NamedTuple):
    """A valid view and its score, of which a type checker then knows that it is a number."""

    view: IterationView
    score: float


def valid_points(views: Iterable[IterationView]) -> list[Point]:
    """Return the valid ones of ``views`` in the order given."""
    return [Point(view, score) for view in views if (score := valid_score(view)) is not None]


def in_order(views: Iterable[IterationView]) -> tuple[IterationView, ...]:
    """Return ``views`` sorted by number. Errors: :class:`jumar.errors.ScoreError` when a number is there twice."""
    ordered = sorted(views, key=lambda view: view.number)
    for before, after in pairwise(ordered):
        if before.number == after.number:
            raise ScoreError(f"iteration {after.number} is there twice: every iteration needs a number of its own")
    return tuple(ordered)


def difference(after: float, before: float) -> float:
    """Return ``after − before`` in points, rounded to 4 decimals like the scores themselves.

    Without the rounding 66.2 − 61.2 would be a little more than 5, and a rule with a size of 5 points would depend on binary
    noise.
    """
    return round(after - before, 4)
