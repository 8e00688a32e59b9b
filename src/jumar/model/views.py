"""What every rule of this package sees first: iterations in order of their number, and which of their scores count.

Nothing here or in the modules above it depends on the order in which iterations are handed in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, TypeGuard

from jumar.core.text import escape
from jumar.errors import ScoreError
from jumar.model.records import IterationView


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
    """Return why ``view`` can be neither selected nor best, or None when it can.

    Valid is: ``status`` is "ok" and ``score`` is a finite number of 0–100, both included.
    """
    if valid_score(view) is not None:
        return None
    if view.status != "ok":
        return view.status
    return "no score" if view.score is None else f"the score is {shown(view.score)}, not a number of 0–100"


def valid_score(view: IterationView) -> float | None:
    """Return the score of ``view``, as it is, or None when the view is invalid; see :func:`invalid_reason`."""
    score = view.score
    return score if view.status == "ok" and is_finite(score) and 0 <= score <= 100 else None


class Point(NamedTuple):
    """A valid view and its score, of which a type checker then knows that it is a number."""

    view: IterationView
    score: float


def best_of_batches(history: Iterable[IterationView]) -> tuple[IterationView, ...]:
    """Return ``history`` with one view for each batch of parallel candidates: its best, the earliest of equals.

    Of a batch without a valid score that is its last. Trends go from batch to batch: siblings did not follow one another.
    """
    found: list[IterationView] = []
    for view in history:
        if not found or view.batch is None or found[-1].batch != view.batch:
            found.append(view)
            continue
        best, score = valid_score(found[-1]), valid_score(view)
        if best is None or (score is not None and score > best):
            found[-1] = view
    return tuple(found)


def valid_points(views: Iterable[IterationView]) -> list[Point]:
    """Return the valid ones of ``views`` in the order given."""
    return [Point(view, score) for view in views if (score := valid_score(view)) is not None]


def in_order(views: Iterable[IterationView]) -> tuple[IterationView, ...]:
    """Return ``views`` sorted by number. Errors: :class:`jumar.errors.ScoreError` when a number is there twice."""
    ordered = tuple(sorted(views, key=attrgetter("number")))
    numbers = [view.number for view in ordered]
    if len(set(numbers)) < len(numbers):
        twice = next(after for before, after in pairwise(numbers) if before == after)
        raise ScoreError(f"iteration {twice} is there twice: every iteration needs a number of its own")
    return ordered


def difference(after: float, before: float) -> float:
    """Return ``after − before`` in points, rounded to 4 decimals like the scores themselves.

    Without the rounding 64.4 − 59.4 would be a little more than 5, and a rule with a size of 5 points would depend on binary
    noise.
    """
    return round(after - before, 4)
