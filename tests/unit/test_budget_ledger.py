"""What a loop has used: attempts that ended, that were lost, that still run, and those that did not say."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.budget import RunningSpend, spend
from jumar.errors import ConfigError
from jumar.model import Attempt, AttemptEnd, AttemptStart, Spend, Usage

AT = "2026-01-01T00:00:00Z"


def start(number):
    return AttemptStart(number=number, iteration=number, parent=None, nonce=f"n{number}", started_at=AT)


def attempt(
    number, tokens: int | None = None, cost: float | None = None, *, outcome: Any = "ok", seconds: float | None = 1.0, **usage
):
    used = Usage(tokens_used=tokens, token_cost_usd=cost, **usage)
    return Attempt(start=start(number), end=AttemptEnd(outcome=outcome, seconds=seconds, ended_at=AT, usage=used))


def running(number):
    return Attempt(start=start(number), end=None)


def test_nothing_attempted_has_cost_nothing():
    assert Spend(iterations=0, seconds=0.0, tokens=0, cost_usd=0.0) == spend([])


def test_sums_of_what_is_known():
    attempts = [attempt(1, 5000, 0.05, seconds=30.5), attempt(2, 6000, 0.06, seconds=31.0), attempt(3, 0, 0, seconds=None)]
    assert Spend(iterations=3, seconds=61.5, tokens=11_000, cost_usd=0.11) == spend(attempts)


def test_failed_timed_out_and_interrupted_attempts_count():
    attempts = [
        attempt(n, 10, 0.5, outcome=outcome) for n, outcome in enumerate(["ok", "failed", "timeout", "interrupted", "lost"])
    ]
    assert Spend(iterations=5, seconds=5.0, tokens=50, cost_usd=2.5) == spend(attempts)


@pytest.mark.parametrize("outcome", ["ok", "failed", "timeout", "interrupted"])
def test_attempt_that_ended_without_saying_makes_the_total_unknown(outcome):
    assert Spend(iterations=2, seconds=2.0, tokens=None, cost_usd=1.0) == spend(
        [attempt(1, 10, 0.5), attempt(2, None, 0.5, outcome=outcome)]
    )
    assert Spend(iterations=2, seconds=2.0, tokens=20, cost_usd=None) == spend(
        [attempt(1, 10, 0.5), attempt(2, 10, outcome=outcome)]
    )


def test_lost_attempt_is_counted_and_its_unknown_usage_leaves_the_total_known():
    lost = attempt(2, outcome="lost", seconds=None)
    assert Spend(iterations=2, seconds=1.0, tokens=10, cost_usd=0.5) == spend([attempt(1, 10, 0.5), lost])


def test_lost_or_running_attempt_is_charged_the_reservation():
    attempts = [attempt(1, 10, 0.5), attempt(2, outcome="lost", seconds=None), running(3)]
    assert Spend(iterations=3, seconds=1.0, tokens=10, cost_usd=1.0) == spend(attempts, reserve_cost_usd=0.25)


def test_lost_attempt_that_did_report_is_charged_that():
    assert spend([attempt(1, 10, 0.5, outcome="lost")], reserve_cost_usd=9.0).cost_usd == 0.5


def test_reservation_is_no_excuse_for_an_attempt_that_ended_without_saying():
    assert spend([attempt(1, 10)], reserve_cost_usd=9.0).cost_usd is None


def test_running_attempt_counts_as_begun():
    assert Spend(iterations=1, seconds=0.0, tokens=0, cost_usd=0.0) == spend([running(1)])


def test_input_and_output_tokens_add_up_where_no_total_was_reported():
    assert spend([attempt(1, cost=0.0, input_tokens=100, output_tokens=20)]).tokens == 120
    assert spend([attempt(1, 7, 0.0, input_tokens=100, output_tokens=20)]).tokens == 7
    assert spend([attempt(1, cost=0.0, output_tokens=20)]).tokens is None
    assert spend([attempt(1, cost=0.0, input_tokens=20)]).tokens is None


@pytest.mark.parametrize("reserve", [-0.01, math.nan, math.inf])
def test_reservation_that_is_no_amount_is_refused(reserve):
    with pytest.raises(ConfigError, match=r"reserve_cost_usd is .*: give an amount that is 0 or more"):
        spend([], reserve_cost_usd=reserve)


ATTEMPTS = st.lists(
    st.one_of(
        st.builds(running, st.integers(1, 99)),
        st.builds(
            attempt,
            st.integers(1, 99),
            st.none() | st.integers(0, 10_000),
            st.none() | st.floats(0, 10),
            outcome=st.sampled_from(["ok", "failed", "timeout", "interrupted", "lost"]),
            seconds=st.none() | st.floats(0, 1e6),
        ),
    ),
    max_size=12,
)


@given(attempts=ATTEMPTS, data=st.data())
def test_spend_does_not_depend_on_the_order_of_attempts(attempts, data):
    assert spend(attempts) == spend(data.draw(st.permutations(attempts)))


@given(first=ATTEMPTS, more=ATTEMPTS, ended=ATTEMPTS)
def test_running_spend_equals_spend_wherever_attempts_are_still_open(first, more, ended):
    """The open ones get their end between two looks; whatever stands behind them was not settled before."""
    known = RunningSpend()
    assert spend(first) == known.of(first)
    assert spend([*first, *more]) == known.of([*first, *more])
    ends = [one for one in ended if one.end is not None]
    closed = [one if one.end is not None or not ends else ends[place % len(ends)] for place, one in enumerate([*first, *more])]
    assert spend(closed) == known.of(closed)


@given(attempts=ATTEMPTS, reserve=st.none() | st.floats(0, 5))
def test_spend_against_a_plain_loop(attempts, reserve):
    tokens, cost, tokens_known, cost_known = 0, 0.0, True, True
    for one in attempts:
        ended = one.end is not None and one.end.outcome != "lost"
        reported = one.end.usage if one.end is not None else Usage()
        if reported.tokens_used is not None:
            tokens += reported.tokens_used
        elif ended:
            tokens_known = False
        if reported.token_cost_usd is not None:
            cost += reported.token_cost_usd
        elif ended:
            cost_known = False
        else:
            cost += reserve or 0
    found = spend(attempts, reserve_cost_usd=reserve)
    assert (len(attempts), tokens if tokens_known else None) == (found.iterations, found.tokens)
    assert (found.cost_usd == pytest.approx(cost)) if cost_known else (found.cost_usd is None)


@given(attempts=ATTEMPTS, more=ATTEMPTS)
def test_spend_never_falls_and_unknown_stays_unknown(attempts, more):
    before, after = spend(attempts), spend([*attempts, *more])
    assert after.iterations >= before.iterations
    assert after.seconds >= before.seconds
    assert after.tokens is None or (before.tokens is not None and after.tokens >= before.tokens)
    assert after.cost_usd is None or (before.cost_usd is not None and after.cost_usd >= before.cost_usd)
