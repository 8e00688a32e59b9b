"""What a loop has used, from its attempts: pure arithmetic, recomputed each time, so that a resume counts as one long run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from jumar.errors import ConfigError
from jumar.model.attempts import Attempt, Spend
from jumar.model.records import Usage

__all__ = ["RunningSpend", "spend"]


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
    return Spend(
        iterations=len(begun),
        seconds=math.fsum(_seconds(attempt) for attempt in begun),
        tokens=_sum_of_tokens([_tokens(attempt) for attempt in begun]),
        cost_usd=_sum_of_costs([_cost(attempt, reserve) for attempt in begun]),
    )


class RunningSpend:
    """:func:`spend` over attempts to which more are added: the same figures, without adding up the old ones again.

    Attempts that ended never change, so each is looked at once. The sums are exact (Shewchuk's partials), hence equal to the
    last bit to those of :func:`spend`, in whatever steps they were made.
    """

    def __init__(self) -> None:
        self._settled = 0
        self._seconds: list[float] = []
        self._cost: list[float] | None = []
        self._tokens: int | None = 0

    def of(self, attempts: Sequence[Attempt]) -> Spend:
        """Return what ``attempts`` used: those of the last call, with ends filled in and further ones behind them."""
        while self._settled < len(attempts) and attempts[self._settled].end is not None:
            self._settle(attempts[self._settled])
            self._settled += 1
        rest = attempts[self._settled :]
        tokens = [self._tokens, *(_tokens(attempt) for attempt in rest)]
        costs = [*(self._cost or ()), *(_cost(attempt, 0.0) for attempt in rest)]
        return Spend(
            iterations=len(attempts),
            seconds=math.fsum([*self._seconds, *(_seconds(attempt) for attempt in rest)]),
            tokens=_sum_of_tokens(tokens),
            cost_usd=None if self._cost is None else _sum_of_costs(costs),
        )

    def _settle(self, attempt: Attempt) -> None:
        tokens, cost = _tokens(attempt), _cost(attempt, 0.0)
        self._tokens = None if self._tokens is None or tokens is None else self._tokens + tokens
        if cost is None:
            self._cost = None
        elif self._cost is not None:
            _add_exactly(self._cost, cost)
        _add_exactly(self._seconds, _seconds(attempt))


def _add_exactly(partials: list[float], value: float) -> None:
    """Add ``value`` to a sum kept as non-overlapping partials, without rounding (Shewchuk 1997, grow-expansion)."""
    kept = 0
    for partial in partials:
        larger, smaller = (value, partial) if abs(value) >= abs(partial) else (partial, value)
        value = larger + smaller
        rounded_off = smaller - (value - larger)
        if rounded_off:
            partials[kept] = rounded_off
            kept += 1
    partials[kept:] = [value]


def _sum_of_tokens(counts: list[int | None]) -> int | None:
    return None if None in counts else sum(count for count in counts if count is not None)


def _sum_of_costs(costs: list[float | None]) -> float | None:
    return None if None in costs else math.fsum(cost for cost in costs if cost is not None)


def _seconds(attempt: Attempt) -> float:
    return 0.0 if attempt.end is None else attempt.end.seconds or 0.0


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
