"""Degradation, its likely causes, and diminishing returns."""

from __future__ import annotations

import math
from typing import Any

import pytest

from jumar.errors import NotFoundError, ScoreError
from jumar.loop.ranking import PATTERNS, Cause, detect_degradation, detect_diminishing_returns, likely_causes
from jumar.model import Degradation, DiminishingReturns, IterationView


def trajectory(*scores, first=1, **fields):
    return [IterationView(number=first + place, score=score, **fields) for place, score in enumerate(scores)]


def view(number, score, verification: Any = "skipped", failed=None, **fields):
    return IterationView(number=number, score=score, verification=verification, failed_checks=failed, **fields)


def test_rising_scores_are_no_degradation():
    assert Degradation(detected=False) == detect_degradation(trajectory(61.2, 72, 85.3))
    assert Degradation(detected=False) == detect_degradation([])


def test_a_drop_of_more_than_five_points_fires_where_it_happens():
    expected = Degradation(
        detected=True,
        triggers=("quality_drop",),
        iterations=(3,),
        best_before=2,
        actions=("flag_degradation", "consider_early_stopping", "preserve_pre_degradation_best"),
        causes=("over-refinement",),
    )
    assert expected == detect_degradation(trajectory(72, 85, 75))


@pytest.mark.parametrize(("before", "after"), [(85, 80), (64.4, 59.4), (5.0, 0.0), (64.1, 59.1)])
def test_a_drop_of_exactly_five_points_does_not_fire(before, after):
    assert not detect_degradation(trajectory(before, after)).detected
    assert detect_degradation(trajectory(before, after), drop=4.9999).detected


def test_a_drop_of_a_little_more_than_five_points_fires():
    assert detect_degradation(trajectory(85, 79.9999)).detected


def test_two_decreases_in_a_row_fire_at_the_second_and_go_on_firing():
    found = detect_degradation(trajectory(85, 84, 83, 82, 90, 89))
    assert (("consecutive_decreases",), (3, 4), 1) == (found.triggers, found.iterations, found.best_before)


def test_equal_scores_end_a_row_of_decreases():
    assert not detect_degradation(trajectory(85, 84, 84, 83)).detected
    assert detect_degradation(trajectory(85, 84, 84, 83), consecutive=1).iterations == (2, 4)


def test_iterations_without_a_score_are_passed_over():
    views = [*trajectory(85, None, 84, math.nan, 83), view(6, 10, status="scorer_broken")]
    assert ((5,), ("consecutive_decreases",)) == (detect_degradation(views).iterations, detect_degradation(views).triggers)


def test_the_start_is_the_first_point():
    assert detect_degradation(trajectory(80, 70, first=0)).best_before == 0


def test_more_failing_checks_fire():
    found = detect_degradation([view(1, 70, "failed", 1), view(2, 71, "failed", 2), view(3, 72, "failed", 2)])
    assert (("validation_failures_increased",), (2,)) == (found.triggers, found.iterations)


def test_failed_after_passed_fires_where_a_number_of_failures_is_unknown():
    assert detect_degradation([view(1, 70, "passed"), view(2, 71, "failed")]).iterations == (2,)
    assert detect_degradation([view(1, 70, "passed", 0), view(2, 71, "failed")]).iterations == (2,)
    assert not detect_degradation([view(1, 70, "failed"), view(2, 71, "failed", 3)]).detected
    assert not detect_degradation([view(1, 70, "skipped"), view(2, 71, "failed")]).detected


def test_checks_are_compared_with_the_last_ones_that_are_known():
    between = view(2, None, "skipped", status="generator_failed")
    assert detect_degradation([view(1, 70, "passed", 0), between, view(3, 71, "failed", 1)]).iterations == (3,)
    assert detect_degradation([view(1, 70, "passed", 0), view(2, 71), view(3, 71, "failed", 1)]).iterations == (3,)


def test_broken_checks_say_nothing_about_the_candidate():
    broken = view(2, None, "failed", 0, status="validator_broken")
    assert not detect_degradation([view(1, 70, "failed", 2), broken, view(3, 71, "failed", 2)]).detected


def test_failing_checks_of_an_iteration_without_a_score_count():
    found = detect_degradation([view(1, 70, "passed", 0), view(2, None, "failed", 1, status="scorer_broken")])
    assert ((2,), 1, ()) == (found.iterations, found.best_before, found.causes)


