"""The history functions: the keys of the design, its plain comparisons, and the corrections."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jumar.judging
import jumar.learning
from jumar.judging import IterationMetrics
from jumar.learning import analyze_gap_increase, check_convergence, check_for_regression, detect_divergence, is_stable


def record(iteration: int = 1, gap: float = 0.3, **more: Any) -> dict[str, Any]:
    known = {"expensive_avg": 4.3, "cheap_avg": 4.0, "pattern_count": 100, "story_ids": ["a", "b"], "tracks": True}
    return {"iteration": iteration, "gap": gap, **known, **more}


def metrics(**fields: Any) -> IterationMetrics:
    rest = {"timestamp": datetime(2026, 1, 1, tzinfo=UTC), "gap_delta": 0.0, "provisional_patterns": 0}
    return IterationMetrics(**{**record(), **rest, "patterns_committed": 0, "patterns_rejected": 0, **fields})


def history(*gaps: float, **more: Any) -> list[dict[str, Any]]:
    return [record(number, gap, **more) for number, gap in enumerate(gaps, 1)]


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ((), {"diverging": False, "reason": "insufficient_data"}),
        ((0.1, 0.2), {"diverging": False, "reason": "insufficient_data"}),
        ((0.9, 0.7, 0.6), {"diverging": False}),
        ((0.9, 0.1, 0.2, 0.1), {"diverging": False}),
        ((0.41, 0.4, 0.42), {"diverging": False, "reason": "good_plateau"}),
        ((-0.41, 0.4, -0.42), {"diverging": False, "reason": "good_plateau"}),
    ],
)
def test_what_does_not_diverge(gaps: tuple[float, ...], expected: dict[str, Any]) -> None:
    assert expected == detect_divergence(history(*gaps))


def test_a_growing_gap_diverges_on_either_side() -> None:
    """A cheap judge that gets more and more generous has a gap that falls, signed."""
    for sign in (1, -1):
        found = detect_divergence(history(*(sign * gap for gap in (0.1, 0.2, 0.4))))
        assert (True, "gap_increasing", "rollback_to_iteration_1") == (found["diverging"], found["reason"], found["action"])
    assert (
        "rollback_to_iteration_N" == detect_divergence([{**one, "iteration": None} for one in history(0.1, 0.2, 0.4)])["action"]
    )


def test_a_gap_that_stays_too_large_is_a_plateau() -> None:
    found = detect_divergence(history(0.8, 0.82, 0.81))
    assert (True, "gap_plateau", "patterns not capturing new signals") == (
        found["diverging"],
        found["reason"],
        found["diagnosis"],
    )


def test_patterns_may_explode_while_the_gap_falls() -> None:
    found = detect_divergence([record(1, 0.9), record(2, 0.8), record(3, 0.7, pattern_count=151)])
    assert (True, "pattern_explosion") == (found["diverging"], found["reason"])
    assert {"diverging": False} == detect_divergence([record(1, 0.9), record(2, 0.8), record(3, 0.7, pattern_count=150)])


@pytest.mark.parametrize(
    ("latest", "key"),
    [
        ({"cheap_avg": 3.9}, "cheap_mode_degraded"),
        ({"cheap_avg": 3.9, "expensive_avg": 4.9, "pattern_count": 999}, "cheap_mode_degraded"),
        ({"expensive_avg": 4.4}, "expensive_mode_shifted"),
        ({"pattern_count": 151}, "pattern_explosion"),
        ({}, "unknown"),
    ],
)
def test_the_diagnosis_begins_with_its_key(latest: dict[str, Any], key: str) -> None:
    assert key == analyze_gap_increase([record(), record(2, **latest)]).partition(":")[0]


def test_stable_is_twice_the_same_items_with_both_targets_met() -> None:
    assert is_stable([record(), record(2)])
    assert is_stable([metrics(), metrics(iteration=2, tracks=None)])
    assert not is_stable([record()])
    for broken in (
        {"story_ids": ["a", "c"]},
        {"story_ids": None},
        {"story_ids": []},
        {"cheap_avg": 3.99},
        {"gap": 0.51},
        {"gap": -0.51},
        {"abs_gap": 0.51},
        {"pattern_count": 110},
    ):
        assert not is_stable([record(), {**record(2), **broken}])


def test_the_gap_of_items_counts_before_that_of_averages() -> None:
    """Averages agree, items do not: the mean hides everything."""
    assert not is_stable([record(gap=0.0, abs_gap=1.2), record(2, gap=0.0, abs_gap=1.2)])


def test_converged_is_stable_without_divergence_or_regression_and_tracks() -> None:
    found = check_convergence([record(7), metrics(iteration=8)])
    assert found["converged"]
    assert {"iterations_checked": [7, 8], "cheap_scores": [4.0, 4.0], "gaps": [0.3, 0.3]} == found["proof"]
    assert set(found["checks"]) == {
        "cheap_threshold",
        "gap_threshold",
        "no_divergence",
        "patterns_stable",
        "no_regressions",
        "same_items",
        "tracking",
    }


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        ("cheap_threshold", {"cheap_avg": 3.9}),
        ("gap_threshold", {"gap": 0.6}),
        ("patterns_stable", {"pattern_count": 90}),
        ("no_regressions", {"regression_detected": True}),
        ("same_items", {"story_ids": ["b", "a"]}),
        ("tracking", {"tracks": None}),
        ("tracking", {"tracks": False}),
    ],
)
def test_each_check_alone_keeps_from_converging(check: str, broken: dict[str, Any]) -> None:
    found = check_convergence([record(), {**record(2), **broken}])
    assert (False, [check]) == (found["converged"], [name for name, held in found["checks"].items() if not held])


def test_divergence_keeps_from_converging() -> None:
    found = check_convergence(history(0.1, 0.2, 0.4))
    assert (False, False) == (found["converged"], found["checks"]["no_divergence"])


@pytest.mark.parametrize(("count", "minimum"), [(0, 2), (1, 2), (1, 0), (4, 5)])
def test_too_few_iterations_are_no_convergence(count: int, minimum: int) -> None:
    expected = {"converged": False, "reason": "insufficient_iterations"}
    assert expected == check_convergence(history(*[0.3] * count), minimum)


def result(gap: float, cheap: float = 4.0, spearman: float | None = None, **more: Any) -> dict[str, Any]:
    return {"gap": gap, "cheap": {"gestalt_avg": cheap}, "tracking": {"spearman": spearman}, **more}


@pytest.mark.parametrize(
    ("current", "previous", "kind"),
    [
        (result(0.51), result(0.3), "gap_increased"),
        (result(-0.51), result(0.3), "gap_increased"),
        (result(0.0, abs_gap_mean=0.9), result(0.0, abs_gap_mean=0.6), "gap_increased"),
        (result(0.3, 3.6), result(0.3, 4.0), "cheap_score_dropped"),
        (result(0.3, spearman=0.4), result(0.3, spearman=0.5), "correlation_decreased"),
    ],
)
def test_each_kind_of_regression_is_named(current: dict[str, Any], previous: dict[str, Any], kind: str) -> None:
    found = check_for_regression(current, previous, ["p_1"])
    assert (True, kind, "revert_pattern_change", ["p_1"]) == (
        found["regression"],
        found["type"],
        found["action"],
        found["pattern_changed"],
    )
    assert found["delta"] != 0


@pytest.mark.parametrize(
    ("current", "previous"),
    [
        (result(0.5), result(0.3)),
        (result(-0.3), result(0.3)),
        (result(0.3, 3.75), result(0.3, 4.0)),
        (result(0.3, spearman=None), result(0.3, spearman=0.5)),
        ({"gap": 0.3, "cheap": {"gestalt_avg": 4.0}, "tracking": None}, result(0.3, spearman=0.5)),
    ],
)
def test_what_is_no_regression(current: dict[str, Any], previous: dict[str, Any]) -> None:
    assert {"regression": False} == check_for_regression(current, previous)


@given(st.lists(st.floats(-4, 4), min_size=3, max_size=6))
def test_models_and_mappings_are_the_same_history(gaps: list[float]) -> None:
    dicts = history(*gaps)
    models = [metrics(iteration=number, gap=gap) for number, gap in enumerate(gaps, 1)]
    assert detect_divergence(dicts) == detect_divergence(models)
    assert is_stable(dicts) == is_stable(models)
    assert check_convergence(dicts) == check_convergence(models)


def test_the_history_functions_are_the_judges_and_the_learners() -> None:
    """Who evaluates with a proof needs them and may not see the learner; who learns asks for them by the learner's name."""
    for name in ("analyze_gap_increase", "check_convergence", "check_for_regression", "detect_divergence", "is_stable"):
        assert getattr(jumar.judging, name) is getattr(jumar.learning, name)
        assert name in jumar.judging.__all__
    assert [{"gap": 0.3}] == jumar.judging.update_calibration_history([], {"gap": 0.3})
