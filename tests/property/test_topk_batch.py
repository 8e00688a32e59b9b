"""Many queries at once keep what each alone keeps: also on rounded scores, on long lists and where the last bit decides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.topk import STRATEGIES, ScoredItem, create_selection_strategy, select_batch
from jumar.topk.strategies import entropy
from jumar.topk.strategies.adaptive_k import pairwise_sum

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *[(name, {}) for name in sorted(STRATEGIES)],
    ("adaptive_k", {"alpha": 1.0, "min_score": None}),
    ("adaptive_k", {"alpha": 2.0, "min_score": 0.0}),
    ("clustering", {"min_cluster_size": 3, "eps": 0.05, "min_score": 0.1}),
    ("clustering", {"min_cluster_size": 6, "eps": 0.2, "top_per_cluster": 1, "min_score": None}),
    ("elbow", {"drop_threshold": 0.1, "min_score": None}),
    ("entropy", {"min_score": None}),
    ("expected_f1", {"slope": 0.0, "rank_slope": 0.0, "unseen": 5}),
    ("largest_gap", {"min_top": 0.5}),
]

grids = st.integers(1, 12).flatmap(
    lambda width: st.lists(st.lists(st.integers(-20, 100), min_size=width, max_size=width), min_size=1, max_size=6)
)


def alone(strategy: Any, row: list[float], max_k: int, min_k: int, ties: Any) -> list[int]:
    found = strategy.select([ScoredItem(position, score) for position, score in enumerate(row)], max_k, min_k, ties=ties)
    return [one.item for one in found.selected]


@pytest.mark.parametrize(("name", "params"), VARIANTS)
@settings(max_examples=60, deadline=None)
@given(grid=grids, limits=st.sampled_from([(20, 1), (4, 2), (20, 0), (1, 1)]), ties=st.sampled_from(["split", "keep"]))
def test_rounded_scores_are_kept_alike(
    name: str, params: dict[str, Any], grid: list[list[int]], limits: tuple[int, int], ties: Any
):
    scores = np.sort(np.array(grid, float) / 100, axis=1)[:, ::-1]
    strategy = create_selection_strategy(name, **params)
    mask = select_batch(scores, strategy, *limits, return_mask=True, ties=ties)
    counts = select_batch(scores, strategy, *limits, ties=ties)
    for row, flags, count in zip(scores.tolist(), mask, counts.tolist(), strict=True):
        kept = alone(strategy, row, *limits, ties)
        assert kept == np.flatnonzero(flags).tolist()
        assert len(kept) == count


@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_long_lists_are_kept_alike(name: str, params: dict[str, Any]):
    draw = np.random.default_rng(5)
    scores = -np.sort(-draw.random((3, 700)).round(3), axis=1)
    strategy = create_selection_strategy(name, **params)
    for max_k in (20, 600):
        mask = select_batch(scores, strategy, max_k, return_mask=True)
        for row, flags in zip(scores.tolist(), mask, strict=True):
            assert alone(strategy, row, max_k, 1, "split") == np.flatnonzero(flags).tolist()


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 31, 128, 129, 500, 1111])
def test_sums_are_added_up_as_numpy_does(size: int):
    values = np.random.default_rng(size).random(size)
    assert float(np.add.reduce(values)) == pairwise_sum(values.tolist())


def test_a_gap_that_equals_the_limit_up_to_rounding_is_decided_by_the_sum_of_the_gaps():
    strategy = create_selection_strategy("adaptive_k", alpha=1.0, min_score=None)
    scores = np.round(0.9 - 0.01 * np.arange(10), 2)  # every gap is the mean gap, but for its last bit
    gaps = np.abs(np.diff(scores))
    expected = int(np.flatnonzero(gaps > np.mean(gaps))[0]) + 1
    assert list(range(expected)) == alone(strategy, scores.tolist(), 20, 1, "split")
    assert [expected] == select_batch(scores[None, :], strategy).tolist()


def test_more_queries_than_fit_into_one_block_keep_their_order():
    draw = np.random.default_rng(9)
    scores = -np.sort(-draw.random((30_000, 12)), axis=1)
    counts = select_batch(scores, "otsu")
    strategy = create_selection_strategy("otsu")
    for query in range(0, len(scores), 1_499):
        assert len(alone(strategy, scores[query].tolist(), 20, 1, "split")) == counts[query]


@pytest.mark.parametrize("scores", [[0.3, 0.1, -0.1, -0.3], [0.3, 0.1, -0.2, -0.2], [0.7, 0.1, -0.8], [0.0, 0.0]])
def test_scores_that_cancel_out_do_not_depend_on_how_python_adds_up(scores: list[float], monkeypatch: pytest.MonkeyPatch):
    before = entropy.entropy_of(scores)
    monkeypatch.setattr(entropy, "sum", math.fsum, raising=False)  # as from 3.12 on, or better
    assert pytest.approx(before, abs=1e-12) == entropy.entropy_of(scores)
    strategy = create_selection_strategy("entropy", min_score=None, low_entropy_k=1, medium_entropy_k=2, high_entropy_k=3)
    assert [len(alone(strategy, scores, 20, 0, "split"))] == select_batch([scores], strategy, 20, 0).tolist()
