"""What an evaluation by the expensive judge amounts to: its counts, its cost, and how much the judge disagrees with itself."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final

from jumar.errors import ConfigError, JumarError
from jumar.judging.models import ExpensiveModeResult, Unscored, UnscoredKind

HIGH_VARIANCE: Final = 0.5
"""Mean absolute difference between two readings above which a judge is noisier than the gap that it is to measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeNoise:
    """Figures over the items with at least two readings, in points of the scale from 1 to 5.

    ``items`` counts them, ``readings`` is the mean number of readings of each. ``mean_sd`` is the mean of the items' standard
    deviations (n − 1), ``mean_range`` and ``max_range`` are of highest minus lowest; ``mean_abs_difference`` is the mean over
    items of the mean absolute difference over all pairs of readings; ``identical_share`` is the share of items whose readings
    are all equal.
    """

    items: int
    readings: float
    mean_sd: float
    mean_range: float
    max_range: float
    mean_abs_difference: float
    identical_share: float

    @property
    def high_variance(self) -> bool:
        """Whether two readings of one item differ by more than half a point on average."""
        return self.mean_abs_difference > HIGH_VARIANCE

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "high_variance": self.high_variance}


def judge_noise(readings: Iterable[Sequence[float]]) -> JudgeNoise | None:
    """Return the noise of a judge from the readings of each item; None when no item has two."""
    tally = NoiseTally()
    for reading in readings:
        tally.add(reading)
    return tally.noise()


def mean_abs_difference(readings: Sequence[float]) -> float:
    """Return the mean absolute difference over all pairs of at least two readings.

    Each gap between neighbours in order counts once for every pair that it lies between, so that many readings cost no more than
    sorting them.
    """
    count = len(readings)
    gaps = itertools.pairwise(sorted(readings))
    return math.fsum((high - low) * below * (count - below) for below, (low, high) in enumerate(gaps, 1)) / math.comb(count, 2)


class NoiseTally:
    """Adds up noise item by item, so that a stream need not be kept."""

    def __init__(self) -> None:
        self._items = 0
        self._readings = 0
        self._identical = 0
        self._widest = 0.0
        self._sd = self._range = self._difference = 0.0

    def add(self, readings: Sequence[float]) -> None:
        """Take an item's readings into account; fewer than two say nothing."""
        count = len(readings)
        if count < 2:
            return
        mean = math.fsum(readings) / count
        width = max(readings) - min(readings)
        self._items += 1
        self._readings += count
        self._identical += width == 0
        self._widest = max(self._widest, width)
        self._sd += math.sqrt(math.fsum((value - mean) ** 2 for value in readings) / (count - 1))
        self._range += width
        self._difference += mean_abs_difference(readings)

    def noise(self) -> JudgeNoise | None:
        """Return the figures so far; None before the first item with two readings."""
        if not self._items:
            return None
        return JudgeNoise(
            items=self._items,
            readings=self._readings / self._items,
            mean_sd=self._sd / self._items,
            mean_range=self._range / self._items,
            max_range=self._widest,
            mean_abs_difference=self._difference / self._items,
            identical_share=self._identical / self._items,
        )


Result = ExpensiveModeResult | Unscored

NOT_THE_JUDGES: Final[frozenset[UnscoredKind]] = frozenset({"missing", "budget", "abstained"})
"""Kinds that say nothing about the judge's reliability: the item was not on record, or not asked about."""

NOT_ASKED: Final[frozenset[UnscoredKind]] = frozenset({"budget", "abstained"})
"""Kinds of items that the judge was not asked about, of which as many may be unscored as there are."""


class JudgeRejectedError(ConfigError):
    """The judge rejects every question: a wrong key, an unknown model. ``evaluation`` holds what was judged before that."""

    evaluation: Evaluation | None = None


