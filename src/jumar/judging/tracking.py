"""Everything about how well one judge tracks the other, and the two verdicts that a mean gap cannot give.

Its baselines need no judge: the median of the other groups' scores, and the length of the text. Whatever does not beat them knows
nothing. Both are fitted on the groups outside of the item's own fold, so that they are predictions, as the cheap score is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from jumar.judging.agreement import (
    HALF,
    PAIRS_UP_TO,
    Agreement,
    Interval,
    Numbers,
    RankPairs,
    Ranks,
    Scores,
    agreement,
    bootstrap,
    folds_by_group,
    group_numbers,
    kendall,
    quadratic_kappa,
    rank_correlation,
    times_drawn,
)
from jumar.judging.asking.summary import JudgeNoise, judge_noise

BASELINES: Final = ("constant", "length_only")


def predict_baselines(expensive: Scores, lengths: Sequence[int], groups: Sequence[str | None]) -> dict[str, Scores]:
    """Return for each of :data:`BASELINES` its ``(items,)`` scores, clipped to the range of the scale.

    ``lengths`` are in characters. With fewer than two groups there is nothing outside: the fit is on the items themselves,
    which flatters
    the baselines, never the judge.
    """
    folds = folds_by_group(groups)
    length = np.log1p(np.asarray(lengths, dtype=np.float64))
    constant, by_length = np.empty_like(expensive), np.empty_like(expensive)
    for fold in np.unique(folds):
        inside = folds == fold
        fitted = ~inside if (~inside).any() else inside
        constant[inside] = np.median(expensive[fitted])
        by_length[inside] = _line(length[fitted], expensive[fitted], length[inside])
    return {"constant": constant, "length_only": np.clip(by_length, 1.0, 5.0)}


def _line(x: Scores, y: Scores, at: Scores) -> Scores:
    """Return the least-squares line through (x, y) at ``at``; the mean of y where x does not vary."""
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread if spread > 0 else 0.0
    return y.mean() + slope * (at - x.mean())


TrackingVerdict = Literal["tracks", "does_not_track", "not_proven"]

FEWEST_ITEMS: Final = 30
"""Below this many items nothing is proven, whatever the intervals say."""

FEWEST_GROUPS: Final = 20
"""Below this many groups neither: intervals from few groups are too narrow, and two of them would prove anything now and then."""

GAP_TARGET: Final = 0.5
_RANKS_UP_TO: Final = 50_000


@dataclass(frozen=True, slots=True)
class Check:
    """One condition of tracking. ``held`` is None where the interval leaves it open."""

    name: str
    held: bool | None
    value: float | None
    interval: Interval | None
    says: str

    def to_json(self) -> dict[str, Any]:
        return {"held": self.held, "value": self.value, "interval": pair(self.interval), "says": self.says}


@dataclass(frozen=True, slots=True)
class Tracking:
    """The agreement over the items that both judges scored, what it is compared with, and the verdict.

    ``baselines`` are judged as the cheap one is. ``noise`` is None where every item was judged once. ``verdict`` is
    ``tracks`` when every
    check held, ``does_not_track`` when one of them failed beyond its interval, else ``not_proven``.
    """

    items: int
    groups: int
    agreement: Agreement
    intervals: Mapping[str, Interval | None]
    baselines: Mapping[str, Agreement]
    noise: JudgeNoise | None
    checks: tuple[Check, ...]
    verdict: TrackingVerdict

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON; figures that do not exist are null."""
        return {
            **self.agreement.to_json(),
            "intervals": {name: pair(one) for name, one in self.intervals.items()},
            "baselines": {name: one.to_json() for name, one in self.baselines.items()},
            "judge_noise": None if self.noise is None else self.noise.to_json(),
            "items": self.items,
            "groups": self.groups,
            "checks": {check.name: check.to_json() for check in self.checks},
            "verdict": self.verdict,
        }


def track(
    expensive: Sequence[float],
    cheap: Sequence[float],
    *,
    lengths: Sequence[int],
    groups: Sequence[str | None],
    readings: Sequence[Sequence[float]] = (),
    seed: int = 0,
    resamples: int | None = None,
) -> Tracking:
    """Return how well ``cheap`` tracks ``expensive``: ``(items,)`` gestalts of the same items in the same order, at least one.

    ``lengths`` of the texts are in characters, ``groups`` tie items together (None: an item by itself), ``readings`` are the
    expensive judge's repeats where there are any. ``resamples`` is how many the intervals are made of, None for the usual number.
    Errors: ValueError when the lengths differ, nothing is given, or a score is not finite.
    """
    truth, guess = _scores(expensive), _scores(cheap)
    if not truth.size == guess.size == len(lengths) == len(groups):
        raise ValueError(f"{truth.size} expensive and {guess.size} cheap scores, {len(lengths)} lengths, {len(groups)} groups")
    predicted = predict_baselines(truth, lengths, groups)
    compared = _Compared(truth, guess, predicted)
    found = bootstrap(groups, compared.figures, seed=seed, count=resamples)
    measured = agreement(truth, guess)
    checks = _checks(compared.figures(np.arange(truth.size)), found)
    found_groups = int(group_numbers(groups).max()) + 1
    names = ("mae", "bias", "spearman", "kendall", "quadratic_kappa", "off_by_more_than_half")
    return Tracking(
        items=int(truth.size),
        groups=found_groups,
        agreement=measured,
        intervals={name: found.get(name) for name in names},
        baselines={name: _baseline(name, agreement(truth, predicted[name])) for name in BASELINES},
        noise=judge_noise(readings),
        checks=checks,
        verdict=_verdict(checks, int(truth.size), found_groups),
    )


