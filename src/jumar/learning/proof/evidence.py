"""Whether a set of patterns tracks the judge on items that nothing was learned from. Pure.

The rivals need no judge: the median of the open items' scores, and a line over the length of the text fitted on them. The error
of the cheap score is compared with theirs item by item, the ranks with those by length, and all of it group by group, because
items of one group are no independent evidence. Where groups have several items the ranks inside of them have to be better than
chance too: a score that only knows which group an item is in has not read the item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np

from jumar.judging.agreement import Interval, Numbers, Ranks, Scores, bootstrap, group_numbers, rank_correlation, times_drawn
from jumar.judging.asking.summary import JudgeNoise, judge_noise
from jumar.judging.tracking import (
    FEWEST_GROUPS,
    FEWEST_ITEMS,
    GAP_TARGET,
    Check,
    above_zero,
    at_most,
    pair,
    predict_baselines,
)

EvidenceVerdict = Literal["tracks", "not_proven", "fails"]

_SEVERAL: Final = 0.5
"""From this share of items in groups of several on, ranks inside of groups are asked for."""


class ProofItem(Protocol):
    """What evidence needs of an item: the judge's score and readings, 1 to 5, the text's length in characters, the group."""

    @property
    def score(self) -> float: ...

    @property
    def readings(self) -> Sequence[float]: ...

    @property
    def length(self) -> int: ...

    @property
    def group(self) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Baselines:
    """What needs no judge, fitted on the open items: a constant, and a line over log(1 + characters)."""

    constant: float
    intercept: float
    slope: float

    def predict(self, lengths: Sequence[int]) -> dict[str, Scores]:
        """Return the ``(items,)`` scores of both, within the scale."""
        length = np.log1p(np.asarray(lengths, dtype=np.float64))
        return {
            "constant": np.full(length.size, self.constant),
            "length": np.clip(self.intercept + self.slope * length, 1.0, 5.0),
        }

    def to_json(self) -> dict[str, float]:
        return asdict(self)


def fit_baselines(opened: Sequence[ProofItem]) -> Baselines:
    """Return the baselines of open items: the median, and the least-squares line. Errors: ValueError without any item."""
    if not opened:
        raise ValueError("there are no open items to fit the baselines on")
    truth = np.asarray([target.score for target in opened], dtype=np.float64)
    length = np.log1p(np.asarray([target.length for target in opened], dtype=np.float64))
    apart = length - length.mean()
    spread = float(apart @ apart)
    slope = float(apart @ (truth - truth.mean())) / spread if spread > 1e-12 * truth.size else 0.0
    return Baselines(constant=float(np.median(truth)), intercept=float(truth.mean() - slope * length.mean()), slope=slope)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofEvidence:
    """What held-out items say about a set.

    ``figures`` are by name, None where one does not exist, and ``intervals`` their 95 % intervals by groups.
    ``checks`` decide: ``tracks`` when all of them held, ``fails`` when one failed beyond its interval, else ``not_proven``.
    ``gap`` says whether the mean absolute error is within half a point, which convergence asks for and tracking does not.
    ``noise`` is the judge's own, None where every item was read once.
    """

    items: int
    groups: int
    figures: Mapping[str, float | None]
    intervals: Mapping[str, Interval | None]
    checks: tuple[Check, ...]
    gap: Check
    noise: JudgeNoise | None
    verdict: EvidenceVerdict

    @property
    def heldout(self) -> dict[str, Any]:
        """What ``jumar learn --json`` calls so; ``interval`` is that of ``mae``."""
        return heldout_of(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "items": self.items,
            "groups": self.groups,
            "figures": dict(self.figures),
            "intervals": {name: pair(one) for name, one in self.intervals.items()},
            "checks": {check.name: check.to_json() for check in self.checks},
            "gap": self.gap.to_json(),
            "judge_noise": None if self.noise is None else self.noise.to_json(),
            "verdict": self.verdict,
        }


def heldout_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of :attr:`ProofEvidence.heldout` from what :meth:`ProofEvidence.to_json` gave."""
    figures, intervals = document["figures"], document["intervals"]
    names = ("mae", "spearman", "constant_mae", "length_mae", "length_spearman")
    gains = ("gain_constant", "gain_length", "lead_over_length", "within_spearman")
    return {
        **{name: figures[name] for name in names},
        "interval": intervals["mae"],
        "spearman_interval": intervals["spearman"],
        **{name: {"value": figures[name], "interval": intervals[name]} for name in gains},
        "items": document["items"],
        "groups": document["groups"],
    }


