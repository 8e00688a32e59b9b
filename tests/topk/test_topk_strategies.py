"""Strategies by example: the golden list, single rules, refusals, the registry and the batch."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jumar.topk
from jumar.topk import (
    STRATEGIES,
    AdaptiveKSelectionStrategy,
    ClusterSelectionStrategy,
    ElbowSelectionStrategy,
    FixedKSelectionStrategy,
    ScoredItem,
    SelectionStrategy,
    StagedSelection,
    create_selection_strategy,
    select_batch,
)

PROBLEM = [0.92, 0.89, 0.71, 0.45, 0.42]


def items(scores: list[Any]) -> list[ScoredItem[int]]:
    return [ScoredItem(position, score) for position, score in enumerate(scores)]


def kept(strategy: Any, scores: list[Any], max_k: int = 20, min_k: int = 1, **options: Any) -> list[int]:
    return [one.item for one in strategy.select(items(scores), max_k, min_k, **options).selected]


def test_the_default_keeps_three_of_the_problem_list():
    result = AdaptiveKSelectionStrategy().select(items(PROBLEM))
    assert ([0, 1, 2], 0.71, "adaptive_k") == ([one.item for one in result.selected], result.cutoff_score, result.method)
    assert result.metadata == {"alpha": 1.5, "mean_drop": pytest.approx(0.125), "cutoff_idx": 3}


@pytest.mark.parametrize(
    ("name", "scores", "params", "expected"),
    [
        ("elbow", [0.9, 0.85, 0.6, 0.59], {}, 2),
        ("elbow", [0.9, 0.85, 0.8, 0.49], {"drop_threshold": 0.9}, 3),
        ("elbow", [0.0, -0.1], {"min_score": -1}, 1),
        ("adaptive_k", [0.9, 0.8, 0.7, 0.3], {"min_score": None}, 3),
        ("entropy", [0.9] * 12, {}, 10),
        ("entropy", [0.9, 0.31, 0.3], {}, 3),
        ("fixed_k", [0.9] * 9, {"k": 4}, 4),
        ("otsu", [0.9, 0.88, 0.2, 0.1], {}, 2),
        ("otsu", [0.5, 0.5, 0.5], {}, 3),
        ("largest_gap", [0.9, 0.8, 0.5, 0.4], {}, 2),
        ("largest_gap", [0.3, 0.2, 0.1], {"min_top": 0.5}, 1),
        ("ratio_to_top", [10.0, 8.0, 6.9, 1.0], {"scale": "bm25"}, 2),
        ("score_threshold", [0.1, 0.4, 0.6], {"scale": "distance", "threshold": 0.4}, 2),
        ("conformal", [0.9, 0.8, 0.1], {"threshold": 0.5}, 2),
        ("expected_f1", [0.9, 0.88, 0.1, 0.1], {"slope": 20, "intercept": -10}, 2),
    ],
)
def test_how_many_each_rule_keeps(name: str, scores: list[float], params: dict[str, Any], expected: int):
    assert list(range(expected)) == kept(create_selection_strategy(name, **params), scores)


def test_clustering_keeps_the_best_of_each_group_and_never_loses_rank_1():
    assert [0, 1, 2, 4, 5] == kept(ClusterSelectionStrategy(), [0.9, 0.89, 0.88, 0.87, 0.6, 0.55])
    assert [0, 1, 2] == kept(ClusterSelectionStrategy(), [0.9, 0.6, 0.59, 0.58], max_k=3)


def test_numbers_of_other_libraries_are_read_as_floats():
    result = FixedKSelectionStrategy(k=1).select(items([np.float32(0.5), np.float32(0.25)]))
    assert (0.5, float) == (result.cutoff_score, type(result.cutoff_score))
    assert [0] == kept(FixedKSelectionStrategy(k=1), [1, 0])


def test_huge_scores_do_not_overflow_the_check():
    assert [0, 1] == kept(FixedKSelectionStrategy(), [1e150, 1e150])


@pytest.mark.parametrize("scores", [[1.7e308, 1.7e308], [1e151], [0.5, -1e151]])
def test_scores_that_no_search_gives_are_refused_alone_and_in_a_batch(scores: list[float]):
    place = next(position for position, score in enumerate(scores) if abs(score) > 1)
    for strategy in STRATEGIES:
        more: list[dict[str, Any]] = [{}, {"assume_sorted": False}]
        for options in more:
            with pytest.raises(ValueError, match=f"the score at position {place} is .*: scores are from -1e150 to 1e150"):
                create_selection_strategy(strategy).select(items(scores), **options)
            with pytest.raises(ValueError, match=f"query 1: the score at position {place} is .*: scores are from"):
                select_batch([[0.5] * len(scores), scores], strategy, **options)


def test_ties_are_kept_when_asked_as_long_as_there_is_room():
    assert [0, 1] == kept(FixedKSelectionStrategy(k=2), [0.9, 0.8, 0.8, 0.8, 0.1])
    assert [0, 1, 2, 3] == kept(FixedKSelectionStrategy(k=2), [0.9, 0.8, 0.8, 0.8, 0.1], ties="keep")
    assert [0, 1, 2] == kept(FixedKSelectionStrategy(k=2), [0.9, 0.8, 0.8, 0.8, 0.1], max_k=3, ties="keep")


def test_dropped_scores_are_counted():
    result = FixedKSelectionStrategy().select(items([0.9, float("nan"), 0.8]), on_invalid="drop")
    assert ([0, 2], 1) == ([one.item for one in result.selected], result.metadata["dropped"])


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([0.9, float("nan")], {}, "position 1 is nan"),
        ([0.5, 0.9], {}, r"position 1 \(0.9\) is better than position 0 \(0.5\)"),
        (["a"], {}, "position 0 is 'a'"),
        ([None], {}, "position 0 is None"),
        ([0.9], {"ties": "all"}, "ties is 'all'"),
        ([0.9], {"on_invalid": "ignore"}, "on_invalid is 'ignore'"),
        ([0.9], {"max_k": 1, "min_k": 2}, "min_k is 2 and max_k 1"),
        ([0.9], {"max_k": 0}, "max_k is 0"),
        ([0.9], {"max_k": True}, "max_k is True"),
    ],
)
def test_errors_say_what_and_where(scores: list[Any], options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        FixedKSelectionStrategy().select(items(scores), **options)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("elbow", {"drop_threshold": 1}, "above 0 and below 1"),
        ("elbow", {"min_score": 5}, "scale='bm25'"),
        ("elbow", {"min_score": float("nan")}, "min_score is nan"),
        ("elbow", {"scale": "logit"}, "not logit"),
        ("elbow", {"scale": "cosine"}, "choose one of similarity"),
        ("elbow", {"scale": "rrf", "min_score": 0.5001}, "more than 30 lists"),
        ("elbow", {"drop": 1}, "no parameter 'drop'"),
        ("adaptive_k", {"alpha": 0}, "above 0"),
        ("adaptive_k", {"alpha": 10**400}, "alpha is"),
        ("clustering", {"eps": 0}, "above 0"),
        ("clustering", {"min_cluster_size": 0}, "1 or more"),
        ("entropy", {"low_entropy_k": 7}, "low ≤ medium ≤ high"),
        ("entropy_normalized", {"high_entropy_k": 1}, "low ≤ medium ≤ high"),
        ("entropy_normalized", {"low": 0.95}, "low ≤ high"),
        ("fixed_k", {"k": 2.5}, "whole number"),
        ("conformal", {"on": "rank"}, "'score' or 'ratio'"),
        ("conformal", {"on": "ratio", "scale": "logit"}, "on='score'"),
        ("conformal", {"on": "ratio", "threshold": 2}, "from 0 and at most 1"),
        ("score_threshold", {"threshold": None}, "threshold is None"),
        ("expected_f1", {"slope": float("inf")}, "slope is inf"),
        ("elbo", {}, "did you mean 'elbow'"),
        (None, {}, "names no strategy"),
        (7, {}, "names no strategy"),
    ],
)
def test_what_cannot_be_built_says_why(name: Any, params: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        create_selection_strategy(name, **params)


def test_without_a_name_it_is_the_one_that_is_recommended_everywhere():
    named = create_selection_strategy("entropy_normalized")
    assert named == create_selection_strategy() == StagedSelection().selector
    assert create_selection_strategy("entropy_normalized", low_entropy_k=2) == create_selection_strategy(low_entropy_k=2)
    scores = [[0.9, 0.88, 0.5, 0.2, 0.1, 0.1, 0.1, 0.1], [0.5] * 8]
    assert select_batch(scores, "entropy_normalized").tolist() == select_batch(scores).tolist()
    with pytest.raises(ValueError, match="entropy_normalized has no parameter 'alpha'"):
        create_selection_strategy(alpha=2)


def test_a_strategy_comes_from_a_name_a_mapping_an_object_or_itself():
    strategy = ElbowSelectionStrategy(drop_threshold=0.3)
    assert strategy == create_selection_strategy("elbow", drop_threshold=0.3)
    assert strategy == create_selection_strategy({"strategy": "elbow", "drop_threshold": 0.3})
    assert strategy == create_selection_strategy({"strategy": "elbow", "drop_threshold": 0.9}, drop_threshold=0.3)
    assert strategy == create_selection_strategy(SimpleNamespace(strategy="elbow", drop_threshold=0.3))
    assert strategy is create_selection_strategy(strategy)
    assert strategy == create_selection_strategy(ElbowSelectionStrategy(), drop_threshold=0.3)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_parameters_build_the_same_strategy_again_and_are_frozen(name: str):
    strategy: Any = create_selection_strategy(name)
    assert strategy == create_selection_strategy(name, **strategy.params())
    assert "scale" not in strategy.params()
    with pytest.raises(AttributeError):
        strategy.scale = "bm25"


def test_a_strategy_that_is_no_dataclass_takes_no_parameters_here():
    class Own(SelectionStrategy):
        @property
        def name(self) -> str:
            return "own"

        def select(self, items: Any, max_k: int = 20, min_k: int = 1, **_: Any) -> Any:
            return FixedKSelectionStrategy(k=1).select(items, max_k, min_k)

    assert {} == Own().params()
    assert [1] == select_batch([PROBLEM], Own()).tolist()
    with pytest.raises(ValueError, match="takes no parameters here"):
        create_selection_strategy(Own(), k=1)


def test_a_strategy_from_a_dataclass_that_names_one():
    @dataclass
    class Settings:
        strategy: str = "fixed_k"
        k: int = 2

    assert FixedKSelectionStrategy(k=2) == create_selection_strategy(Settings())


def test_very_small_scores_and_chances_of_0_do_not_fail():
    assert [0, 1] == kept(create_selection_strategy("entropy", min_score=None), [1e-200, 1e-201, 0.0], max_k=2)
    assert [0] == kept(create_selection_strategy("expected_f1", slope=1000, intercept=-1000), [0.1, 0.05])
    assert [] == kept(create_selection_strategy("expected_f1", min_score=0.5), [0.1], min_k=0)


def test_a_scale_that_is_not_the_default_is_a_parameter():
    assert {"k": 5, "min_score": None, "scale": "logit"} == FixedKSelectionStrategy(scale="logit").params()


# ----------------------------------------------------------------------------------------------------- many queries


def test_a_batch_gives_counts_or_a_mask():
    scores = np.array([PROBLEM, [0.9] * 5])
    assert [3, 5] == select_batch(scores, "adaptive_k").tolist()
    assert [[True] * 3 + [False] * 2, [True] * 5] == select_batch(scores, "adaptive_k", return_mask=True).tolist()
    assert [2, 2] == select_batch(scores, "fixed_k", k=2).tolist()


def test_a_batch_takes_rows_of_different_lengths_and_drops_what_is_not_finite():
    assert [3, 1, 0] == select_batch([PROBLEM, [0.9], []], AdaptiveKSelectionStrategy()).tolist()
    holed = np.array([[float("nan"), 0.9, 0.8], [0.9, 0.8, 0.1]])
    mask = select_batch(holed, "fixed_k", k=1, return_mask=True, on_invalid="drop")
    assert [[False, True, False], [True, False, False]] == mask.tolist()


def test_a_batch_sorts_a_copy_when_asked_and_answers_in_the_given_order():
    scores = np.array([[0.1, 0.9, 0.5]])
    assert [[False, True, False]] == select_batch(scores, "fixed_k", k=1, assume_sorted=False, return_mask=True).tolist()
    assert [[0.1, 0.9, 0.5]] == scores.tolist()


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.array([[0.9, 0.8], [0.5, 0.6]]), "query 1: the scores are not sorted"),
        (np.array([[0.9, 0.8], [0.5, np.nan]]), "query 1: the score at position 1 is nan"),
        (np.array([[np.inf, 0.8]]), "query 0: the score at position 0 is inf"),
        (np.array([0.9, 0.8]), "1 dimension: give an array of queries × items"),
        ([[0.9, "x"]], "query 0: the score at position 1 is 'x'"),
        ([0.9], "query 0 is no list"),
    ],
)
def test_a_batch_refuses_what_a_single_call_refuses_and_names_the_query(scores: Any, message: str):
    with pytest.raises(ValueError, match=message):
        select_batch(scores, "fixed_k")


def test_a_batch_of_nothing_is_nothing():
    assert [] == select_batch([], "otsu").tolist()
    assert [0, 0] == select_batch(np.zeros((2, 0)), "otsu").tolist()


def test_a_batch_asks_a_strategy_without_a_kernel_query_by_query():
    class Second(FixedKSelectionStrategy):
        def cut(self, scores: list[float], max_k: int, min_k: int) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
            return 2, {}

    assert [2, 1] == select_batch([PROBLEM, [0.4]], Second()).tolist()


# ------------------------------------------------------------------------------------------------------------ import


def test_one_query_loads_neither_numpy_nor_pydantic():
    code = (
        "import sys, jumar.topk as t\n"
        "for name in t.STRATEGIES: t.STRATEGIES[name]().select([t.ScoredItem(k, 0.5 - k / 9) for k in range(4)]).explain()\n"
        "print(sorted({'numpy', 'pydantic', 'scipy'} & set(sys.modules)))"
    )
    assert "[]\n" == subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_table_of_strategies_loads_a_class_when_it_is_asked_for_and_none_of_the_others():
    code = (
        "import sys, jumar.topk as t\n"
        "print(len(t.STRATEGIES), t.STRATEGIES['otsu'].__name__, t.STRATEGIES.get('otus'))\n"
        "print([name for name in t.STRATEGIES if f'jumar.topk.strategies.{name}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert ["12 OtsuSelectionStrategy None", "['otsu']"] == done.stdout.splitlines()
    assert "elbow" in repr(STRATEGIES)


def test_every_public_name_is_found():
    assert sorted(jumar.topk.__all__) == sorted(jumar.topk._ELSEWHERE)
    for name in jumar.topk.__all__:
        assert getattr(jumar.topk, name).__class__
    assert set(jumar.topk.__all__) <= set(dir(jumar.topk))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        jumar.topk.nothing  # noqa: B018 # pyright: ignore[reportAttributeAccessIssue]
