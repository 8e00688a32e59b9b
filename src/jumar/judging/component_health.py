"""The health of both judges and of every other component of a dual evaluation, by the names and flags of the first design.

:class:`CheapTally` adds up figures over any number of items exactly: the same whatever the chunks and whoever evaluated them.
"""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, TypeVar

from jumar.judging.asking.settings import MAX_UNSCORED
from jumar.judging.asking.summary import NOT_THE_JUDGES, Result, judge_noise
from jumar.judging.cheap.evidence import cannot_fire
from jumar.judging.cheap.scoring import CheapReading
from jumar.judging.models import CheapModeResult, ComponentHealthStatus, DualModeResult, ExpensiveModeResult, Unscored
from jumar.judging.patterns.models import PatternSet


def check_expensive_evaluator(results: Sequence[Result | Mapping[str, Any]]) -> ComponentHealthStatus:
    """Return the health of the judge behind ``results``, which may be mappings as of :func:`jumar.judging.evaluate_expensive`.

    Flags: ``judge_failures`` (an item it was asked about has no verdict), ``scores_out_of_range``, ``nothing_scored``,
    ``all_same_score`` (at least two verdicts and no variance: a saturated judge, whose ranks mean nothing), ``high_variance``
    (its own readings of one item differ by more than half a point on average: nothing can be shown against such a judge). It is
    healthy without ``nothing_scored``, ``all_same_score`` and ``high_variance``, and with at most a fifth of failures.
    ``details``: ``scored``, ``unscored`` by kind, ``score_range`` and ``variance`` (None without scores; variance with n − 1, 0
    for one), ``noise``. No results are healthy: nothing was asked.
    """
    known = [_verdict_of(result) if isinstance(result, Mapping) else result for result in results]
    scored = [result for result in known if isinstance(result, ExpensiveModeResult)]
    kinds = Counter(result.kind for result in known if isinstance(result, Unscored))
    scores = [result.gestalt for result in scored]
    noise = judge_noise([result.readings for result in scored])
    failures = sum(count for kind, count in kinds.items() if kind not in NOT_THE_JUDGES)
    noticed = {
        "judge_failures": failures > 0,
        "scores_out_of_range": kinds["out_of_range"] > 0,
        "nothing_scored": bool(results) and not scores,
        "all_same_score": len(scores) > 1 and len(set(scores)) == 1,
        "high_variance": noise is not None and noise.high_variance,
    }
    details = {
        "scored": len(scores),
        "unscored": dict(kinds),
        "score_range": _range(scores),
        "variance": (statistics.variance(scores) if len(scores) > 1 else 0.0) if scores else None,
        "noise": None if noise is None else noise.to_json(),
    }
    found = _status(noticed, details, grave=("nothing_scored", "all_same_score", "high_variance"))
    return found.model_copy(update={"healthy": found.healthy and failures <= MAX_UNSCORED * (failures + len(scores))})


def _verdict_of(result: Mapping[str, Any]) -> Result:
    """Return what a mapping says: a verdict where it has a ``gestalt``, else an item without one."""
    if "gestalt" not in result:
        return Unscored.model_validate(dict(result))
    return ExpensiveModeResult.model_construct(gestalt=float(result["gestalt"]), readings=list(result.get("readings", ())))


def _status(noticed: Mapping[str, bool], details: dict[str, Any], *, grave: Collection[str]) -> ComponentHealthStatus:
    """Return the flags that were noticed; a component with one that is ``grave`` is not healthy."""
    flags = [flag for flag, is_so in noticed.items() if is_so]
    return ComponentHealthStatus(healthy=not set(flags) & set(grave), flags=flags, details=details)


def _range(values: Sequence[float]) -> list[float] | None:
    return [min(values), max(values)] if values else None


def check_cheap_evaluator(
    results: Iterable[CheapModeResult | Unscored | Mapping[str, Any]], *, patterns: int = 0
) -> ComponentHealthStatus:
    """Return the health of the cheap judge; ``patterns`` is how many could have fired. Items without a score are left out.

    A result may be a mapping with ``gestalt``, as ``individual_scores`` of :func:`jumar.judging.evaluate_cheap` has them. See
    :func:`cheap_health` for the flags and the details.
    """
    known = [_score_of(one) if isinstance(one, Mapping) else one for one in results]
    scored = [one for one in known if isinstance(one, CheapModeResult)]
    scores = [result.gestalt for result in scored]
    return cheap_health(
        count=len(scores),
        score_range=(min(scores), max(scores)) if scores else None,
        variance=statistics.variance(scores) if len(scores) > 1 else 0.0,
        any_reason=any(result.reasons or result.patterns_matched for result in scored),
        any_pattern=any(result.patterns_matched for result in scored),
        patterns=patterns,
    )


