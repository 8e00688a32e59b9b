"""How many iterations a budget buys: against a loop that asks the gate, and what is said when little is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.model import Attempt, AttemptEnd, AttemptStart, Budget, Reservation, Spend, Usage
from jumar.model.budget import Go, may_begin
from jumar.model.budget.estimate import Expected, PassUse, Range, estimate, passes_of

AT = "2026-01-01T00:00:00Z"


def attempt(iteration: int, cost: float | None, tokens: int | None = 0, *, purpose: Any = "generate", outcome: Any = "ok"):
    start = AttemptStart(number=1, iteration=iteration, parent=0, nonce="n", started_at=AT, purpose=purpose)
    usage = Usage(token_cost_usd=cost, tokens_used=tokens)
    return Attempt(start=start, end=AttemptEnd(outcome=outcome, seconds=2.0, ended_at=AT, usage=usage))


def uses(*costs: float) -> list[PassUse]:
    return [PassUse(cost_usd=cost, tokens=round(cost * 100), seconds=cost * 10) for cost in costs]


def ask(budget: Budget, spent: float = 0.0, **more: Any):
    spend = Spend(known_cost_usd=spent, cost_usd=spent, known_tokens=round(spent * 100), seconds=spent * 10)
    return estimate(budget=budget, spend=spend, **more)


def test_what_a_pass_took_is_its_tries_and_its_scoring():
    attempts = [
        attempt(0, 0.5, 5, purpose="score"),
        attempt(1, 0.25, 10),
        attempt(1, 0.125, 1, purpose="score"),
        attempt(2, None, None, outcome="rate_limited"),
        attempt(2, 0.5, 20, outcome="failed"),
        attempt(3, None, None, outcome="lost"),
        attempt(4, None, 7),
        attempt(2, 9.0, 9, purpose="confirm"),
    ]
    assert passes_of(attempts) == (
        PassUse(cost_usd=0.375, tokens=11, seconds=4.0),
        PassUse(cost_usd=0.5, tokens=20, seconds=4.0),
        PassUse(cost_usd=None, tokens=7, seconds=2.0),
    )
    running = replace(attempt(5, 1.0), end=None)
    assert passes_of([running]) == ()
    assert passes_of([attempt(5, 1.0), running]) == (PassUse(cost_usd=None, tokens=None, seconds=None),)


def test_the_range_is_that_of_the_passes_seen():
    found = ask(Budget(max_cost_usd=2.0), 0.5, passes=uses(0.1, 0.2, 0.3), source="3 iterations of this loop")
    assert found is not None
    (row,) = found.rows
    assert (row.limit, row.left, row.source) == ("max_cost_usd", 1.5, "3 iterations of this loop")
    assert row.a_pass == Range(low=0.1, typical=0.2, high=0.3)
    assert found.passes == Range(low=5, typical=7, high=13)
    assert found.limited_by == "max_cost_usd"
    even = ask(Budget(max_cost_usd=2.0), passes=uses(0.1, 0.2, 0.3, 0.5), source="x")
    assert even is not None
    assert even.rows[0].a_pass.typical == 0.25


def test_the_first_limit_counts():
    budget = Budget(max_cost_usd=2.0, max_tokens=100, max_seconds=1000.0, max_iterations=4)
    found = ask(budget, passes=uses(0.1), source="x", pass_limit=3)
    assert found is not None
    assert [row.limit for row in found.rows] == [
        "max_cost_usd",
        "max_tokens",
        "max_seconds",
        "max_iterations of [budget]",
        "max_iterations",
    ]
    assert [row.passes.typical for row in found.rows] == [20, 10, 1000, 4, 3]
    assert (found.passes, found.limited_by) == (Range(low=3, typical=3, high=3), "max_iterations")


def test_without_passes_the_reservation_is_taken():
    expected = Expected(use=PassUse(cost_usd=0.5), source="[budget] reserve_cost_usd")
    found = ask(Budget(max_cost_usd=2.0, reserve_cost_usd=0.5), expected=expected)
    assert found is not None
    assert (found.passes, found.rows[0].source) == (Range(low=4, typical=4, high=4), "[budget] reserve_cost_usd")
    seen = ask(Budget(max_cost_usd=2.0, reserve_cost_usd=0.5), passes=uses(0.1), source="seen", expected=expected)
    assert seen is not None
    assert seen.passes.typical == 16, "0.5 must still be free before each iteration of 0.1"


def test_the_price_of_a_prompt_is_only_the_least_that_a_pass_takes():
    expected = Expected(use=PassUse(cost_usd=0.01), source="the prompt", at_least=True)
    found = ask(Budget(max_cost_usd=1.0), expected=expected, pass_limit=500)
    assert found is not None
    assert found.passes == Range(low=None, typical=None, high=100)
    assert found.limited_by == "max_cost_usd"
    assert found.rows[0].a_pass == Range(low=0.01)


def test_when_nothing_is_known():
    assert ask(Budget()) is None
    assert ask(Budget(max_cost_usd=1.0)) is None
    found = ask(Budget(max_cost_usd=1.0), pass_limit=7)
    assert found is not None
    assert (found.passes, found.limited_by) == (Range(high=7), "max_iterations")
    assert found.rows[0].source == "nothing is known yet"
    assert found.to_json()["rows"][0]["a_pass"] == {"low": None, "typical": None, "high": None}


def test_a_limit_that_is_reached_buys_nothing():
    for budget in (Budget(max_cost_usd=1.0), Budget(max_tokens=100), Budget(max_seconds=10.0)):
        found = ask(budget, 1.0, pass_limit=7)
        assert found is not None
        assert found.passes == Range(low=0, typical=0, high=0)
        found = ask(budget, 1.0, passes=uses(0.1), source="x")
        assert found is not None
        assert found.passes == Range(low=0, typical=0, high=0)


def test_what_is_free_is_no_limit():
    found = ask(Budget(max_cost_usd=1.0), passes=uses(0.0, 0.0), source="x", pass_limit=5)
    assert found is not None
    assert found.passes == Range(low=5, typical=5, high=5)
    assert found.limited_by == "max_iterations"


def passes_that_the_gate_lets_begin(budget: Budget, spent: float, use: float) -> int:
    begun = 0
    generate = Reservation(cost_usd=use if budget.reserve_cost_usd is None else budget.reserve_cost_usd)
    spend = Spend(known_cost_usd=spent, cost_usd=spent, seconds=spent)
    while begun < 200 and isinstance(
        may_begin(spend=spend, budget=budget, generate=generate, score=Reservation(cost_usd=0.0)), Go
    ):
        begun += 1
        after = spent + begun * use
        spend = Spend(known_cost_usd=after, cost_usd=after, seconds=after)
    return begun


CENTS = st.integers(0, 500).map(lambda cents: cents / 100)


@given(cap=CENTS, spent=CENTS, use=st.integers(4, 300).map(lambda cents: cents / 100), reserve=st.none() | CENTS)
def test_passes_of_one_price_are_as_many_as_the_gate_lets_begin(cap, spent, use, reserve):
    budget = Budget(max_cost_usd=cap, reserve_cost_usd=reserve)
    found = ask(budget, spent, passes=[PassUse(cost_usd=use)], source="x")
    assert found is not None
    begun = passes_that_the_gate_lets_begin(budget, spent, use)
    assert found.passes == Range(low=begun, typical=begun, high=begun)


@given(cap=st.integers(1, 500).map(lambda cents: cents / 100), use=st.integers(4, 300).map(lambda cents: cents / 100))
def test_seconds_last_as_long_as_the_gate_says(cap, use):
    found = estimate(budget=Budget(max_seconds=cap), spend=Spend(), passes=[PassUse(seconds=use)], source="x")
    assert found is not None
    assert found.passes.typical == passes_that_the_gate_lets_begin(Budget(max_seconds=cap), 0.0, use)


@given(costs=st.lists(st.floats(0.01, 3), min_size=1, max_size=9), cap=st.floats(0, 50))
def test_the_range_is_ordered(costs, cap):
    found = ask(Budget(max_cost_usd=cap), passes=[PassUse(cost_usd=cost) for cost in costs], source="x")
    assert found is not None
    low, typical, high = found.passes.low, found.passes.typical, found.passes.high
    assert low is not None
    assert typical is not None
    assert high is not None
    assert low <= typical <= high
    if low:
        assert low * max(costs) == pytest.approx(cap, abs=max(costs)), "what is left over is less than one more"
