"""Whether the expensive judge works, from its results alone."""

from __future__ import annotations

import json

import pytest

from jumar.judging import check_expensive_evaluator
from jumar.judging.asking.summary import Result
from jumar.judging.models import ExpensiveModeResult, Unscored, UnscoredKind


def scored(gestalt: float, *readings: float) -> Result:
    return ExpensiveModeResult(
        story_id="a", gestalt=gestalt, reasoning="", strengths=[], weaknesses=[], readings=list(readings) or [gestalt]
    )


def unscored(kind: UnscoredKind) -> Result:
    return Unscored(story_id="a", kind=kind, message="")


@pytest.mark.parametrize(
    ("results", "healthy", "flags"),
    [
        ([], True, []),
        ([scored(4)], True, []),
        ([scored(4), scored(3)], True, []),
        ([scored(4), scored(4)], False, ["all_same_score"]),
        ([scored(4), scored(3), scored(2), scored(5), unscored("timed_out")], True, ["judge_failures"]),
        ([scored(4), scored(3), unscored("timed_out")], False, ["judge_failures"]),
        ([scored(4), scored(3), unscored("missing")], True, []),
        ([scored(4), scored(3), scored(2), scored(5), unscored("out_of_range")], True, ["judge_failures", "scores_out_of_range"]),
        ([scored(3, 1, 5), scored(4, 4, 4)], False, ["high_variance"]),
        ([unscored("missing")], False, ["nothing_scored"]),
        ([unscored("refused")], False, ["judge_failures", "nothing_scored"]),
    ],
)
def test_flags(results: list[Result], healthy: bool, flags: list[str]):
    found = check_expensive_evaluator(results)

    assert (healthy, flags) == (found.healthy, found.flags)


def test_details_are_the_figures_behind_the_flags():
    details = check_expensive_evaluator([scored(2), scored(4, 3, 5), unscored("refused")]).details

    assert (2, {"refused": 1}, [2.0, 4.0], 2.0) == (
        details["scored"],
        details["unscored"],
        details["score_range"],
        details["variance"],
    )
    assert 2.0 == details["noise"]["mean_abs_difference"]
    json.dumps(details, allow_nan=False)


def test_without_scores_there_is_no_variance():
    assert check_expensive_evaluator([unscored("missing")]).details["variance"] is None
    assert 0.0 == check_expensive_evaluator([scored(4)]).details["variance"]


def test_mappings_are_read_as_what_they_say():
    results = [scored(2), scored(4, 3, 5), unscored("refused"), unscored("missing")]
    assert check_expensive_evaluator(results) == check_expensive_evaluator([one.model_dump() for one in results])