def test_nothing_to_preserve_when_nothing_before_was_valid():
    found = detect_degradation([view(1, None, "passed", 0, status="scorer_broken"), view(2, 70, "failed", 1)])
    assert (None, ("flag_degradation", "consider_early_stopping")) == (found.best_before, found.actions)
    nothing = detect_degradation(
        [view(1, None, "passed", 0, status="scorer_broken"), view(2, None, "failed", 1, status="scorer_broken")]
    )
    assert (True, ()) == (nothing.detected, nothing.causes)


def test_all_triggers_are_named_in_a_fixed_order():
    found = detect_degradation([view(1, 90, "passed", 0), view(2, 85, "passed", 0), view(3, 70, "failed", 1)])
    assert ("quality_drop", "consecutive_decreases", "validation_failures_increased") == found.triggers


def test_best_before_is_the_best_before_the_first_trigger():
    found = detect_degradation(trajectory(80, 82, 70, 95, 60))
    assert ((3, 5), 2) == (found.iterations, found.best_before)


def dims(number, score, **dimensions):
    return IterationView(number=number, score=score, dimensions=dimensions)


def patterns(views, best):
    return [cause.pattern for cause in likely_causes(views, best)]


def test_best_early_and_then_only_falling_is_over_refinement():
    meaning, mitigation = PATTERNS["over-refinement"]
    expected = Cause(
        pattern="over-refinement",
        meaning=meaning,
        evidence="nothing after iteration 2 (85%) rises again; iteration 4 has 81%",
        mitigation=mitigation,
    )
    assert (expected,) == likely_causes(trajectory(72, 85, 83, 81), 2)
    assert patterns(trajectory(85, 83, 83), 1) == ["over-refinement"]


@pytest.mark.parametrize("scores", [(85, 83, 84), (85, 85, 85), (85, 70, 84.9), (85, 90)])
def test_a_rise_or_no_fall_is_no_over_refinement(scores):
    assert patterns(trajectory(*scores), 1) == []


def test_completeness_that_falls_is_information_loss():
    (cause,) = likely_causes([dims(1, 80, completeness=0.9, tone=1.0), dims(2, 82, completeness=0.75, tone=0.1)], 1)
    assert ("information loss", "completeness fell from 0.9 to 0.75 between iterations 1 and 2") == (
        cause.pattern,
        cause.evidence,
    )


@pytest.mark.parametrize("name", ["Completeness", "section completeness", "Key-term coverage", "key terms", "recall@5"])
def test_dimensions_are_recognised_by_words_in_their_names(name):
    assert patterns([dims(1, 80, **{name: 0.9}), dims(2, 82, **{name: 0.8})], 1) == ["information loss"]


def test_efficiency_that_falls_while_completeness_does_not_is_scope_creep():
    views = [dims(1, 80, efficiency=0.9, completeness=0.8), dims(2, 82, efficiency=0.6, completeness=0.85)]
    (cause,) = likely_causes(views, 1)
    assert ("scope creep", "efficiency fell from 0.9 to 0.6 between iterations 1 and 2; completeness did not fall") == (
        cause.pattern,
        cause.evidence,
    )
    (cause,) = likely_causes([dims(1, 80, efficiency=0.9), dims(2, 82, efficiency=0.6)], 1)
    assert cause.evidence.endswith("; completeness is not measured")


def test_efficiency_that_falls_with_completeness_is_information_loss_alone():
    views = [dims(1, 80, efficiency=0.9, completeness=0.8), dims(2, 82, efficiency=0.6, completeness=0.5)]
    assert patterns(views, 1) == ["information loss"]


def test_readability_that_falls_is_style_drift():
    views = [dims(1, 80, readability=0.9, code_style=0.8), dims(2, 82, readability=0.84, code_style=0.1)]
    (cause,) = likely_causes(views, 1)
    expected = "code_style fell from 0.8 to 0.1, readability fell from 0.9 to 0.84 between iterations 1 and 2"
    assert ("style drift", expected) == (cause.pattern, cause.evidence)


def test_names_in_evidence_cannot_reach_the_terminal_raw():
    (cause,) = likely_causes([dims(1, 80, **{"style\x1b[2J": 0.9}), dims(2, 82, **{"style\x1b[2J": 0.1})], 1)
    assert "\x1b" not in cause.evidence


