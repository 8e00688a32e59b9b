"""Stopping: each rule where it fires and where it just does not, its sentence, and the order of precedence."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from jumar.errors import ScoreError
from jumar.loop.ranking import (
    DEFAULT_DECLINE,
    DEFAULT_DIMINISHING,
    DEFAULT_OSCILLATION,
    DEFAULT_PLATEAU,
    check_rules,
    evaluate_stop,
)
from jumar.model import IterationView, StopDecision, StopRules, TrendRule


def trajectory(*scores, first=0):
    return [IterationView(number=first + place, score=score) for place, score in enumerate(scores)]


def failed(number, status: Any = "generator_failed"):
    return IterationView(number=number, score=None, status=status)


def stop(views, *, seconds=0.0, **rules):
    return evaluate_stop(views, StopRules(**rules), seconds=seconds)


def trend(window, delta):
    return TrendRule(window=window, delta=delta)


def test_defaults_of_the_trend_rules():
    assert (trend(2, 5.0), trend(2, 0.0), trend(3, 1.0), trend(2, 5.0)) == (
        DEFAULT_PLATEAU,
        DEFAULT_DECLINE,
        DEFAULT_OSCILLATION,
        DEFAULT_DIMINISHING,
    )


def test_without_a_reason_the_loop_goes_on():
    assert stop([]) is None
    assert stop(trajectory(50, 50, 50, 50)) is None


def test_target_is_reached_by_the_first_iteration_that_has_it():
    expected = StopDecision(reason="target", detail="target 90 reached by iteration 4 (91.2)")
    assert expected == stop(trajectory(50, 60, 70, 80, 91.2, 95), target=90)


def test_target_is_inclusive_and_may_be_reached_by_the_start():
    assert StopDecision(reason="target", detail="target 90 reached by the start (90)") == stop(trajectory(90), target=90)
    assert stop(trajectory(89.9999), target=90) is None


def test_target_needs_a_valid_score_that_no_check_refused():
    refused = [IterationView(number=1, score=95, verification="failed"), failed(2), IterationView(number=3, score=math.inf)]
    assert stop(refused, target=90) is None
    assert stop([*refused, IterationView(number=4, score=95)], target=90) is not None


def test_where_the_score_alone_is_asked_for_a_refused_iteration_reaches_the_target_but_not_one_that_tampered():
    refused = [IterationView(number=1, score=91.2, verification="failed")]
    detail = "target 90 reached by iteration 1 (91.2)"
    assert StopDecision(reason="target", detail=detail) == stop(refused, target=90, target_unverified=True)
    tampered = [replace(one, tampered=True) for one in refused]
    assert stop(tampered, target=90, target_unverified=True) is None


def completed(number=1, score: float | None = 80.0, verification: Any = "passed", **fields):
    return IterationView(number=number, score=score, verification=verification, completed=True, **fields)


def test_completed_is_the_generators_word_and_the_checks():
    detail = "the generator says it is done and the checks pass (iteration 1, 80 points)"
    assert StopDecision(reason="completed", detail=detail) == stop([completed()])
    detail = "the generator says it is done and the score reaches the target (iteration 2, 80 points)"
    assert StopDecision(reason="completed", detail=detail) == stop([completed(2, verification="skipped")], target=80)


@pytest.mark.parametrize(
    "views",
    [
        [completed(verification="failed")],
        [completed(verification="skipped")],
        [completed(score=None)],
        [completed(status="scorer_broken")],
        [completed(score=79.9)],
        [completed(number=0, score=79)],
        [completed(), IterationView(number=2, score=50)],
    ],
)
def test_completed_does_not_hold(views):
    assert stop(views, target=None if views[0].score == 80.0 else 80) is None


def test_completed_at_exactly_the_target_is_completed():
    decision = stop([completed(score=80)], target=80)
    assert decision is not None
    assert decision.reason == "completed"


def test_iteration_0_completes_nothing():
    assert stop([completed(number=0)]) is None


def test_failures_in_a_row_stop_and_name_the_last():
    views = [*trajectory(50, 60), failed(2), failed(3, "generator_timeout"), failed(4, "validator_broken")]
    expected = StopDecision(reason="consecutive_failures", detail="3 iterations failed in a row; the last: validator broken")
    assert expected == stop(views)
    assert stop(views[:-1]) is None
    assert stop([*views, IterationView(number=5, score=50)]) is None


def test_every_failing_status_counts_and_so_does_an_ok_without_a_score():
    for status in ("generator_failed", "generator_timeout", "validator_broken", "scorer_broken", "invalid_score"):
        decision = stop([failed(1, status)], consecutive_failures=1)
        assert (
            StopDecision(
                reason="consecutive_failures", detail=f"1 iteration failed in a row; the last: {status.replace(chr(95), chr(32))}"
            )
            == decision
        )
    decision = stop([failed(1, "ok")], consecutive_failures=1)
    assert StopDecision(reason="consecutive_failures", detail="1 iteration failed in a row; the last: invalid score") == decision


def test_interrupted_passes_neither_count_as_failures_nor_end_the_row():
    interrupted = [failed(number, "interrupted") for number in (1, 2, 3)]
    assert stop(interrupted) is None
    views = [failed(1), failed(2), failed(3, "interrupted"), failed(4)]
    assert StopDecision(reason="consecutive_failures", detail="3 iterations failed in a row; the last: generator failed") == stop(
        views
    )


def test_the_start_is_no_failed_pass():
    assert stop([failed(0, "validator_broken"), failed(1), failed(2)]) is None


def test_failing_checks_are_no_failed_pass():
    assert stop([IterationView(number=number, score=40, verification="failed") for number in (1, 2, 3, 4)]) is None


def test_max_iterations_counts_passes_failed_ones_too_but_not_the_start():
    views = [*trajectory(*range(9)), failed(9), failed(10)]
    expected = StopDecision(reason="max_iterations", detail="10 of 10 iterations done")
    assert expected == stop(views)
    assert stop(views[:-1]) is None
    assert StopDecision(reason="max_iterations", detail="0 of 0 iterations done") == stop([], max_iterations=0)
    assert StopDecision(reason="max_iterations", detail="1 of 1 iteration done") == stop(trajectory(50, 60), max_iterations=1)


def test_max_seconds_is_inclusive():
    expected = StopDecision(reason="max_seconds", detail="600 of 600 seconds used")
    assert expected == stop([], seconds=600.0, max_seconds=600)
    assert stop([], seconds=599.9, max_seconds=600) is None
    assert StopDecision(reason="max_seconds", detail="86401.3 of 86400 seconds used") == stop(
        [], seconds=86401.26, max_seconds=86400
    )
    assert StopDecision(reason="max_seconds", detail="0.0512 of 0.05 seconds used") == stop([], seconds=0.05123, max_seconds=0.05)
    assert stop([], seconds=1e9) is None


def test_decline():
    expected = StopDecision(reason="decline", detail="decline: two steps down in a row, 3.3 points in all")
    assert expected == stop(trajectory(61.2, 85.3, 83.1, 82), decline=DEFAULT_DECLINE)
    assert stop(trajectory(61.2, 85.3, 83.1, 83.1), decline=DEFAULT_DECLINE) is None
    assert stop(trajectory(85.3, 83.1), decline=DEFAULT_DECLINE) is None


def test_decline_of_at_least_delta_points():
    assert stop(trajectory(64.1, 60, 59.1), decline=trend(2, 5)) is not None
    assert stop(trajectory(64.1, 60, 59.1001), decline=trend(2, 5)) is None


def test_trends_pass_over_iterations_without_a_score():
    views = [*trajectory(85, 84), failed(2), IterationView(number=3, score=83), failed(4)]
    assert StopDecision(reason="decline", detail="decline: two steps down in a row, 2 points in all") == stop(
        views, decline=DEFAULT_DECLINE
    )


def test_oscillation():
    expected = StopDecision(reason="oscillation", detail="oscillation: three swings of at least 1 point and no new best")
    assert expected == stop(trajectory(80, 78, 80, 78), oscillation=DEFAULT_OSCILLATION)
    assert expected == stop(trajectory(90, 80, 85, 80), oscillation=DEFAULT_OSCILLATION)
    assert expected == stop(trajectory(80, 79, 80, 79), oscillation=DEFAULT_OSCILLATION)


@pytest.mark.parametrize(
    "scores",
    [
        (80, 78, 80),  # two steps only
        (80, 78, 80.0001, 78),  # a new best among them
        (80, 78, 78.9999, 77),  # a swing of less than a point
        (80, 78, 79, 80),  # no alternation
        (80, 78, 78, 80),  # a step of nothing
    ],
)
def test_no_oscillation(scores):
    assert stop(trajectory(*scores), oscillation=DEFAULT_OSCILLATION) is None


def test_a_step_of_nothing_is_no_swing_even_with_delta_0():
    assert stop(trajectory(80, 80, 80), oscillation=trend(2, 0)) is None


def test_plateau_of_the_example():
    scores = (61.2, 72.0, 85.3, 83.1)
    expected = StopDecision(reason="plateau", detail="plateau: two iterations within 5 points")
    assert expected == stop(trajectory(*scores), plateau=DEFAULT_PLATEAU)
    assert stop(trajectory(*scores[:3]), plateau=DEFAULT_PLATEAU) is None


def test_plateau_says_so_when_the_start_is_part_of_it():
    expected = StopDecision(reason="plateau", detail="plateau: the start and one iteration within 5 points")
    assert expected == stop(trajectory(61.2, 62), plateau=DEFAULT_PLATEAU)


def test_plateau_is_inclusive_and_exact():
    assert stop(trajectory(40, 59.4, 64.4), plateau=DEFAULT_PLATEAU) is not None
    assert stop(trajectory(40, 59.4, 64.4001), plateau=DEFAULT_PLATEAU) is None


def test_what_only_falls_is_no_plateau_from_three_scores_on():
    assert stop(trajectory(85, 84, 83), plateau=trend(3, 5)) is None
    assert stop(trajectory(85, 84, 84), plateau=trend(3, 5)) is not None
    assert stop(trajectory(84, 83), plateau=trend(2, 5)) is not None


def test_diminishing_returns():
    expected = StopDecision(reason="diminishing_returns", detail="diminishing returns: two steps in a row below 5 points")
    assert expected == stop(trajectory(70, 75, 77, 78), diminishing_returns=DEFAULT_DIMINISHING)
    assert stop(trajectory(70, 75, 77), diminishing_returns=DEFAULT_DIMINISHING) is None
    assert expected == stop(trajectory(78, 76, 74), diminishing_returns=DEFAULT_DIMINISHING)


def test_long_windows_are_counted_in_digits_and_one_in_the_singular():
    assert stop(trajectory(*[50] * 12), plateau=trend(12, 1), max_iterations=50) == StopDecision(
        reason="plateau", detail="plateau: the start and 11 iterations within 1 point"
    )
    assert stop(trajectory(50, 51), diminishing_returns=trend(1, 2)) == StopDecision(
        reason="diminishing_returns", detail="diminishing returns: one step in a row below 2 points"
    )


def test_precedence_each_rule_before_the_next():
    """All rules hold at once; taking away the first one lets the next one speak."""
    views = [
        *[IterationView(number=number, score=score) for number, score in enumerate([90, 95, 90.0, 89.5, 89])],
        completed(5, 88.5),
    ]
    rules = StopRules(
        target=85,
        max_iterations=5,
        max_seconds=1,
        diminishing_returns=trend(1, 5),
        plateau=trend(2, 5),
        decline=trend(2, 0),
    )
    found = []
    for off in (None, "completed", "target", "max_iterations", "max_seconds", "decline", "plateau", "diminishing_returns"):
        if off == "completed":
            views[5] = replace(views[5], completed=False)
        elif off == "max_iterations":
            rules = replace(rules, max_iterations=99)
        elif off is not None:
            rules = replace(rules, **{off: None})
        decision = evaluate_stop(views, rules, seconds=2)
        found.append(decision.reason if decision else None)
    expected = ["completed", "target", "max_iterations", "max_seconds", "decline", "plateau", "diminishing_returns", None]
    assert expected == found


def test_failures_come_before_limits_and_oscillation_before_plateau():
    views = [*trajectory(50, 80), failed(2), failed(3), failed(4)]
    decision = stop(views, max_iterations=4, max_seconds=1, seconds=2)
    assert decision is not None
    assert decision.reason == "consecutive_failures"
    decision = stop(trajectory(80, 78, 80, 78), plateau=trend(2, 5), oscillation=DEFAULT_OSCILLATION)
    assert decision is not None
    assert decision.reason == "oscillation"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"target": -1}, "target is -1: give a number that is 0 or more"),
        ({"target": 100.1}, "target is 100.1: scores end at 100"),
        ({"target": math.nan}, "target is nan"),
        ({"max_iterations": -1}, "max_iterations is -1: give a whole number that is 0 or more"),
        ({"max_iterations": 2.5}, "max_iterations is 2.5: give a whole number"),
        ({"max_iterations": True}, "max_iterations is True"),
        ({"consecutive_failures": 0}, "consecutive_failures is 0: give a whole number that is 1 or more"),
        ({"max_seconds": math.inf}, "max_seconds is inf"),
        ({"plateau": trend(1, 5)}, "plateau.window is 1: give a whole number that is 2 or more"),
        ({"oscillation": trend(1, 5)}, "oscillation.window is 1: give a whole number that is 2 or more"),
        ({"decline": trend(0, 5)}, "decline.window is 0: give a whole number that is 1 or more"),
        ({"diminishing_returns": trend(0, 5)}, "diminishing_returns.window is 0"),
        ({"plateau": trend(2, -1)}, "plateau.delta is -1: give a number that is 0 or more"),
        ({"decline": trend(2, math.nan)}, "decline.delta is nan"),
    ],
)
def test_rules_that_mean_nothing_are_refused(rules, message):
    with pytest.raises(ScoreError, match=message):
        check_rules(StopRules(**rules))
    with pytest.raises(ScoreError, match=message):
        stop([], **rules)


def test_sound_rules_are_accepted():
    check_rules(StopRules())
    check_rules(StopRules(target=100, max_iterations=0, max_seconds=0, decline=trend(1, 0), plateau=trend(2, 0)))


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf])
def test_seconds_must_be_known(seconds):
    with pytest.raises(ScoreError, match="seconds is"):
        stop([], seconds=seconds)


def test_the_same_number_twice_is_an_error():
    with pytest.raises(ScoreError, match="iteration 0 is there twice"):
        stop([*trajectory(50), *trajectory(50)])


def test_converged_is_an_iteration_that_has_a_score_and_that_its_checks_did_not_refuse():
    start, found = trajectory(50, 60)
    detail = "the cheap judge tracks the expensive one, and the items are good (iteration 1, 60 points)"
    good = replace(found, converged=True)
    assert StopDecision(reason="converged", detail=detail) == stop([start, good], converged=True)
    assert stop([start, good]) is None
    for view in (found, replace(good, verification="failed"), replace(failed(1), converged=True)):
        assert stop([start, view], converged=True) is None
