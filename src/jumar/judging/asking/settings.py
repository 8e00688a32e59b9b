"""How a judge is asked: how often, how many at once, how long, for how much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from jumar.core.record import Record
from jumar.errors import ConfigError

__all__ = ["MAX_UNSCORED", "JudgeSettings"]

MAX_UNSCORED: Final = 0.2
"""Share of items without a verdict above which the others say nothing either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings(Record):
    """Settings of one evaluation. Errors: :class:`jumar.errors.ConfigError` for one that is out of range.

    ``concurrency``: calls in flight at most. ``max_retries``: how often a call that failed for a passing reason is made again,
    so that 3 means four calls at most. The n-th retry waits a random time up to ``backoff_base`` to the power n − 1 seconds,
    but at most ``max_wait``; a judge that names a time is given that, up to ``max_wait``. ``timeout`` is seconds a call.
    ``repeat``: readings an item; None reads the first five items twice, and then all of them three times if those differ much,
    once if not. ``max_cost`` is in USD, and ``reserve_cost`` what a call is charged at least that did not say what it cost
    (None: the largest cost seen). ``consecutive_failures``: so many questions in a row without an answer, after their retries,
    end it. ``scale`` is what the judge scores on. ``seed`` counts up with the repeats: a judge that heeds it and is asked three
    times would otherwise say the same thing three times. ``explain=False`` asks for the score alone: fewer tokens, and nothing
    to learn from.
    """

    concurrency: int = 8
    max_retries: int = 3
    backoff_base: float = 2.0
    max_wait: float = 60.0
    timeout: float = 120.0
    repeat: int | None = 1
    max_cost: float | None = None
    reserve_cost: float | None = None
    consecutive_failures: int = 3
    scale: tuple[float, float] = (1.0, 5.0)
    temperature: float | None = 0.0
    seed: int | None = 0
    explain: bool = True
    max_unscored: float = MAX_UNSCORED

    def __post_init__(self) -> None:
        _check("concurrency", self.concurrency, self.concurrency >= 1, "at least 1")
        _check("max_retries", self.max_retries, self.max_retries >= 0, "0 or more")
        _check("backoff_base", self.backoff_base, _finite(self.backoff_base) and self.backoff_base > 0, "a positive number")
        _check("max_wait", self.max_wait, _finite(self.max_wait) and self.max_wait >= 0, "0 or more seconds")
        _check("timeout", self.timeout, _finite(self.timeout) and self.timeout > 0, "a positive number of seconds")
        _check("repeat", self.repeat, self.repeat is None or self.repeat >= 1, "at least 1")
        for name in ("max_cost", "reserve_cost"):
            value: float | None = getattr(self, name)
            _check(name, value, value is None or (_finite(value) and value >= 0), "0 or more")
        _check("consecutive_failures", self.consecutive_failures, self.consecutive_failures >= 1, "at least 1")
        low, high = self.scale
        _check("judge_scale", self.scale, _finite(low) and _finite(high) and low < high, "two numbers, the lower one first")
        _check(
            "temperature",
            self.temperature,
            self.temperature is None or (_finite(self.temperature) and self.temperature >= 0),
            "≥ 0",
        )
        _check("max_unscored", self.max_unscored, 0 <= self.max_unscored <= 1, "from 0 to 1")


def _finite(value: float) -> bool:
    return math.isfinite(value)


def _check(name: str, value: object, holds: bool, wanted: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise ConfigError(f"{name} = {value} should be {wanted}")
