"""What a loop has used and what failed, from its attempts; and what is set aside for a step before it begins.

Pure arithmetic, recomputed each time, so that a resume counts as one long run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from jumar.model.attempts import Attempt, Outcome, Purpose, Spend
from jumar.model.budget.pricing import Budget, Reservation
from jumar.model.records import FAILURES, FailureKind, IterationRecord, IterationView, Usage

_AT_ONCE: Final = 60.0  # seconds
_DEFAULTS: Final = Budget()


def spend(attempts: Iterable[Attempt], budget: Budget = _DEFAULTS) -> Spend:
    """Return what ``attempts`` used, whatever their order.

    An attempt that reported is charged that. A lost one, and one without an end, is otherwise charged the reservation in its own
    start (``assumed``), and one that ended without saying too where ``budget.on_unknown_cost`` is ``charge_reserve``; its cost
    stays unknown all the same. Where its start has none, it is charged what ``budget`` reserves now: that is how a person says
    afterwards what an unknown attempt is to count. Where a part of a cost is known, that part counts as known and the rest of the
    reservation as assumed. A rate-limited attempt that reports nothing and ended within a minute has used nothing.

    ``iterations`` counts attempts to generate, lost ones too, ``calls`` all attempts. ``seconds`` is the sum of what is known.
    Where only input and output tokens were reported, tokens are their sum. No attempts have cost nothing: 0, not None.
    """
    begun = tuple(attempts)
    costs = [_cost(attempt, budget) for attempt in begun]
    tokens = [_tokens(attempt, budget) for attempt in begun]
    return _spend(
        begun,
        seconds=[_seconds(attempt) for attempt in begun],
        generated=sum(attempt.start.purpose == "generate" for attempt in begun),
        costs=_Sums(
            known=[charge.known for charge in costs],
            assumed=[charge.assumed for charge in costs],
            unknown=sum(charge.unknown for charge in costs),
            uncharged=sum(charge.uncharged for charge in costs),
        ),
        tokens=_Sums(
            known=[charge.known for charge in tokens],
            assumed=[charge.assumed for charge in tokens],
            unknown=sum(charge.unknown for charge in tokens),
            uncharged=sum(charge.uncharged for charge in tokens),
        ),
    )


class RunningSpend:
    """:func:`spend` over attempts to which more are added: the same figures, without adding up the old ones again.

    Attempts that ended never change, so each is looked at once. The sums are exact (Shewchuk's partials), hence equal to the
    last bit to those of :func:`spend`, in whatever steps they were made.
    """

    def __init__(self, budget: Budget = _DEFAULTS) -> None:
        self._budget = budget
        self._settled = 0
        self._generated = 0
        self._seconds: list[float] = []
        self._costs = _Sums([], [], 0, 0)
        self._tokens = _Sums([], [], 0, 0)

    def of(self, attempts: Sequence[Attempt]) -> Spend:
        """Return what ``attempts`` used: those of the last call, with ends filled in and further ones behind them."""
        while self._settled < len(attempts) and (attempt := attempts[self._settled]).end is not None:
            self._generated += attempt.start.purpose == "generate"
            add_exactly(self._seconds, _seconds(attempt))
            self._costs.add(_cost(attempt, self._budget))
            self._tokens.add(_tokens(attempt, self._budget))
            self._settled += 1
        rest = attempts[self._settled :]
        costs, tokens = self._costs.copy(), self._tokens.copy()
        for attempt in rest:
            costs.add(_cost(attempt, self._budget))
            tokens.add(_tokens(attempt, self._budget))
        return _spend(
            attempts,
            seconds=[*self._seconds, *(_seconds(attempt) for attempt in rest)],
            generated=self._generated + sum(attempt.start.purpose == "generate" for attempt in rest),
            costs=costs,
            tokens=tokens,
        )


def cost_of(attempt: Attempt) -> float | None:
    """Return what the attempt cost in USD as far as it is known of itself; None when it is not."""
    usage = _usage(attempt)
    return 0.0 if usage.token_cost_usd is None and _refused(attempt) else usage.token_cost_usd


def tokens_of(attempt: Attempt) -> int | None:
    """Return how many tokens the attempt used as far as it is known of itself; None when it is not."""
    tokens = _usage(attempt).tokens
    return 0 if tokens is None and _refused(attempt) else tokens


@dataclass(frozen=True, slots=True)
class _Charge:
    """One attempt's part of one measure."""

    known: float = 0
    assumed: float = 0
    unknown: bool = False
    uncharged: bool = False


def _cost(attempt: Attempt, budget: Budget) -> _Charge:
    part = 0.0 if attempt.end is None else attempt.end.known_cost_usd or 0.0
    reserved = attempt.start.reserve_cost_usd
    return _charge(attempt, cost_of(attempt), part, budget.reserve_cost_usd if reserved is None else reserved, budget)


def _tokens(attempt: Attempt, budget: Budget) -> _Charge:
    reserved = attempt.start.reserve_tokens
    return _charge(attempt, tokens_of(attempt), 0, budget.reserve_tokens if reserved is None else reserved, budget)


def _charge(attempt: Attempt, known: float | None, part: float, reserved: float | None, budget: Budget) -> _Charge:
    """Return what is known, else the known part of it and as much as the reservation is larger."""
    if known is not None:
        return _Charge(known=known)
    if attempt.end is None:
        return _Charge(assumed=reserved or 0)
    silent = attempt.end.outcome != "lost"
    charged = reserved if not silent or budget.on_unknown_cost == "charge_reserve" else None
    return _Charge(known=part, assumed=max(0, (charged or 0) - part), unknown=silent, uncharged=charged is None)


@dataclass(slots=True)
class _Sums:
    """The sums of one measure: numbers whose exact sum it is, and counts."""

    known: list[float]
    assumed: list[float]
    unknown: int
    uncharged: int

    def add(self, charge: _Charge) -> None:
        add_exactly(self.known, charge.known)
        add_exactly(self.assumed, charge.assumed)
        self.unknown += charge.unknown
        self.uncharged += charge.uncharged

    def copy(self) -> _Sums:
        return _Sums(list(self.known), list(self.assumed), self.unknown, self.uncharged)


def _spend(begun: Sequence[Attempt], *, seconds: list[float], generated: int, costs: _Sums, tokens: _Sums) -> Spend:
    known_tokens, assumed_tokens = int(sum(tokens.known)), int(sum(tokens.assumed))
    return Spend(
        iterations=generated,
        seconds=math.fsum(seconds),
        tokens=None if tokens.unknown else known_tokens + assumed_tokens,
        cost_usd=None if costs.unknown else math.fsum([*costs.known, *costs.assumed]),
        known_cost_usd=math.fsum(costs.known),
        assumed_cost_usd=math.fsum(costs.assumed),
        unknown_costs=costs.unknown,
        uncharged_costs=costs.uncharged,
        known_tokens=known_tokens,
        assumed_tokens=assumed_tokens,
        unknown_tokens=tokens.unknown,
        uncharged_tokens=tokens.uncharged,
        calls=len(begun),
    )


def add_exactly(partials: list[float], value: float) -> None:
    """Add ``value`` to a sum kept as non-overlapping partials, without rounding (Shewchuk 1997, grow-expansion).

    Whole numbers stay one partial, because a sum of integers rounds nothing off.
    """
    kept = 0
    for partial in partials:
        larger, smaller = (value, partial) if abs(value) >= abs(partial) else (partial, value)
        value = larger + smaller
        rounded_off = smaller - (value - larger)
        if rounded_off:
            partials[kept] = rounded_off
            kept += 1
    partials[kept:] = [value]


def _seconds(attempt: Attempt) -> float:
    return 0.0 if attempt.end is None else attempt.end.seconds or 0.0


def _usage(attempt: Attempt) -> Usage:
    return Usage() if attempt.end is None else attempt.end.usage


def _refused(attempt: Attempt) -> bool:
    """Whether the provider turned the attempt away at once: within a minute, and nothing used that was reported.

    One that had worked for longer, or reports some usage, is not free.
    """
    if attempt.end is None or attempt.end.outcome != "rate_limited" or (attempt.end.seconds or 0.0) >= _AT_ONCE:
        return False
    usage = attempt.end.usage
    return not (usage.token_cost_usd or usage.tokens_used or usage.input_tokens or usage.output_tokens)


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


_OF_OUTCOME: Final[Mapping[Outcome, FailureKind]] = MappingProxyType(
    {
        "failed": "generator_failed",
        "timeout": "generator_timeout",
        "rate_limited": "rate_limited",
        "blocked": "blocked",
        "lost": "lost",
    }
)


def failure_of_attempt(outcome: Outcome) -> FailureKind | None:
    """Return the kind of failure that an attempt's outcome is, None when it is none or its own evaluation says which."""
    return _OF_OUTCOME.get(outcome)


def count_failures(attempts: Iterable[Attempt], views: Iterable[IterationView | IterationRecord]) -> dict[str, int]:
    """Return how many failures of each kind a loop has had, retried ones included; kinds that did not occur are left out.

    What an attempt's end tells is counted there; what is known only of an iteration (no effect, an invalid score), there.
    """
    counted: Counter[str] = Counter()
    for attempt in attempts:
        if attempt.end is not None and (kind := attempt.end.failure or failure_of_attempt(attempt.end.outcome)) is not None:
            counted[kind] += 1
    for view in views:
        if view.failure in {"changed_nothing", "produced_nothing", "invalid_score", "snapshot_failed"}:
            counted[view.failure] += 1
    return {kind: counted[kind] for kind in FAILURES if counted[kind]}
