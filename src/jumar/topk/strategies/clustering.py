"""Keep the best of each group of scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from jumar.topk.base import Evidence, PositionStrategy
from jumar.topk.contract import SimilarityDefault, check_number, check_size, check_threshold, count_valid
from jumar.topk.types import Scale

__all__ = ["ClusterSelectionStrategy", "cluster"]


_LABELS: Final = tuple(map(str, range(64)))


@dataclass(frozen=True)
class ClusterSelectionStrategy(PositionStrategy):
    """Keep the ``top_per_cluster`` best of each cluster of scores, and lone scores above ``min_score``; not a prefix.

    Clusters are DBSCAN's: scores of which at least ``min_cluster_size`` lie within ``eps`` of one another, chained. When there is
    no room for everything, better clusters go first and lone scores last, but rank 1 always stays. Linear in the number of items.
    Errors: :class:`jumar.errors.StrategyError` unless ``eps`` > 0 and both sizes are 1 or more.
    """

    NAME: ClassVar[str] = "clustering"
    NEEDED: ClassVar[tuple[str, ...]] = ("eps",)

    eps: float = SimilarityDefault(0.1)
    min_cluster_size: int = 2
    top_per_cluster: int = 3
    min_score: float | None = SimilarityDefault(0.4)
    scale: Scale = "similarity"

    def _check(self) -> None:
        check_number("eps", self.eps, above=0)
        check_size("min_cluster_size", self.min_cluster_size)
        check_size("top_per_cluster", self.top_per_cluster)
        check_threshold("min_score", self.min_score, self.scale)

    @cached_property
    def floor(self) -> float | None:
        """The lowest score that counts; distances come negated."""
        return -self.min_score if self.scale == "distance" and self.min_score is not None else self.min_score

    def nothing(self) -> dict[str, Any]:
        """Return the metadata of a selection from no items."""
        return {"num_clusters": 0, "cluster_sizes": {}, "noise_count": 0}

    def pick(self, scores: list[float], max_k: int, min_k: int) -> tuple[list[int], dict[str, Any]]:
        """Return the positions, ``num_clusters``, ``cluster_sizes`` (label → members) and ``noise_count``."""
        floor, size = self.floor, len(scores)
        valid = size if floor is None or scores[-1] >= floor else count_valid(scores, floor)
        if valid < min_k:
            valid = min(min_k, size)
        if valid <= self.min_cluster_size:
            metadata = {"clusters": 1, "num_clusters": min(valid, 1), "reason": "too_few_items"}
            return list(range(min(valid, max_k))), metadata
        groups, noise = cluster(scores, valid, self.eps, self.min_cluster_size)
        top = self.top_per_cluster
        chosen: list[int] = []
        sizes: dict[str, int] = {}
        for label, (start, end) in enumerate(groups):
            sizes[_LABELS[label] if label < 64 else str(label)] = end - start
            chosen += range(start, end if end - start < top else start + top)
        if len(chosen) > max_k:
            del chosen[max_k:]
        elif noise:
            above = noise if floor is None else [position for position in noise if scores[position] > floor]
            chosen += above[: max_k - len(chosen)]
            chosen.sort()
        if len(chosen) < min_k:
            taken = set(chosen)
            chosen += [position for position in range(valid) if position not in taken][: min_k - len(chosen)]
            chosen.sort()
        if chosen and chosen[0]:  # rank 1 is kept whenever anything is
            chosen = [0, *(chosen[:-1] if len(chosen) >= max_k else chosen)]
        return chosen, {"num_clusters": len(groups), "cluster_sizes": sizes, "noise_count": len(noise)}

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> Evidence:
        """Return the rule: there is no runner-up, because what is kept need not be the first ones."""
        positions, metadata = self.pick(scores, max_k, min_k)
        groups = metadata["num_clusters"]
        rule = f"the best {self.top_per_cluster} of each of {groups} cluster{'s' * (groups != 1)} (gaps up to {self.eps:g})"
        return Evidence(rule, "", {}, None, len(positions))


def cluster(scores: list[float], count: int, eps: float, least: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the clusters of the first ``count`` scores, best first, as ranges of positions; and the positions that are in none.

    DBSCAN on a line: a score is a core when ``least`` scores, itself among them, are at most ``eps`` away; cores at most ``eps``
    apart share a cluster; any other score within ``eps`` of a core belongs to its cluster, to the better one if there are two.
    Two passes, since scores descend. Source: Ester et al., KDD 1996.
    """
    if least <= 2:
        return _chains(scores, count, eps, least)
    first = last = 0
    cores: list[int] = []
    for position in range(count):
        score = scores[position]
        while scores[first] - score > eps:
            first += 1
        last = max(last, position)
        while last + 1 < count and score - scores[last + 1] <= eps:
            last += 1
        if last - first + 1 >= least:
            cores.append(position)
    return _grown(scores, count, eps, cores)


def _chains(scores: list[float], count: int, eps: float, least: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Clusters where one neighbour makes a core: the ranking falls apart wherever a gap is above ``eps``."""
    previous = scores[0]
    groups: list[tuple[int, int]] = []
    noise: list[int] = []
    start = 0
    for position, score in enumerate(scores[:count]):
        if previous - score > eps:
            if position - start >= least:
                groups.append((start, position))
            else:
                noise.append(start)
            start = position
        previous = score
    if count - start >= least:
        groups.append((start, count))
    else:
        noise.append(start)
    return groups, noise


def _grown(scores: list[float], count: int, eps: float, cores: list[int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Chain the cores, then give each cluster what lies within ``eps`` of its outermost cores."""
    groups: list[tuple[int, int]] = []
    noise: list[int] = []
    free = 0  # the first position that is in no cluster yet
    index = 0
    while index < len(cores):
        top = bottom = cores[index]
        index += 1
        while index < len(cores) and scores[bottom] - scores[cores[index]] <= eps:
            bottom = cores[index]
            index += 1
        start = top
        while start > free and scores[start - 1] - scores[top] <= eps:
            start -= 1
        end = bottom + 1
        while end < count and scores[bottom] - scores[end] <= eps:
            end += 1
        noise.extend(range(free, start))
        groups.append((start, end))
        free = end
    noise.extend(range(free, count))
    return groups, noise
