"""Whether a change of patterns made things worse, beyond noise; and whose doing a changed gap is.

The first design's three conditions compare averages. Of few items an average moves by itself: a condition counts when the same
items, resampled by group, say so too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from statistics import fmean
from typing import Any, Final, Literal

from jumar.core.lazy import need_extra

ConditionName = Literal["gap_increased", "cheap_score_dropped", "correlation_decreased"]

_LIMITS: Final[dict[ConditionName, float]] = {"gap_increased": 0.2, "cheap_score_dropped": 0.3, "correlation_decreased": 0.0}
_RESAMPLES: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Both judges' scores of one item, from 1 to 5. ``content`` is a hash of its text: another text is another item."""

    id: str
    expensive: float
    cheap: float
    group: str | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition: ``delta`` is after - before, ``low`` to ``high`` the middle 95 % of it over resampled groups.

    ``delta`` is None where there is no figure (a constant judge has no ranks), the interval where there are fewer than two
    groups. ``exceeds`` says whether the first design's limit is passed, ``beyond_noise`` whether the whole interval is on the
    worse side of zero.
    """

    name: ConditionName
    limit: float
    delta: float | None
    low: float | None
    high: float | None
    exceeds: bool
    beyond_noise: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """Whether to roll back, the first ``condition`` that says so, and all three."""

    regression: bool
    condition: Condition | None
    conditions: tuple[Condition, ...]
    items: int
    groups: int

    @property
    def improved(self) -> bool:
        """Whether gap or order are better, the whole interval says so, and the other one is no worse."""
        gap, _, order = self.conditions
        narrower = gap.high is not None and gap.high < 0 and (order.delta is None or order.delta >= 0)
        ordered = order.low is not None and order.low > 0 and (gap.delta or 0.0) <= 0
        return narrower or ordered

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON: the keys of :func:`jumar.judging.check_for_regression`, and the figures."""
        found: dict[str, Any] = {"regression": self.regression}
        if self.condition is not None:
            found |= {
                "type": self.condition.name,
                "delta": self.condition.delta,
                "interval": None if self.condition.low is None else [self.condition.low, self.condition.high],
                "action": "revert_pattern_change",
            }
        return {
            **found,
            "items": self.items,
            "groups": self.groups,
            "conditions": [asdict(condition) for condition in self.conditions],
        }


def check_change(
    before: Sequence[Scored],
    after: Sequence[Scored],
    *,
    profile: Literal["seed", "evidence"] = "evidence",
    seed: int = 0,
    resamples: int = _RESAMPLES,
) -> Regression:
    """Return whether a change made things worse on the items that are in both, by ``id``.

    The conditions in order: the mean absolute gap grew by more than 0.2, the cheap average fell by more than 0.3, the rank
    correlation fell. Under ``evidence`` the first that passes its limit *and* is beyond noise is a regression, under ``seed`` the
    first that passes its limit. A cheap average that falls while the gap gets narrower comes closer to the judge; under
    ``evidence`` that is none, however sure the narrower gap is: that the average fell is no evidence against it. The judge's
    scores are those of ``after``: a judge that changed its mind is no fault of the patterns. The correlation is resampled with
    the ranks of all items. Items without a group are one each. Without items, or under ``evidence`` with fewer than two groups,
    nothing is a regression. The same ``seed`` gives the same answer. Errors: :class:`jumar.errors.MissingExtraError`.
    """
    need_extra("judge", "checking a change for regression", "numpy", "scipy")
    import numpy as np

    from jumar.judging.agreement import spearman

    known = {one.id: one for one in before}
    pairs = [(known[one.id], one) for one in after if one.id in known]
    if not pairs:
        nothing = tuple(_condition(name, None, None) for name in _LIMITS)
        return Regression(regression=False, condition=None, conditions=nothing, items=0, groups=0)
    judge = np.asarray([now.expensive for _, now in pairs])
    was, now = (np.asarray([pair[side].cheap for pair in pairs]) for side in (0, 1))
    columns = {"gap_increased": np.abs(judge - now) - np.abs(judge - was), "cheap_score_dropped": now - was}
    ranks = [spearman(judge, one) for one in (was, now)]
    fell = None if ranks[0] is None or ranks[1] is None else ranks[1] - ranks[0]
    members, groups = _groups([later.group for _, later in pairs])
    drawn = np.random.default_rng(seed).multinomial(groups, np.full(groups, 1 / groups), size=resamples) if groups > 1 else None
    spreads = {name: _means(values, members, drawn) for name, values in columns.items()}
    spreads["correlation_decreased"] = None if fell is None else _correlations(judge, was, now, members, drawn)
    deltas = {**{name: float(values.mean()) for name, values in columns.items()}, "correlation_decreased": fell}
    conditions = tuple(_condition(name, deltas[name], spreads[name]) for name in _LIMITS)
    found = next(
        (condition for condition in conditions if condition.exceeds and (profile == "seed" or _counts(condition, conditions[0]))),
        None,
    )
    return Regression(regression=found is not None, condition=found, conditions=conditions, items=len(pairs), groups=groups)


