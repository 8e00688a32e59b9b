"""Whether another step may begin: asked before every run of the generator, answered from figures alone.

Scoring what was paid for is never refused, so a step is only begun when its score can be paid too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jumar.core.text import plural, short_dollars
from jumar.errors import UsageError
from jumar.model.attempts import Spend
from jumar.model.budget.pricing import Budget, Reservation
from jumar.model.selection import StopDecision, StopReason

_HOUR: Final = 3600.0
_TOLERANCE: Final = 1e-9
"""Relative: sums of cents are not exact in binary, and a cap that they reach exactly is reached, not exceeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """Begin. ``reservation`` belongs into the attempt's start. ``note`` says what the caps do not see, if anything."""

    reservation: Reservation
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Not now. ``seconds`` None: until something that runs has ended; else ask again after that long, or when something ends."""

    seconds: float | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Not any more."""

    decision: StopDecision


Gate = Go | Wait | Stop


def may_begin(
    *,
    spend: Spend,
    budget: Budget,
    generate: Reservation,
    score: Reservation,
    in_flight: Reservation | Sequence[Reservation] = (),
    running: int = 0,
    call_ages: Sequence[float] = (),
) -> Gate:
    """Return whether another run of the generator may begin.

    ``spend`` is that of all attempts, those without an end included: these are charged their reservation in it already.
    ``in_flight`` is what else is committed and not in ``spend``: the scoring of candidates that run or wait for it.
    ``running`` counts candidates that run. ``generate`` and ``score`` are set aside for this step. ``call_ages`` are the seconds
    since each run of the generator began; a negative one (the clock was set back) counts as now, and those of an hour or more
    don't count.

    A cap that is reached exactly is reached. A step that could exceed one waits for what runs, which may cost less than is set
    aside for it, and with nothing running is the end. With a reservation of a capped measure unknown, a step runs alone.
    """
    ended = spent_up(spend, budget)
    if ended is not None:
        return Stop(decision=ended)
    committed = [in_flight] if isinstance(in_flight, Reservation) else list(in_flight)
    for measure in _measures(spend, budget, generate, score, committed):
        refused = _room(measure, running)
        if refused is not None:
            return refused
    pause = _until_a_call_is_free(call_ages, budget.max_calls_per_hour)
    if pause is not None:
        return Wait(seconds=pause, why=f"{_calls(budget.max_calls_per_hour)} an hour are used up ([budget] max_calls_per_hour)")
    return Go(reservation=generate, note=_blind_spot(spend, budget))


def spent_up(spend: Spend, budget: Budget) -> StopDecision | None:
    """Return which limit is reached, or what made one impossible to keep; None while none is.

    Of several the first in this order: max_attempts, max_seconds, unknown_cost, max_cost, max_tokens.
    """
    if budget.max_iterations is not None and spend.iterations >= budget.max_iterations:
        return _stop(
            "max_attempts", f"{plural(spend.iterations, 'attempt')} of {budget.max_iterations} ([budget] max_iterations)"
        )
    if budget.max_seconds is not None and _reaches(spend.seconds, budget.max_seconds):
        return _stop("max_seconds", f"{spend.seconds:.1f} s of {budget.max_seconds:g} s ([budget] max_seconds)")
    unknown = _unknown(spend, budget)
    if unknown is not None:
        return unknown
    for measure in _measures(spend, budget, Reservation(), Reservation(), ()):
        if _reaches(measure.spent, measure.cap):
            return _stop(measure.reason, f"{measure.show(measure.spent)} of {measure.show(measure.cap)} ([budget] {measure.key})")
    return None


def check_budget(budget: Budget) -> None:
    """Refuse limits that mean nothing. Errors: :class:`jumar.errors.UsageError` that names the key."""
    for name, value in budget.to_json().items():
        if value is None or isinstance(value, str):
            continue
        least = 1 if name in {"max_iterations", "max_calls_per_hour"} else 0
        if not (math.isfinite(value) and value >= least):
            raise UsageError(f"[budget] {name} = {value} should be a number that is {least} or more")


