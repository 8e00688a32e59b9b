"""The iterations of one case, for any scores: best, parent, thresholds and stop against slow and obvious references."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.cases.ranking import case_parent, check_limits, rank_case, stop_case, thresholds_reached
from jumar.cases.records import CASE_STATUSES, CaseIteration, CaseLimits
from jumar.errors import ConfigError, ScoreError
from jumar.loop.ranking import Key, LexicographicOrder

MANY = settings.default.max_examples * 5 if settings.default else 300
TRIED = Counter[str]()
NAMES = ("accuracy", "overall", "chain")


@pytest.fixture(scope="module", autouse=True)
def counts(request):
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\ncases:", "; ".join(f"{count:,} {what}" for what, count in sorted(TRIED.items())) or "nothing tried")


VALUES = st.sampled_from([3, 4, 8.75, 9, None]) | st.floats(0, 10)
ITERATIONS = st.builds(
    CaseIteration,
    case=st.just(1),
    number=st.integers(1, 20),
    status=st.sampled_from(["ok"] * 6 + list(CASE_STATUSES)),
    reason=st.sampled_from(["", "why not"]),
    values=st.fixed_dictionaries(dict.fromkeys(NAMES, VALUES)).map(MappingProxyType),
    diff=st.none() | st.integers(0, 3),
)
LISTS = st.lists(ITERATIONS, max_size=8, unique_by=lambda one: one.number)
TIES = st.sampled_from(
    [(), ("earlier_iter",), ("smaller_diff",), ("smaller_diff", "earlier_iter"), ("earlier_iter", "smaller_diff")]
)
ORDERS = st.builds(
    lambda names, directions, ties: LexicographicOrder(tuple(map(Key, names, directions)), ties),
    st.permutations(NAMES),
    st.lists(st.sampled_from(["max", "min"]), min_size=1, max_size=3),
    TIES,
)


def usable(one: CaseIteration, order: LexicographicOrder) -> bool:
    return one.status == "ok" and all(one.values.get(key.name) is not None for key in order.keys)


def beats(order: LexicographicOrder, one: CaseIteration, other: CaseIteration) -> bool:
    """Whether ``one`` is better, written out: key by key, tie-break by tie-break, then the earlier one."""
    for key in order.keys:
        mine: Any = one.values[key.name]
        theirs: Any = other.values[key.name]
        if mine != theirs:
            return (mine > theirs) == (key.direction == "max")
    for name in order.tie_breaks:
        if name == "smaller_diff":
            mine = math.inf if one.diff is None else one.diff
            theirs = math.inf if other.diff is None else other.diff
            if mine != theirs:
                return mine < theirs
        else:
            return one.number < other.number
    return one.number < other.number


def slow_ranking(iterations: list[CaseIteration], order: LexicographicOrder) -> list[int]:
    """Numbers, best first: of those left, the one that beats all others."""
    left = [one for one in iterations if usable(one, order)]
    ranked: list[int] = []
    while left:
        best = next(one for one in left if all(one is other or beats(order, one, other) for other in left))
        ranked.append(best.number)
        left.remove(best)
    return ranked


@settings(max_examples=MANY)
@given(iterations=LISTS, order=ORDERS)
def test_rank_case_against_comparing_all_with_all(iterations, order):
    TRIED["random cases against pairwise comparison"] += 1
    ranked = slow_ranking(iterations, order)
    found = rank_case(iterations, order)
    assert [*ranked, None][0] == (found.best and found.best.number)
    assert [*ranked, None, None][1] == found.runner_up
    assert sorted(one.number for one in iterations if not usable(one, order)) == [one.number for one in found.invalid]
    assert all(one.reason for one in found.invalid)
    by_number = {one.number: one for one in iterations}
    if len(ranked) < 2:
        assert (None, None) == (found.margin, found.decided_by)
        return
    first, second = (by_number[number] for number in ranked[:2])
    differing = [key.name for key in order.keys if first.values[key.name] != second.values[key.name]]
    if differing:
        assert differing[0] == found.decided_by
        assert round(abs(first.values[differing[0]] - second.values[differing[0]]), 4) == found.margin
    else:
        assert found.decided_by in {"earlier_iter", "smaller_diff"}
        assert found.margin == 0


@given(iterations=LISTS, order=ORDERS, data=st.data())
def test_the_order_of_the_input_never_matters(iterations, order, data):
    assert rank_case(iterations, order) == rank_case(data.draw(st.permutations(iterations)), order)


@given(trio=st.lists(ITERATIONS, min_size=3, max_size=3, unique_by=lambda one: one.number), order=ORDERS)
def test_the_order_is_total_antisymmetric_and_transitive(trio, order):
    trio = [one for one in trio if usable(one, order)]

    def before(one, other):
        return rank_case([one, other], order).best is one

    for one, other in itertools.permutations(trio, 2):
        assert before(one, other) != before(other, one)
    for one, two, three in itertools.permutations(trio, 3):
        assert not (before(one, two) and before(two, three)) or before(one, three)


@given(iterations=LISTS, order=ORDERS, worse=ITERATIONS)
def test_a_worse_iteration_more_changes_nothing(iterations, order, worse):
    """What poisons a chain that carries the last: here it may be added, and the best stays."""
    best = rank_case(iterations, order).best
    late = CaseIteration(case=1, number=99, status=worse.status, values=worse.values, diff=worse.diff)
    if best is None or (usable(late, order) and beats(order, late, best)):
        return
    TRIED["worse iterations added at the end"] += 1
    assert best is rank_case([*iterations, late], order).best


# ---------------------------------------------------------------------------------------------------------- thresholds


@given(
    values=st.dictionaries(st.sampled_from(NAMES), VALUES), thresholds=st.dictionaries(st.sampled_from(NAMES), st.floats(0, 12))
)
def test_thresholds_are_reached_when_there_are_some_and_none_is_missed(values, thresholds):
    missed = 0
    for name, least in thresholds.items():
        if values.get(name) is None or values[name] < least:
            missed += 1
    assert thresholds_reached(values, thresholds) == (len(thresholds) > 0 and missed == 0)


# -------------------------------------------------------------------------------------------------------------- parent


@given(iterations=LISTS, order=ORDERS, continue_from=st.sampled_from(["previous", "best"]))
def test_case_parent_against_a_loop_over_all(iterations, order, continue_from):
    iterations.sort(key=lambda one: one.number)
    expected = None
    for one in iterations:
        if one.status in {"ok", "invalid_score"}:
            expected = one
    ranked = slow_ranking(iterations, order)
    if continue_from == "best" and ranked:
        expected = next(one for one in iterations if one.number == ranked[0])
    assert expected is case_parent(iterations, continue_from, order)


# ---------------------------------------------------------------------------------------------------------------- stop

LIMITS = st.builds(
    CaseLimits,
    thresholds=st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0, 4, 9])).map(MappingProxyType),
    max_iters=st.integers(1, 8),
    max_seconds=st.none() | st.floats(1, 100),
    consecutive_failures=st.integers(1, 4),
)


def slow_stop(iterations: list[CaseIteration], limits: CaseLimits, seconds: float) -> str | None:
    for one in iterations:
        if one.status == "ok" and limits.thresholds:
            values = [one.values.get(name) for name in limits.thresholds]
            if all(value is not None and value >= least for value, least in zip(values, limits.thresholds.values(), strict=True)):
                return "thresholds"
    if len(iterations) >= limits.max_iters:
        return "max_iters"
    row = list(itertools.takewhile(lambda one: one.status != "ok", iterations[::-1]))
    if len(row) >= limits.consecutive_failures:
        return "consecutive_failures"
    return "max_seconds" if limits.max_seconds is not None and seconds >= limits.max_seconds else None


@settings(max_examples=MANY)
@given(iterations=LISTS, limits=LIMITS, seconds=st.floats(0, 120))
def test_stop_case_against_the_rules_one_by_one(iterations, limits, seconds):
    iterations.sort(key=lambda one: one.number)
    stop = stop_case(iterations, limits, seconds=seconds)
    expected = slow_stop(iterations, limits, seconds)
    TRIED[f"stops by {expected or 'nothing'}"] += 1
    assert expected == (stop and stop.stopped_by)
    assert stop is None or stop.detail


def test_stops_say_why():
    def made(number, status: Any = "ok", reason="", **values):
        return CaseIteration(case=1, number=number, status=status, reason=reason, values=MappingProxyType(values))

    limits = CaseLimits(thresholds=MappingProxyType({"accuracy": 9.0}), max_seconds=10.0, consecutive_failures=2)
    said = [
        stop_case([made(1, accuracy=9)], limits, seconds=0),
        stop_case([made(number, accuracy=1) for number in range(1, 6)], limits, seconds=0),
        stop_case([made(1, "step_failed", "exit 1"), made(2, "step_timeout")], limits, seconds=0),
        stop_case([made(1, accuracy=1)], limits, seconds=10.0),
        stop_case([], limits, seconds=0),
    ]
    assert [
        "iteration 1 reached accuracy ≥ 9",
        "5 of 5 iterations done",
        "2 iterations in a row without a usable score; the last: step_timeout",
        "10 of 10 seconds used",
        None,
    ] == [one and one.detail for one in said]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"thresholds": {"accuracy": math.nan}}, "stop threshold for 'accuracy' is nan: give a finite number"),
        ({"thresholds": {"chain": "9"}}, "stop threshold for 'chain' is '9': give a finite number"),
        ({"max_iters": 0}, "max_iters is 0: give a whole number that is 1 or more"),
        ({"max_iters": 2.5}, "max_iters is 2.5"),
        ({"max_iters": True}, "max_iters is True"),
        ({"max_iters": "5"}, "max_iters is '5'"),
        ({"consecutive_failures": 0}, "consecutive_failures is 0"),
        ({"max_seconds": 0}, "max_seconds is 0: give a number above 0"),
        ({"max_seconds": math.inf}, "max_seconds is inf"),
    ],
)
def test_limits_that_mean_nothing_are_refused(changes: dict[str, Any], said: str):
    with pytest.raises(ConfigError) as caught:
        check_limits(CaseLimits(**{"thresholds": {}, **changes}))
    assert said in str(caught.value)


def test_limits_that_are_never_reached_are_allowed():
    check_limits(CaseLimits(thresholds={"accuracy": 11.0, "overall": -1}, max_seconds=0.5))
    check_limits(CaseLimits(thresholds={}))


def test_an_iteration_that_is_there_twice_is_an_error():
    twice = [CaseIteration(case=1, number=1, status="ok"), CaseIteration(case=1, number=1, status="step_failed")]
    with pytest.raises(ScoreError, match="there twice"):
        rank_case(twice, LexicographicOrder((Key("accuracy"),)))


def test_a_threshold_of_a_key_of_which_less_is_better_is_reached_from_above():
    limits = CaseLimits(thresholds={"cost": 8, "accuracy": 5}, at_most=frozenset({"cost"}))
    dear, cheap = (
        CaseIteration(case=1, number=n, status="ok", values={"cost": cost, "accuracy": 6}) for n, cost in ((1, 9), (2, 8))
    )
    assert None is stop_case([dear], limits, seconds=0)
    stop = stop_case([dear, cheap], limits, seconds=0)
    assert stop is not None
    assert "iteration 2 reached cost ≤ 8, accuracy ≥ 5" == stop.detail
