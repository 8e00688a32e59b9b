"""The weighted score: the formula, its defaults, and every input that it refuses."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from jumar.errors import ScoreError
from jumar.loop.ranking import DEFAULT_WEIGHTS, check_weights, merge_weights, resolve_weights, weighted_score

FIVE = {"validation": 0.87, "completeness": 0.85, "correctness": 0.86, "readability": 0.8, "efficiency": 0.82}


def test_default_weights_are_the_five_dimensions_and_add_up_to_one():
    expected = {"validation": 0.30, "completeness": 0.25, "correctness": 0.25, "readability": 0.10, "efficiency": 0.10}
    assert expected == dict(DEFAULT_WEIGHTS)
    assert math.fsum(DEFAULT_WEIGHTS.values()) == 1.0


def test_default_weights_cannot_be_changed_by_accident():
    with pytest.raises(TypeError):
        DEFAULT_WEIGHTS["validation"] = 1.0  # pyright: ignore[reportIndexIssue]


def test_score_is_the_weighted_mean_times_100():
    expected = 85.05  # 26.1 + 21.25 + 21.5 + 8 + 8.2
    assert expected == weighted_score(FIVE)


def test_score_keeps_four_decimals_and_is_not_rounded_to_whole_points():
    assert weighted_score({"a": 1 / 3}, {"a": 1.0}) == 33.3333
    assert weighted_score({"a": 0.72001}, {"a": 1.0}) == 72.001


def test_weights_need_not_add_up_to_one():
    assert weighted_score({"a": 1.0, "b": 0.0}, {"a": 3, "b": 1}) == 75.0


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1.0, 1e300, 1.7e308])
def test_tiny_and_huge_weights_do_not_underflow_or_overflow(weight):
    assert weighted_score({"a": 0.5, "b": 0.25}, {"a": weight, "b": weight}) == 37.5


def test_dimension_of_weight_zero_may_be_missing_but_must_be_sound_when_given():
    weights = {"a": 1.0, "b": 0.0}
    assert weighted_score({"a": 0.5}, weights) == 50.0
    assert weighted_score({"a": 0.5, "b": 1}, weights) == 50.0
    with pytest.raises(ScoreError, match="'b' is nan"):
        weighted_score({"a": 0.5, "b": math.nan}, weights)


def test_whole_numbers_and_numbers_of_other_types_count():
    assert weighted_score({"a": 1, "b": Fraction(1, 4)}, {"a": 1, "b": 1}) == 62.5  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "dimension 'a' is nan: give a number from 0 to 1"),
        (math.inf, "dimension 'a' is inf: give a number from 0 to 1"),
        (-math.inf, "dimension 'a' is -inf: give a number from 0 to 1"),
        (-0.01, "dimension 'a' is -0.01: give a number from 0 to 1"),
        (1.01, "dimension 'a' is 1.01, above 1: dimensions are 0 to 1, not percent"),
        (85, "dimension 'a' is 85, above 1: dimensions are 0 to 1, not percent"),
        (100, "dimension 'a' is 100, above 1: dimensions are 0 to 1, not percent"),
        (101, "dimension 'a' is 101: give a number from 0 to 1"),
        (True, "dimension 'a' is True: give a number from 0 to 1"),
        ("0.5", "dimension 'a' is '0.5': give a number from 0 to 1"),
        (None, "dimension 'a' is None: give a number from 0 to 1"),
        (1j, r"dimension 'a' is 1j: give a number from 0 to 1"),
        pytest.param(10**400, "dimension 'a' is 1000", id="400 digits"),
        pytest.param(10**10_000, "dimension 'a' is a number of thousands of digits: give", id="10,000 digits"),
        ("\x1b[2J", r"dimension 'a' is '\\x1b\[2J'"),
    ],
)
def test_dimension_that_is_no_number_of_0_to_1_is_refused_by_name(value, message):
    with pytest.raises(ScoreError, match=message):
        weighted_score({"a": value}, {"a": 1.0})


def test_unknown_dimension_names_the_nearest_and_all_known():
    with pytest.raises(ScoreError) as caught:
        weighted_score({**FIVE, "readabilty": 0.5})
    expected = (
        "unknown dimension 'readabilty' (did you mean 'readability'?); "
        "known are: completeness, correctness, efficiency, readability, validation"
    )
    assert expected == str(caught.value)


def test_dimension_that_is_not_a_name_is_an_error_and_no_crash():
    with pytest.raises(ScoreError, match="unknown dimension 7;"):
        weighted_score({7: 0.5}, {"a": 1.0})  # pyright: ignore[reportArgumentType]


def test_missing_dimensions_are_all_named():
    with pytest.raises(ScoreError) as caught:
        weighted_score({"validation": 0.5, "readability": 0.5, "efficiency": 0.5})
    expected = "missing dimension 'completeness', 'correctness': give a number from 0 to 1, or set its weight to 0"
    assert expected == str(caught.value)


def test_errors_are_value_errors_with_the_exit_code_of_a_usage_error():
    with pytest.raises(ValueError) as caught:
        weighted_score({})
    assert isinstance(caught.value, ScoreError)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, True, "1", None, 10**400])
def test_weight_that_is_no_number_of_0_or_more_is_refused_by_name(value):
    with pytest.raises(ScoreError, match="the weight of 'b' is "):
        check_weights({"a": 1.0, "b": value})


def test_no_weights_and_only_zero_weights_are_refused():
    with pytest.raises(ScoreError, match="there are no weights"):
        check_weights({})
    with pytest.raises(ScoreError, match="all weights are 0"):
        check_weights({"a": 0, "b": 0.0})


def test_checked_weights_are_floats_in_the_order_given():
    checked = check_weights({"b": 1, "a": 0})
    assert [("b", 1.0), ("a", 0.0)] == list(checked.items())
    assert all(type(weight) is float for weight in checked.values())


def test_partial_weights_replace_defaults_and_add_dimensions():
    expected = {**DEFAULT_WEIGHTS, "validation": 0.5, "tone": 0.2}
    assert expected == merge_weights({"validation": 0.5, "tone": 0.2})


def test_merging_refuses_what_leaves_no_weight():
    with pytest.raises(ScoreError, match="all weights are 0"):
        merge_weights(dict.fromkeys(DEFAULT_WEIGHTS, 0))


def test_without_weights_all_scored_dimensions_count_the_same():
    assert {"b": 1.0, "a": 1.0} == resolve_weights(["b", "a", "b"])
    assert {"a": 1.0} == resolve_weights(["a"], {})


def test_unlisted_dimension_gets_the_mean_of_the_weights_given():
    expected = {"a": 3.0, "b": 1.0, "c": 2.0}
    assert expected == resolve_weights(["a", "b", "c"], {"a": 3, "b": 1})


def test_weight_for_a_dimension_that_nobody_scores_names_the_nearest():
    with pytest.raises(ScoreError) as caught:
        resolve_weights(["tests", "length"], {"test": 1})
    assert (
        str(caught.value)
        == "there is a weight for 'test', which nobody scores (did you mean 'tests'?); scored are: length, tests"
    )


def test_weights_without_any_scored_dimension_are_refused():
    with pytest.raises(ScoreError, match="nobody scores; scored are: none"):
        resolve_weights([], {"a": 1})
    with pytest.raises(ScoreError, match="there are no weights"):
        resolve_weights([])


def test_resolving_refuses_bad_weights_and_only_zeros():
    with pytest.raises(ScoreError, match="the weight of 'a' is -1"):
        resolve_weights(["a"], {"a": -1})
    with pytest.raises(ScoreError, match="all weights are 0"):
        resolve_weights(["a", "b"], {"a": 0})
