"""Choosing: each mode, each fallback, each sentence, and the inputs that are never selected."""

from __future__ import annotations

import math
from typing import Any

import pytest

from jumar.errors import ConfigError, NothingEvaluatedError, ScoreError
from jumar.loop.ranking import choose, ordered, running_best
from jumar.model import IterationView, SelectionCriteria, SelectionResult


def view(number, score, verification: Any = "passed", **fields):
    return IterationView(number=number, score=score, verification=verification, **fields)


def criteria(mode, threshold=70, require_verification=True):
    return SelectionCriteria(mode=mode, threshold=threshold, require_verification=require_verification)


PEAK = (view(1, 72), view(2, 85), view(3, 83))


def test_the_peak_is_chosen_and_not_the_last():
    expected = SelectionResult(
        selected_iteration=2,
        quality_score=85,
        reason="Highest verified quality: 85%",
        final_iteration=3,
        final_quality=83,
        degradation_detected=True,
        meets_threshold=True,
        fallback=None,
        runner_up=3,
        margin=2,
        below_start=False,
    )
    assert expected == choose(PEAK)


def test_whole_scores_stay_whole():
    result = choose(PEAK)
    assert [int, int, int] == [type(result.quality_score), type(result.final_quality), type(result.margin)]


SOME = (view(1, 82, "skipped"), view(2, 75), view(3, 90, "failed"), view(4, 71), view(5, 64))

CASES = [
    # mode, threshold, require_verification, views → chosen, reason, meets_threshold, fallback, runner_up
    ("highest_quality", 70, True, SOME, 3, "Highest quality score: 90%", True, None, 1),
    ("highest_quality", None, True, SOME, 3, "Highest quality score: 90%", None, None, 1),
    ("highest_quality", 95, False, SOME, 3, "Highest quality score (none reaches 95%): 90%", False, "threshold", 1),
    ("highest_quality_verified", 70, False, SOME, 2, "Highest verified quality: 75%", True, None, 4),
    ("highest_quality_verified", None, True, SOME, 2, "Highest verified quality: 75%", None, None, 4),
    ("highest_quality_verified", 80, True, SOME, 2, "Highest verified quality (none reaches 80%): 75%", False, "threshold", 4),
    (
        *("highest_quality_verified", 70, True, (SOME[0], SOME[2])),
        *(3, "Highest quality (no verified iterations): 90%", False, "threshold, verification", 1),
    ),
    (
        *("highest_quality_verified", None, True, (SOME[0], SOME[2])),
        *(3, "Highest quality (no verified iterations): 90%", None, "verification", 1),
    ),
    ("most_recent_above_threshold", 70, True, SOME, 4, "Most recent above threshold (70%): 71%", True, None, 2),
    ("most_recent_above_threshold", 72, False, SOME, 3, "Most recent above threshold (72%): 90%", True, None, 2),
    (
        *("most_recent_above_threshold", 80, True, SOME),
        *(3, "Most recent above threshold (80%), not verified: 90%", False, "verification", 1),
    ),
    (
        *("most_recent_above_threshold", 95, True, SOME),
        *(5, "Most recent (none above threshold 95%): 64%", False, "verification, threshold", 4),
    ),
    ("most_recent_above_threshold", 95, False, SOME, 5, "Most recent (none above threshold 95%): 64%", False, "threshold", 4),
    ("most_recent_above_threshold", None, True, SOME, 5, "Most recent: 64%", None, None, 4),
    (
        *("most_recent_above_threshold", None, True, (SOME[0], SOME[2])),
        *(3, "Most recent, not verified: 90%", None, "verification", 1),
    ),
    ("most_recent_above_threshold", None, False, (SOME[0], SOME[2]), 3, "Most recent: 90%", None, None, 1),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)])
def test_modes_and_what_they_relax(case):
    mode, threshold, require, views, *expected = case
    result = choose(views, criteria(mode, threshold, require))
    assert expected == [
        result.selected_iteration,
        result.reason,
        result.meets_threshold,
        result.fallback,
        result.runner_up,
    ]


def test_threshold_is_inclusive():
    assert choose([view(1, 70)]).meets_threshold is True
    assert choose([view(1, 69.9999)]).meets_threshold is False


def test_reason_shows_enough_decimals_to_tell_a_missed_threshold_from_a_reached_one():
    assert choose([view(1, 69.96)]).reason == "Highest verified quality (none reaches 70%): 69.9600%"


@pytest.mark.parametrize("mode", ["highest_quality", "highest_quality_verified"])
def test_earlier_wins_between_equals(mode):
    result = choose([view(3, 80), view(1, 80), view(2, 80)], criteria(mode))
    assert (1, 2, 0.0) == (result.selected_iteration, result.runner_up, result.margin)


