"""The lexicographic order: keys, directions, tie-breaks, what is invalid, and what it says about its decision."""

from __future__ import annotations

import math

import pytest

from jumar.errors import ConfigError, ScoreError
from jumar.loop.ranking import DEFAULT_TIE_BREAKS, InvalidView, Key, LexicographicOrder, parse_order
from jumar.model import IterationView

CASES = parse_order("accuracy,overall,chain")


def case(number, accuracy, overall, chain, diff=None, **fields):
    keys = {"accuracy": accuracy, "overall": overall, "chain": chain}
    return IterationView(number=number, score=None, keys=keys if diff is None else {**keys, "diff": diff}, **fields)


def best(order, *views):
    found = order.rank(views).best
    assert found is not None
    return found.number


def test_accuracy_dominates():
    assert best(CASES, case(1, 8, 10, 10), case(2, 9, 1, 1)) == 2


def test_overall_breaks_ties_on_accuracy():
    assert best(CASES, case(1, 9, 8.5, 10), case(2, 9, 8.75, 1)) == 2


def test_chain_breaks_ties_on_accuracy_and_overall():
    assert best(CASES, case(1, 9, 8.75, 7), case(2, 9, 8.75, 8)) == 2


def test_earlier_wins_exact_ties_by_default():
    assert best(CASES, case(2, 9, 8.75, 8, diff=1), case(1, 9, 8.75, 8, diff=9)) == 1
    assert DEFAULT_TIE_BREAKS == CASES.tie_breaks


def test_tie_breaks_decide_in_the_order_given():
    pair = case(1, 9, 8.75, 8, diff=9), case(2, 9, 8.75, 8, diff=1)
    assert best(parse_order("accuracy,overall,chain", "smaller_diff"), *pair) == 2
    assert best(parse_order("accuracy,overall,chain", "smaller_diff,earlier_iter"), *pair) == 2
    assert best(parse_order("accuracy,overall,chain", "earlier_iter,smaller_diff"), *pair) == 1
    assert best(parse_order("accuracy,overall,chain", ""), *pair) == 1


def test_tie_break_after_smaller_diff_decides_between_equal_diffs():
    order = parse_order("accuracy,overall,chain", "smaller_diff")
    assert best(order, case(2, 9, 8, 8, diff=3), case(1, 9, 8, 8, diff=3)) == 1


@pytest.mark.parametrize("diff", [math.nan, math.inf, None])
def test_unknown_diff_loses_but_makes_nothing_invalid(diff):
    ranking = parse_order("accuracy", "smaller_diff").rank([case(1, 9, 8, 8, diff=diff), case(2, 9, 8, 8, diff=900)])
    assert [2, 1] == [view.number for view in ranking.ordered]
    assert ranking.invalid == ()
    assert ranking.explanation == "accuracy is equal; the smaller diff wins: 900 against unknown"


def test_later_keys_are_not_looked_at_by_the_order_of_input():
    views = [case(3, 9, 8.75, 8), case(1, 9, 8.5, 9), case(2, 8, 9, 9)]
    assert [3, 1, 2] == [view.number for view in CASES.rank(views).ordered]
    assert CASES.rank(views) == CASES.rank(reversed(views))


def test_lower_is_better_where_it_is_said():
    views = case(1, 9, 8, 8), case(2, 5, 8, 8)
    assert best(parse_order("-accuracy"), *views) == 2
    assert best(parse_order("accuracy:min"), *views) == 2
    assert best(LexicographicOrder((Key("accuracy", "min"),)), *views) == 2


def test_values_come_from_keys_then_dimensions_then_the_view_itself():
    order = parse_order("score")
    shadowed = IterationView(number=1, score=10, dimensions={"score": 0.9}, keys={"score": 5})
    plain = IterationView(number=2, score=90, dimensions={"score": 0.2})
    own = IterationView(number=3, score=80)
    assert (-5, 1, 1) == order.sort_key(shadowed)
    assert (-0.2, 2, 2) == order.sort_key(plain)
    assert (-80, 3, 3) == order.sort_key(own)
    assert (-3, 3, 3) == parse_order("number").sort_key(own)
    assert best(parse_order("number"), plain, own) == 3


INVALID = [
    (IterationView(number=1, score=50), "'accuracy' is missing"),
    (IterationView(number=1, score=50, keys={"accuracy": math.nan}), "'accuracy' is nan, not a finite number"),
    (IterationView(number=1, score=50, keys={"accuracy": -math.inf}), "'accuracy' is -inf, not a finite number"),
    (IterationView(number=1, score=50, keys={"accuracy": True}), "'accuracy' is True, not a finite number"),
    (IterationView(number=1, score=50, dimensions={"accuracy": math.inf}), "'accuracy' is inf, not a finite number"),
    (IterationView(number=1, score=50, keys={"accuracy": 9}, status="scorer_broken"), "scorer_broken"),
]


@pytest.mark.parametrize(("bad", "reason"), INVALID)
def test_view_without_a_finite_value_is_reported_and_never_best(bad, reason):
    order = parse_order("accuracy")
    good = IterationView(number=2, score=None, keys={"accuracy": -5})
    ranking = order.rank([bad, good])
    assert (good,) == ranking.ordered
    assert (InvalidView(number=1, reason=reason),) == ranking.invalid
    assert ranking.best == good
    assert reason == order.invalid_reason(bad)
    assert order.invalid_reason(good) is None
    with pytest.raises(ScoreError, match="iteration 1 cannot be ranked: "):
        order.sort_key(bad)