def _baseline(name: str, found: Agreement) -> Agreement:
    """A constant ranks nothing; that its folds have different medians is an artefact, and a negative rank of it another."""
    return replace(found, spearman=None, kendall=None) if name == "constant" else found


def _scores(values: Sequence[float]) -> Scores:
    scores = np.asarray(values, dtype=np.float64)
    if not scores.size or not np.isfinite(scores).all():
        raise ValueError("scores must be finite, and there must be at least one")
    return scores


class _Compared:
    """What is computed of a resample of the items: all but the drawing is done once."""

    def __init__(self, truth: Scores, guess: Scores, predicted: Mapping[str, Scores]) -> None:
        self._truth, self._guess = truth, guess
        self._bias, self._error = guess - truth, np.abs(guess - truth)
        self._gains = {f"gain_{name}": np.abs(scores - truth) - self._error for name, scores in predicted.items()}
        self._ranks = [Ranks(scores) for scores in (truth, guess, predicted["length_only"])]
        self._pairs = RankPairs(truth, guess) if truth.size <= PAIRS_UP_TO else None

    def figures(self, at: Numbers) -> dict[str, float | None]:
        """Return every figure that gets an interval, of the items at ``at``; of very many, not the ranks: theirs is hair-thin."""
        error = self._error[at]
        figures: dict[str, float | None] = {
            "mae": float(error.mean()),
            "bias": float(self._bias[at].mean()),
            "off_by_more_than_half": float((error > HALF).mean()),
            **{name: float(gain[at].mean()) for name, gain in self._gains.items()},
        }
        if at.size > _RANKS_UP_TO:
            return figures
        drawn = times_drawn(at, self._error.size)
        judge, cheap, length = (one.of(drawn) for one in self._ranks)
        own, by_length = rank_correlation(judge, cheap, drawn), rank_correlation(judge, length, drawn)
        figures["lead_over_length"] = None if own is None else own - (by_length or 0.0)
        figures["spearman"] = own
        figures["kendall"] = self._pairs.kendall(drawn) if self._pairs else kendall(self._truth[at], self._guess[at])
        figures["quadratic_kappa"] = quadratic_kappa(self._truth[at], self._guess[at])
        return figures


_SAYS: Final = {
    "abs_gap": ("mae", "the mean absolute gap is at most 0.5"),
    "better_than_constant": ("gain_constant", "the error is smaller than that of a constant"),
    "better_than_length": ("gain_length_only", "the error is smaller than that of the length alone"),
    "ranks_better_than_length": ("lead_over_length", "the ranking is better than that by length"),
}
"""The conditions of tracking: the figure that decides, and what it means."""


def _checks(figures: Mapping[str, float | None], found: Mapping[str, Interval | None]) -> tuple[Check, ...]:
    """Return every condition against its interval: held or failed only where the whole interval says so."""
    checks: list[Check] = []
    for name, (figure, says) in _SAYS.items():
        interval = found.get(figure)
        held = None
        if interval is not None:
            held = at_most(interval, GAP_TARGET) if figure == "mae" else above_zero(interval)
        checks.append(Check(name, held, figures.get(figure), interval, says))
    return tuple(checks)


def at_most(interval: Interval, limit: float) -> bool | None:
    """Return whether the whole interval lies at ``limit`` or below, False when it lies above, None when it holds the limit."""
    return True if interval.high <= limit else False if interval.low > limit else None


def above_zero(interval: Interval) -> bool | None:
    """Return whether the whole interval lies above zero, False when it lies below, None when it holds zero."""
    return True if interval.low > 0 else False if interval.high < 0 else None


def _verdict(checks: Sequence[Check], items: int, groups: int) -> TrackingVerdict:
    if items < FEWEST_ITEMS or groups < FEWEST_GROUPS:
        return "not_proven"
    if any(check.held is False for check in checks):
        return "does_not_track"
    return "tracks" if all(check.held for check in checks) else "not_proven"


def pair(interval: Interval | None) -> list[float] | None:
    """Return an interval as JSON has it."""
    return None if interval is None else list(interval)
