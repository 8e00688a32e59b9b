"""Scores, verdicts and usage as commands print them and functions return them."""

from __future__ import annotations

import fractions
import re

import pytest

from jumar.model import Usage
from jumar.processes.usage import ScoreValue, as_score, as_usage, as_verdict, parse_score


@pytest.mark.parametrize(
    ("stdout", "score", "reason"),
    [
        ("0.5", 0.5, ""),
        (" 1\n", 1.0, ""),
        ("0", 0.0, ""),
        ("-0.0", 0.0, ""),
        (".25", 0.25, ""),
        ("1.", 1.0, ""),
        ("+5e-1\n\n", 0.5, ""),
        ("loading…\nscored 3 files\n0.75\n", 0.75, ""),
        ('{"score": 0.5, "reason": "half"}', 0.5, "half"),
        ('{\n  "score": 1,\n  "reason": "all"\n}\n', 1.0, "all"),
        ('chatter\n{"score": 0.25}\n', 0.25, ""),
        ('{"score": 0.25, "reason": null}', 0.25, ""),
        ('{"score": 0.25, "reason": 7}', 0.25, ""),
    ],
)
def test_usable_scores(stdout, score, reason):
    assert ScoreValue(score=score, reason=reason) == parse_score(stdout)
    assert "-" not in f"{parse_score(stdout).score}"


@pytest.mark.parametrize(
    ("stdout", "invalid"),
    [
        ("", "it printed nothing; print one number in [0, 1]"),
        ("\n \n", "it printed nothing; print one number in [0, 1]"),
        ("nan", "nan is not in [0, 1]"),
        ("NaN\n", "nan is not in [0, 1]"),
        ("-inf", "-inf is not in [0, 1]"),
        ("Infinity", "inf is not in [0, 1]"),
        ("1e999", "inf is not in [0, 1]"),
        ("-0.1", "-0.1 is not in [0, 1]"),
        ("85", "85 is not in [0, 1]; a percentage is divided by 100"),
        ("1.0000001", "1 is not in [0, 1]; a percentage is divided by 100"),
        ("101", "101 is not in [0, 1]"),
        ("85%", "its last line is '85%', which is not a number in [0, 1] and not JSON with 'score'; print 0.85 for 85%"),
        ("0,5", "its last line is '0,5', which is not a number in [0, 1] and not JSON with 'score'"),
        ("1_0", "its last line is '1_0', which is not a number in [0, 1] and not JSON with 'score'"),
        ("٠", "its last line is '٠', which is not a number in [0, 1] and not JSON with 'score'"),
        ("0.5 good", "its last line is '0.5 good', which is not a number in [0, 1] and not JSON with 'score'"),
        ("0.5\nbye", "its last line is 'bye', which is not a number in [0, 1] and not JSON with 'score'"),
        ("[0.5]", "its last line is '[0.5]', which is not a number in [0, 1] and not JSON with 'score'"),
        ('{"score": ', "its last line is '{\"score\":', which is not a number in [0, 1] and not JSON with 'score'"),
        ('{"value": 1}', "it printed a JSON object without 'score'"),
        ('{"score": "0.5"}', "'0.5' is not a number"),
        ('{"score": true}', "True is not a number"),
        ('{"score": null}', "None is not a number"),
        ('{"score": NaN}', "nan is not in [0, 1]"),
        ('{"score": 1e400}', "inf is not in [0, 1]"),
        ('{"score": [1]}', "a value of type list is not a number"),
    ],
)
def test_unusable_scores_are_invalid(stdout, invalid):
    value = parse_score(stdout)
    assert (None, invalid) == (value.score, value.invalid)


def test_a_reason_has_a_bounded_length():
    assert 2_000 == len(parse_score(f'{{"score": 1, "reason": "{"x" * 10_000}"}}').reason)


@pytest.mark.parametrize(
    ("value", "score", "reason"),
    [
        (0.5, 0.5, ""),
        (1, 1.0, ""),
        (fractions.Fraction(1, 4), 0.25, ""),
        ((0.5, "half"), 0.5, "half"),
        ([0.5, None], 0.5, ""),
        ({"score": 1, "reason": "all"}, 1.0, "all"),
        ({"score": 0.5, "more": 1}, 0.5, ""),
    ],
)
def test_what_a_scorer_may_return(value, score, reason):
    assert ScoreValue(score=score, reason=reason) == as_score(value)


@pytest.mark.parametrize(
    ("value", "invalid"),
    [
        (float("nan"), "nan is not in [0, 1]"),
        (2, "2 is not in [0, 1]; a percentage is divided by 100"),
        (10**400, "inf is not in [0, 1]"),
        ((None, "why"), "None is not a number"),
        ({"score": "1"}, "'1' is not a number"),
    ],
)
def test_a_number_that_is_no_score_is_invalid(value, invalid):
    assert (None, invalid) == (as_score(value).score, as_score(value).invalid)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "it returned None"),
        (True, "it returned True"),
        ("0.5", "it returned '0.5'"),
        ({}, "it returned a mapping without 'score'"),
        ((0.5, "a", "b"), "it returned 3 values"),
        ((0.5, 7), "its reason is a value of type int"),
        (object(), "it returned a value of type object"),
    ],
)
def test_a_type_that_was_never_asked_for_is_an_error(value, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        as_score(value)


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (None, (True, "")),
        (True, (True, "")),
        (False, (False, "")),
        ((False, "why"), (False, "why")),
        ([True, "so"], (True, "so")),
    ],
)
def test_what_a_validator_may_return(value, verdict):
    assert verdict == as_verdict(value)


@pytest.mark.parametrize("value", [0, 1, "yes", {}, (), (True,), (1, "x"), (True, 1), object()])
def test_what_a_validator_may_not_return(value):
    with pytest.raises(TypeError, match="return True, False"):
        as_verdict(value)


def test_what_a_generator_may_return():
    assert Usage() == as_usage(None).usage
    assert Usage(tokens_used=3) == as_usage(Usage(tokens_used=3)).usage
    assert Usage(tokens_used=3, input_tokens=1, output_tokens=2) == as_usage({"input_tokens": 1, "output_tokens": 2}).usage
    wrong = as_usage(Usage(tokens_used=-3))
    assert (Usage(), ("returned usage: tokens_used is -3, which is not a number of tokens; it counts as unknown",)) == (
        wrong.usage,
        wrong.notes,
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "it returned a value of type int"),
        ({"tokens": 3}, r"unknown key 'tokens'"),
        ({"tokens_use": 3}, "did you mean 'tokens_used'"),
    ],
)
def test_what_a_generator_may_not_return(value, message):
    with pytest.raises(TypeError, match=message):
        as_usage(value)


def test_a_key_that_is_there_twice_is_no_score():
    found = parse_score('{"score": 0.1, "score": 1}')
    assert found.score is None
    assert "not JSON" in (found.invalid or "")
