"""The five strategies as they were first written down, anew and with their mistakes: the reference of the differential tests.

Slow and obvious on purpose. ``entropy`` and ``dbscan`` are the library functions the first version called; what stands here needs
none of them, and ``libraries()`` returns the real ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np


@dataclass
class Item:
    item: Any
    score: float


@dataclass
class Result:
    selected: list[Any]
    cutoff_score: float
    method: str
    metadata: dict[str, Any]


class EndlessError(Exception):
    """The first version never returns from here."""


def slow_entropy(probabilities: Sequence[float]) -> float:
    total = math.fsum(probabilities)
    shares = [p / total for p in probabilities]
    if any(share < 0 for share in shares):
        return -math.inf
    return math.fsum(-share * math.log(share) for share in shares if share > 0)


def slow_dbscan(scores: Sequence[float], eps: float, least: int) -> list[int]:
    """Labels as scikit-learn gives them: clusters in the order of their first core, −1 for noise. Quadratic."""
    near = [[k for k, other in enumerate(scores) if abs(one - other) <= eps] for one in scores]
    labels = [-1] * len(scores)
    label = 0
    for start, neighbours in enumerate(near):
        if labels[start] != -1 or len(neighbours) < least:
            continue
        labels[start] = label
        todo = [start]
        while todo:
            one = todo.pop()
            if len(near[one]) < least:
                continue
            for other in near[one]:
                if labels[other] == -1:
                    labels[other] = label
                    todo.append(other)
        label += 1
    return labels


def libraries() -> tuple[Callable[[Sequence[float]], float], Callable[[Sequence[float], float, int], list[int]]]:
    """SciPy's entropy and scikit-learn's DBSCAN, called as the first version called them."""
    stats: Any = import_module("scipy.stats")
    cluster: Any = import_module("sklearn.cluster")

    def dbscan(scores: Sequence[float], eps: float, least: int) -> list[int]:
        return cluster.DBSCAN(eps=eps, min_samples=least).fit(np.array([[score] for score in scores])).labels_

    return lambda probabilities: float(stats.entropy(probabilities)), dbscan


@dataclass
class Elbow:
    drop_threshold: float = 0.15
    min_score: float = 0.5
    name = "elbow"

    def select(self, items: list[Any], max_k: int = 20, min_k: int = 1) -> Result:
        if not items:
            return Result([], 0.0, self.name, {})
        selected: list[Any] = []
        cutoff_score = 0.0
        for i, item in enumerate(items[:max_k]):
            if i < min_k:
                selected.append(item)
                continue
            if item.score < self.min_score:
                break
            if i > 0:
                prev_score = items[i - 1].score
                drop = (prev_score - item.score) / prev_score
                if drop > self.drop_threshold:
                    cutoff_score = prev_score
                    break
            selected.append(item)
            cutoff_score = item.score
        return Result(selected, cutoff_score, self.name, {"drop_threshold": self.drop_threshold, "min_score": self.min_score})


@dataclass
class AdaptiveK:
    alpha: float = 1.5
    min_score: float = 0.4
    name = "adaptive_k"

    def select(self, items: list[Any], max_k: int = 20, min_k: int = 1) -> Result:
        if not items:
            return Result([], 0.0, self.name, {})
        scores = [item.score for item in items[:max_k]]
        valid_count = sum(1 for s in scores if s >= self.min_score)
        scores = scores[:valid_count] if valid_count > 0 else scores[:min_k]
        if len(scores) <= min_k:
            return Result(list(items[: len(scores)]), scores[-1] if scores else 0.0, self.name, {"reason": "below_min_k"})
        diffs = np.abs(np.diff(scores))
        if len(diffs) == 0:
            return Result(list(items[:min_k]), scores[min_k - 1], self.name, {"reason": "no_variance"})
        mean_drop = np.mean(diffs)
        cutoff_idx = len(scores)
        for i, drop in enumerate(diffs):
            if drop > (mean_drop * self.alpha):
                cutoff_idx = i + 1
                break
        cutoff_idx = max(cutoff_idx, min_k)
        metadata = {"alpha": self.alpha, "mean_drop": float(mean_drop), "cutoff_idx": cutoff_idx}
        return Result(list(items[:cutoff_idx]), scores[cutoff_idx - 1], self.name, metadata)


@dataclass
class Entropy:
    low_entropy_k: int = 3
    medium_entropy_k: int = 5
    high_entropy_k: int = 10
    min_score: float = 0.3
    entropy: Callable[[Sequence[float]], float] = field(default=slow_entropy)
    name = "entropy"

    def select(self, items: list[Any], max_k: int = 20, min_k: int = 1) -> Result:
        if not items:
            return Result([], 0.0, self.name, {})
        valid_items = [item for item in items if item.score >= self.min_score]
        if len(valid_items) < min_k:
            valid_items = items[:min_k]
        scores = [item.score for item in valid_items[:max_k]]
        if not scores:
            return Result([], 0.0, self.name, {"entropy": 0.0})
        total = 0.0
        for score in scores:  # what sum() was when this was written: since Python 3.12 it makes up for rounding
            total += score
        probs = [1.0 / len(scores)] * len(scores) if total == 0 else [s / total for s in scores]
        score_entropy = float(self.entropy(probs))
        if score_entropy < 1.0:
            target_k = self.low_entropy_k
        elif score_entropy < 2.0:
            target_k = self.medium_entropy_k
        else:
            target_k = self.high_entropy_k
        target_k = max(min_k, min(target_k, len(valid_items), max_k))
        selected = valid_items[:target_k]
        confidence = "high" if score_entropy < 1.0 else "medium" if score_entropy < 2.0 else "low"
        metadata = {"entropy": score_entropy, "target_k": target_k, "confidence": confidence}
        return Result(list(selected), selected[-1].score if selected else 0.0, self.name, metadata)


@dataclass
class Clustering:
    eps: float = 0.1
    min_cluster_size: int = 2
    top_per_cluster: int = 3
    min_score: float = 0.4
    dbscan: Callable[[Sequence[float], float, int], list[int]] = field(default=slow_dbscan)
    name = "clustering"

    def select(self, items: list[Any], max_k: int = 20, min_k: int = 1) -> Result:
        if not items:
            return Result([], 0.0, self.name, {})
        valid_items = [item for item in items if item.score >= self.min_score]
        if len(valid_items) < min_k:
            valid_items = items[:min_k]
        if len(valid_items) <= self.min_cluster_size:
            cutoff = valid_items[-1].score if valid_items else 0.0
            return Result(list(valid_items), cutoff, self.name, {"clusters": 1, "reason": "too_few_items"})
        labels = self.dbscan([item.score for item in valid_items], self.eps, self.min_cluster_size)
        clusters: dict[int, list[Any]] = {}
        noise_items: list[Any] = []
        for item, label in zip(valid_items, labels, strict=True):
            if label == -1:
                noise_items.append(item)
            else:
                clusters.setdefault(label, []).append(item)
        selected: list[Any] = []
        for _, cluster_items in sorted(clusters.items(), key=lambda x: x[1][0].score, reverse=True):
            for item in cluster_items[: self.top_per_cluster]:
                if len(selected) < max_k:
                    selected.append(item)
        for item in noise_items:
            if len(selected) < max_k and item.score > self.min_score:
                selected.append(item)
        while len(selected) < min_k and len(valid_items) > len(selected):
            before = len(selected)
            for item in valid_items:
                if item not in selected:
                    selected.append(item)
                    break
            if len(selected) == before:
                raise EndlessError
        selected.sort(key=lambda x: x.score, reverse=True)
        metadata = {
            "num_clusters": len(clusters),
            "cluster_sizes": {k: len(v) for k, v in clusters.items()},
            "noise_count": len(noise_items),
        }
        return Result(selected, selected[-1].score if selected else 0.0, self.name, metadata)


@dataclass
class FixedK:
    k: int = 5
    min_score: float | None = None
    name = "fixed_k"

    def select(self, items: list[Any], max_k: int = 20, min_k: int = 1) -> Result:
        if not items:
            return Result([], 0.0, self.name, {})
        if self.min_score is not None:
            items = [item for item in items if item.score >= self.min_score]
        target_k = max(min(self.k, max_k, len(items)), min_k)
        selected = items[:target_k]
        return Result(list(selected), selected[-1].score if selected else 0.0, self.name, {"fixed_k": self.k})


SEED: dict[str, Any] = {"adaptive_k": AdaptiveK, "clustering": Clustering, "elbow": Elbow, "entropy": Entropy, "fixed_k": FixedK}
