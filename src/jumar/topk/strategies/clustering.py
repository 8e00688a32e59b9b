"""Keep the best of each group of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from jumar.topk.base import PositionStrategy, SeenScores, grid, three_digits
from jumar.topk.contract import SimilarityDefault, count_valid, number_field, score_field, size_field
from jumar.topk.result import CutEvidence, Scale

if TYPE_CHECKING:
    from jumar.topk.batch import Bools, Counts, Floats

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
    WHOLE: ClassVar[bool] = True  # items beyond max_k may belong to a cluster, and may be selected

    eps: float = number_field(SimilarityDefault(0.1), "Largest distance between neighbours in a cluster", above=0)
    min_cluster_size: int = size_field(2, "Items that make a cluster")
    top_per_cluster: int = size_field(3, "Items kept of each cluster")
    min_score: float | None = score_field(SimilarityDefault(0.4), "Absolute minimum score")
    scale: Scale = "similarity"

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

    def keep_many(self, table: Floats, max_k: int, min_k: int) -> Bools:
        """Return which items are kept (items, queries): one walk down the ranking, all queries at once."""
        import numpy as np

        from jumar.topk.batch import at_least, tally

        floor = self.floor
        valid = np.maximum(at_least(table, floor), min(min_k, len(table)))
        ranks = np.arange(len(table))[:, None]
        inside = ranks < valid
        cores = _cores(table, inside, self.eps, self.min_cluster_size)
        chosen, members = _walk(table, cores, inside, self)
        room: Counts = np.zeros(table.shape[1], np.intp) + max_k
        _limit(chosen, room)
        lone = inside & ~members
        if floor is not None:
            lone &= table > floor
        room = np.subtract(max_k, tally(chosen))
        _limit(lone, room)
        chosen |= lone
        spare = inside & ~chosen
        room = np.subtract(min_k, tally(chosen))
        _limit(spare, room)
        chosen |= spare
        few = valid <= self.min_cluster_size
        chosen = np.where(few, inside & (ranks < max_k), chosen)
        _keep_first(chosen, max_k)
        return chosen

    def evidence(self, scores: list[float], max_k: int, min_k: int) -> CutEvidence:
        """Return the rule: there is no runner-up, because what is kept need not be the first ones."""
        groups = self.pick(scores, max_k, min_k)[1]["num_clusters"]
        rule = f"the best {self.top_per_cluster} of each of {groups} cluster{'s' * (groups != 1)} (gaps up to {self.eps:g})"
        return CutEvidence(rule)

    @classmethod
    def search_space(cls, seen: SeenScores) -> list[dict[str, Any]]:
        """Return distances, sizes and lowest scores."""
        return grid(
            eps=three_digits(seen.unit * share for share in (0.01, 0.02, 0.05, 0.1)),
            min_cluster_size=(2, 3),
            top_per_cluster=(3, 5, 10, 20),
            min_score=seen.floors[::2],
        )


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


# ------------------------------------------------------------------------------------------------------- many queries


def _cores(table: Floats, inside: Bools, eps: float, least: int) -> Bools:
    """Return which scores have ``least`` scores within ``eps``, themselves among them."""
    import numpy as np

    size = len(table)
    near = np.ones(table.shape, np.intp)
    for step in range(1, min(least, size)):
        close = (table[:-step] - table[step:] <= eps) & inside[step:]
        near[:-step] += close
        near[step:] += close
    return (near >= least) & inside


def _walk(table: Floats, cores: Bools, inside: Bools, strategy: ClusterSelectionStrategy) -> tuple[Bools, Bools]:
    """Return the best of each cluster, and all that belong to one."""
    import numpy as np

    eps, top = strategy.eps, strategy.top_per_cluster
    borders = strategy.min_cluster_size > 2
    chosen, members = np.zeros(table.shape, np.bool_), np.zeros(table.shape, np.bool_)
    next_core = _next_cores(table, cores) if borders else table
    last_core = np.full(table.shape[1], np.inf)
    opened = np.zeros(table.shape[1], np.bool_)  # by a score above the cluster's first core
    rank = np.zeros(table.shape[1], np.intp)
    for position, score in enumerate(table):
        core = cores[position]
        after = last_core - score <= eps
        if borders:
            above = inside[position] & ~core & ~after & (score - next_core[position] <= eps)
            after &= inside[position]
        else:
            above = np.zeros_like(core)
            after &= core
        starts = (core | above) & ~after & ~opened
        member = core | above | after
        rank = np.where(starts, 1, rank + member)
        chosen[position] = member & (rank <= top)
        members[position] = member
        opened = above
        last_core = np.where(core, score, last_core)
    return chosen, members


def _next_cores(table: Floats, cores: Bools) -> Floats:
    """Return for each score that of the next core at or below it; −inf where there is none."""
    import numpy as np

    nearest = np.empty_like(table)
    following = np.full(table.shape[1], -np.inf)
    for position in range(len(table) - 1, -1, -1):
        following = np.where(cores[position], table[position], following)
        nearest[position] = following
    return nearest


def _limit(flags: Bools, room: Counts) -> None:
    """Leave only the first ``room`` true ones of each column, in place."""
    import numpy as np

    count = np.zeros(flags.shape[1], np.intp)
    for row in flags:
        count += row
        np.logical_and(row, count <= room, out=row)


def _keep_first(chosen: Bools, max_k: int) -> None:
    """Rank 1 is kept whenever anything is; where there is no room, the last one goes. In place."""
    import numpy as np

    from jumar.topk.batch import tally

    counts = tally(chosen)
    missing = (counts > 0) & ~chosen[0]
    if not missing.any():
        return
    full = np.flatnonzero(missing & (counts >= max_k))
    lasts = len(chosen) - 1 - np.argmax(chosen[::-1, full], axis=0)
    chosen[lasts, full] = False
    chosen[0, missing] = True