def test_margin_is_rounded_to_four_decimals_and_may_be_negative():
    assert choose([view(1, 64.4), view(2, 59.4)], criteria("highest_quality")).margin == 5.0
    assert choose([view(1, 90, "failed"), view(2, 75)]).margin == -15


def test_single_candidate_has_no_runner_up():
    result = choose([view(1, 80), view(2, None, status="scorer_broken")])
    assert (None, None) == (result.runner_up, result.margin)


INVALID = [
    view(9, None),
    view(9, math.nan),
    view(9, math.inf),
    view(9, -math.inf),
    view(9, -0.0001),
    view(9, 100.0001),
    view(9, 10**400),
    view(9, True),
    view(9, "99"),
    *(view(9, 99, status=status) for status in ("generator_failed", "generator_timeout", "interrupted")),
    *(view(9, 99, status=status) for status in ("validator_broken", "scorer_broken", "invalid_score")),
]


@pytest.mark.parametrize("mode", ["highest_quality", "highest_quality_verified", "most_recent_above_threshold"])
@pytest.mark.parametrize("bad", INVALID, ids=lambda bad: f"{bad.status} {bad.score!r:.10}")
def test_invalid_is_never_chosen_and_never_runner_up(bad, mode):
    result = choose([*PEAK, bad], criteria(mode))
    assert result.selected_iteration in {2, 3}
    assert result.runner_up in {2, 3}
    assert (9, None) == (result.final_iteration, result.final_quality)
    assert not result.degradation_detected
    assert running_best([bad, *PEAK]) == PEAK[1]
    assert bad not in ordered([*PEAK, bad], criteria(mode))


def test_0_and_100_are_valid():
    assert choose([view(1, 0)]).quality_score == 0
    assert choose([view(1, 100), view(2, 99.9)]).quality_score == 100


def test_nothing_to_choose_from_says_what_was_there():
    with pytest.raises(NothingEvaluatedError, match="there is no iteration to choose from"):
        choose([])
    with pytest.raises(NothingEvaluatedError, match=r"^none of 2 iterations has a valid score; the last, 4: scorer_broken$"):
        choose([view(4, 80, status="scorer_broken"), view(2, None)])
    with pytest.raises(NothingEvaluatedError, match=r"the last, 2: no score$"):
        choose([view(2, None)])
    with pytest.raises(NothingEvaluatedError, match="the last, 2: the score is nan, not a number of 0–100"):
        choose([view(2, math.nan)])


def test_the_start_may_be_chosen():
    result = choose([view(0, 80), view(1, 75)])
    assert (0, False, True) == (result.selected_iteration, result.below_start, result.degradation_detected)


def test_lower_than_the_start_is_flagged():
    views = [view(0, 80, "failed"), view(1, 75)]
    result = choose(views)
    assert (1, True) == (result.selected_iteration, result.below_start)
    assert not choose([view(0, 75, "failed"), view(1, 75)]).below_start
    assert not choose([view(0, 80, status="invalid_score"), view(1, 75)]).below_start
    assert not choose([view(1, 80, "failed"), view(2, 75)]).below_start


def test_the_final_one_chosen_is_no_degradation():
    assert not choose([view(1, 70), view(2, 80)]).degradation_detected
    assert not choose([view(1, 80), view(2, 80)]).degradation_detected


def test_the_same_number_twice_is_an_error():
    for function in (choose, ordered, running_best):
        with pytest.raises(ScoreError, match="iteration 3 is there twice"):
            function([view(3, 70), view(1, 70), view(3, 80)])


def test_ordered_leaves_out_the_invalid_and_may_be_empty():
    assert (PEAK[1], PEAK[2], PEAK[0]) == ordered([*PEAK, view(4, None)])
    assert ordered([view(1, None)]) == ()


def test_running_best_ignores_verification_and_needs_a_valid_score():
    assert running_best([]) is None
    assert running_best([view(1, None)]) is None
    best = view(2, 85, "failed")
    assert best == running_best([view(4, 85), best, view(1, 84)])


def test_views_may_come_from_a_generator():
    assert choose(iter(PEAK)).selected_iteration == 2


@pytest.mark.parametrize("threshold", [math.nan, math.inf, -1, 100.5, True, "70"])
def test_threshold_off_the_scale_is_refused(threshold):
    with pytest.raises(ScoreError, match=r"the threshold is .*: give a number of 0–100, or none"):
        choose(PEAK, SelectionCriteria(threshold=threshold))


def test_unknown_mode_names_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown mode 'highest_qualty' \(did you mean 'highest_quality'\?\)"):
        choose(PEAK, SelectionCriteria(mode="highest_qualty"))  # pyright: ignore[reportArgumentType]