def compare_with_judge(
    judged: Sequence[ProofItem], cheap: Sequence[float], baselines: Baselines | None, *, seed: int = 0
) -> ProofEvidence:
    """Return what ``(items,)`` cheap scores, from 1 to 5, of held-out items say.

    ``baselines`` were fitted on the open items; None for open items whose cheap scores are out of fold: the baselines are then
    fitted on the other groups, fold by fold. Errors: ValueError for no items, unlike sizes, scores that are not finite.
    """
    truth = np.asarray([item.score for item in judged], dtype=np.float64)
    guess = np.asarray(cheap, dtype=np.float64)
    if not truth.size or truth.size != guess.size or not (np.isfinite(truth).all() and np.isfinite(guess).all()):
        raise ValueError(f"{truth.size} judged items and {guess.size} cheap scores: as many of both, at least one, all finite")
    groups = [item.group for item in judged]
    lengths = [item.length for item in judged]
    if baselines is None:
        predicted = predict_baselines(truth, lengths, groups)
        rivals = {"constant": predicted["constant"], "length": predicted["length_only"]}
    else:
        rivals = baselines.predict(lengths)
    inside = _Inside(truth, guess, group_numbers(groups))
    compared = _Comparison(truth, guess, rivals, inside)
    figures = compared.figures(np.arange(truth.size))
    found = bootstrap(groups, compared.figures, seed=seed)
    count = int(group_numbers(groups).max()) + 1
    checks = tuple(_check(name, figures, found) for name in _SAYS if name != "ranks_within_groups" or inside.asked)
    error = found["mae"]
    return ProofEvidence(
        items=int(truth.size),
        groups=count,
        figures=figures,
        intervals=found,
        checks=checks,
        gap=Check(
            "abs_gap",
            None if error is None else at_most(error, GAP_TARGET),
            figures["mae"],
            error,
            "the mean absolute gap is at most 0.5",
        ),
        noise=judge_noise(item.readings for item in judged),
        verdict=_verdict(checks, int(truth.size), count),
    )


FEWEST_AGAIN: Final = 20
"""Items read more than once from which on the judge's noise is known well enough to say what it allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseCeiling:
    """What the judge's own noise allows. ``reliability`` is the share of the variance of its scores that is not noise.

    A set that knew all but the noise would have the rank correlation ``spearman`` (the root of the reliability, Spearman 1904)
    and the error ``mae``; ``attained`` is the share of the former that a set has, None where there is no set.
    """

    reliability: float
    spearman: float
    mae: float
    attained: float | None = None


def noise_ceiling(scored: Sequence[ProofItem], again: Sequence[ProofItem], spearman: float | None = None) -> NoiseCeiling | None:
    """Return the ceiling for the scores of ``scored``, by the items of ``again`` that were read more than once.

    None where fewer than twenty were, or where the scores differ by no more than noise. ``spearman`` is what a set attains.
    """
    repeats = [one.readings for one in again if len(one.readings) > 1]
    if len(repeats) < FEWEST_AGAIN or len(scored) < 2:
        return None
    once = float(np.mean([np.var(readings, ddof=1) for readings in repeats]))
    error = once * float(np.mean([_left_of_noise(len(one.readings)) for one in scored]))
    spread = float(np.var([one.score for one in scored], ddof=1))
    if spread <= error:
        return None
    reliability = 1 - error / spread
    best = float(np.sqrt(reliability))
    attained = None if spearman is None else min(1.0, max(0.0, spearman / best))
    return NoiseCeiling(reliability=reliability, spearman=best, mae=float(np.sqrt(error * 2 / np.pi)), attained=attained)


_MEDIANS: Final = (1.0, 1.0, 0.5, 0.4487, 0.2982, 0.2868, 0.2147, 0.2104, 0.1682, 0.1661)
"""The variance of the median of 0 to 9 normal readings, as a share of that of one."""


def _left_of_noise(readings: int) -> float:
    """Return the share of one reading's variance that is left in the score, which is the median of so many."""
    return _MEDIANS[readings] if readings < len(_MEDIANS) else float(np.pi) / 2 / readings


