"""Whether there may be another call of a judge.

Unknown is unknown: a call whose cost nobody knows makes the sum unknown, never 0. Before a call is made under a limit, the
largest cost seen so far is set aside for it, as it is for those in flight; at first there is one call at a time, and one more
with every four that told their cost. So the limit is exceeded only by as much as those in flight cost more than every one before
them, and that over all starts: what is spent is what :class:`jumar.judging.asking.call_log.CallLog` has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from jumar.core.text import escape, plural
from jumar.judging.asking.call_log import CallLog
from jumar.model.attempts import Spend
from jumar.model.budget.gate import Go, Stop, may_begin
from jumar.model.budget.limits import Budget, Reservation
from jumar.model.budget.pricing import Prices
from jumar.model.judges import FailureKind
from jumar.model.records import Usage

_BLIND: Final = 3  # calls that may be made before anybody knows what one costs, where they fail or are lost
_FREE: Final[frozenset[FailureKind]] = frozenset({"rate_limited", "unavailable", "rejected", "missing"})
"""Failures without an answer; nobody charges for those unless they say that they may have."""


class CallLedger:
    """The gate before each call, for one limit in USD. Belongs to one event loop."""

    def __init__(self, calls: CallLog, max_cost: float | None = None, prices: Prices | None = None) -> None:
        self.calls = calls
        self._budget = None if max_cost is None else Budget(max_cost_usd=max_cost)
        self._prices = prices
        self._changed = asyncio.Condition()
        self._silent = False
        self.stopped: str | None = None

    async def begin(self, ended: Callable[[], bool]) -> int | None:
        """Wait until a call may be made and return its number; None when none may be made any more, or all has ``ended``."""
        async with self._changed:
            while not ended():
                may = self._may_ask()
                if may is not None:
                    return self.calls.begin() if may else None
                await self._changed.wait()
            return None

    def _may_ask(self) -> bool | None:
        """Return whether a call may be made; None while that depends on those in flight."""
        calls, running = self.calls, self.calls.in_flight
        if self._budget is None or self.stopped is not None:
            return self._budget is None
        each = calls.each
        answer = may_begin(
            spend=Spend(
                known_cost_usd=calls.known_usd,
                assumed_cost_usd=calls.assumed_usd,
                uncharged_costs=calls.uncharged if self._silent or calls.uncharged >= _BLIND else 0,
            ),
            budget=self._budget,
            generate=Reservation(cost_usd=each),
            score=Reservation(cost_usd=0.0),
            in_flight=Reservation(cost_usd=running * (each or 0.0)),
            running=running,
        )
        if isinstance(answer, Stop):
            self.stopped = self._why(blind=answer.decision.reason == "unknown_cost")
            return False
        # what few calls have cost says little about the next ones: as many more at once as there is experience
        return True if isinstance(answer, Go) and running < 1 + calls.told // 4 else None

    def _why(self, *, blind: bool) -> str:
        calls, limit = self.calls, 0.0 if self._budget is None else self._budget.max_cost_usd or 0.0
        where = "" if calls.path is None else f" ({escape(str(calls.path))} has every call since the first start)"
        if blind:
            return (
                f"the judge does not say what a call costs ({plural(calls.uncharged, 'call')} so far), so no limit is kept: "
                f"give the prices of its tokens, what to charge for such a call (--reserve-cost), or no limit{where}"
            )
        spent = calls.known_usd + calls.assumed_usd
        return f"the limit of ${limit:g} is reached: ${spent:.4f} spent, and the next call could exceed it{where}"

    async def sync(self) -> None:
        """Wait until the beginnings of calls are on the disk."""
        if self.calls.path is not None:
            await asyncio.to_thread(self.calls.sync)

    async def end(self, call: int, usage: Usage | None, failure: FailureKind | None = None) -> float | None:
        """Record the end of a call; return what it cost, None when nobody knows."""
        cost = self._cost(usage, failure)
        async with self._changed:
            self.calls.end(call, cost, failure)
            self._silent |= cost is None and failure is None
            self._changed.notify_all()
        return cost

    def _cost(self, usage: Usage | None, failure: FailureKind | None) -> float | None:
        if usage is None:
            return 0.0 if failure in _FREE else None
        if usage.token_cost_usd is None and self._prices is not None:
            return self._prices.cost(usage)
        return usage.token_cost_usd
