"""What is missing for convergence: each check by how much, and what would help."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from jumar.judging.models import IterationMetrics
from jumar.learning.convergence import groups_needed, missing_checks, missing_probes, missing_verdict, missing_words

FINE: dict[str, Any] = {
    "items": 90,
    "groups": 30,
    "checks": {"better_than_constant": {"held": True, "value": 0.3, "interval": [0.1, 0.5]}},
}


def metrics(number: int, **changes: Any) -> IterationMetrics:
    known = {
        "iteration": number,
        "timestamp": datetime(2026, 1, 1, tzinfo=UTC),
        "expensive_avg": 3.5,
        "cheap_avg": 3.5,
        "gap": 0.0,
    }
    return IterationMetrics.model_validate(
        {
            **known,
            "gap_delta": 0.0,
            "abs_gap": 0.9,
            "pattern_count": 4,
            "provisional_patterns": 0,
            "patterns_committed": 0,
            "patterns_rejected": 0,
            **changes,
        }
    )


def evidence(value: float, low: float, high: float, **changes: Any) -> dict[str, Any]:
    held = True if low > 0 else False if high < 0 else None
    return {**FINE, "checks": {"better_than_length": {"held": held, "value": value, "interval": [low, high]}}, **changes}


def missing(*names: str, growing: bool = False, **changes: Any) -> list[tuple[str, str]]:
    convergence = {"converged": False, "checks": dict.fromkeys(names, False), **changes}
    history = [metrics(1, pattern_count=20), metrics(2, abs_gap=None, gap=-0.7)]
    return [
        (one.says, one.helps) for one in missing_checks(convergence, history, evidence(0.1, -0.1, 0.3), fewest=2, growing=growing)
    ]


@pytest.mark.parametrize(
    ("check", "says", "helps"),
    [
        ("cheap_threshold", "the items' cheap average is 3.50, 0.50 below its target of 4.0", "other items"),
        ("gap_threshold", "the gap is 0.90, 0.40 over its target of 0.5", "--propose judge"),
        ("no_divergence", "the gap grows, to 0.70", "another iteration"),
        ("patterns_stable", "16 patterns came or went, and fewer than 10 may", "another iteration"),
        ("no_regressions", "rolled back", "another iteration"),
        ("same_items", "on other items", "another iteration"),
        (
            "tracking",
            "its gain in MAE over the length only is 0.10 [-0.10, 0.30], which chance alone can give",
            "about 120 test groups",
        ),
        ("probes", "a probe raised the scores", "more judged items"),
    ],
)
def test_each_check_says_by_how_much_and_what_helps(check: str, says: str, helps: str) -> None:
    [(told, help_told)] = missing(check)
    assert says in told
    assert helps in help_told
    [(_, in_a_loop)] = missing(check, growing=True)
    assert "--" not in in_a_loop


def test_a_gap_that_stays_above_its_target_is_one_missing_check_and_the_seed_profile_knows_a_way() -> None:
    assert [("the gap is 0.90, 0.40 over its target of 0.5", "`--profile evidence`, which fits the level too")] == missing(
        "gap_threshold", "no_divergence", profile="seed"
    )


def test_what_converged_misses_nothing_and_too_few_iterations_are_counted() -> None:
    assert [] == missing_checks({"converged": True}, [metrics(1)], FINE, fewest=2)
    [one] = missing_checks({"converged": False, "reason": "insufficient_iterations"}, [metrics(1)], FINE, fewest=3)
    assert ("1 iteration of the 3 that are asked for", "2 iterations more (`--max-iterations`)") == (one.says, one.helps)


def test_an_average_that_is_hardly_below_its_target_does_not_read_as_the_target() -> None:
    [one] = missing_checks(
        {"converged": False, "checks": {"cheap_threshold": False}}, [metrics(1, cheap_avg=3.9991)], FINE, fewest=2
    )
    assert "3.9991, 0.0009 below" in one.says


def test_a_gap_that_is_hardly_over_its_target_does_not_read_as_the_target() -> None:
    [one] = missing_checks({"converged": False, "checks": {"gap_threshold": False}}, [metrics(1, abs_gap=0.5004)], FINE, fewest=2)
    assert "the gap is 0.5004, 0.0004 over its target of 0.5" == one.says


def test_tracking_is_missing_for_lack_of_items_of_a_second_iteration_or_of_anything_that_tracks() -> None:
    few = missing_verdict({**FINE, "items": 16, "groups": 8}, "test", tracks=None)
    assert "16 test items in 8 groups, and 30 in 20 are the least" == few.says
    assert "two in a row" in missing_verdict(FINE, "test", tracks=True).says
    assert "another iteration" == missing_verdict(FINE, "test", tracks=True, growing=True).helps
    worse = missing_verdict(evidence(-0.1, -0.2, -0.05), "held-out", tracks=False)
    assert ("verdict", True) == (worse.check, "more items alone would not" in worse.helps)
    assert "other patterns; more" in missing_verdict(evidence(-0.1, -0.2, 0.1), "test", tracks=None, growing=True).helps
    unknown = {**FINE, "checks": {"new_check": {"held": None, "value": None, "interval": None}}}
    assert missing_verdict(unknown, "test", tracks=None).says.endswith(
        "new check cannot be computed, as the set or the judge tells none of them apart"
    )
    assert "[-0.20, -0.05], below 0" in worse.says


@pytest.mark.parametrize(("constant_mae", "who", "helps"), [(0.0, "judge", "tells items apart"), (0.4, "set", "other patterns")])
def test_without_a_rank_correlation_whoever_scored_all_alike_is_named(constant_mae: float, who: str, helps: str) -> None:
    checks = {"ranks_better_than_length": {"held": None, "value": None, "interval": None}}
    found = missing_verdict({**FINE, "checks": checks, "figures": {"constant_mae": constant_mae}}, "test", tracks=None)
    assert found.says.endswith(f"that it tracks: the {who} gave all items the same score")
    assert helps in found.helps


def test_more_items_are_not_said_to_help_where_more_items_alone_would_not() -> None:
    [gap] = missing_checks({"converged": False, "checks": {"gap_threshold": False}}, [metrics(1)], FINE, fewest=2)
    hopeless = missing_verdict(evidence(-0.1, -0.2, 0.1), "held-out", tracks=None)
    told = missing_words([gap.to_json(), hopeless.to_json()])
    assert told.endswith("What would help: other patterns (`--propose judge`); more items alone would not")
    assert "more judged items" in missing_words([gap.to_json()])


def test_groups_needed_grow_with_the_square_of_what_the_interval_lacks() -> None:
    assert 120 == groups_needed(evidence(0.1, -0.1, 0.3))
    assert groups_needed(evidence(0.01, -0.5, 0.5)) is None
    assert groups_needed(evidence(-0.1, -0.5, 0.5)) is None
    assert groups_needed(FINE) is None


def test_probes_name_the_worst_and_a_line_says_each_way_out_once() -> None:
    found = {
        "few_words": {"passed": False, "mean_change": 0.2},
        "padding": {"passed": False, "mean_change": None},
        "x": {"passed": True, "mean_change": 9.0},
    }
    one = missing_probes({"probes": found})
    assert "2 probes raised the scores, or may, by more than is allowed: most few words, by +0.200 on average" == one.says
    unsure = {"passed": False, "mean_change": -0.017, "interval": [-0.2, 0.12]}
    assert (
        "most prompt copied, by -0.017 [-0.200, +0.120] on average" in missing_probes({"probes": {"prompt_copied": unsure}}).says
    )
    assert f"{one.says}; {one.says}. What would help: {one.helps}" == missing_words([one.to_json(), one.to_json()])
    assert "" == missing_words([])
