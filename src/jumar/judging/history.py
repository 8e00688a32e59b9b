"""What the history of iterations says: diverging, regressed, stable, converged. Pure; the same records, the same answers.

A history is a sequence of :class:`jumar.judging.IterationMetrics` or of mappings with their fields, oldest first. Every gate is
on
the *absolute* gap: ``abs_gap``, the mean over items, where the record has it, else the distance of the averages. Comparisons are
plain ones of floats. Source: the second half of the design of dual-mode evaluation, with the corrections that are said below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jumar.judging.models import IterationMetrics

Record = IterationMetrics | Mapping[str, Any]

GAP_TARGET: Final = 0.5
CHEAP_TARGET: Final = 4.0
PLATEAU: Final = 0.05
EXPLOSION: Final = 1.5
STABLE_BELOW: Final = 10
FEWEST_ITERATIONS: Final = 2


def _get(record: Record, name: str) -> Any:
    """Return a field, None where the record does not have it."""
    return record.get(name) if isinstance(record, Mapping) else getattr(record, name, None)


def _gap(record: Record) -> float:
    known = _get(record, "abs_gap")
    return float(known) if known is not None else abs(float(_get(record, "gap")))


def detect_divergence(history: Sequence[Record]) -> dict[str, Any]:
    """Return ``{"diverging": …}``, and ``reason``, ``diagnosis``, ``action`` where there is one, from the last three iterations.

    ``insufficient_data`` below three. Diverging are: a gap that grew twice (``gap_increasing``), half as many patterns again as
    before (``pattern_explosion``), and a gap that stays within 0.05 *above* its target (``gap_plateau``). One that stays within
    its target is where it should be: ``good_plateau``.
    """
    if len(history) < 3:
        return {"diverging": False, "reason": "insufficient_data"}
    first, second, third = (_gap(metrics) for metrics in history[-3:])
    if first < second < third:
        start = _get(history[-3], "iteration")
        return {
            "diverging": True,
            "reason": "gap_increasing",
            "diagnosis": analyze_gap_increase(history),
            "action": f"rollback_to_iteration_{'N' if start is None else start}",
        }
    if _exploded(history[-2], history[-1]):
        return {
            "diverging": True,
            "reason": "pattern_explosion",
            "diagnosis": "pattern_explosion: too many conflicting patterns",
            "action": "deduplicate_patterns",
        }
    if max(first, second, third) - min(first, second, third) < PLATEAU:
        if max(first, second, third) <= GAP_TARGET:
            return {"diverging": False, "reason": "good_plateau"}
        return {
            "diverging": True,
            "reason": "gap_plateau",
            "diagnosis": "patterns not capturing new signals",
            "action": "increase_pattern_proposal_temperature",
        }
    return {"diverging": False}


def _exploded(previous: Record, latest: Record) -> bool:
    before, now = _get(previous, "pattern_count"), _get(latest, "pattern_count")
    return before is not None and now is not None and before > 0 and now > before * EXPLOSION


def analyze_gap_increase(history: Sequence[Record]) -> str:
    """Return why the gap grew from the last iteration but one to the last: a key, a colon, and words. At least two iterations."""
    previous, latest = history[-2:]
    if _get(latest, "cheap_avg") < _get(previous, "cheap_avg"):
        return "cheap_mode_degraded: new patterns hurt scoring"
    if _get(latest, "expensive_avg") > _get(previous, "expensive_avg"):
        return "expensive_mode_shifted: LLM calibration changed"
    if _exploded(previous, latest):
        return "pattern_explosion: too many conflicting patterns"
    return "unknown: review iteration logs"


def is_stable(history: Sequence[Record]) -> bool:
    """Return whether the last two iterations had the same items, both targets met, and fewer than ten patterns of difference.

    Records without ``story_ids`` are not of the same items.
    """
    if len(history) < 2:
        return False
    last_two = history[-2:]
    return _same_items(last_two) and _cheap_met(last_two) and _gap_met(last_two) and _patterns_stable(last_two)


def check_convergence(history: Sequence[Record], min_iterations: int = FEWEST_ITERATIONS) -> dict[str, Any]:
    """Return ``{"converged", "checks", "proof"}``, or ``reason: insufficient_iterations`` below ``min_iterations``, 2 at least.

    To the checks of the design two are added: ``same_items``, and ``tracking``, true only when both iterations are known to
    track.
    Their averages may agree while their items do not.
    """
    if len(history) < max(FEWEST_ITERATIONS, min_iterations):
        return {"converged": False, "reason": "insufficient_iterations"}
    last_two = history[-2:]
    checks = {
        "cheap_threshold": _cheap_met(last_two),
        "gap_threshold": _gap_met(last_two),
        "no_divergence": not detect_divergence(history)["diverging"],
        "patterns_stable": _patterns_stable(last_two),
        "no_regressions": not any(_get(one, "regression_detected") for one in last_two),
        "same_items": _same_items(last_two),
        "tracking": all(_get(one, "tracks") is True for one in last_two),
    }
    return {
        "converged": all(checks.values()),
        "checks": checks,
        "proof": {
            "iterations_checked": [_get(one, "iteration") for one in last_two],
            "cheap_scores": [_get(one, "cheap_avg") for one in last_two],
            "gaps": [_get(one, "gap") for one in last_two],
        },
    }


def _same_items(last_two: Sequence[Record]) -> bool:
    one, other = (_get(record, "story_ids") for record in last_two)
    return bool(one) and bool(other) and list(one) == list(other)


def _cheap_met(last_two: Sequence[Record]) -> bool:
    return all(_get(one, "cheap_avg") >= CHEAP_TARGET for one in last_two)


def _gap_met(last_two: Sequence[Record]) -> bool:
    return all(_gap(one) <= GAP_TARGET for one in last_two)


def _patterns_stable(last_two: Sequence[Record]) -> bool:
    one, other = (_get(record, "pattern_count") for record in last_two)
    return abs(one - other) < STABLE_BELOW


def check_for_regression(
    current_results: Mapping[str, Any], previous_results: Mapping[str, Any], patterns_changed: Any = None
) -> dict[str, Any]:
    """Return whether a change of patterns made things worse: ``{"regression", "type", "delta", "action", "pattern_changed"}``.

    The results are those of :func:`jumar.judging.evaluate_dual`: ``gap`` (and ``abs_gap_mean``, which counts where both have it),
    ``cheap.gestalt_avg``, and ``tracking.spearman`` where both have one. The conditions, the first that holds: the absolute gap
    grew by
    more than 0.2, the cheap average fell by more than 0.3, the rank correlation fell. Whether that is more than noise is not
    asked here.
    """
    gaps = [_result_gap(one, both=(current_results, previous_results)) for one in (current_results, previous_results)]
    cheaps = [float(one["cheap"]["gestalt_avg"]) for one in (current_results, previous_results)]
    now, before = _spearman(current_results), _spearman(previous_results)
    found: tuple[str, float] | None = None
    if gaps[0] > gaps[1] + 0.2:
        found = ("gap_increased", gaps[0] - gaps[1])
    elif cheaps[0] < cheaps[1] - 0.3:
        found = ("cheap_score_dropped", cheaps[0] - cheaps[1])
    elif now is not None and before is not None and now < before:
        found = ("correlation_decreased", now - before)
    if found is None:
        return {"regression": False}
    return {
        "regression": True,
        "type": found[0],
        "delta": found[1],
        "action": "revert_pattern_change",
        "pattern_changed": patterns_changed,
    }


def _spearman(result: Mapping[str, Any]) -> float | None:
    tracking: Mapping[str, Any] = result.get("tracking") or {}
    return tracking.get("spearman")


def _result_gap(result: Mapping[str, Any], *, both: Sequence[Mapping[str, Any]]) -> float:
    if all(one.get("abs_gap_mean") is not None for one in both):
        return float(result["abs_gap_mean"])
    return abs(float(result["gap"]))
