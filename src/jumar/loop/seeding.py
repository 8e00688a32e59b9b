"""Randomness without state: a step's seed is a function of what it is, so that a resume draws what the first run would have."""

from __future__ import annotations

import hashlib


def step_seed(seed: int, *, iteration: int, candidate: int | None, purpose: str) -> int:
    """Return a number in [0, 2³¹) for one step; every argument matters, and equal ones give the same on every machine.

    ``candidate`` None and 0 are the same.
    """
    text = f"{seed}:{iteration}:{candidate or 0}:{purpose}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
