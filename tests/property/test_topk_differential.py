"""The first five strategies against what was first written down: the same, wherever that keeps the contract.

``JUMAR_SWEEP=full`` tries millions of lists instead of thousands. Where the libraries of the first version are installed they are
used, too; its entropy and DBSCAN are otherwise slow and obvious ones.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from topk_seed import SEED, EndlessError, Item, libraries, slow_dbscan, slow_entropy

from jumar.testing.topk import score_lists
from jumar.topk import STRATEGIES, ScoredItem

LISTS = 200_000 if os.environ.get("JUMAR_SWEEP") == "full" else 2_000
LIMITS = ((20, 1), (20, 0), (5, 3), (10, 10), (2, 1))

PARAMS: dict[str, list[dict[str, Any]]] = {
    "adaptive_k": [{}, {"alpha": 1.0, "min_score": 0.0}, {"alpha": 2.0, "min_score": -1.0}],
    "clustering": [
        {},
        {"eps": 0.05, "min_cluster_size": 3, "top_per_cluster": 1},
        {"eps": 0.03, "min_cluster_size": 4, "min_score": 0.1},
    ],
    "elbow": [{}, {"drop_threshold": 0.05, "min_score": 0.2}],
    "entropy": [{}, {"low_entropy_k": 1, "medium_entropy_k": 2, "high_entropy_k": 3, "min_score": 0.6}],
    "fixed_k": [{}, {"k": 3, "min_score": 0.4}],
}


def cases(name: str, lists: int) -> Iterator[tuple[dict[str, Any], list[float], int, int]]:
    random = Random(name)
    for scores in score_lists(len(name), lists):
        max_k, min_k = random.choice(LIMITS)
        yield random.choice(PARAMS[name]), scores, max_k, min_k


def broken(
    scores: list[float], kept: list[int] | None, cutoff: float, metadata: dict[str, Any], limits: tuple[int, int]
) -> str | None:
    """What the first version's answer breaks of the contract; None when nothing."""
    max_k, min_k = limits
    if kept is None:
        return "never returns"
    if len(kept) < min(min_k, len(scores)):
        return "fewer than min_k"
    if len(kept) > max_k:
        return "more than max_k"
    if kept and kept[0] != 0:
        return "without rank 1"
    if kept and cutoff != scores[kept[-1]]:
        return "cutoff is not the lowest kept score"
    if not kept and cutoff != 0.0:
        return "a cutoff of nothing"
    if metadata.get("reason") == "no_variance":
        return "drops the only item above min_score"
    if metadata.get("entropy") == -math.inf:
        return "metadata is not JSON"
    return None


def first_version(strategy: Any, scores: list[float], max_k: int, min_k: int) -> tuple[list[int] | None, float, dict[str, Any]]:
    try:
        # items are all the same: what compares them stumbles
        found = strategy.select([Item(position, score) for position, score in enumerate(scores)], max_k, min_k)
    except EndlessError:
        return None, 0.0, {}
    except ZeroDivisionError:
        return [], -1.0, {}
    return [one.item for one in found.selected], found.cutoff_score, found.metadata


def same_metadata(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    if "cluster_sizes" in theirs:
        theirs = {**theirs, "cluster_sizes": {str(label): size for label, size in theirs["cluster_sizes"].items()}}
    if theirs and not set(theirs) <= set(ours):
        return False
    return all(
        ours[key] == (pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value)
        for key, value in theirs.items()
    )


def apart_by_eps(scores: list[float], eps: float) -> bool:
    """Whether scikit-learn's own rounding decides: it takes distances from dot products."""
    return any(abs(one - other - eps) < 1e-7 for one in scores for other in scores)


def compare(name: str, lists: int, **functions: Any) -> Counter[str]:
    """Compare; return how many were the same, and how many the first version answers against the contract, by what it breaks."""
    seen: Counter[str] = Counter()
    for params, scores, max_k, min_k in cases(name, lists):
        if "dbscan" in functions and apart_by_eps(scores, params.get("eps", 0.1)):
            seen["apart by eps"] += 1
            continue
        kept, cutoff, metadata = first_version(SEED[name](**params, **functions), scores, max_k, min_k)
        result = STRATEGIES[name](**params).select([ScoredItem(k, score) for k, score in enumerate(scores)], max_k, min_k)
        ours = [one.item for one in result.selected]
        fault = broken(scores, kept, cutoff, metadata, (max_k, min_k))
        if fault is None and kept == ours and not same_metadata(result.metadata, metadata):
            raise AssertionError(f"{name} {params} of {scores}, {max_k}, {min_k}: metadata {result.metadata}, not {metadata}")
        if fault in {None, "cutoff is not the lowest kept score"} and kept != ours:
            raise AssertionError(f"{name} {params} of {scores}, {max_k}, {min_k}: {ours}, not {kept}")
        seen[fault or "same"] += 1
    print(f"{name}: {lists:,} lists, {dict(seen)}")
    return seen


@pytest.mark.sweep
@pytest.mark.parametrize("name", sorted(SEED))
def test_the_same_wherever_the_first_version_keeps_the_contract(name: str):
    seen = compare(name, LISTS)
    assert LISTS == seen.total()
    assert 0.5 * LISTS < seen["same"]


@pytest.mark.parametrize("name", ["clustering", "entropy"])
def test_the_same_with_the_libraries_of_the_first_version(name: str):
    try:
        entropy, dbscan = libraries()
    except ImportError as error:
        pytest.skip(f"{error.name} is not installed")
    functions = {"entropy": entropy} if name == "entropy" else {"dbscan": dbscan}
    assert 100 < compare(name, 400, **functions)["same"]


def test_the_slow_functions_know_the_easy_cases():
    assert [0, 0, 1, 1, -1] == slow_dbscan([0.9, 0.88, 0.5, 0.45, 0.1], 0.1, 2)
    assert slow_entropy([0.5, 0.5]) == pytest.approx(0.6931471805599453)