@pytest.mark.parametrize(
    ("score", "reason"),
    [(None, "no score"), (101, "the score is 101, not a number of 0–100"), (math.nan, "the score is nan, not a number of 0–100")],
)
def test_own_score_must_be_on_its_scale(score, reason):
    assert reason == parse_order("score").invalid_reason(IterationView(number=1, score=score))


def test_all_invalid_or_none_there_gives_no_best():
    assert CASES.rank([]).best is None
    assert CASES.rank([]).explanation == "no iteration is valid"
    ranking = CASES.rank([IterationView(number=2, score=1), IterationView(number=1, score=1)])
    assert ranking.best is None
    assert [1, 2] == [invalid.number for invalid in ranking.invalid]


@pytest.mark.parametrize(
    ("views", "decided_by", "explanation"),
    [
        ((case(3, 9, 8, 7),), None, "iteration 3 is the only valid one"),
        ((case(1, 9, 8, 7), case(2, 8, 8, 7)), "accuracy", "accuracy decides: 9 against 8 (higher is better)"),
        (
            (case(1, 9, 8.75, 7), case(2, 9, 8.5, 7)),
            *("overall", "accuracy is equal; overall decides: 8.75 against 8.5 (higher is better)"),
        ),
        (
            (case(1, 9, 8, 7), case(2, 9, 8, 6)),
            *("chain", "accuracy and overall are equal; chain decides: 7 against 6 (higher is better)"),
        ),
        (
            (case(2, 9, 8, 7), case(5, 9, 8, 7)),
            *("earlier_iter", "accuracy, overall and chain are equal; the earlier iteration wins: 2 before 5"),
        ),
    ],
)
def test_says_what_decided_between_the_first_two(views, decided_by, explanation):
    ranking = CASES.rank(views)
    assert (decided_by, explanation) == (ranking.decided_by, ranking.explanation)


def test_says_that_the_diff_decided_and_that_lower_was_better():
    ranking = parse_order("accuracy", ["smaller_diff"]).rank([case(1, 9, 8, 7, diff=5), case(2, 9, 8, 7, diff=2)])
    assert ("smaller_diff", "accuracy is equal; the smaller diff wins: 2 against 5") == (ranking.decided_by, ranking.explanation)
    assert parse_order("-overall").rank([case(1, 9, 8, 7), case(2, 9, 7, 7)]).explanation == (
        "overall decides: 7 against 8 (lower is better)"
    )


def test_the_same_number_twice_is_an_error():
    with pytest.raises(ScoreError, match="iteration 1 is there twice"):
        CASES.rank([case(1, 9, 8, 7), case(1, 9, 8, 7)])


def test_parsing_takes_text_or_a_list_with_spaces():
    expected = LexicographicOrder((Key("accuracy"), Key("cost", "min"), Key("time", "min"), Key("chain")), ("smaller_diff",))
    assert expected == parse_order(" accuracy , -cost, time : min ,chain:max", "smaller_diff")
    assert expected == parse_order(["accuracy", "cost:min", "-time", "chain"], ["smaller_diff"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the order has no keys"),
        ("accuracy,,chain", "there is an empty name in 'accuracy,,chain': remove the extra comma"),
        ("accuracy,", "remove the extra comma"),
        ("-", "a key of the order has no name"),
        (":min", "a key of the order has no name"),
        ("accuracy,accuracy", "the key 'accuracy' is there twice"),
        ("accuracy,-accuracy", "the key 'accuracy' is there twice"),
        ("accuracy:up", "unknown direction 'up' in 'accuracy:up': use min or max"),
        ("-cost:max", "'-cost:max' gives a direction twice: write '-cost' or 'cost:max'"),
        ("acuracy", r"unknown key 'acuracy' in the order \(did you mean 'accuracy'\?\); known are: accuracy, chain, overall"),
    ],
)
def test_bad_orders_are_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_order(text, known={"accuracy", "overall", "chain"})


def test_bad_tie_breaks_are_refused():
    with pytest.raises(ConfigError, match=r"unknown tie-break 'smaler_diff' \(did you mean 'smaller_diff'\?\)"):
        parse_order("accuracy", "smaler_diff")
    with pytest.raises(ConfigError, match="the tie-break 'earlier_iter' is there twice"):
        parse_order("accuracy", "earlier_iter,earlier_iter")


def test_direction_other_than_max_or_min_is_refused():
    with pytest.raises(ConfigError, match="the direction of 'a' is 'down': use max or min"):
        Key("a", "down")  # pyright: ignore[reportArgumentType]


def test_tie_break_that_can_never_be_reached_is_warned_of():
    expected = (
        "the tie-break smaller_diff can never decide: earlier_iter stands before it, and no two iterations have the same number",
    )
    assert expected == parse_order("accuracy", "earlier_iter,smaller_diff").warnings
    for reachable in ("", "earlier_iter", "smaller_diff", "smaller_diff,earlier_iter"):
        assert parse_order("accuracy", reachable).warnings == ()
