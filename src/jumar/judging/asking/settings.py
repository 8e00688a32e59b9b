"""The expensive judge of an evaluation: which one, how often it is asked, how many at once, how long, for how much."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jumar.core.record import Record
from jumar.errors import ConfigError
from jumar.model.budget.pricing import Prices

MAX_TOKENS: Final = 2000
"""Of an answer, where nobody says otherwise."""

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
        low, high = self.scale
        _check("concurrency", self.concurrency, self.concurrency >= 1, "at least 1")
        _check("max_retries", self.max_retries, self.max_retries >= 0, "0 or more")
        _check("backoff_base", self.backoff_base, 0 < self.backoff_base < math.inf, "a positive number")
        _check("max_wait", self.max_wait, 0 <= self.max_wait < math.inf, "0 or more seconds")
        _check("timeout", self.timeout, 0 < self.timeout < math.inf, "a positive number of seconds")
        _check("repeat", self.repeat, self.repeat is None or self.repeat >= 1, "at least 1")
        for name in ("max_cost", "reserve_cost"):
            value: float | None = getattr(self, name)
            _check(name, value, value is None or 0 <= value < math.inf, "0 or more")
        _check("consecutive_failures", self.consecutive_failures, self.consecutive_failures >= 1, "at least 1")
        _check("judge_scale", self.scale, -math.inf < low < high < math.inf, "two numbers, the lower one first")
        _check("temperature", self.temperature, self.temperature is None or 0 <= self.temperature < math.inf, "≥ 0")
        _check("max_unscored", self.max_unscored, 0 <= self.max_unscored <= 1, "from 0 to 1")


_OPTIONS: Final = ("repeat", "max_cost", "reserve_cost", "concurrency", "timeout", "max_retries", "backoff_base", "max_unscored")


def _check(name: str, value: object, holds: bool, wanted: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise ConfigError(f"{name} = {value} should be {wanted}")


DEFAULTS: Final = JudgeSettings()
"""What holds where nobody says otherwise, on the command line and in ``jumar.toml``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeConfig:
    """Which judge is asked, and how: what ``jumar evaluate``, ``learn``, ``prove`` and ``[evaluator]`` share.

    ``spec`` is as people write it, ``openai:MODEL``. ``cache`` is the folder of replies, None for none. ``prices`` are those of
    tokens, None where the judge tells its cost. ``max_tokens`` bounds an answer of a language model.
    """

    spec: str
    settings: JudgeSettings = field(default_factory=JudgeSettings)
    cache: Path | None = None
    prices: Prices | None = None
    max_tokens: int = MAX_TOKENS

    @classmethod
    def of(cls, spec: str, options: Mapping[str, Any], *, explain: bool = True, cache: Path | str | None = None) -> JudgeConfig:
        """Return the judge ``spec`` asked as ``options`` say: those of :class:`JudgeSettings`, ``judge_scale``, ``price``.

        What is not among them is the default; ``repeat`` is then as the judge's noise asks for. Errors:
        :class:`jumar.errors.ConfigError` for one that is out of range.
        """
        given: dict[str, Any] = {"repeat": None, **{name: options[name] for name in _OPTIONS if name in options}}
        scale, price = options.get("judge_scale"), options.get("price")
        return cls(
            spec=spec,
            settings=JudgeSettings(**given, scale=DEFAULTS.scale if scale is None else tuple(scale), explain=explain),
            cache=None if cache is None else Path(cache),
            prices=None if price is None else Prices(input_per_million=price[0], output_per_million=price[1]),
            max_tokens=options.get("max_tokens", MAX_TOKENS),
        )