def _counts(condition: Condition, gap: Condition) -> bool:
    """Return whether a condition counts under ``evidence``: beyond noise, and no fall of an average that was too high."""
    narrower = gap.delta is not None and gap.delta < 0
    return condition.beyond_noise and not (condition.name == "cheap_score_dropped" and narrower)


def _condition(name: ConditionName, delta: float | None, spread: Any) -> Condition:
    import numpy as np

    limit = _LIMITS[name]
    low = high = None
    if delta is not None and spread is not None:
        low, high = (float(one) for one in np.nanquantile(spread, (0.025, 0.975)))
    grows = name == "gap_increased"
    exceeds = delta is not None and (delta > limit if grows else delta < -limit)
    beyond = low is not None and high is not None and (low > 0 if grows else high < 0)
    return Condition(name=name, limit=limit, delta=delta, low=low, high=high, exceeds=exceeds, beyond_noise=beyond)


def _groups(groups: Sequence[str | None]) -> tuple[Any, int]:
    import numpy as np

    known: dict[str | int, int] = {}
    members = [known.setdefault(place if group is None else group, len(known)) for place, group in enumerate(groups)]
    return np.asarray(members), len(known)


def _means(values: Any, members: Any, drawn: Any) -> Any:
    """Return the mean of ``values`` in every resample of groups; None without any."""
    import numpy as np

    if drawn is None:
        return None
    return (drawn @ np.bincount(members, values)) / np.maximum(1, drawn @ np.bincount(members))


def _correlations(judge: Any, was: Any, now: Any, members: Any, drawn: Any) -> Any:
    """Return by how much the correlation of ranks changes in every resample; not a number where one of them is constant."""
    import numpy as np

    if drawn is None:
        return None
    rank = import_module("scipy.stats").rankdata  # it brings no types
    middle = (len(judge) + 1) / 2
    one, before, after = (np.asarray(rank(scores)) - middle for scores in (judge, was, now))

    def total(values: Any) -> Any:
        return drawn @ np.bincount(members, values)

    count = drawn @ np.bincount(members)

    def covariance(a: Any, b: Any) -> Any:
        return total(a * b) / count - total(a) / count * (total(b) / count)

    with np.errstate(invalid="ignore", divide="ignore"):
        spread = covariance(one, one)
        found = [covariance(one, other) / np.sqrt(spread * covariance(other, other)) for other in (before, after)]
        change = found[1] - found[0]
    return change if np.isfinite(change).any() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GapChange:
    """What a change of the mean absolute gap is made of; the three parts add up to ``total`` = after - before.

    ``items``: others were judged. ``judge``: the expensive judge says something else of the same items. ``patterns``: the cheap
    one does. ``largest`` names the part that moved most in the direction of the total, None where nothing moved.
    """

    total: float
    items: float
    judge: float
    patterns: float
    common: int
    largest: Literal["items", "judge", "patterns"] | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def attribute_gap_change(before: Sequence[Scored], after: Sequence[Scored]) -> GapChange:
    """Return whose doing the change of the mean absolute gap is.

    On the items that are in both (the same ``id``, and the same ``content`` where both have one) the judges' parts are Shapley's:
    the mean of what a change does when it comes first and when it comes second. The rest is due to the items; all of it, where
    none is in both. Errors: ValueError when one side has no items.
    """
    if not before or not after:
        raise ValueError("there are no items before or after, so there is no gap that could have changed")
    known = {one.id: one for one in before}
    pairs = [(known[one.id], one) for one in after if one.id in known and _same(known[one.id], one)]
    total = _gap(after) - _gap(before)
    judge = patterns = 0.0
    if pairs:
        old = fmean(abs(was.expensive - was.cheap) for was, _ in pairs)
        new = fmean(abs(now.expensive - now.cheap) for _, now in pairs)
        only_judge = fmean(abs(now.expensive - was.cheap) for was, now in pairs)
        only_cheap = fmean(abs(was.expensive - now.cheap) for was, now in pairs)
        judge = ((only_judge - old) + (new - only_cheap)) / 2
        patterns = ((only_cheap - old) + (new - only_judge)) / 2
    found = GapChange(total=total, items=total - judge - patterns, judge=judge, patterns=patterns, common=len(pairs))
    parts: dict[Literal["items", "judge", "patterns"], float] = {
        "items": found.items,
        "judge": found.judge,
        "patterns": found.patterns,
    }
    sign = 1 if total >= 0 else -1
    largest = max(parts, key=lambda name: sign * parts[name])
    return replace(found, largest=largest if abs(parts[largest]) > 1e-12 else None)


def _same(was: Scored, now: Scored) -> bool:
    return was.content is None or now.content is None or was.content == now.content


def _gap(scored: Sequence[Scored]) -> float:
    return fmean(abs(one.expensive - one.cheap) for one in scored)