def budget_left(spend: Spend, budget: Budget) -> dict[str, float | None]:
    """Return what is left of each limit, never below 0, and None where there is none. Tokens and attempts are whole numbers."""

    def left(cap: float | None, used: float) -> float | None:
        return None if cap is None else max(0, cap - used)

    return {
        "iterations": left(budget.max_iterations, spend.iterations),
        "seconds": left(budget.max_seconds, spend.seconds),
        "tokens": left(budget.max_tokens, spend.charged_tokens),
        "cost_usd": left(budget.max_cost_usd, spend.charged_cost_usd),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    """One capped measure: what is spent, and what this step and the others need. None: nobody knows.

    ``reserve`` is the key that says what this step needs, empty where the dearest so far does.
    """

    reason: StopReason
    key: str
    dollars: bool
    cap: float
    spent: float
    generate: float | None
    score: float | None
    committed: float
    reserve: str

    def show(self, value: float) -> str:
        return short_dollars(value) if self.dollars else plural(round(value), "token")


def _measures(
    spend: Spend, budget: Budget, generate: Reservation, score: Reservation, committed: Sequence[Reservation]
) -> list[_Measure]:
    found: list[_Measure] = []
    if budget.max_cost_usd is not None:
        cost = _Measure(
            reason="max_cost",
            key="max_cost_usd",
            dollars=True,
            cap=budget.max_cost_usd,
            spent=spend.charged_cost_usd,
            generate=generate.cost_usd,
            score=score.cost_usd,
            committed=sum(one.cost_usd or 0.0 for one in committed),
            reserve="" if budget.reserve_cost_usd is None else "reserve_cost_usd",
        )
        found.append(cost)
    if budget.max_tokens is not None:
        tokens = _Measure(
            reason="max_tokens",
            key="max_tokens",
            dollars=False,
            cap=budget.max_tokens,
            spent=spend.charged_tokens,
            generate=generate.tokens,
            score=score.tokens,
            committed=sum(one.tokens or 0 for one in committed),
            reserve="" if budget.reserve_tokens is None else "reserve_tokens",
        )
        found.append(tokens)
    return found


def _room(measure: _Measure, running: int) -> Wait | Stop | None:
    needed = (measure.generate or 0.0) + (measure.score or 0.0)
    if measure.spent + measure.committed + needed > measure.cap * (1 + _TOLERANCE):
        detail = (
            f"{measure.show(measure.spent)} of {measure.show(measure.cap)} ([budget] {measure.key}), and the next iteration may "
            f"take {measure.show(needed)}{f' ({measure.reserve})' if measure.reserve else ''}"
        )
        return Wait(seconds=None, why=detail) if running else _stopped(measure.reason, detail)
    if running and (measure.generate is None or measure.score is None):
        return Wait(
            seconds=None, why=f"nobody knows yet what an iteration takes, so the first runs alone ([budget] {measure.key})"
        )
    return None


def _reaches(spent: float, cap: float) -> bool:
    return spent >= cap * (1 - _TOLERANCE)


def _unknown(spend: Spend, budget: Budget) -> StopDecision | None:
    way_out = 'give [budget] reserve_cost_usd or a price for its model, or set on_unknown_cost = "allow"'
    if budget.on_unknown_cost == "stop":
        if spend.unknown_costs or spend.uncharged_costs:
            way_out = 'set on_unknown_cost = "charge_reserve" with reserve_cost_usd or a price for its model, or set "allow"'
            return _stop("unknown_cost", f'an attempt did not say what it cost, and on_unknown_cost is "stop"; {way_out}')
    elif budget.on_unknown_cost == "charge_reserve" and budget.max_cost_usd is not None and spend.uncharged_costs:
        return _stop("unknown_cost", f"an attempt did not say what it cost, and there is no reservation to charge; {way_out}")
    if budget.max_tokens is None or budget.on_unknown_cost == "allow":
        return None
    way_out = 'give [budget] reserve_tokens, or set on_unknown_cost = "allow"'
    if spend.uncharged_tokens:
        return _stop("unknown_cost", f"an attempt did not say how many tokens it used, and none can be charged; {way_out}")
    return None


def _blind_spot(spend: Spend, budget: Budget) -> str | None:
    if budget.on_unknown_cost != "allow":
        return None
    unseen: list[str] = []
    if budget.max_cost_usd is not None and spend.uncharged_costs:
        unseen.append(f"the cost of {plural(spend.uncharged_costs, 'attempt')}")
    if budget.max_tokens is not None and spend.uncharged_tokens:
        unseen.append(f"the tokens of {plural(spend.uncharged_tokens, 'attempt')}")
    verb = "is" if len(unseen) == 1 else "are"
    return f"the budget counts only what is known: {' and '.join(unseen)} {verb} not in it" if unseen else None


def _until_a_call_is_free(ages: Sequence[float], most: int | None) -> float | None:
    """Return the seconds until fewer than ``most`` calls are younger than an hour; None when that is so already."""
    if most is None:
        return None
    youngest_first = sorted(age for given in ages if (age := max(0.0, given)) < _HOUR)
    return _HOUR - youngest_first[most - 1] if len(youngest_first) >= most else None


def _calls(most: int | None) -> str:
    return plural(most or 0, "call")


def _stop(reason: StopReason, detail: str) -> StopDecision:
    return StopDecision(reason=reason, detail=detail)


def _stopped(reason: StopReason, detail: str) -> Stop:
    return Stop(decision=_stop(reason, detail))
