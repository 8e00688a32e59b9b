"""The health of both judges and of every other component of a dual evaluation, by the names and flags of the first design."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from jumar.judging.asking.settings import MAX_UNSCORED
from jumar.judging.asking.summary import NOT_THE_JUDGES, Result, judge_noise
from jumar.judging.models import CheapModeResult, ComponentHealthStatus, DualModeResult, ExpensiveModeResult, Unscored
from jumar.judging.patterns.models import PatternSet


def check_expensive_evaluator(results: Sequence[Result]) -> ComponentHealthStatus:
    """Return the health of the judge behind ``results``.

    Flags: ``judge_failures`` (an item it was asked about has no verdict), ``scores_out_of_range``, ``nothing_scored``,
    ``all_same_score`` (at least two verdicts and no variance: a saturated judge, whose ranks mean nothing), ``high_variance``
    (its own readings of one item differ by more than half a point on average: nothing can be shown against such a judge). It is
    healthy without ``nothing_scored``, ``all_same_score`` and ``high_variance``, and with at most a fifth of failures.
    ``details``: ``scored``, ``unscored`` by kind, ``score_range`` and ``variance`` (None without scores; variance with n − 1, 0
    for one), ``noise``. No results are healthy: nothing was asked.
    """
    scored = [result for result in results if isinstance(result, ExpensiveModeResult)]
    kinds = Counter(result.kind for result in results if isinstance(result, Unscored))
    scores = [one.gestalt for one in scored]
    noise = judge_noise([one.readings for one in scored])
    failures = sum(count for kind, count in kinds.items() if kind not in NOT_THE_JUDGES)
    grave = {
        "nothing_scored": bool(results) and not scores,
        "all_same_score": len(scores) > 1 and len(set(scores)) == 1,
        "high_variance": noise is not None and noise.high_variance,
    }
    flags = {
        "judge_failures": failures > 0,
        "scores_out_of_range": kinds["out_of_range"] > 0,
        **grave,
    }
    return ComponentHealthStatus(
        healthy=not any(grave.values()) and failures <= MAX_UNSCORED * (failures + len(scores)),
        flags=[name for name, raised in flags.items() if raised],
        details={
            "scored": len(scores),
            "unscored": dict(kinds),
            "score_range": [min(scores), max(scores)] if scores else None,
            "variance": (statistics.variance(scores) if len(scores) > 1 else 0.0) if scores else None,
            "noise": None if noise is None else noise.to_json(),
        },
    )


def check_cheap_evaluator(results: Iterable[CheapModeResult | Unscored], *, patterns: int = 0) -> ComponentHealthStatus:
    """Return the health of the cheap judge; ``patterns`` is how many could have fired. Items without a score are left out.

    See :func:`cheap_health` for the flags and the details.
    """
    scored = [result for result in results if isinstance(result, CheapModeResult)]
    scores = [one.gestalt for one in scored]
    return cheap_health(
        count=len(scores),
        score_range=(min(scores), max(scores)) if scores else None,
        variance=statistics.variance(scores) if len(scores) > 1 else 0.0,
        any_reason=any(one.reasons for one in scored),
        any_pattern=any(one.patterns_matched for one in scored),
        patterns=patterns,
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
    ``zero_patterns_matched`` (no item has a reason, or there were patterns and none fired on any item). Healthy means no flag.
    Details: ``score_range``, ``[lowest, highest]`` or None, and ``variance``.
    """
    lowest, highest = score_range or (1.0, 5.0)
    noticed = {
        "no_scores": count == 0,
        "all_same_score": count > 1 and lowest == highest,
        "scores_out_of_range": lowest < 1.0 or highest > 5.0,
        "zero_patterns_matched": count > 0 and (not any_reason or (patterns > 0 and not any_pattern)),
    }
    flags = [flag for flag, is_so in noticed.items() if is_so]
    details = {"score_range": None if score_range is None else [lowest, highest], "variance": variance}
    return ComponentHealthStatus(healthy=not flags, flags=flags, details=details)


COMPONENTS = ("pattern_migration", "cheap_evaluator", "expensive_evaluator", "gap_calculator", "pattern_learner")

_DECIDED = 5
_REJECTED = 0.4  # three committed and two rejected is what the first design flags


def check_components(
    expensive: Sequence[Result],
    cheap: Sequence[CheapModeResult | Unscored],
    both: Sequence[DualModeResult],
    patterns: PatternSet | None,
) -> dict[str, ComponentHealthStatus]:
    """Return the health of all five; the learner did not run here and says so in its details."""
    live = 0 if patterns is None else sum(pattern.status in {"active", "provisional"} for pattern in patterns.patterns)
    return every_component(
        pattern_migration=check_patterns(patterns),
        cheap_evaluator=check_cheap_evaluator(cheap, patterns=live),
        expensive_evaluator=check_expensive_evaluator(expensive),
        gap_calculator=check_gap_calculator(both, asked=len(cheap)),
    )


def every_component(**known: ComponentHealthStatus) -> dict[str, ComponentHealthStatus]:
    """Return the health of all five in their order; one that is not given did not run, which is no illness."""
    return {name: known.get(name) or ComponentHealthStatus(healthy=True, details={"ran": False}) for name in COMPONENTS}


def check_patterns(patterns: PatternSet | None) -> ComponentHealthStatus:
    """Return whether the patterns are of use.

    Flags: ``no_patterns`` (a file that has none; healthy when no file was asked for), ``cannot_fire`` (patterns without phrase,
    expression or
    keyword), ``all_provisional`` (none takes part in a score: right after a migration that is as it should be, so it is no
    illness).
    """
    if patterns is None:
        return ComponentHealthStatus(healthy=True, details={"patterns": 0})
    count = {
        status: sum(pattern.status == status for pattern in patterns.patterns)
        for status in ("active", "provisional", "rejected", "pruned")
    }
    mute = [pattern.id for pattern in patterns.patterns if not (pattern.phrases or pattern.regex or pattern.keywords)]
    noticed = {
        "no_patterns": not patterns.patterns,
        "cannot_fire": bool(mute),
        "all_provisional": bool(patterns.patterns) and count["provisional"] == len(patterns.patterns),
    }
    flags = [flag for flag, is_so in noticed.items() if is_so]
    return ComponentHealthStatus(
        healthy=not (noticed["no_patterns"] or noticed["cannot_fire"]),
        flags=flags,
        details={"patterns": len(patterns.patterns), **count, "cannot_fire": mute[:20]},
    )


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
    return ComponentHealthStatus(
        healthy=not (noticed["answers_refused"] and proposed == 0),
        flags=[flag for flag, is_so in noticed.items() if is_so],
        details={
            "ran": True,
            "proposed": proposed,
            "committed": committed,
            "rejected": rejected,
            "provisional": provisional,
            "refused": refused,
            "rejection_rate": rate if decided else None,
        },
    )


def check_gap_calculator(both: Sequence[DualModeResult], *, asked: int) -> ComponentHealthStatus:
    """Return whether a gap could be told. Flags: ``nothing_in_common`` (no item has both scores), ``few_items`` (below 30)."""
    noticed = {"nothing_in_common": asked > 0 and not both, "few_items": 0 < len(both) < 30}
    gaps = [one.gap for one in both]
    return ComponentHealthStatus(
        healthy=not noticed["nothing_in_common"],
        flags=[flag for flag, is_so in noticed.items() if is_so],
        details={"items": len(both), "gap_range": [min(gaps), max(gaps)] if gaps else None},
    )
