"""What the calls cost, and whether there may be another one.

Unknown is unknown: a call whose cost nobody knows makes the sum unknown, never 0. Before a call is made under a limit, the
largest cost seen so far is set aside for it, as it is for those in flight; at first there is one call at a time, and one more
with every four that told their cost. So the limit is exceeded only by as much as those in flight cost more than every one before
them.
"""

from __future__ import annotations

import asyncio
from typing import Final

from jumar.model.judges import FailureKind
from jumar.model.prices import Prices
from jumar.model.records import Usage

__all__ = ["Ledger", "Prices"]

_TOLERANCE: Final = 1e-9
"""Relative: sums of cents are not exact in binary, and a limit that they reach exactly is not exceeded."""

_FREE: Final[frozenset[FailureKind]] = frozenset({"rate_limited", "unavailable", "rejected", "missing"})
"""Failures without an answer; nobody charges for those unless they say so."""


class Ledger:
    """The sum of what was spent in one run, and the limit. Belongs to one event loop.

    ``before`` was spent of the limit already, and ``largest`` is the most that a call took then; None of a first run.
    """

    def __init__(
        self,
        max_cost: float | None = None,
        prices: Prices | None = None,
        *,
        before: float = 0.0,
        largest: float | None = None,
    ) -> None:
        self._max_cost = max_cost
        self._before = before
        self._prices = prices
        self._changed = asyncio.Condition()
        self._in_flight = 0
        self._largest = largest
        self._unknown = 0
        self._known = 0
        self._assumed = 0.0
        self._sum = self._rest = 0.0
        self.stopped: str | None = None

    @property
    def known_usd(self) -> float:
        """What the calls cost that said so."""
        return self._sum + self._rest

    @property
    def total_usd(self) -> float | None:
        """What all calls cost; None when one of them did not say."""
        return None if self._unknown else self.known_usd

    async def reserve(self) -> bool:
        """Wait until a call may be made and return True, or False when none may be made any more."""
        async with self._changed:
            while (may := self._may_ask()) is None:
                await self._changed.wait()
            self._in_flight += may
            return may

    async def release(self) -> None:
        """Give back what was reserved for a call that is not made after all."""
        async with self._changed:
            self._in_flight -= 1
            self._changed.notify_all()

    def _may_ask(self) -> bool | None:
        """Return whether a call may be made; None while that depends on those in flight."""
        limit = self._max_cost
        if limit is None:
            return True
        if self.stopped is not None:
            return False
        spent = self._before + self.known_usd + self._assumed
        if spent < limit * (1.0 - _TOLERANCE):
            if self._largest is None:
                return None if self._in_flight else True
            # what few calls have cost says little about the next ones: as many more at once as there is experience
            if self._in_flight >= 1 + self._known // 4:
                return None
            if spent + (self._in_flight + 1) * self._largest <= limit * (1.0 + _TOLERANCE):
                return True
            if self._in_flight:
                return None
        self.stopped = f"the limit of ${limit:g} is reached: ${spent:.4f} spent, and the next call could exceed it"
        return False

    async def settle(self, usage: Usage | None, failure: FailureKind | None = None) -> float | None:
        """Record the end of a reserved call; return what it cost, None when nobody knows."""
        cost = self._cost(usage, failure)
        async with self._changed:
            self._in_flight -= 1
            if cost is not None:
                self._add(cost)
                if failure is None or cost:  # a refused connection says nothing about the price of an answer
                    self._known += 1
                    self._largest = max(self._largest or 0.0, cost)
            else:
                self._unknown += 1
                self._assumed += self._largest or 0.0
                if self._max_cost is not None and (failure is None or self._largest is None):
                    self.stopped = self.stopped or (
                        "the judge does not say what a call costs, so that a limit cannot be kept; give the prices of its "
                        "tokens, or no limit"
                    )
            self._changed.notify_all()
        return cost

    def _add(self, cost: float) -> None:
        """Add without losing what a sum of doubles rounds away (Neumaier 1974)."""
        total = self._sum + cost
        larger, smaller = (self._sum, cost) if self._sum >= cost else (cost, self._sum)
        self._rest += (larger - total) + smaller
        self._sum = total

    def _cost(self, usage: Usage | None, failure: FailureKind | None) -> float | None:
        if usage is not None:
            if usage.token_cost_usd is not None:
                return usage.token_cost_usd
            if self._prices is not None and (cost := self._prices.cost(usage)) is not None:
                return cost
        return 0.0 if failure in _FREE else None