class _Inside:
    """Ranks inside of groups: each item's distance from the middle of its group, by the judge and by the cheap score."""

    def __init__(self, truth: Scores, guess: Scores, numbers: Numbers) -> None:
        sizes = np.bincount(numbers)
        self.asked = float((sizes[numbers] > 1).mean()) >= _SEVERAL
        one, other = _ranks_inside(truth, numbers), _ranks_inside(guess, numbers)
        self.product, self.judge, self.cheap = one * other, one**2, other**2

    def correlation(self, at: Numbers) -> float | None:
        """Return the correlation of the ranks inside of groups, all groups together; None where nothing differs inside."""
        scale = float(self.judge[at].sum()) * float(self.cheap[at].sum())
        return float(self.product[at].sum()) / scale**0.5 if scale > 0 else None


def _ranks_inside(scores: Scores, numbers: Numbers) -> Scores:
    """Return each score's rank in its group, ties averaged, less the group's mean rank, as a share of the group."""
    ranks = np.zeros(scores.size)
    order = np.argsort(numbers, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        values = scores[own]
        below = (values[None, :] < values[:, None]).sum(axis=1)
        ranks[own] = (below + 0.5 * (values[None, :] == values[:, None]).sum(axis=1)) / own.size - 0.5
    return ranks


class _Comparison:
    """What is computed of a resample of the items: everything but the drawing is done once."""

    def __init__(self, truth: Scores, guess: Scores, rivals: Mapping[str, Scores], inside: _Inside) -> None:
        self.error = np.abs(guess - truth)
        self.bias = guess - truth
        self.apart = {name: np.abs(scores - truth) for name, scores in rivals.items()}
        self.ranks = [Ranks(scores) for scores in (truth, guess, rivals["length"])]
        self.inside = inside

    def figures(self, at: Numbers) -> dict[str, float | None]:
        """Return every figure of the items at the positions ``at``."""
        drawn = times_drawn(at, self.error.size)
        judge, cheap, length = (one.of(drawn) for one in self.ranks)
        own, by_length = rank_correlation(judge, cheap, drawn), rank_correlation(judge, length, drawn)
        error, apart = self.error[at], {name: one[at] for name, one in self.apart.items()}
        return {
            "mae": float(error.mean()),
            "bias": float(self.bias[at].mean()),
            "spearman": own,
            "constant_mae": float(apart["constant"].mean()),
            "length_mae": float(apart["length"].mean()),
            "length_spearman": by_length,
            "gain_constant": float((apart["constant"] - error).mean()),
            "gain_length": float((apart["length"] - error).mean()),
            "lead_over_length": None if own is None else own - (by_length or 0.0),
            "within_spearman": self.inside.correlation(at) if self.inside.asked else None,
        }


_SAYS: Final = {
    "better_than_constant": ("gain_constant", "the error is smaller than that of a constant"),
    "better_than_length": ("gain_length", "the error is smaller than that of the length alone"),
    "ranks_better_than_length": ("lead_over_length", "the ranking is better than that by length"),
    "ranks_within_groups": ("within_spearman", "inside of groups the ranking is better than chance"),
}
"""The conditions of tracking: the figure that decides, and what it means."""


def _check(name: str, figures: Mapping[str, float | None], found: Mapping[str, Interval | None]) -> Check:
    figure, says = _SAYS[name]
    interval = found.get(figure)
    return Check(name, None if interval is None else above_zero(interval), figures[figure], interval, says)


def _verdict(checks: Sequence[Check], items: int, groups: int) -> EvidenceVerdict:
    if items < FEWEST_ITEMS or groups < FEWEST_GROUPS:
        return "not_proven"
    if any(check.held is False for check in checks):
        return "fails"
    return "tracks" if all(check.held for check in checks) else "not_proven"