class JudgeInterruptedError(JumarError):
    """Somebody stopped the evaluation. ``evaluation`` holds what was judged before that; exit code 130, as after SIGINT."""

    exit_code: ClassVar[int] = 130
    evaluation: Evaluation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Results in the items' order, and what they amount to.

    ``calls`` are all that were begun, retries and those of earlier starts included; ``lost_calls`` of them were in flight when
    their process was killed. ``cost_usd`` is what they cost, None when one did not say; ``known_cost_usd`` is then what the
    others cost, and ``assumed_cost_usd`` what is charged for those that did not say, the lost ones included. Cached replies
    cost nothing, and count with the tokens that they took when they were asked for. ``gestalt_avg`` is None when nothing was
    scored. ``stopped`` says why items were not asked about.
    """

    results: tuple[Result, ...]
    judge: str
    settings: dict[str, Any]
    story_count: int
    scored: int
    unscored_kinds: dict[str, int]
    gestalt_avg: float | None
    cost_usd: float | None
    known_cost_usd: float
    input_tokens: int | None
    output_tokens: int | None
    calls: int
    retries: int
    cached: int
    repeat: int
    noise: JudgeNoise | None
    stopped: str | None
    lost_calls: int = 0
    assumed_cost_usd: float = 0.0

    @property
    def unscored(self) -> int:
        return sum(self.unscored_kinds.values())

    @property
    def high_variance(self) -> bool:
        """Whether the judge's own readings differ too much; False when there are none to compare."""
        return self.noise is not None and self.noise.high_variance

    def to_json(self) -> dict[str, Any]:
        """Return the figures as the first design has them, and the scored items as ``individual_scores``."""
        return {
            **self.figures(),
            "individual_scores": [result.model_dump() for result in self.results if isinstance(result, ExpensiveModeResult)],
            "unscored_items": [result.model_dump() for result in self.results if isinstance(result, Unscored)],
        }

    def figures(self) -> dict[str, Any]:
        """Return what :meth:`to_json` does, without the single items."""
        noise = None if self.noise is None else self.noise.to_json()
        asked = {name: self.settings[name] for name in ("temperature", "seed")}
        figures = {name: getattr(self, name) for name in _FIGURES}
        more = {"judge_noise": noise, "high_variance": self.high_variance, "stopped": self.stopped}
        return {"mode": "expensive", **figures, "judge": self.judge, **asked, **more}


_FIGURES: Final = (
    *("gestalt_avg", "story_count", "scored", "unscored", "unscored_kinds"),
    *("cost_usd", "known_cost_usd", "assumed_cost_usd", "input_tokens", "output_tokens"),
    *("calls", "lost_calls", "retries", "cached", "repeat"),
)


class CallTotals:
    """Adds up results as they come, so that a stream of them need not be kept."""

    def __init__(self) -> None:
        self.story_count = 0
        self.scored = 0
        self.kinds: Counter[UnscoredKind] = Counter()
        self.noise = NoiseTally()
        self._sum = 0.0
        self._input: int | None = 0
        self._output: int | None = 0

    def add(self, result: Result) -> None:
        """Take a result into account."""
        self.story_count += 1
        if isinstance(result, ExpensiveModeResult):
            self.scored += 1
            self._sum += result.gestalt
            self.noise.add(result.readings)
        else:
            self.kinds[result.kind] += 1
            if result.kind in NOT_THE_JUDGES or (result.raw is None and result.input_tokens is None):
                return  # nothing was answered, so that no tokens are unknown
        self._input = plus(self._input, result.input_tokens)
        self._output = plus(self._output, result.output_tokens)

    @property
    def failures(self) -> int:
        """Items that the judge was asked about in vain."""
        return sum(count for kind, count in self.kinds.items() if kind not in NOT_ASKED)

    @property
    def average(self) -> float | None:
        return self._sum / self.scored if self.scored else None

    @property
    def tokens(self) -> tuple[int | None, int | None]:
        """Input and output tokens of all answers; None where one of them did not say."""
        return self._input, self._output


def plus(total: int | None, more: int | None) -> int | None:
    """Return the sum of two numbers; None where one of them is not known."""
    return None if total is None or more is None else total + more
