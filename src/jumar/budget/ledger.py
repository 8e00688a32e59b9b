"""What a loop has used, from its attempts: pure arithmetic, recomputed each time, so that a resume counts as one long run."""

from __future__ import annotations

import math
from collections.abc import Iterable

from jumar.errors import ConfigError
from jumar.model.attempts import Attempt, Spend
from jumar.model.records import Usage

__all__ = ["spend"]


def spend(attempts: Iterable[Attempt], *, reserve_cost_usd: float | None = None) -> Spend:
    """Return what ``attempts`` used, whatever their order.

    ``iterations`` counts every attempt that began, lost ones too. ``seconds`` is the sum of what is known. ``tokens`` and
    ``cost_usd`` are None as soon as one attempt that ended, other than as lost, did not report them; where only input and
    output tokens were reported, tokens are their sum. A lost attempt, and one without an end, is charged what it did report;
    otherwise ``reserve_cost_usd`` and no tokens. No attempts have cost nothing: 0, not None. Errors:
    :class:`jumar.errors.ConfigError` when the reservation is negative or not finite.
    """
    reserve = 0.0 if reserve_cost_usd is None else reserve_cost_usd
    if not 0 <= reserve < math.inf:
        raise ConfigError(f"reserve_cost_usd is {reserve}: give an amount that is 0 or more")
    begun = tuple(attempts)
    tokens = [_tokens(attempt) for attempt in begun]
    costs = [_cost(attempt, reserve) for attempt in begun]
    return Spend(
        iterations=len(begun),
        seconds=math.fsum(attempt.end.seconds or 0 for attempt in begun if attempt.end),
        tokens=None if None in tokens else sum(count for count in tokens if count is not None),
        cost_usd=None if None in costs else math.fsum(cost for cost in costs if cost is not None),
    )


def _tokens(attempt: Attempt) -> int | None:
    usage = _usage(attempt)
    if usage.tokens_used is not None:
        return usage.tokens_used
    if usage.input_tokens is not None and usage.output_tokens is not None:
        return usage.input_tokens + usage.output_tokens
    return 0 if _cannot_report(attempt) else None


def _cost(attempt: Attempt, reserve: float) -> float | None:
    reported = _usage(attempt).token_cost_usd
    return reserve if reported is None and _cannot_report(attempt) else reported


def _usage(attempt: Attempt) -> Usage:
    return Usage() if attempt.end is None else attempt.end.usage


def _cannot_report(attempt: Attempt) -> bool:
    """Whether its process is still running, or died: what is not known is assumed then, not unknown for good."""
    return attempt.end is None or attempt.end.outcome == "lost"
