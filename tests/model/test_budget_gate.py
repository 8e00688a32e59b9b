"""Whether another step may begin: caps reached and exceeded, what is unknown, what runs, and calls an hour."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.errors import UsageError
from jumar.model import Attempt, AttemptEnd, AttemptStart, Budget, Reservation, Spend, Usage
from jumar.model.budget import Go, RunningReservation, Stop, Wait, budget_left, may_begin, reservation, spend, spent_up
from jumar.model.budget.gate import check_budget

AT = "2026-01-01T00:00:00Z"
NOTHING = Reservation()


def known(cost: float = 0.0, tokens: int = 0, **more: Any) -> Spend:
    return Spend(cost_usd=cost, tokens=tokens, known_cost_usd=cost, known_tokens=tokens, **more)


def of(cost: float | None = None, tokens: int | None = None) -> Reservation:
    return Reservation(cost_usd=cost, tokens=tokens)


def ask(spent: Spend, budget: Budget, generate: Reservation = NOTHING, score: Reservation = NOTHING, **more: Any) -> Any:
    return may_begin(spend=spent, budget=budget, generate=generate, score=score, **more)


def reason(gate: Any) -> str:
    assert isinstance(gate, Stop)
    return gate.decision.reason


def test_without_limits_everything_may_begin():
    spent = known(1e9, 10**12, iterations=10**6, seconds=1e9, unknown_costs=3, uncharged_costs=3, uncharged_tokens=3)
    assert ask(spent, Budget(), of(0.5, 10), running=7) == Go(reservation=of(0.5, 10))


@pytest.mark.parametrize(
    ("budget", "spent", "stops"),
    [
        (Budget(max_cost_usd=1.0), known(1.0), "max_cost"),
        (Budget(max_cost_usd=0.3), known(0.1 + 0.2), "max_cost"),
        (Budget(max_cost_usd=0.8), known(0.7 + 0.1), "max_cost"),  # in doubles this is a little less
        (Budget(max_cost_usd=0.0), known(0.0), "max_cost"),
        (Budget(max_tokens=500), known(tokens=500), "max_tokens"),
        (Budget(max_seconds=60.0), known(seconds=60.0), "max_seconds"),
        (Budget(max_iterations=3), known(iterations=3), "max_attempts"),
    ],
)
def test_a_cap_that_is_reached_exactly_is_reached(budget, spent, stops):
    assert reason(ask(spent, budget, of(0.0, 0), of(0.0, 0))) == stops
    ended = spent_up(spent, budget)
    assert ended is not None
    assert ended.reason == stops
    assert "[budget] max_" in ended.detail


@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        (Budget(max_cost_usd=1.0), known(0.99)),
        (Budget(max_tokens=500), known(tokens=499)),
        (Budget(max_seconds=60.0), known(seconds=59.9)),
        (Budget(max_iterations=3), known(iterations=2)),
    ],
)
def test_below_its_cap_a_loop_goes_on(budget, spent):
    assert ask(spent, budget) == Go(reservation=NOTHING)
    assert spent_up(spent, budget) is None


def test_the_step_and_its_score_must_fit():
    budget = Budget(max_cost_usd=1.0)
    assert ask(known(0.5), budget, of(0.3), of(0.2)) == Go(reservation=of(0.3))
    refused = ask(known(0.5), budget, of(0.3), of(0.21))
    assert reason(refused) == "max_cost"
    assert "$0.50 of $1.00" in refused.decision.detail
    assert "$0.51" in refused.decision.detail
    assert reason(ask(known(tokens=900), Budget(max_tokens=1000), of(tokens=90), of(tokens=11))) == "max_tokens"


def test_cents_that_add_up_to_the_cap_fit():
    assert ask(known(0.7 + 0.1), Budget(max_cost_usd=1.0), of(0.1), of(0.1)) == Go(reservation=of(0.1))
    assert ask(known(0.2), Budget(max_cost_usd=0.3), of(0.1), of(0.0)) == Go(reservation=of(0.1))


def test_assumed_costs_count():
    spent = replace(known(0.5), assumed_cost_usd=0.5, cost_usd=1.0)
    assert reason(ask(spent, Budget(max_cost_usd=1.0))) == "max_cost"


def test_what_is_in_flight_counts_and_what_runs_is_waited_for():
    budget = Budget(max_cost_usd=1.0)
    fits = ask(known(0.5), budget, of(0.2), of(0.1), in_flight=of(0.2), running=1)
    assert fits == Go(reservation=of(0.2))
    waits = ask(known(0.5), budget, of(0.2), of(0.1), in_flight=[of(0.2), of(0.1), NOTHING], running=2)
    assert isinstance(waits, Wait)
    assert waits.seconds is None
    assert "[budget] max_cost_usd" in waits.why
    assert reason(ask(known(0.5), budget, of(0.2), of(0.1), in_flight=of(0.3), running=0)) == "max_cost"


@pytest.mark.parametrize(("generate", "score"), [(NOTHING, NOTHING), (of(0.1), NOTHING), (NOTHING, of(0.1))])
def test_as_long_as_nobody_knows_a_step_runs_alone(generate, score):
    budget = Budget(max_cost_usd=1.0)
    assert ask(known(), budget, generate, score) == Go(reservation=generate)
    waits = ask(known(), budget, generate, score, running=1)
    assert isinstance(waits, Wait)
    assert waits.seconds is None
    assert ask(known(), Budget(max_seconds=5), generate, score, running=1) == Go(reservation=generate), "no such cap"


def silent(**more: Any) -> Spend:
    return Spend(cost_usd=None, tokens=None, unknown_costs=1, unknown_tokens=1, iterations=1, calls=1, **more)


def test_unknown_stops_the_loop_where_that_is_asked_for():
    assert reason(ask(silent(assumed_cost_usd=0.5), Budget(on_unknown_cost="stop"))) == "unknown_cost"
    assert reason(ask(Spend(uncharged_costs=1), Budget(on_unknown_cost="stop"))) == "unknown_cost"
    only_tokens = Spend(tokens=None, unknown_tokens=1, uncharged_tokens=1)
    assert ask(only_tokens, Budget(on_unknown_cost="stop", max_cost_usd=1)) == Go(reservation=NOTHING)
    assert reason(ask(only_tokens, Budget(on_unknown_cost="stop", max_tokens=9))) == "unknown_cost"


def test_unknown_is_charged_or_stops_the_loop_under_a_cap():
    charged, uncharged = silent(assumed_cost_usd=0.5), silent(uncharged_costs=1)
    assert ask(charged, Budget(max_cost_usd=1.0), of(0.5), of(0.0)) == Go(reservation=of(0.5))
    assert ask(uncharged, Budget(), of(0.5)) == Go(reservation=of(0.5)), "without a cap nothing is at stake"
    stopped = ask(uncharged, Budget(max_cost_usd=1.0), of(0.5))
    assert reason(stopped) == "unknown_cost"
    assert "reserve_cost_usd" in stopped.decision.detail
    stopped = ask(silent(uncharged_tokens=1), Budget(max_tokens=10))
    assert reason(stopped) == "unknown_cost"
    assert "reserve_tokens" in stopped.decision.detail


def test_unknown_is_let_pass_and_said():
    spent = silent(uncharged_costs=2, uncharged_tokens=1)
    gate = ask(spent, Budget(max_cost_usd=1.0, max_tokens=10, on_unknown_cost="allow"))
    assert isinstance(gate, Go)
    assert gate.note == ("the budget counts only what is known: the cost of 2 attempts and the tokens of 1 attempt are not in it")
    gate = ask(spent, Budget(max_cost_usd=1.0, on_unknown_cost="allow"))
    assert isinstance(gate, Go)
    assert gate.note == "the budget counts only what is known: the cost of 2 attempts is not in it"
    assert ask(spent, Budget(on_unknown_cost="allow")) == Go(reservation=NOTHING)
    assert ask(known(), Budget(max_cost_usd=1.0, max_tokens=9, on_unknown_cost="allow")) == Go(reservation=NOTHING)


def test_the_first_of_several_limits_is_the_reason():
    budget = Budget(max_iterations=1, max_seconds=1, max_cost_usd=1, max_tokens=1)
    spent = known(1, 1, iterations=1, seconds=1.0, uncharged_costs=1)
    seen: list[str] = []
    for key in ("max_iterations", "max_seconds", "on_unknown_cost", "max_cost_usd", "max_tokens"):
        seen.append(reason(ask(spent, budget)))
        budget = replace(budget, **{key: "allow" if key == "on_unknown_cost" else None})
    assert seen == ["max_attempts", "max_seconds", "unknown_cost", "max_cost", "max_tokens"]
    assert isinstance(ask(spent, budget), Go)


def test_calls_an_hour():
    budget = Budget(max_calls_per_hour=2)
    assert ask(known(), budget, call_ages=[3600.0, 5000.0, 10.0]) == Go(reservation=NOTHING)
    assert ask(known(), budget, call_ages=[3599.0, 10.0]).seconds == pytest.approx(1.0)
    assert ask(known(), budget, call_ages=[3500.0, 100.0, 10.0]).seconds == pytest.approx(3500.0)
    assert ask(known(), budget, call_ages=[-3600.0, -1.0]).seconds == 3600.0, "a clock that went back"
    assert "2 calls an hour" in ask(known(), budget, call_ages=[0.0, 0.0]).why
    assert isinstance(ask(known(), Budget(), call_ages=[0.0] * 99), Go)


@given(ages=st.lists(st.floats(-10, 8000), max_size=12), most=st.integers(1, 6))
def test_after_the_wait_a_call_is_free_and_not_before(ages, most):
    def free_after(seconds: float) -> bool:
        return sum(max(0.0, age) + seconds < 3600 for age in ages) < most

    gate = ask(known(), Budget(max_calls_per_hour=most), call_ages=ages)
    if isinstance(gate, Go):
        assert free_after(0.0)
        return
    assert not free_after(0.0)
    assert not free_after(gate.seconds - 1e-3)
    assert free_after(gate.seconds + 1e-6)


@pytest.mark.parametrize(
    ("budget", "named"),
    [
        (Budget(max_cost_usd=-0.01), "max_cost_usd = -0.01 should be a number that is 0 or more"),
        (Budget(max_seconds=float("nan")), "max_seconds = nan should be"),
        (Budget(max_tokens=float("inf")), "max_tokens = inf should be"),  # type: ignore[arg-type]
        (Budget(max_iterations=0), "max_iterations = 0 should be a number that is 1 or more"),
        (Budget(max_calls_per_hour=0), "max_calls_per_hour = 0 should be a number that is 1 or more"),
    ],
)
def test_limits_that_mean_nothing_are_refused_by_name(budget, named):
    with pytest.raises(UsageError) as refused:
        check_budget(budget)
    assert f"[budget] {named}" in str(refused.value)


def test_the_smallest_limits_that_mean_something_are_taken():
    check_budget(Budget())
    check_budget(Budget(max_cost_usd=0, max_tokens=0, max_seconds=0, max_iterations=1, max_calls_per_hour=1))


def test_what_is_left():
    spent = replace(known(0.75, 300, iterations=2, seconds=10.0), assumed_cost_usd=0.5)
    budget = Budget(max_iterations=5, max_seconds=4.0, max_tokens=1000, max_cost_usd=2.0)
    assert budget_left(spent, budget) == {"iterations": 3, "seconds": 0, "tokens": 700, "cost_usd": 0.75}
    assert budget_left(spent, Budget()) == {"iterations": None, "seconds": None, "tokens": None, "cost_usd": None}


# ---- what is set aside -----------------------------------------------------------------------------------------------------


def attempt(number, cost: float | None, tokens: int | None = None, purpose: Any = "generate", outcome: Any = "ok", ended=True):
    begun = AttemptStart(number=number, iteration=number, parent=None, nonce="n", started_at=AT, purpose=purpose)
    usage = Usage(token_cost_usd=cost, tokens_used=tokens)
    return Attempt(start=begun, end=AttemptEnd(outcome=outcome, seconds=1.0, ended_at=AT, usage=usage) if ended else None)


def test_reservation_is_what_is_configured_else_the_largest_seen_of_its_kind():
    attempts = [attempt(1, 0.5, 10), attempt(2, 0.25, 30), attempt(3, 0.0, 0, "score"), attempt(4, None, None)]
    assert reservation(attempts, Budget(), "generate") == of(0.5, 30)
    assert reservation(attempts, Budget(reserve_cost_usd=0.125), "generate") == of(0.125, 30)
    assert reservation(attempts, Budget(reserve_tokens=99), "generate") == of(0.5, 99)
    assert reservation(attempts, Budget(), "score") == of(0.0, 0)
    assert reservation(attempts, Budget(), "confirm") == of(0.0, 0)
    assert reservation([], Budget(), "confirm") == reservation([], Budget(), "generate") == NOTHING


def test_scoring_reserves_what_scoring_took_and_the_configured_amount_only_before_that_is_known():
    budget = Budget(reserve_cost_usd=2.0, reserve_tokens=50)
    assert reservation([], budget, "score") == of(2.0, 50)
    assert reservation([attempt(1, None, None, "score")], budget, "score") == of(2.0, 50)
    assert reservation([attempt(1, 0.0, 0, "score")], budget, "score") == of(0.0, 0)


def test_the_first_confirmation_reserves_no_less_than_scoring_took():
    scored = attempt(1, 0.5, 10, "score")
    assert reservation([scored], Budget(reserve_cost_usd=0.25, reserve_tokens=50), "confirm") == of(0.5, 50)
    assert reservation([scored, attempt(2, 0.125, 5, "confirm")], Budget(reserve_cost_usd=2.0), "confirm") == of(0.125, 5)


def test_an_attempt_that_was_turned_away_says_nothing_about_the_next():
    turned_away = attempt(1, None, outcome="rate_limited")
    assert reservation([turned_away], Budget(), "generate") == NOTHING
    assert reservation([turned_away, attempt(2, 0.5, outcome="rate_limited")], Budget(), "generate") == of(0.5)


KINDS = st.builds(
    attempt,
    st.integers(1, 99),
    st.none() | st.floats(0, 5),
    st.none() | st.integers(0, 500),
    purpose=st.sampled_from(["generate", "score", "confirm"]),
    outcome=st.sampled_from(["ok", "failed", "rate_limited", "lost"]),
    ended=st.booleans(),
)


@given(attempts=st.lists(KINDS, max_size=10), purpose=st.sampled_from(["generate", "score"]), looks=st.sets(st.integers(0, 10)))
def test_running_reservation_equals_a_plain_maximum(attempts, purpose, looks):
    largest = RunningReservation()
    for count in range(len(attempts) + 1):
        seen = attempts[:count]
        mine = [one for one in seen if one.start.purpose == purpose and one.end is not None]
        costs, tokens = [], []
        for one in mine:
            usage, limited = one.end.usage, one.end.outcome == "rate_limited"
            costs += [usage.token_cost_usd] if usage.token_cost_usd or (usage.token_cost_usd == 0 and not limited) else []
            tokens += [usage.tokens_used] if usage.tokens_used or (usage.tokens_used == 0 and not limited) else []
        expected = of(max(costs, default=None), max(tokens, default=None))
        assert reservation(seen, Budget(), purpose) == expected
        if count in looks:
            assert largest.of(seen, Budget(), purpose) == expected


# ---- the promise: a budget is never exceeded by more than one step in flight ------------------------------------------------


@given(
    costs=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.5)), min_size=60, max_size=60),
    cap=st.floats(0, 6),
    configured=st.none() | st.floats(0, 2),
)
def test_a_loop_never_exceeds_its_budget_by_more_than_one_step(costs, cap, configured):
    """One step at a time: what the last one cost more than was set aside for it is all that can be over."""
    budget = Budget(max_cost_usd=cap, reserve_cost_usd=configured)
    attempts: list[Attempt] = []
    last = 0.0
    for number, (generated, scored) in enumerate(costs):
        gate = ask(
            spend(attempts, budget), budget, reservation(attempts, budget, "generate"), reservation(attempts, budget, "score")
        )
        if isinstance(gate, Stop):
            break
        attempts += [attempt(2 * number, generated), attempt(2 * number + 1, scored, purpose="score")]
        last = generated + scored
    assert spend(attempts, budget).charged_cost_usd <= cap + last + 1e-9


@given(
    costs=st.lists(st.floats(0.01, 1), min_size=40, max_size=40),
    cap=st.floats(0, 10),
    workers=st.integers(1, 6),
    data=st.data(),
)
def test_candidates_side_by_side_stay_within_a_budget_that_reserves_the_most_that_one_takes(costs, cap, workers, data):
    budget = Budget(max_cost_usd=cap, reserve_cost_usd=1.0)
    score = of(0.0, 0)
    open_ones: dict[int, float] = {}
    done: list[Attempt] = []
    todo = list(enumerate(costs))
    while todo or open_ones:
        live = [replace_start(attempt(number, None, ended=False), 1.0) for number in open_ones]
        gate = ask(spend([*done, *live], budget), budget, of(1.0), score, running=len(open_ones))
        if todo and len(open_ones) < workers and isinstance(gate, Go):
            number, cost = todo.pop(0)
            open_ones[number] = cost
        elif open_ones:
            number = data.draw(st.sampled_from(sorted(open_ones)))
            done.append(attempt(number, open_ones.pop(number)))
        else:
            break
    assert spend(done, budget).charged_cost_usd <= cap * (1 + 1e-9)


def replace_start(one: Attempt, reserve: float) -> Attempt:
    return replace(one, start=replace(one.start, reserve_cost_usd=reserve))


def test_the_end_names_the_reservation_that_did_not_fit():
    budget = Budget(max_cost_usd=0.6, reserve_cost_usd=0.5)
    gate = ask(known(0.15), budget, of(0.5, 0))
    assert reason(gate) == "max_cost"
    assert gate.decision.detail.endswith("and the next iteration may take $0.50 (reserve_cost_usd)")
    assert ask(known(0.15), replace(budget, reserve_cost_usd=None), of(0.5, 0)).decision.detail.endswith("may take $0.50")
