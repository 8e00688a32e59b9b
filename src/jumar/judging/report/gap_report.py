"""The gap report: everything about one dual evaluation, as markdown for people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from jumar.core.rendering.markdown import inline, row
from jumar.core.text import number, plural, shortened, signed
from jumar.judging.models import ComponentHealthStatus, Unscored
from jumar.judging.report.dashboard import DualView, decision

if TYPE_CHECKING:
    from jumar.judging.dual import DualEvaluation
    from jumar.judging.tracking.intervals import Interval
    from jumar.judging.tracking.track import Tracking

_MOST_ROWS = 50
_VERDICTS = {
    "tracks": "**The cheap judge tracks the expensive one** on these items.",
    "does_not_track": "**The cheap judge does not track the expensive one**: a check below failed beyond its interval.",
    "not_proven": "**That the cheap judge tracks is not proven**: too few items or groups, or checks below stay open.",
}
_FLAGS = {
    "all_same_score": "the judge gave one and the same score to everything; nothing can be proven against it.",
    "high_variance": "two readings of one item differ by more than half a point on average: more than the gap may be.",
    "judge_failures": "some items came back without a verdict.",
    "few_items": "fewer than 30 items: nothing is proven, whatever the figures.",
    "all_provisional": "no pattern takes part in a score yet; right after a migration that is as it should be.",
    "cannot_fire": "patterns without phrase, expression or keyword.",
    "zero_patterns_matched": "no item has a reason, or no pattern fired on any.",
}
_MARKS: dict[bool | None, str] = {True: "held", False: "failed", None: "open"}


def render_gap_report(view: DualView, dual: DualEvaluation) -> str:
    """Return the report: both verdicts first, then what they rest on, the items that are far apart, and what was not scored."""
    parts = (
        [f"# Iteration {view.iteration}: the gap between two judges", ""],
        _verdicts(view),
        _about(view),
        _averages(view),
        _tracking(view.tracking),
        _large(view, dual),
        _unscored(dual),
        _health(dual),
    )
    return "\n".join(chain.from_iterable(parts)).rstrip("\n") + "\n"


def _verdicts(view: DualView) -> list[str]:
    tracking = "Nothing was scored by both judges." if view.tracking is None else _VERDICTS[view.tracking.verdict]
    met = {True: "is met", False: "is missed", None: "is not known"}[view.summary.quality_met]
    quality = f"The cheap average of {number(view.summary.cheap_avg)} against 4.0 {met}."
    return [tracking, "", quality, "", f"{decision(view)}.", ""]


def _about(view: DualView) -> list[str]:
    """Say where the figures come from: a report is found in a folder a month later."""
    if not view.about:
        return []
    return ["## What was judged, and by whom", "", *_table(("", ""), [(name, inline(value)) for name, value in view.about])]


def _averages(view: DualView) -> list[str]:
    summary = view.summary
    cost = "unknown" if view.cost_usd is None else f"${view.cost_usd:.4f}"
    rows = [
        ("items", f"{view.items:,}"),
        ("scored by both", f"{summary.scored:,}"),
        ("expensive average", number(summary.expensive_avg)),
        ("cheap average", number(summary.cheap_avg)),
        ("mean absolute gap", f"{number(summary.abs_gap_mean)} (target: at most 0.5){_since(view)}"),
        ("signed gap", f"{signed(summary.gap)} (positive: the cheap judge is too strict)"),
        ("items with a pattern that fired", "no patterns" if view.match is None else f"{view.match:.0%}"),
        ("cost of the expensive judge", f"{cost} ({plural(view.calls, 'call')}, {view.cached:,} from the cache)"),
    ]
    return [
        *_table(("", ""), rows),
        "A signed gap of zero proves nothing: items too high and items too low cancel out in it.",
        "",
    ]


def _since(view: DualView) -> str:
    if view.previous is None or view.summary.abs_gap_mean is None:
        return ""
    return f", {signed(view.summary.abs_gap_mean - view.previous)} since the last iteration"


def _tracking(tracking: Tracking | None) -> list[str]:
    if tracking is None:
        return []
    names = {
        "mae": "mean absolute error",
        "bias": "bias (cheap − expensive)",
        "off_by_more_than_half": "share off by more than half a point",
        "spearman": "Spearman",
        "kendall": "Kendall",
        "quadratic_kappa": "quadratic kappa",
    }
    own, baselines = tracking.agreement.to_json(), {name: one.to_json() for name, one in tracking.baselines.items()}
    rows = [
        (
            label,
            f"{number(own[name])}{_interval(tracking.intervals.get(name))}",
            number(baselines["constant"][name]),
            number(baselines["length_only"][name]),
        )
        for name, label in names.items()
    ]
    lines = ["## Tracking", "", f"{plural(tracking.items, 'item')} in {plural(tracking.groups, 'group')}.", ""]
    lines += _table(("", "cheap judge (95 %)", "a constant", "length alone"), rows)
    if tracking.noise is not None:
        distance, items = number(tracking.noise.mean_abs_difference), plural(tracking.noise.items, "item")
        lines += [f"Asked again, the expensive judge is {distance} from itself ({items} with several readings).", ""]
    checks = [(_MARKS[check.held], check.says, f"{number(check.value)}{_interval(check.interval)}") for check in tracking.checks]
    return lines + _table(("", "check", "figure (95 %)"), checks)


def _large(view: DualView, dual: DualEvaluation) -> list[str]:
    large = view.summary.large
    if not large:
        return ["## Items far apart", "", "No item has a gap over 0.5.", ""]
    texts = {item.id: shortened(" ".join(item.text.split()), 120) for item in dual.items}
    rows = [
        (
            inline(one.story_id),
            inline(texts[one.story_id]),
            number(one.expensive),
            number(one.cheap),
            signed(one.gap),
            inline(shortened(one.issue, 240)),
            inline(one.action),
        )
        for one in large[:_MOST_ROWS]
    ]
    lines = ["## Items far apart", "", f"{plural(len(large), 'item')} of {view.summary.scored:,} with a gap over 0.5.", ""]
    lines += _table(("item", "text", "expensive", "cheap", "gap", "issue", "action"), rows)
    more = len(large) - _MOST_ROWS
    return [*lines, f"{plural(more, 'further item')}: `gap_analysis.json`.", ""] if more > 0 else lines


def _unscored(dual: DualEvaluation) -> list[str]:
    found = [
        (mode, result)
        for mode, results in (("expensive", dual.expensive.results), ("cheap", dual.cheap))
        for result in results
        if isinstance(result, Unscored)
    ]
    if not found:
        return []
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for mode, one in found:
        reasons.setdefault((mode, one.kind, one.message.replace(one.story_id, "…")), []).append(one.story_id)
    rows = [
        (
            f"{len(ids):,}",
            mode,
            kind,
            inline(shortened(message, 240)),
            inline(", ".join(ids[:3]) + (" …" if len(ids) > 3 else "")),
        )
        for (mode, kind, message), ids in reasons.items()
    ]
    return ["## Not scored", "", *_table(("items", "mode", "kind", "why", "which"), rows[:_MOST_ROWS])]


def _health(dual: DualEvaluation) -> list[str]:
    rows = [(name.replace("_", " "), _state(one), ", ".join(one.flags) or "—") for name, one in dual.health.items()]
    said = [f"- `{flag}`: {_FLAGS[flag]}" for one in dual.health.values() for flag in one.flags if flag in _FLAGS]
    return ["## Health", "", *_table(("component", "", "flags"), rows), *said]


def _state(one: ComponentHealthStatus) -> str:
    if one.details.get("ran") is False:
        return "did not run"
    return "healthy" if one.healthy else "**not healthy**"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [row(heads), row("---" for _ in heads), *(row(cells) for cells in rows), ""]


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f" ({number(interval.low)} to {number(interval.high)})"
