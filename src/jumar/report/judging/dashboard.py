"""The dashboard of one dual-mode iteration, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jumar.judging.gap import GAP_TARGET, QUALITY_TARGET, GapSummary, LargeGap
from jumar.report.judging.numbers import number, shortened, signed
from jumar.text import escape, plural

if TYPE_CHECKING:
    from jumar.judging.tracking.track import Tracking

__all__ = ["DualView", "decision", "render_dashboard"]

_MOST_GAPS = 10
_WIDTH = 80
_TICK: dict[bool | None, str] = {True: "✓", False: "✗", None: "(not known)"}
_MARK: dict[bool | None, str] = {True: "✓", False: "✗", None: "?"}


@dataclass(frozen=True, slots=True)
class DualView:
    """What there is to show of one iteration.

    ``tracking`` is None when no item was scored by both judges. ``previous`` is the mean absolute gap of the iteration before.
    ``match`` is the share of items on which at least one pattern fired, None without patterns. ``unscored`` counts by mode.
    ``flags`` are those of the expensive judge's health, ``calls`` what was asked of it and ``cached`` what its cache answered;
    ``stopped`` says why not all items were asked about. ``about`` is what the report tells of where the figures come from.
    """

    iteration: int
    items: int
    summary: GapSummary
    tracking: Tracking | None
    match: float | None
    unscored: Mapping[str, int]
    cost_usd: float | None
    previous: float | None = None
    flags: tuple[str, ...] = ()
    calls: int = 0
    cached: int = 0
    stopped: str | None = None
    stories: bool = True
    about: tuple[tuple[str, str], ...] = ()


def render_dashboard(view: DualView) -> str:
    """Return the dashboard: averages, gap, the items that are far apart, whether the cheap judge tracks, and a decision."""
    summary = view.summary
    lines = [f"=== Iteration {view.iteration} Results ===", "", "EXPENSIVE MODE:"]
    lines += [f"  Gestalt avg: {number(summary.expensive_avg)}"]
    cost = "unknown" if view.cost_usd is None else f"${view.cost_usd:.4f}"
    lines += [f"  Cost: {cost} · {plural(view.calls, 'call')}, {view.cached:,} from the cache"]
    lines += _wrapped("  Stopped: ", view.stopped) if view.stopped else []
    lines += [f"  Health: {', '.join(view.flags)}"] if view.flags else []
    lines += [
        "",
        "CHEAP MODE:",
        f"  Gestalt avg: {number(summary.cheap_avg)} (target: >= {QUALITY_TARGET}) {_TICK[summary.quality_met]}",
    ]
    lines += [f"  Pattern match: {'no patterns' if view.match is None else f'{view.match:.0%}'}"]
    lines += [
        "",
        "GAP ANALYSIS:",
        f"  Scored by both: {summary.scored} of {plural(view.items, 'item')}{_unscored(view.unscored)}",
    ]
    lines += [f"  Gap: {number(summary.abs_gap_mean)} (target: <= {GAP_TARGET}) {_TICK[summary.gap_met]}"]
    lines += [f"  Signed gap: {signed(summary.gap)} (positive: cheap mode is too strict)"]
    lines += _large(summary.large, "Stories" if view.stories else "Items") + _tracking(view.tracking)
    return "\n".join([*lines, "", *_wrapped("DECISION: ", decision(view)), ""])


def _wrapped(label: str, text: str) -> list[str]:
    """Return ``text`` after its label in lines that fit a terminal, further ones below the first."""
    return textwrap.wrap(escape(text), _WIDTH, initial_indent=label, subsequent_indent=" " * len(label))


def _large(large: tuple[LargeGap, ...], noun: str) -> list[str]:
    if not large:
        return ["", f"  No item has a gap over {GAP_TARGET}"]
    lines = ["", f"  {noun} with large gap (> {GAP_TARGET}):"]
    for one in large[:_MOST_GAPS]:
        lines += [
            f"    - {escape(one.story_id)}: exp={one.expensive:.2f}, cheap={one.cheap:.2f} (gap={one.gap:+.2f})",
            *_wrapped("      Issue: ", shortened(one.issue)),
            *_wrapped("      Action: ", one.action),
        ]
    more = len(large) - _MOST_GAPS
    return [*lines, f"    … and {more} more in gap_analysis.json"] if more > 0 else lines


def _tracking(tracking: Tracking | None) -> list[str]:
    if tracking is None:
        return []
    figures, constant, length = tracking.agreement, tracking.baselines["constant"], tracking.baselines["length_only"]
    rows: list[tuple[str, Any, Any, Any]] = [
        ("mean absolute error", figures.mae, constant.mae, length.mae),
        ("off by more than half", figures.off_by_more_than_half, constant.off_by_more_than_half, length.off_by_more_than_half),
        ("Spearman", figures.spearman, constant.spearman, length.spearman),
        ("Kendall", figures.kendall, constant.kendall, length.kendall),
        ("quadratic kappa", figures.quadratic_kappa, constant.quadratic_kappa, length.quadratic_kappa),
    ]
    lines = ["", "TRACKING:", f"  {'':<22}{'cheap':>8}{'constant':>10}{'length':>8}"]
    lines += [f"  {name:<22}{number(own):>8}{number(one):>10}{number(other):>8}" for name, own, one, other in rows]
    if tracking.noise is not None:
        lines += [f"  The expensive judge is {number(tracking.noise.mean_abs_difference)} from itself when it is asked again"]
    lines += [f"  {_MARK[one.held]} {one.says}" for one in tracking.checks]
    return [*lines, f"  Verdict: {tracking.verdict.replace('_', ' ')}"]


def decision(view: DualView) -> str:
    """Return what to do next, in a sentence."""
    summary, tracking = view.summary, view.tracking
    if summary.abs_gap_mean is None or tracking is None:
        return "No item was scored by both judges: there is nothing to decide from"
    if "all_same_score" in view.flags:
        return "The expensive judge says the same of everything: nothing can be learned from it. Mend its rubric"
    if "high_variance" in view.flags and tracking.verdict != "tracks":
        return "The expensive judge differs from itself by more than the gap may be: first ask it more often, or mend its rubric"
    if tracking.verdict == "tracks" and summary.quality_met:
        return "The cheap judge tracks the expensive one and its average is met; stable when the next iteration says so too"
    if tracking.verdict == "tracks":
        return "The cheap judge tracks the expensive one; the items are not good enough yet"
    if view.previous is not None and summary.abs_gap_mean < view.previous:
        return "Gap improving, continuing optimization"
    if view.previous is not None and summary.abs_gap_mean > view.previous:
        return "Gap growing: look at what changed since the last iteration"
    if summary.gap_met:
        return "The mean gap is small, but that the cheap judge tracks is not proven: look at the checks"
    return "Gap over its target: look at the items that are far apart, and learn patterns from them"


def _unscored(unscored: Mapping[str, int]) -> str:
    told = [f"{count} unscored in {mode} mode" for mode, count in unscored.items() if count]
    return f" ({', '.join(told)})" if told else ""
