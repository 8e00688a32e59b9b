"""Medians of repeated, interleaved measurements: a shared machine drifts, and pairs drift together."""

from __future__ import annotations

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


def milliseconds(value: float) -> str:
    """Return seconds as milliseconds for people."""
    return f"{value * 1000:.1f} ms" if value < 10 else f"{value:.1f} s"
