"""Medians of repeated, interleaved measurements: a shared machine drifts, and pairs drift together."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence

Row = tuple[str, str, str, str]


def seconds(action: Callable[[], object]) -> float:
    """Return how long ``action`` took."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def medians(actions: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Run all actions in turn, ``rounds`` times; return each one's median in seconds."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for slot, action in zip(times, actions, strict=True):
            slot.append(seconds(action))
    return [statistics.median(slot) for slot in times]


def shortest(
    actions: Sequence[Callable[[], object]], rounds: int = 5, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the shortest time of each in seconds, measured in turns: what else the machine does only ever adds."""
    best = [math.inf] * len(actions)
    for _ in range(rounds):
        for slot, action in enumerate(actions):
            began = clock()
            action()
            best[slot] = min(best[slot], clock() - began)
    return best


def milliseconds(value: float) -> str:
    """Return seconds as milliseconds for people."""
    return f"{value * 1000:.1f} ms" if value < 10 else f"{value:.1f} s"
