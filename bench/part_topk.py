"""Choosing k: one query and 100,000, against the first version's code and a floor in plain Python; what the import costs.

The first version calls SciPy and scikit-learn; without them its entropy and its clusters are left out. It is timed on fewer
queries and scaled up. Lists: 1 to 8 good scores and noise below, 30 in all.
"""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import numpy as np
from timing import Row, shortest
from topk_seed import SEED, Item, libraries

from jumar.topk import STRATEGIES, ScoredItem, SelectionResult, select_batch

QUERIES, ITEMS = 100_000, 30
SINGLE_AIMS = {"elbow": 1, "adaptive_k": 1, "entropy": 30, "clustering": 300}
BATCH_AIMS = {"elbow": 100, "adaptive_k": 100, "entropy": 1000, "clustering": 1000}


def measure(directory: Path) -> Iterator[Row]:
    del directory
    functions = _functions()
    yield from _imports()
    yield from _single(functions)
    yield from _batch(functions)
    yield from _long()


def _functions() -> dict[str, dict[str, Any]]:
    try:
        entropy, dbscan = libraries()
    except ImportError:
        return {"elbow": {}, "adaptive_k": {}, "fixed_k": {}}
    return {"elbow": {}, "adaptive_k": {}, "fixed_k": {}, "entropy": {"entropy": entropy}, "clustering": {"dbscan": dbscan}}


