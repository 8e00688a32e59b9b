"""The lexicographic order, for any values: total, independent of the input's order, and as the case loop describes it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.loop.ranking import Key, LexicographicOrder, parse_order
from jumar.model import IterationView

MANY = settings.default.max_examples * 5 if settings.default else 300
TRIED = Counter[str]()


@pytest.fixture(scope="module", autouse=True)
def counts(request):
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(
            "\nlexicographic order:", "; ".join(f"{count:,} {what}" for what, count in sorted(TRIED.items())) or "nothing tried"
        )


NAMES = ("accuracy", "overall", "chain")
VALUES = st.sampled_from([7, 8, 8.0, 8.5, 9]) | st.floats(0, 10)
BAD = st.sampled_from([math.nan, math.inf, -math.inf, True])
KEYS = st.fixed_dictionaries(dict.fromkeys(NAMES, VALUES), optional={"diff": st.sampled_from([0, 1, 2, math.nan])})
VALID = st.builds(IterationView, number=st.integers(0, 30), score=st.none(), keys=KEYS)
INVALID = st.one_of(
    st.builds(
        IterationView,
        number=st.integers(0, 30),
        score=st.none(),
        keys=st.fixed_dictionaries({"accuracy": BAD, "overall": VALUES}),
    ),
    st.builds(IterationView, number=st.integers(0, 30), score=st.none(), keys=KEYS, status=st.just("scorer_broken")),
    st.builds(IterationView, number=st.integers(0, 30), score=st.none()),
)
TIE_BREAKS = st.sampled_from(
    [(), ("earlier_iter",), ("smaller_diff",), ("smaller_diff", "earlier_iter"), ("earlier_iter", "smaller_diff")]
)
ORDERS = st.builds(
    lambda names, directions, ties: LexicographicOrder(tuple(map(Key, names, directions)), ties),
    st.permutations(NAMES),
    st.lists(st.sampled_from(["max", "min"]), min_size=3, max_size=3),
    TIE_BREAKS,
)


def number_of(view):
    return view.number


LISTS = st.lists(VALID | INVALID, max_size=9, unique_by=number_of)


def beats(order, one, other):
    """Whether ``one`` is better than ``other``: key by key, then tie-break by tie-break, written out."""
    for key in order.keys:
        mine, theirs = one.keys[key.name], other.keys[key.name]
        if mine > theirs:
            return key.direction == "max"
        if mine < theirs:
            return key.direction == "min"
    for name in order.tie_breaks:
        if name == "earlier_iter":
            return one.number < other.number
        mine, theirs = diff_of(one), diff_of(other)
        if mine != theirs:
            return theirs is None or (mine is not None and mine < theirs)
    return one.number < other.number


def diff_of(view) -> Any:
    value: Any = view.keys.get("diff")
    return None if value is None or math.isnan(value) else value


def has_values(view):
    values = [view.keys.get(name) for name in NAMES]
    return view.status == "ok" and all(type(value) in {int, float} and math.isfinite(value) for value in values)


@settings(max_examples=MANY)
@given(views=LISTS, order=ORDERS)
def test_rank_against_counting_who_beats_whom(views, order):
    TRIED["random lists against pairwise comparison"] += 1
    valid = [view for view in views if has_values(view)]
    place = {view.number: sum(beats(order, other, view) for other in valid if other is not view) for view in valid}
    expected = sorted(valid, key=lambda view: place[view.number])
    ranking = order.rank(views)
    assert expected == list(ranking.ordered)
    assert sorted(view.number for view in views if not has_values(view)) == [one.number for one in ranking.invalid]


def case_loop(views, tie_breaks):
    """The case loop's own algorithm: one candidate in memory, replaced when the rank is better, tie-breaks between equals."""
    best, *later = sorted(views, key=number_of)
    for view in later:
        rank, best_rank = (tuple(one.keys[name] for name in NAMES) for one in (view, best))
        smaller = tie_breaks == ("smaller_diff",) and view.keys["diff"] < best.keys["diff"]
        if rank > best_rank or (rank == best_rank and smaller):
            best = view
    return best


def test_every_short_run_of_cases_against_the_case_loops_own_algorithm():
    grid = list(itertools.product((8, 9), (8.5, 8.75), (7, 8), (1, 2)))
    for runs in itertools.product(grid, repeat=3):
        views = [
            IterationView(number=n, score=None, keys=dict(zip((*NAMES, "diff"), values, strict=True)))
            for n, values in enumerate(runs, 1)
        ]
        TRIED["short runs, all of them, under 2 tie-breaks"] += 1
        for ties in (("earlier_iter",), ("smaller_diff",)):
            assert case_loop(views, ties) is parse_order("accuracy,overall,chain", ties).rank(views).best


@given(views=LISTS, order=ORDERS, data=st.data())
def test_the_order_of_input_never_matters(views, order, data):
    assert repr(order.rank(views)) == repr(order.rank(data.draw(st.permutations(views))))  # repr, because NaN equals nothing


@given(trio=st.lists(VALID, min_size=3, max_size=3, unique_by=number_of), order=ORDERS)
def test_the_order_is_total_antisymmetric_and_transitive(trio, order):
    def before(one, other):
        return order.rank([one, other]).best is one

    for one, other in itertools.permutations(trio, 2):
        assert before(one, other) != before(other, one)
    for one, two, three in itertools.permutations(trio):
        assert not (before(one, two) and before(two, three)) or before(one, three)


@given(views=LISTS, order=ORDERS)
def test_what_it_says_decided_is_the_first_value_that_differs(views, order):
    ranking = order.rank(views)
    if len(ranking.ordered) < 2:
        assert ranking.decided_by is None
        return
    first, second = ranking.ordered[:2]
    differing = [key.name for key in order.keys if first.keys[key.name] != second.keys[key.name]]
    if differing:
        assert differing[0] == ranking.decided_by
    else:
        assert ranking.decided_by in {"earlier_iter", "smaller_diff"}


@given(names=st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, unique=True), data=st.data())
def test_parsing_reads_back_what_was_written(names, data):
    keys = tuple(Key(name, data.draw(st.sampled_from(["max", "min"]))) for name in names)
    for written in ({"max": "{}", "min": "-{}"}, {"max": "{}:max", "min": "{}:min"}):
        assert keys == parse_order(",".join(written[key.direction].format(key.name) for key in keys)).keys
