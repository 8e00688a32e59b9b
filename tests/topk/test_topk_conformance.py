"""Every strategy keeps the contract, on every scale that it knows; and the suite finds those that don't."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

from jumar.testing.topk import Untouchable, check_strategy, score_lists
from jumar.topk import STRATEGIES, ScoredItem, SelectionResult, SelectionStrategy, create_selection_strategy
from jumar.topk.base import similarity_defaults

OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("adaptive_k", {"alpha": 1.0, "min_score": None}),
    ("adaptive_k", {"alpha": 3.0, "min_score": 0.1}),
    ("clustering", {"min_cluster_size": 1, "top_per_cluster": 1}),
    ("clustering", {"min_cluster_size": 3, "eps": 0.05, "min_score": None}),
    ("clustering", {"min_cluster_size": 5, "eps": 0.2, "top_per_cluster": 9}),
    ("conformal", {"threshold": 0.5}),
    ("conformal", {"threshold": 0.7, "on": "ratio"}),
    ("elbow", {"drop_threshold": 0.02, "min_score": None}),
    ("elbow", {"drop_threshold": 0.5, "min_score": -1}),
    ("entropy", {"low_entropy_k": 1, "medium_entropy_k": 1, "high_entropy_k": 30, "min_score": None}),
    ("entropy_normalized", {"low": 0.5, "high": 0.5, "min_score": 0.2}),
    ("expected_f1", {"unseen": 3, "beta": 2, "slope": 20, "intercept": -10, "rank_slope": 0}),
    ("fixed_k", {"k": 3, "min_score": 0.5}),
    ("largest_gap", {"min_top": 0.6, "min_score": 0.3}),
    ("otsu", {"min_score": 0.3}),
    ("ratio_to_top", {"ratio": 0.95, "min_score": 0.5}),
    ("score_threshold", {"threshold": 0}),
]


@pytest.mark.sweep
@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_keeps_the_contract(name: str):
    checked = check_strategy(STRATEGIES[name](), count=20_000 if os.environ.get("JUMAR_SWEEP") == "full" else 150)
    print(f"{name}: {checked:,} selections")


@pytest.mark.parametrize(("name", "params"), OTHERS)
def test_other_parameters_keep_the_contract(name: str, params: dict[str, Any]):
    assert 0 < check_strategy(create_selection_strategy(name, **params), count=100, seed=1)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@pytest.mark.parametrize("scale", ["distance", "bm25", "rrf", "logit"])
def test_every_scale_that_a_strategy_knows_keeps_the_contract(name: str, scale: str):
    found: Any = STRATEGIES[name]
    if scale not in found.SCALES:
        with pytest.raises(ValueError, match=f"not {scale}"):
            found(scale=scale, **({"min_score": None} if "min_score" in found.__dataclass_fields__ else {}))
        return
    params: dict[str, Any] = {"min_score": None} if "min_score" in found.__dataclass_fields__ else {}
    params |= {key: float(value) / 5 for key, value in similarity_defaults(found).items() if key in found.NEEDED}
    assert 0 < check_strategy(found(scale=scale, **params), count=60, seed=2)


class Broken(SelectionStrategy):
    """Keeps what it is told to."""

    def __init__(self, *positions: int, metadata: dict[Any, Any] | None = None, cutoff: float | None = None) -> None:
        self.positions, self.metadata, self.cutoff = positions, metadata or {}, cutoff

    @property
    def name(self) -> str:
        return "broken"

    def select(self, items: Sequence[ScoredItem[Any]], max_k: int = 20, min_k: int = 1, **_: Any) -> SelectionResult[Any]:
        create_selection_strategy("fixed_k").select(items, max_k, min_k)  # refuses what must be refused
        kept = [items[position] for position in self.positions if position < len(items)]
        cutoff = self.cutoff if self.cutoff is not None else float(kept[-1].score) if kept else 0.0
        return SelectionResult(kept, cutoff, self.name, self.metadata)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (Broken(), "keeps 0, not 1"),
        (Broken(0, 1, 2), "keeps 2, not 1 to 1|keeps 3, not 1 to 1"),
        (Broken(1), "without rank 1|keeps 0, not 1"),
        (Broken(0, metadata={"a": float("nan")}), "no plain JSON"),
        (Broken(0, metadata={1: "a"}), "no plain JSON"),
        (Broken(0, cutoff=7.0), "cutoff_score is 7.0"),
    ],
)
def test_a_broken_strategy_is_found(strategy: SelectionStrategy, message: str):
    with pytest.raises(AssertionError, match=message):
        check_strategy(strategy, count=30)


def test_items_that_must_not_be_touched_say_so():
    item = Untouchable()
    for look in (lambda: item == 1, lambda: hash(item), lambda: bool(item), lambda: item < 1):
        with pytest.raises(AssertionError, match="compared, hashed"):
            look()


def test_lists_are_the_same_each_time_and_of_many_kinds():
    lists = list(score_lists(3, 200))
    assert lists == list(score_lists(3, 200))
    assert {0, 1, 2, 20, 21, 60} <= {len(scores) for scores in lists}
    assert any(len(set(scores)) < len(scores) for scores in lists)
    assert any(scores and scores[-1] < 0 for scores in lists)