def _imports() -> Iterator[Row]:
    def running(code: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-I", "-c", code], check=True)

    ours, peer = shortest([running("import jumar.topk"), running("import dataclasses, enum")], 15)
    yield (
        "`import jumar.topk`, whole process",
        f"{ours * 1e3:.1f} ms",
        f"`import dataclasses, enum` {peer * 1e3:.1f} ms: {ours / peer:.2f}×",
        "≤ 1.5×",
    )


def _lists(count: int) -> list[list[float]]:
    draw = random.Random(1)
    lists: list[list[float]] = []
    for _ in range(count):
        good = [draw.uniform(0.7, 0.95) for _ in range(draw.randint(1, 8))]
        lists.append(sorted(good + [draw.uniform(0.2, 0.6) for _ in range(ITEMS - len(good))], reverse=True))
    return lists


# ------------------------------------------------------------------------------------------------------- one query


def _read(items: list[Any]) -> list[float]:
    """What every strategy owes its caller: finite and sorted scores."""
    scores = [item.score for item in items]
    total = sum(scores)
    if total - total != 0.0 or scores != sorted(scores, reverse=True):
        raise ValueError
    return scores


def _floor_elbow(items: list[Any]) -> object:
    scores = _read(items)
    kept, before = 1, scores[0]
    for score in scores[1:20]:
        if score < 0.5 or (before - score) / before > 0.15:
            break
        kept += 1
        before = score
    return SelectionResult(items[:kept], scores[kept - 1], "elbow", {"drop_threshold": 0.15, "min_score": 0.5})


def _floor_adaptive_k(items: list[Any]) -> object:
    scores = _read(items)
    valid = [score for score in scores[:20] if score >= 0.4]
    if len(valid) < 2:
        return SelectionResult(items[:1], scores[0], "adaptive_k", {"reason": "below_min_k"})
    mean = (valid[0] - valid[-1]) / (len(valid) - 1)
    kept, limit, before = len(valid), mean * 1.5, valid[0]
    for index, score in enumerate(valid):
        if before - score > limit:
            kept = index
            break
        before = score
    return SelectionResult(items[:kept], scores[kept - 1], "adaptive_k", {"alpha": 1.5, "mean_drop": mean, "cutoff_idx": kept})


def _floor_entropy(items: list[Any]) -> object:
    scores = _read(items)
    valid = [score for score in scores if score >= 0.3][:20]
    total, log = sum(valid), math.log
    value = log(total) - sum([score * log(score) for score in valid]) / total
    kept = min(3 if value < 1 else 5 if value < 2 else 10, len(valid))
    confidence = "high" if value < 1 else "medium" if value < 2 else "low"
    metadata = {"entropy": value, "target_k": kept, "confidence": confidence}
    return SelectionResult(items[:kept], scores[kept - 1], "entropy", metadata)


def _floor_clustering(items: list[Any]) -> object:
    scores = _read(items)
    valid = [score for score in scores if score >= 0.4]
    chosen: list[int] = []
    sizes: dict[str, int] = {}
    noise: list[int] = []
    start = 0
    for position in range(1, len(valid) + 1):
        if position == len(valid) or valid[position - 1] - valid[position] > 0.1:
            if position - start > 1:
                sizes[str(len(sizes))] = position - start
                chosen += range(start, min(position, start + 3))
            else:
                noise.append(start)
            start = position
    chosen = sorted([*chosen[:20], *noise])[:20]
    metadata = {"num_clusters": len(sizes), "cluster_sizes": sizes, "noise_count": len(noise)}
    return SelectionResult([items[position] for position in chosen], scores[chosen[-1]], "clustering", metadata)


def _floor_fixed_k(items: list[Any]) -> object:
    scores = _read(items)
    kept = min(5, 20, len(scores))
    return SelectionResult(items[:kept], scores[kept - 1], "fixed_k", {"fixed_k": 5})


FLOORS = {
    "adaptive_k": _floor_adaptive_k,
    "clustering": _floor_clustering,
    "elbow": _floor_elbow,
    "entropy": _floor_entropy,
    "fixed_k": _floor_fixed_k,
}


def _single(functions: dict[str, dict[str, Any]]) -> Iterator[Row]:
    lists = _lists(100)
    ours = [[ScoredItem(position, score) for position, score in enumerate(scores)] for scores in lists]
    theirs = [[Item(position, score) for position, score in enumerate(scores)] for scores in lists]
    for name, floor in FLOORS.items():
        select = STRATEGIES[name]().select
        actions: list[Callable[[], object]] = [
            lambda s=select: [s(one) for one in ours],
            lambda f=floor: [f(one) for one in ours],
        ]
        if name in functions:
            first = SEED[name](**functions[name]).select
            actions.append(lambda s=first: [s(one) for one in theirs])
        micro = [seconds / len(lists) * 1e6 for seconds in shortest(actions, 15)]
        what = f"`{name}`, one query of {ITEMS}"
        yield what, f"{micro[0]:.1f} µs", f"plain Python {micro[1]:.1f} µs: {micro[0] / micro[1]:.2f}×", "≤ 1.5×"
        if len(micro) > 2:
            aim = f"≥ {SINGLE_AIMS[name]}×" if name in SINGLE_AIMS else "—"
            yield what, f"{micro[0]:.1f} µs", f"first version {micro[2]:.1f} µs: {micro[2] / micro[0]:.1f}×", aim


# ---------------------------------------------------------------------------------------------------- many queries


def _table(count: int) -> Any:
    draw = np.random.default_rng(0)
    table = draw.random((count, ITEMS)) * 0.4 + 0.2
    table[np.arange(ITEMS) < draw.integers(1, 9, count)[:, None]] += 0.35
    return -np.sort(-table, axis=1)


def _batch(functions: dict[str, dict[str, Any]]) -> Iterator[Row]:
    table = _table(QUERIES)
    for name in sorted(STRATEGIES):
        ours = shortest([lambda n=name: select_batch(table, n)], 7)[0]
        what = f"`{name}`, {QUERIES:,} × {ITEMS}"
        if name not in functions:
            yield what, f"{ours * 1e3:.1f} ms", "—", "—"
            continue
        some = table[: 300 if name in {"entropy", "clustering"} else 10_000]
        first = SEED[name](**functions[name]).select

        def built(rows: Any = some) -> list[list[Any]]:
            return [[Item(position, score) for position, score in enumerate(row)] for row in rows.tolist()]

        items = built()
        build, bare = (t * QUERIES / len(some) for t in shortest([built, lambda s=first, i=items: [s(one) for one in i]], 5))
        whole = (
            f"first version {build + bare:.2f} s: {(build + bare) / ours:,.0f}×; without building its items {bare / ours:,.0f}×"
        )
        yield what, f"{ours * 1e3:.1f} ms", whole, f"≥ {BATCH_AIMS[name]:,}×" if name in BATCH_AIMS else "—"


def _long() -> Iterator[Row]:
    """Linear in the number of items."""
    draw = random.Random(2)
    for name in ("clustering", "adaptive_k", "expected_f1"):
        short, long = (
            [ScoredItem(k, score) for k, score in enumerate(sorted((draw.random() for _ in range(size)), reverse=True))]
            for size in (1_000, 10_000)
        )
        select = STRATEGIES[name]().select
        few, many = shortest([lambda s=select, i=short: s(i, 10_000), lambda s=select, i=long: s(i, 10_000)], 15)
        yield f"`{name}`, 10,000 items", f"{many * 1e3:.2f} ms", f"1,000 items {few * 1e3:.2f} ms: {many / few:.1f}×", "≤ 15×"
