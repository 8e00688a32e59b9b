"""Clusters: one walk down the ranking, all queries at once."""

from __future__ import annotations

import numpy as np

from jumar.topk.batch.common import Bools, Counts, Floats, at_least, tally
from jumar.topk.strategies.clustering import ClusterSelectionStrategy

__all__ = ["WHOLE", "choose"]

WHOLE = True
"""All scores count: items beyond ``max_k`` may belong to a cluster, and may be selected."""


def choose(table: Floats, strategy: ClusterSelectionStrategy, max_k: int, min_k: int) -> Bools:
    """Return what is kept (items, queries); see :class:`jumar.topk.strategies.clustering.ClusterSelectionStrategy`."""
    floor = strategy.floor
    valid = np.maximum(at_least(table, floor), min(min_k, len(table)))
    ranks = np.arange(len(table))[:, None]
    inside = ranks < valid
    cores = _cores(table, inside, strategy.eps, strategy.min_cluster_size)
    chosen, members = _walk(table, cores, inside, strategy)
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
    few = valid <= strategy.min_cluster_size
    chosen = np.where(few, inside & (ranks < max_k), chosen)
    _keep_first(chosen, max_k)
    return chosen


def _cores(table: Floats, inside: Bools, eps: float, least: int) -> Bools:
    """Return which scores have ``least`` scores within ``eps``, themselves among them."""
    size = len(table)
    near = np.ones(table.shape, np.intp)
    for step in range(1, min(least, size)):
        close = (table[:-step] - table[step:] <= eps) & inside[step:]
        near[:-step] += close
        near[step:] += close
    return (near >= least) & inside


def _walk(table: Floats, cores: Bools, inside: Bools, strategy: ClusterSelectionStrategy) -> tuple[Bools, Bools]:
    """Return the best of each cluster, and all that belong to one."""
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
    found = np.empty_like(table)
    following = np.full(table.shape[1], -np.inf)
    for position in range(len(table) - 1, -1, -1):
        following = np.where(cores[position], table[position], following)
        found[position] = following
    return found


def _limit(flags: Bools, room: Counts) -> None:
    """Leave only the first ``room`` true ones of each column, in place."""
    count = np.zeros(flags.shape[1], np.intp)
    for row in flags:
        count += row
        np.logical_and(row, count <= room, out=row)


def _keep_first(chosen: Bools, max_k: int) -> None:
    """Rank 1 is kept whenever anything is; where there is no room, the last one goes. In place."""
    counts = tally(chosen)
    missing = (counts > 0) & ~chosen[0]
    if not missing.any():
        return
    full = np.flatnonzero(missing & (counts >= max_k))
    lasts = len(chosen) - 1 - np.argmax(chosen[::-1, full], axis=0)
    chosen[lasts, full] = False
    chosen[0, missing] = True
