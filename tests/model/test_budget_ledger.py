"""What a loop has used: attempts that ended, that were lost, that still run, and those that did not say."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.model import Attempt, AttemptEnd, AttemptStart, Budget, Spend, Usage
from jumar.model.budget import RunningSpend, spend

AT = "2026-01-01T00:00:00Z"


ENDED = ["ok", "failed", "timeout", "blocked", "broken", "interrupted"]


def start(number, purpose: Any = "generate", reserve: float | None = None, reserve_tokens: int | None = None):
    return AttemptStart(
        number=number,
        iteration=number,
        parent=None,
        nonce=f"n{number}",
        started_at=AT,
        purpose=purpose,
        reserve_cost_usd=reserve,
        reserve_tokens=reserve_tokens,
    )


def attempt(
    number,
    tokens: int | None = None,
    cost: float | None = None,
    *,
    outcome: Any = "ok",
    seconds: float | None = 1.0,
    purpose: Any = "generate",
    reserve: float | None = None,
    reserve_tokens: int | None = None,
    part: float | None = None,
    **usage,
):
    used = Usage(tokens_used=tokens, token_cost_usd=cost, **usage)
    end = AttemptEnd(outcome=outcome, seconds=seconds, ended_at=AT, usage=used, known_cost_usd=part)
    return Attempt(start=start(number, purpose, reserve, reserve_tokens), end=end)


def running(number, reserve: float | None = None, reserve_tokens: int | None = None):
    return Attempt(start=start(number, reserve=reserve, reserve_tokens=reserve_tokens), end=None)


def test_nothing_attempted_has_cost_nothing():
    assert Spend(iterations=0, seconds=0.0, tokens=0, cost_usd=0.0) == spend([])


def test_sums_of_what_is_known():
    attempts = [attempt(1, 5000, 0.05, seconds=30.5), attempt(2, 6000, 0.06, seconds=31.0), attempt(3, 0, 0, seconds=None)]
    assert spend(attempts) == Spend(
        iterations=3, seconds=61.5, tokens=11_000, cost_usd=0.11, known_tokens=11_000, known_cost_usd=0.11, calls=3
    )


def test_attempts_that_did_not_go_well_count():
    attempts = [attempt(n, 10, 0.5, outcome=outcome) for n, outcome in enumerate([*ENDED, "rate_limited", "lost"])]
    found = spend(attempts)
    assert (found.iterations, found.calls, found.seconds, found.tokens, found.cost_usd) == (8, 8, 8.0, 80, 4.0)


def test_scoring_and_confirming_are_paid_for_and_are_no_iterations():
    found = spend([attempt(1, 10, 0.5), attempt(2, 4, 0.25, purpose="score"), attempt(3, 2, 0.125, purpose="confirm")])
    assert (found.iterations, found.calls, found.seconds, found.tokens, found.cost_usd) == (1, 3, 3.0, 16, 0.875)


@pytest.mark.parametrize("purpose", ["generate", "score", "confirm"])
@pytest.mark.parametrize("outcome", ENDED)
def test_attempt_that_ended_without_saying_makes_the_total_unknown(outcome, purpose):
    no_tokens = spend([attempt(1, 10, 0.5), attempt(2, None, 0.5, outcome=outcome, purpose=purpose)])
    assert (no_tokens.tokens, no_tokens.known_tokens, no_tokens.unknown_tokens, no_tokens.cost_usd) == (None, 10, 1, 1.0)
    no_cost = spend([attempt(1, 10, 0.5), attempt(2, 10, outcome=outcome, purpose=purpose)])
    assert (no_cost.cost_usd, no_cost.known_cost_usd, no_cost.unknown_costs, no_cost.tokens) == (None, 0.5, 1, 20)


def test_it_is_charged_the_reservation_in_force_when_it_began_and_stays_unknown():
    attempts = [attempt(1, 10, 0.5), attempt(2, reserve=0.75, reserve_tokens=20)]
    found = spend(attempts)
    assert (found.cost_usd, found.assumed_cost_usd, found.charged_cost_usd) == (None, 0.75, 1.25)
    assert (found.tokens, found.assumed_tokens, found.charged_tokens) == (None, 20, 30)
    assert (found.unknown_costs, found.uncharged_costs, found.unknown_tokens, found.uncharged_tokens) == (1, 0, 1, 0)


@pytest.mark.parametrize("policy", ["stop", "allow"])
def test_it_is_charged_nothing_where_that_was_not_asked_for(policy):
    found = spend([attempt(1, reserve=0.75, reserve_tokens=20)], Budget(on_unknown_cost=policy, reserve_cost_usd=3))
    assert (found.assumed_cost_usd, found.uncharged_costs, found.assumed_tokens, found.uncharged_tokens) == (0.0, 1, 0, 1)


def test_where_nothing_was_reserved_it_is_charged_what_is_configured_now():
    attempts = [attempt(1), attempt(2, outcome="lost"), running(3), attempt(4, reserve=1.0, reserve_tokens=7)]
    before, after = spend(attempts), spend(attempts, Budget(reserve_cost_usd=0.25, reserve_tokens=5))
    assert (before.charged_cost_usd, before.uncharged_costs, before.uncharged_tokens) == (1.0, 2, 2)
    assert (after.charged_cost_usd, after.uncharged_costs, after.charged_tokens, after.uncharged_tokens) == (1.75, 0, 22, 0)


def test_lost_attempt_is_charged_its_reservation_and_leaves_the_total_known():
    attempts = [attempt(1, 10, 0.5), attempt(2, outcome="lost", seconds=None, reserve=0.25, reserve_tokens=4)]
    for policy in ("charge_reserve", "stop", "allow"):
        found = spend(attempts, Budget(on_unknown_cost=policy))
        assert (found.iterations, found.seconds, found.tokens, found.cost_usd) == (2, 1.0, 14, 0.75)
        assert (found.known_cost_usd, found.assumed_cost_usd, found.unknown_costs, found.uncharged_costs) == (0.5, 0.25, 0, 0)


def test_lost_attempt_without_a_reservation_is_told():
    found = spend([attempt(1, 10, 0.5), attempt(2, outcome="lost", seconds=7.5)])
    assert (found.cost_usd, found.unknown_costs, found.uncharged_costs, found.uncharged_tokens, found.seconds) == (
        0.5,
        0,
        1,
        1,
        8.5,
    )


def test_running_attempt_is_charged_its_reservation_and_is_neither_silent_nor_lost_yet():
    found = spend([running(1, reserve=0.25, reserve_tokens=3), running(2)])
    assert found == Spend(iterations=2, tokens=3, cost_usd=0.25, assumed_tokens=3, assumed_cost_usd=0.25, calls=2)


def test_lost_attempt_that_did_report_is_charged_that():
    assert spend([attempt(1, 10, 0.5, outcome="lost", reserve=9.0)]).cost_usd == 0.5


def test_known_part_of_a_cost_is_known_and_the_rest_of_the_reservation_assumed():
    found = spend(
        [attempt(1, 0, purpose="score", part=0.25, reserve=1.0), attempt(2, 0, outcome="lost", part=0.5, reserve=0.125)]
    )
    assert (found.cost_usd, found.known_cost_usd, found.assumed_cost_usd, found.unknown_costs) == (None, 0.75, 0.75, 1)


def test_rate_limited_attempt_that_reports_nothing_used_nothing():
    found = spend([attempt(1, outcome="rate_limited", reserve=0.5, seconds=2.0)])
    assert found == Spend(iterations=1, seconds=2.0, tokens=0, cost_usd=0.0, calls=1)


def test_rate_limited_attempt_that_had_begun_to_work_is_not_free():
    found = spend([attempt(1, 100, outcome="rate_limited", reserve=0.5)])
    assert (found.tokens, found.cost_usd, found.assumed_cost_usd, found.unknown_costs) == (100, None, 0.5, 1)
    found = spend([attempt(1, None, 0.25, outcome="rate_limited", reserve_tokens=5)])
    assert (found.tokens, found.cost_usd, found.assumed_tokens, found.unknown_tokens) == (None, 0.25, 5, 1)


def test_input_and_output_tokens_add_up_where_no_total_was_reported():
    assert spend([attempt(1, cost=0.0, input_tokens=100, output_tokens=20)]).tokens == 120
    assert spend([attempt(1, 7, 0.0, input_tokens=100, output_tokens=20)]).tokens == 7
    assert spend([attempt(1, cost=0.0, output_tokens=20)]).tokens is None
    assert spend([attempt(1, cost=0.0, input_tokens=20)]).tokens is None


def test_cents_add_up_without_error():
    assert spend([attempt(n, 0, 0.1) for n in range(10)]).cost_usd == 1.0


PURPOSES = st.sampled_from(["generate", "score", "confirm"])
AMOUNTS = st.none() | st.floats(0, 10)
COUNTS = st.none() | st.integers(0, 10_000)
ATTEMPTS = st.lists(
    st.one_of(
        st.builds(running, st.integers(1, 99), reserve=AMOUNTS, reserve_tokens=COUNTS),
        st.builds(
            attempt,
            st.integers(1, 99),
            COUNTS,
            AMOUNTS,
            outcome=st.sampled_from([*ENDED, "rate_limited", "lost"]),
            seconds=st.none() | st.floats(0, 1e6),
            purpose=PURPOSES,
            reserve=AMOUNTS,
            reserve_tokens=COUNTS,
            part=AMOUNTS,
        ),
    ),
    max_size=12,
)
BUDGETS = st.builds(
    Budget,
    reserve_cost_usd=AMOUNTS,
    reserve_tokens=COUNTS,
    on_unknown_cost=st.sampled_from(["charge_reserve", "stop", "allow"]),
)


@given(attempts=ATTEMPTS, data=st.data())
def test_spend_does_not_depend_on_the_order_of_attempts(attempts, data):
    assert spend(attempts) == spend(data.draw(st.permutations(attempts)))


@given(first=ATTEMPTS, more=ATTEMPTS, ended=ATTEMPTS, budget=BUDGETS)
def test_running_spend_equals_spend_wherever_attempts_are_still_open(first, more, ended, budget):
    """The open ones get their end between two looks; whatever stands behind them was not settled before."""
    known = RunningSpend(budget)
    assert spend(first, budget) == known.of(first)
    assert spend([*first, *more], budget) == known.of([*first, *more])
    ends = [one for one in ended if one.end is not None]
    closed = [one if one.end is not None or not ends else ends[place % len(ends)] for place, one in enumerate([*first, *more])]
    assert spend(closed, budget) == known.of(closed)


def slow_measure(attempts, budget, reported, reserved, configured, part):
    """One measure in exact fractions, attempt by attempt: known, assumed, how many are unknown, how many are not charged."""
    known, assumed, unknown, uncharged = Fraction(0), Fraction(0), 0, 0
    for one in attempts:
        value = None if one.end is None else reported(one.end.usage)
        others = one.end is not None and (one.end.usage.tokens_used or one.end.usage.token_cost_usd)
        reserve = configured if reserved(one.start) is None else reserved(one.start)
        if value is not None:
            known += Fraction(value)
        elif one.end is None:
            assumed += Fraction(reserve or 0)
        elif one.end.outcome == "rate_limited" and not others and (one.end.seconds or 0) < 60:
            pass
        else:
            share = Fraction(part(one.end) or 0)
            known += share
            unknown += one.end.outcome != "lost"
            if reserve is None or (one.end.outcome != "lost" and budget.on_unknown_cost != "charge_reserve"):
                uncharged += 1
            else:  # the difference is rounded once, as any program does
                assumed += max(Fraction(0), Fraction(float(reserve) - float(share)))
    return known, assumed, unknown, uncharged


@given(attempts=ATTEMPTS, budget=BUDGETS)
def test_spend_against_a_plain_loop(attempts, budget):
    found = spend(attempts, budget)
    known, assumed, unknown, uncharged = slow_measure(
        attempts,
        budget,
        lambda usage: usage.token_cost_usd,
        lambda begun: begun.reserve_cost_usd,
        budget.reserve_cost_usd,
        lambda end: end.known_cost_usd,
    )
    assert (float(known), float(assumed)) == (found.known_cost_usd, found.assumed_cost_usd)
    assert (unknown, uncharged) == (found.unknown_costs, found.uncharged_costs)
    assert found.cost_usd == (None if unknown else float(known + assumed))
    known, assumed, unknown, uncharged = slow_measure(
        attempts,
        budget,
        lambda usage: usage.tokens_used,
        lambda begun: begun.reserve_tokens,
        budget.reserve_tokens,
        lambda _end: 0,
    )
    assert (known, assumed) == (found.known_tokens, found.assumed_tokens)
    assert (unknown, uncharged) == (found.unknown_tokens, found.uncharged_tokens)
    assert found.tokens == (None if unknown else known + assumed)
    assert found.seconds == float(sum(Fraction(one.end.seconds or 0) for one in attempts if one.end is not None))
    assert (found.iterations, found.calls) == (sum(one.start.purpose == "generate" for one in attempts), len(attempts))


@given(attempts=ATTEMPTS, more=ATTEMPTS, budget=BUDGETS)
def test_spend_never_falls_and_unknown_stays_unknown(attempts, more, budget):
    before, after = spend(attempts, budget), spend([*attempts, *more], budget)
    for name in ("iterations", "seconds", "known_cost_usd", "assumed_cost_usd", "known_tokens", "assumed_tokens", "calls"):
        assert getattr(after, name) >= getattr(before, name)
    assert after.tokens is None or (before.tokens is not None and after.tokens >= before.tokens)
    assert after.cost_usd is None or (before.cost_usd is not None and after.cost_usd >= before.cost_usd)