def _score_of(result: Mapping[str, Any]) -> CheapModeResult | None:
    """Return the result without a look at its range, which is for the health to judge; None for an item without a score."""
    if "gestalt" not in result:
        return None
    return CheapModeResult.model_construct(
        gestalt=float(result["gestalt"]),
        reasons=list(result.get("reasons", ())),
        patterns_matched=list(result.get("patterns_matched", ())),
    )


def cheap_health(
    *,
    count: int,
    score_range: tuple[float, float] | None,
    variance: float,
    any_reason: bool,
    any_pattern: bool,
    patterns: int = 0,
) -> ComponentHealthStatus:
    """Return the health from figures over the scored items; ``count`` is their number, ``variance`` that of a sample.

    Flags: ``no_scores`` (nothing was scored), ``all_same_score`` (two items or more), ``scores_out_of_range``,
    ``zero_patterns_matched`` (no item has a reason or a pattern, or there were patterns and none fired). Healthy means no flag.
    Details: ``score_range``, ``[lowest, highest]`` or None, and ``variance``.
    """
    lowest, highest = score_range or (1.0, 5.0)
    noticed = {
        "no_scores": count == 0,
        "all_same_score": count > 1 and lowest == highest,
        "scores_out_of_range": lowest < 1.0 or highest > 5.0,
        "zero_patterns_matched": count > 0 and (not any_reason or (patterns > 0 and not any_pattern)),
    }
    details = {"score_range": None if score_range is None else [lowest, highest], "variance": variance}
    return _status(noticed, details, grave=noticed)


COMPONENTS = ("pattern_migration", "cheap_evaluator", "expensive_evaluator", "gap_calculator", "pattern_learner")

_DECIDED = 5
_REJECTED = 0.4  # three committed and two rejected is what the first design flags


def every_component(**known: ComponentHealthStatus) -> dict[str, ComponentHealthStatus]:
    """Return the health of all five in their order; one that is not given did not run, which is no illness."""
    return {name: known.get(name) or ComponentHealthStatus(healthy=True, details={"ran": False}) for name in COMPONENTS}


def check_patterns(patterns: PatternSet | None) -> ComponentHealthStatus:
    """Return whether the patterns are of use.

    Flags: ``no_patterns`` (a file that has none; healthy when no file was asked for), ``cannot_fire`` (patterns without phrase,
    expression, keyword, measured feature or built-in rule), ``all_provisional`` (none takes part in a score: right after a
    migration that is as it should be, so it is no illness).
    """
    if patterns is None:
        return ComponentHealthStatus(healthy=True, details={"patterns": 0})
    count = {
        status: sum(pattern.status == status for pattern in patterns.patterns)
        for status in ("active", "provisional", "rejected", "pruned")
    }
    mute = [pattern.id for pattern in patterns.patterns if cannot_fire(pattern)]
    noticed = {
        "no_patterns": not patterns.patterns,
        "cannot_fire": bool(mute),
        "all_provisional": bool(patterns.patterns) and count["provisional"] == len(patterns.patterns),
    }
    details = {"patterns": len(patterns.patterns), **count, "cannot_fire": mute[:20]}
    return _status(noticed, details, grave=("no_patterns", "cannot_fire"))


def check_pattern_learner(
    *, proposed: int, committed: int, rejected: int, provisional: int = 0, refused: int = 0
) -> ComponentHealthStatus:
    """Return whether proposals come to something, from the counts of one iteration.

    Flags: ``high_rejection_rate`` (of five or more that were decided at least two fifths were rejected; it tells of weak
    proposals and is no illness), ``no_proposals`` (nothing proposed, and nothing under test), ``answers_refused`` (a model was
    asked and most of its answers were no proposals). Only the last one is unhealthy, where there was no other proposal.
    """
    decided = committed + rejected
    rate = rejected / decided if decided else 0.0
    noticed = {
        "high_rejection_rate": decided >= _DECIDED and rate >= _REJECTED,
        "no_proposals": proposed == 0 and provisional == 0,
        "answers_refused": refused > max(1, proposed),
    }
    details = {
        "ran": True,
        "proposed": proposed,
        "committed": committed,
        "rejected": rejected,
        "provisional": provisional,
        "refused": refused,
        "rejection_rate": rate if decided else None,
    }
    return _status(noticed, details, grave=() if proposed else ("answers_refused",))


