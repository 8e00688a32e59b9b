"""Whether the components of an evaluation work, as far as their results tell. Flags are those of the first design."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from jumar.judging.models import CheapModeResult, ComponentHealthStatus, Unscored

__all__ = ["cheap_health", "check_cheap_evaluator"]


def check_cheap_evaluator(results: Iterable[CheapModeResult | Unscored], *, patterns: int = 0) -> ComponentHealthStatus:
    """Return the health of the cheap judge; ``patterns`` is how many could have fired. Items without a score are left out.

    See :func:`cheap_health` for the flags and the details.
    """
    scored = [one for one in results if isinstance(one, CheapModeResult)]
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
