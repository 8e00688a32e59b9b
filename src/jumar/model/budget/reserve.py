"""What is set aside for a step before it begins: what is configured, or the most that one of its kind has used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jumar.model.attempts import Attempt, Purpose
from jumar.model.budget.ledger import cost_of, tokens_of
from jumar.model.budget.limits import Budget, Reservation

__all__ = ["RunningReservation", "larger", "reservation"]


def reservation(attempts: Iterable[Attempt], budget: Budget, purpose: Purpose) -> Reservation:
    """Return what to set aside for a step of ``purpose``, each measure by itself; None where nothing is known.

    To generate: what is configured, else the largest seen of that purpose. To score or to confirm: the largest seen, else what is
    configured, because checks are free as a rule and the configured amount is what a run of the generator may cost; to confirm
    for the first time, no less than scoring took before. Seen is what
    an attempt told of itself; one that was turned away at once told nothing. The order of ``attempts`` does not matter.
    """
    return RunningReservation().of(tuple(attempts), budget, purpose)


class RunningReservation:
    """:func:`reservation` over attempts to which more are added, each looked at once."""

    def __init__(self) -> None:
        self._settled = 0
        self._largest: dict[Purpose, Reservation] = {}

    def of(self, attempts: Sequence[Attempt], budget: Budget, purpose: Purpose) -> Reservation:
        """Return what to set aside after ``attempts``: those of the last call, with ends filled in and further ones behind."""
        while self._settled < len(attempts) and attempts[self._settled].end is not None:
            attempt = attempts[self._settled]
            self._largest[attempt.start.purpose] = _larger(self._largest.get(attempt.start.purpose), attempt)
            self._settled += 1
        seen = self._largest.get(purpose, Reservation())
        for attempt in attempts[self._settled :]:
            if attempt.start.purpose == purpose:
                seen = _larger(seen, attempt)
        configured = Reservation(cost_usd=budget.reserve_cost_usd, tokens=budget.reserve_tokens)
        if purpose == "confirm":  # the first one asks the scorers, or others than they are
            configured = larger(configured, self._largest.get("score", Reservation()))
        return _either(configured, seen) if purpose == "generate" else _either(seen, configured)


def larger(first: Reservation, second: Reservation) -> Reservation:
    """Return the larger of both in each measure; of one that is not known, the other."""
    costs = [one.cost_usd for one in (first, second) if one.cost_usd is not None]
    tokens = [one.tokens for one in (first, second) if one.tokens is not None]
    return Reservation(cost_usd=max(costs, default=None), tokens=max(tokens, default=None))


def _either(first: Reservation, second: Reservation) -> Reservation:
    return Reservation(
        cost_usd=second.cost_usd if first.cost_usd is None else first.cost_usd,
        tokens=second.tokens if first.tokens is None else first.tokens,
    )


def _larger(seen: Reservation | None, attempt: Attempt) -> Reservation:
    seen = seen or Reservation()
    if attempt.end is None:
        return seen
    cost, tokens = cost_of(attempt), tokens_of(attempt)
    if attempt.end.outcome == "rate_limited":  # that it was turned away for nothing says nothing about the next one
        cost, tokens = cost or None, tokens or None
    return Reservation(
        cost_usd=cost if seen.cost_usd is None else max(seen.cost_usd, cost or 0.0),
        tokens=tokens if seen.tokens is None else max(seen.tokens, tokens or 0),
    )