def check_gap_calculator(both: Sequence[DualModeResult], *, asked: int) -> ComponentHealthStatus:
    """Return whether a gap could be told. Flags: ``nothing_in_common`` (no item has both scores), ``few_items`` (below 30)."""
    noticed = {"nothing_in_common": asked > 0 and not both, "few_items": 0 < len(both) < 30}
    details = {"items": len(both), "gap_range": _range([result.gap for result in both])}
    return _status(noticed, details, grave=("nothing_in_common",))


Key = TypeVar("Key", str, int)

BIN_WIDTH: Final = 0.5
_BINS: Final = 8
_UNIT: Final = 1 << 52
"""A score from 1 to 5 is a multiple of 2**-52 or more, so that this makes it a whole number without rounding."""


@dataclass(slots=True)
class CheapTally:
    """Counts and exact sums. ``bins`` count scores by halves from 1 (the last of the 8 with 5); ``fired`` is by position.

    ``held`` counts what fired, good phrase or not, on items on which a scorecard's good phrases did not count.
    """

    items: int = 0
    scored: int = 0
    total: int = 0
    squares: int = 0
    lowest: float = 5.0
    highest: float = 1.0
    with_pattern: int = 0
    bins: list[int] = field(default_factory=lambda: [0] * _BINS)
    reasons: Counter[str] = field(default_factory=Counter[str])
    fired: Counter[int] = field(default_factory=Counter[int])
    held: Counter[int] = field(default_factory=Counter[int])
    unscored: Counter[str] = field(default_factory=Counter[str])

    def add_all(self, readings: Sequence[CheapReading | Unscored]) -> None:
        """Count items."""
        scored = [reading for reading in readings if not isinstance(reading, Unscored)]
        self.items += len(readings)
        self.scored += len(scored)
        self.unscored.update(reading.kind for reading in readings if isinstance(reading, Unscored))
        if not scored:
            return
        scores = [reading.gestalt for reading in scored]
        wholes = [int(score * _UNIT) for score in scores]
        self.total += sum(wholes)
        self.squares += sum([whole * whole for whole in wholes])
        self.lowest = min(self.lowest, *scores)
        self.highest = max(self.highest, *scores)
        for score in scores:
            self.bins[min(_BINS - 1, int((score - 1.0) / BIN_WIDTH))] += 1
        self.reasons.update(itertools.chain.from_iterable(reading.reasons for reading in scored))
        self.with_pattern += sum(1 for reading in scored if reading.fired)
        self.fired.update(itertools.chain.from_iterable(reading.fired for reading in scored))
        self.held.update(itertools.chain.from_iterable(reading.fired for reading in scored if reading.withheld))

    def merge(self, other: CheapTally) -> None:
        """Add what another one counted."""
        self.items += other.items
        self.scored += other.scored
        self.total += other.total
        self.squares += other.squares
        self.lowest = min(self.lowest, other.lowest)
        self.highest = max(self.highest, other.highest)
        self.with_pattern += other.with_pattern
        self.bins = [mine + theirs for mine, theirs in zip(self.bins, other.bins, strict=True)]
        self.reasons.update(other.reasons)
        self.fired.update(other.fired)
        self.held.update(other.held)
        self.unscored.update(other.unscored)

    @property
    def mean(self) -> float | None:
        """The mean score, correctly rounded; None when nothing was scored."""
        return float(Fraction(self.total, self.scored * _UNIT)) if self.scored else None

    @property
    def variance(self) -> float:
        """The variance of a sample; 0.0 below two scores."""
        if self.scored < 2:
            return 0.0
        return float(Fraction(self.squares * self.scored - self.total**2, self.scored * (self.scored - 1) * _UNIT**2))

    def most_frequent(self, counts: Counter[Key]) -> list[tuple[Key, int]]:
        """Return counts, largest first; equal ones by name, so that the order never depends on who counted first."""
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    def health(self, patterns: int, *, scorecard: bool = False) -> ComponentHealthStatus:
        """Return the health of the cheap judge; of ``patterns`` that could have fired, in a ``scorecard`` the only reasons."""
        return cheap_health(
            count=self.scored,
            score_range=(self.lowest, self.highest) if self.scored else None,
            variance=self.variance,
            any_reason=self.with_pattern > 0 or (not scorecard and bool(self.reasons)),
            any_pattern=self.with_pattern > 0,
            patterns=patterns,
        )
