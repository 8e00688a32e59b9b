"""Explanations and stages: what fired, what came second, what truncated it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jumar.testing.topk import score_lists
from jumar.topk import STRATEGIES, Gate, ScoredItem, StagedSelection, TokenBudget, create_selection_strategy
from jumar.topk.stages import about_tokens

PROBLEM = [0.92, 0.89, 0.71, 0.45, 0.42]


def items(scores: list[float]) -> list[ScoredItem[str]]:
    return [ScoredItem("word " * (position + 1), score) for position, score in enumerate(scores)]


def explained(name: str, scores: list[float], max_k: int = 20, min_k: int = 1, **params: Any):
    return create_selection_strategy(name, **params).select(items(scores), max_k, min_k).explain()


def test_adaptive_k_says_rule_cut_runner_up_and_margin():
    found = explained("adaptive_k", PROBLEM)
    assert ("adaptive_k", 3, 3, 2, "gap", ()) == (
        found.method,
        found.kept,
        found.by_rule,
        found.runner_up,
        found.unit,
        found.truncated_by,
    )
    assert found.margin == pytest.approx(0.26 - 1.5 * 0.125)
    assert str(found).splitlines()[:2] == [
        "adaptive_k keeps 3 of 5 items: the first gap above 1.5 × the mean gap",
        "runner-up: 2, a margin of 0.0725 in gap",
    ]


def test_the_chart_draws_kept_scores_full_and_the_cut_below_the_last():
    chart = explained("adaptive_k", PROBLEM).chart()
    assert 6 == len(chart)
    assert ["█", "█", "█", "─", "░", "░"] == [line[-1] for line in chart]
    assert "   1     0.9200  " == chart[0][:17]


def test_max_k_truncates():
    found = explained("fixed_k", [0.9] * 10, max_k=3, k=5)
    assert (3, 5, ("max_k",)) == (found.kept, found.by_rule, found.truncated_by)


def test_min_k_raises_what_the_rule_would_cut():
    found = explained("adaptive_k", [0.9, 0.5, 0.49, 0.48], min_k=1)
    assert 1 == found.by_rule
    raised = explained("fixed_k", PROBLEM, min_k=4, k=2)
    assert (4, 2, ("min_k",)) == (raised.kept, raised.by_rule, raised.truncated_by)


def test_min_score_truncates():
    found = explained("elbow", [0.9, 0.85, 0.8, 0.45], drop_threshold=0.9)
    assert (3, ("min_score",)) == (found.kept, found.truncated_by)


def test_a_threshold_names_the_nearer_neighbour():
    found = explained("score_threshold", [0.9, 0.52, 0.4], threshold=0.5)
    assert (2, 1) == (found.kept, found.runner_up)
    assert found.margin == pytest.approx(0.02)
    lower = explained("score_threshold", [0.9, 0.7, 0.49], threshold=0.5)
    assert (2, 3) == (lower.kept, lower.runner_up)


@pytest.mark.parametrize(
    "name",
    [
        "adaptive_k",
        "clustering",
        "conformal",
        "elbow",
        "entropy",
        "entropy_normalized",
        "expected_f1",
        "fixed_k",
        "largest_gap",
        "otsu",
        "ratio_to_top",
        "score_threshold",
    ],
)
@pytest.mark.parametrize("scores", [[], [0.7], PROBLEM, [0.5] * 6, [0.2, 0.1], [1.0 - 0.01 * k for k in range(40)]])
def test_every_strategy_explains_every_list_as_text_and_as_json(name: str, scores: list[float]):
    for max_k, min_k in ((20, 1), (3, 0)):
        result = create_selection_strategy(name).select(items(scores), max_k, min_k)
        found = result.explain()
        assert len(result.selected) == found.kept == len(found.kept_positions)
        assert found.as_dict() == json.loads(json.dumps(found.as_dict(), allow_nan=False))
        assert str(found).startswith(
            f"{name} keeps {found.kept} of {len(scores)} item" if scores else f"{name} keeps 0 of 0 items"
        )


def test_distances_are_shown_as_they_were_given():
    found = explained("score_threshold", [0.1, 0.2, 0.9], threshold=0.5, scale="distance")
    assert ((0.1, 0.2, 0.9), 0.2, 2) == (found.scores, found.cutoff_score, found.kept)
    assert found.rule == "scores of at most 0.5"


# ---------------------------------------------------------------------------------------------------------- stages


def test_gate_selector_and_budget_report_as_one():
    staged = StagedSelection("adaptive_k", gate=Gate(0.5), budget=TokenBudget(4))
    result = staged.select(items(PROBLEM))
    assert (["word "], 0.92, "adaptive_k", False) == (
        [one.item for one in result.selected],
        result.cutoff_score,
        result.method,
        result.abstained,
    )
    assert result.metadata["stages"] == [
        {"name": "gate", "given": 5, "kept": 5, "reason": "the best score 0.92 is at least 0.5"},
        {"name": "selector", "given": 5, "kept": 3, "reason": "adaptive_k"},
        {"name": "budget", "given": 3, "kept": 1, "reason": "2 of 4 tokens"},
    ]
    assert ("budget",) == result.explain().truncated_by


def test_no_gate_and_no_budget_are_the_selector_alone():
    result = StagedSelection("adaptive_k").select(items(PROBLEM))
    assert [{"name": "selector", "given": 5, "kept": 3, "reason": "adaptive_k"}] == result.metadata["stages"]
    assert StagedSelection(gate=Gate(0.5)).select([]).abstained
    with pytest.raises(ValueError, match="min_top is None"):
        Gate(None)  # pyright: ignore[reportArgumentType]


def test_a_weak_top_and_an_unfitted_conformal_say_so():
    assert "the best score is below min_top 0.9" == explained("largest_gap", [0.5, 0.1], min_top=0.9).rule
    found = explained("conformal", [0.9, 0.5, 0.4], threshold=0.45, recall=0.8)
    assert ("scores of at least 0.45, for a recall of 0.8", 2) == (found.rule, found.kept)
    assert 2 == explained("conformal", [0.9, 0.5, 0.4], threshold=0.5, on="ratio").kept


def test_a_closed_gate_abstains_whatever_min_k_says():
    result = StagedSelection("fixed_k", gate=Gate(0.95)).select(items(PROBLEM), min_k=2)
    assert ([], 0.0, True) == (result.selected, result.cutoff_score, result.abstained)
    assert "gate" in result.explain().truncated_by
    assert "gate: 5 → 0, the best score 0.92 is not at least 0.95" in str(result.explain())


def test_a_gate_of_distances_wants_small_ones():
    staged = StagedSelection(create_selection_strategy("fixed_k", scale="distance"), gate=Gate(0.3, scale="distance"))
    assert not staged.select(items([0.2, 0.4])).abstained
    assert staged.select(items([0.31, 0.4])).abstained
    with pytest.raises(ValueError, match="the same scale"):
        StagedSelection("fixed_k", gate=Gate(0.3, scale="distance"))


def test_a_budget_stops_at_the_first_that_does_not_fit_or_skips_it():
    sizes = {"a": 3, "b": 9, "c": 2}
    ranking = [ScoredItem(name, 0.9) for name in "abc"]
    assert (0,) == TokenBudget(6, count=sizes.__getitem__).fit(ranking).positions
    skipping = TokenBudget(6, count=sizes.__getitem__, overflow="skip").fit(ranking)
    assert ((0, 2), 5, 1) == (skipping.positions, skipping.used, skipping.dropped)
    assert () == TokenBudget(2, count=sizes.__getitem__, overflow="skip").fit(ranking).positions
    assert 4 == TokenBudget(6, count=sizes.__getitem__, overhead=1).fit(ranking).used


def test_tokens_are_counted_roughly_in_bytes():
    assert [0, 1, 1, 2, 2] == [about_tokens(text) for text in ("", "a", "abcd", "abcde", "ééé")]


@pytest.mark.parametrize(
    "params", [{"tokens": -1}, {"tokens": 1.5}, {"tokens": 1, "overhead": -1}, {"tokens": 1, "overflow": "x"}]
)
def test_a_budget_that_means_nothing_is_refused(params: dict[str, Any]):
    with pytest.raises(ValueError):
        TokenBudget(**params)


def test_a_count_that_is_no_number_names_the_item():
    with pytest.raises(ValueError, match="item at position 0"):
        TokenBudget(5, count=lambda _: -1).fit([ScoredItem("a", 0.5)])


# ------------------------------------------------------------------------------------------- nothing that is not so


LIMITS: tuple[tuple[int, int, Any], ...] = ((20, 1, "split"), (5, 3, "split"), (20, 0, "keep"), (3, 2, "keep"))


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_an_explanation_agrees_with_selecting_again(name: str):
    strategy = create_selection_strategy(name)
    without = create_selection_strategy(name, min_score=None) if "min_score" in strategy.params() else strategy

    def kept(chosen: Any, scores: list[float], max_k: int, min_k: int, ties: Any) -> int:
        return len(chosen.select(items(scores), max_k, min_k, ties=ties).selected)

    for scores in score_lists(11, 60):
        for max_k, min_k, ties in LIMITS:
            found = strategy.select(items(scores), max_k, min_k, ties=ties).explain()
            size = max(len(scores), max_k)
            named = [
                *(["max_k"] if kept(strategy, scores, size, min_k, ties) > found.kept else []),
                *(["min_score"] if kept(without, scores, max_k, min_k, ties) > found.kept else []),
                *(["min_k"] if kept(strategy, scores, max_k, 0, ties) != found.kept else []),
                *(["ties"] if kept(strategy, scores, max_k, min_k, "split") < found.kept else []),
            ]
            assert list(found.truncated_by) == named
            alone = kept(strategy, scores, size if "max_k" in named else max_k, 0, "split")
            assert found.by_rule == alone
            assert found.margin is None or found.margin >= 0
            assert found.runner_up != found.kept
            assert found.runner_up is None or min_k <= found.runner_up <= min(max_k, len(scores))
            assert str(found)


@pytest.mark.parametrize(
    ("name", "scores", "options", "lines"),
    [
        (
            "adaptive_k",
            [0.9, 0.3, 0.29, 0.28, 0.27],
            {"min_score": 0.0, "min_k": 3},
            ["the first gap above 1.5 × the mean gap", "the rule alone: 1", "truncated by: min_k"],
        ),
        (
            "adaptive_k",
            [0.3, 0.2, 0.1],
            {},
            [
                "no score is at least min_score 0.4; min_k 1 is kept all the same",
                "the rule alone: 0",
                "truncated by: min_score, min_k",
            ],
        ),
        (
            "adaptive_k",
            [0.9, 0.1],
            {},
            ["only 1 of 2 scores is at least min_score 0.4, which leaves nothing to compare", "truncated by: min_score"],
        ),
        ("fixed_k", [0.9, 0.8, 0.7, 0.6], {"k": 3, "max_k": 3}, ["always 3"]),
        ("elbow", [0.9, 0.88, 0.86, 0.49, 0.2], {}, ["the first drop above 0.15 of the score before", "runner-up: 4"]),
        (
            "elbow",
            [0.52, 0.51, 0.5, 0.49],
            {},
            [
                "scores of at least min_score 0.5, which came before the first drop above 0.15 of the score before",
                "truncated by: min_score",
            ],
        ),
        (
            "entropy",
            [0.9, 0.8, 0.7, 0.6, 0.5],
            {},
            ["an entropy of 1.589; below 1 keeps 3, below 2 5, else 10", "runner-up: 3, a margin of 0.58"],
        ),
        (
            "ratio_to_top",
            [0.9, 0.8, 0.7, 0.6],
            {"min_score": 0.75},
            [
                "scores of at least min_score 0.75, more than 0.7 × the best",
                "runner-up: 1, a margin of 0.05",
                "truncated by: min_score",
            ],
        ),
        (
            "largest_gap",
            [0.3, 0.2, 0.1],
            {"min_top": 0.5},
            ["the best score is below min_top 0.5", "the rule alone: 0", "truncated by: min_k"],
        ),
        (
            "otsu",
            [0.1, 0.6, 0.7],
            {"scale": "distance", "min_score": 0.2},
            ["only 1 of 3 scores is at most min_score 0.2, which leaves nothing to compare"],
        ),
        (
            "entropy_normalized",
            [0.3, 0.2],
            {"min_score": 0.5},
            [
                "no score is at least min_score 0.5; min_k 1 is kept all the same",
                "the rule alone: 0",
                "truncated by: min_score, min_k",
            ],
        ),
        (
            "conformal",
            [0.9, 0.5],
            {"threshold": 0.4},
            ["scores of at least 0.4, for a recall of 0.9", "runner-up: 1, a margin of 0.1"],
        ),
    ],
)
def test_it_says_what_cut(name: str, scores: list[float], options: dict[str, Any], lines: list[str]):
    limits = {key: options[key] for key in ("max_k", "min_k") if key in options}
    params = {key: value for key, value in options.items() if key not in limits}
    said = str(create_selection_strategy(name, **params).select(items(scores), **limits).explain()).splitlines()
    said = [line for line in said if not line.startswith(" ")]
    assert len(lines) == len(said)
    assert said[0].endswith(lines[0])
    assert all(line.startswith(expected) for line, expected in zip(said[1:], lines[1:], strict=True)), said