@pytest.mark.parametrize(("after", "found"), [(0.85, ["style drift"]), (0.8501, []), (0.888, []), (0.9, []), (1.0, [])])
def test_a_fall_that_nobody_would_notice_does_not_count(after, found):
    assert found == patterns([dims(1, 80, readability=0.9), dims(2, 82, readability=after)], 1)


def test_the_last_valid_iteration_is_what_the_best_is_compared_with():
    views = [dims(1, 80, readability=0.9), dims(2, 70, readability=0.2), dims(3, 81, readability=0.9)]
    assert patterns(views, 1) == []
    assert patterns([*views[:2], IterationView(number=3, score=None, dimensions={"readability": 0.9})], 1) == [
        "over-refinement",
        "style drift",
    ]


def test_dimension_that_is_not_measured_any_more_has_not_fallen():
    assert patterns([dims(1, 80, readability=0.9), dims(2, 80)], 1) == []


def test_causes_come_in_the_order_of_the_table():
    views = [dims(2, 85, completeness=0.9, readability=0.9), dims(3, 80, completeness=0.5, readability=0.5)]
    assert patterns(views, 2) == ["over-refinement", "style drift", "information loss"]


def test_no_causes_without_a_valid_best_and_a_valid_iteration_after_it():
    assert likely_causes(trajectory(80, 70), 2) == ()
    assert likely_causes(trajectory(80, None), 1) == ()
    assert likely_causes(trajectory(None, 80, 70), 1) == ()
    with pytest.raises(NotFoundError, match="there is no iteration 7"):
        likely_causes(trajectory(80, 70), 7)


def test_causes_of_a_degradation_that_was_recovered_from_are_named():
    views = [dims(1, 80, completeness=0.9), dims(2, 60, completeness=0.5), dims(3, 95, completeness=1.0)]
    assert detect_degradation(views).causes == ("over-refinement", "information loss")


@pytest.mark.parametrize("risen", [84, 82.5])
def test_a_rise_before_the_drop_speaks_against_over_refinement(risen):
    assert (4,) == detect_degradation(trajectory(85, 82, risen, 76)).iterations
    assert detect_degradation(trajectory(85, 82, risen, 76)).causes == ()


def test_no_change_between_small_steps_is_detected_at_the_first_of_the_streak():
    assert DiminishingReturns(detected=True, iteration=3) == detect_diminishing_returns(trajectory(70, 75, 77, 78))


def test_small_steps_down_count_too():
    assert DiminishingReturns(detected=True, iteration=2) == detect_diminishing_returns(trajectory(80, 78, 76))


@pytest.mark.parametrize(
    "scores",
    [(), (70,), (70, 71), (70, 75, 80), (70, 71, 80, 81), (70, 71, None, 72), (64.1, 59.1, 64.1)],
)
def test_too_few_or_too_large_or_interrupted_steps_are_not_detected(scores):
    assert DiminishingReturns(detected=False, iteration=None) == detect_diminishing_returns(trajectory(*scores))


def test_streak_may_lie_anywhere_and_the_first_one_counts():
    assert detect_diminishing_returns(trajectory(10, 50, 51, 52, 53, 90)).iteration == 3
    assert detect_diminishing_returns(trajectory(70, None, 71, 72, 73)).iteration == 4


def test_threshold_and_streak_can_be_chosen():
    assert detect_diminishing_returns(trajectory(70, 75), 1, 5.1).iteration == 2
    assert not detect_diminishing_returns(trajectory(70, 70, 70), 2, 0).detected


@pytest.mark.parametrize("size", [-1, math.nan, math.inf, True])
@pytest.mark.parametrize("count", [2, 0, math.nan])
def test_sizes_and_counts_that_mean_nothing_are_refused(size, count):
    with pytest.raises(ScoreError, match="drop is"):
        detect_degradation([], drop=size, consecutive=count)
    with pytest.raises(ScoreError, match="delta_threshold is"):
        detect_diminishing_returns([], count, size)
    if count != 2:
        with pytest.raises(ScoreError, match="consecutive is"):
            detect_degradation([], consecutive=count)
        with pytest.raises(ScoreError, match="consecutive_threshold is"):
            detect_diminishing_returns([], count)


def test_the_same_number_twice_is_an_error():
    twice = [*trajectory(80), *trajectory(80)]
    for function in (detect_degradation, detect_diminishing_returns, lambda views: likely_causes(views, 1)):
        with pytest.raises(ScoreError, match="iteration 1 is there twice"):
            function(twice)
