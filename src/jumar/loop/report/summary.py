"""Totals and the trajectory in seed 2's names, from plain records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from jumar.model import IterationRecord, IterationView, Spend
from jumar.model.views import valid_score

__all__ = ["Summary", "TrajectoryPoint", "quality_trajectory", "spend_of_records", "summary"]


class _Named(dict[str, Any]):
    """A plain dictionary (JSON takes it, ``==`` works) whose keys are attributes as well."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {', '.join(self)}") from None


class Summary(_Named):
    """Seed 2's totals over all iterations; iteration 0 is the start state and not counted.

    ``total_iterations``; ``average_quality, best_quality, worst_quality`` (0–100, over valid scores, the average rounded to 4
    decimals); ``total_tokens, total_cost_usd, total_time_ms``. A total is None when any iteration did not report it, a quality is
    None when no score is valid; with no iteration at all everything is 0. Keys are attributes too.
    """


class TrajectoryPoint(_Named):
    """``iteration`` and ``quality`` (0–100, None when the score is invalid), as keys and as attributes."""


def summary(records: Iterable[IterationRecord]) -> Summary:
    """Return the totals of ``records``; see :class:`Summary`."""
    passes = [record for record in records if record.iteration_number > 0]
    scores = [score for record in passes if (score := valid_score(record.view())) is not None]
    average, best, worst = (None, None, None) if passes else (0, 0, 0)
    if scores:
        average, best, worst = round(math.fsum(scores) / len(scores), 4), max(scores), min(scores)
    return Summary(
        total_iterations=len(passes),
        average_quality=average,
        best_quality=best,
        worst_quality=worst,
        total_tokens=_total([record.tokens_used for record in passes]),
        total_cost_usd=_total([record.token_cost_usd for record in passes]),
        total_time_ms=_total([record.execution_time_ms for record in passes]),
    )


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return sum(known) if all(isinstance(value, int) for value in known) else math.fsum(known)


def quality_trajectory(iterations: Iterable[IterationRecord | IterationView]) -> list[TrajectoryPoint]:
    """Return ``[{"iteration": 1, "quality": 72}, …]`` in the order of ``iterations``, which may be records or views."""
    views = (item.view() if isinstance(item, IterationRecord) else item for item in iterations)
    return [TrajectoryPoint(iteration=view.number, quality=valid_score(view)) for view in views]


def spend_of_records(records: Iterable[IterationRecord]) -> Spend:
    """Return what the iterations used, where no attempts were written (a tracker inside somebody else's loop).

    Seconds are the sum of those known; tokens and cost are None when any iteration did not report them.
    """
    passes = [record for record in records if record.iteration_number > 0]
    tokens = [record.tokens_used for record in passes]
    costs = [record.token_cost_usd for record in passes]
    return Spend(
        iterations=len(passes),
        seconds=math.fsum(record.execution_time_ms or 0 for record in passes) / 1000,
        tokens=None if None in tokens else sum(value or 0 for value in tokens),
        cost_usd=None if None in costs else math.fsum(value or 0 for value in costs),
    )
