"""``carry_if``: what a condition holds for, and which texts are none."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.cases.ranking import Condition, parse_conditions
from jumar.errors import ConfigError

SIGNS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
NUMBERS = st.floats(-1e6, 1e6)


@given(sign=st.sampled_from(sorted(SIGNS)), limit=NUMBERS, value=NUMBERS)
def test_a_condition_read_from_its_text_holds_as_its_sign_says(sign: str, limit: float, value: float) -> None:
    [condition] = parse_conditions(f" a {sign} {limit!r} ", "score")
    assert condition == Condition("a", sign, limit)
    assert condition.holds({"a": value}) is SIGNS[sign](value, limit)
    assert condition.holds({"a": limit}) is (sign in {">=", "<="})


def test_what_has_no_value_meets_no_condition() -> None:
    for sign in SIGNS:
        assert not Condition("a", sign, 1.0).holds({"a": None})
        assert not Condition("a", sign, 1.0).holds({"b": 1.0})


def test_score_stands_for_the_first_key_and_several_are_joined_with_and() -> None:
    read = parse_conditions("score >= 7 and overall<-1e1", "accuracy")
    assert [str(condition) for condition in read] == ["accuracy >= 7", "overall < -10"]


@pytest.mark.parametrize("text", ["", "a", "a = 3", "a >= 1 and", "a >= e", "a >= 1e999", "a >= nan", "a >= 1 or b > 2", "2 > a"])
def test_what_is_no_condition_is_refused_with_what_one_looks_like(text: str) -> None:
    with pytest.raises(ConfigError, match=r'carry_if: .* should be a key, >=, >, <= or < and a number, as in "accuracy >= 7'):
        parse_conditions(text, "accuracy")
