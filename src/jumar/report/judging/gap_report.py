"""The gap report: everything about one dual evaluation, as markdown for people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from jumar.judging.dual import DualEvaluation
from jumar.judging.models import Unscored
from jumar.judging.tracking.intervals import Interval
from jumar.judging.tracking.track import Tracking
from jumar.report.judging.dashboard import DualView, decision
from jumar.report.judging.numbers import number, shortened, signed
from jumar.report.mdtext import inline, row
from jumar.text import plural

__all__ = ["render_gap_report"]

_MOST_ROWS = 50
_VERDICTS = {
    "tracks": "**The cheap judge tracks the expensive one** on these items.",
    "does_not_track": "**The cheap judge does not track the expensive one**: a check below failed beyond its interval.",
    "not_proven": "**That the cheap judge tracks is not proven**: on so many items the checks below stay open.",
}
_MARKS: dict[bool | None, str] = {True: "held", False: "failed", None: "open"}


def render_gap_report(view: DualView, dual: DualEvaluation) -> str:
    """Return the report: both verdicts first, then what they rest on, the items that are far apart, and what was not scored."""
    parts = (
        [f"# Iteration {view.iteration}: the gap between two judges", ""],
        _verdicts(view),
        _averages(view),
        _tracking(view.tracking),
        _large(view),
        _unscored(dual),
        _health(dual),
    )
    return "\n".join(chain.from_iterable(parts)).rstrip("\n") + "\n"


def _verdicts(view: DualView) -> list[str]:
    tracking = "Nothing was scored by both judges." if view.tracking is None else _VERDICTS[view.tracking.verdict]
    met = {True: "is met", False: "is missed", None: "is not known"}[view.summary.quality_met]
    quality = f"The cheap average of {number(view.summary.cheap_avg)} against 4.0 {met}."
    return [tracking, "", quality, "", f"{decision(view)}.", ""]


def _averages(view: DualView) -> list[str]:
    summary = view.summary
    cost = "unknown" if view.cost_usd is None else f"${view.cost_usd:.4f}"
    rows = [
        ("items", f"{view.items:,}"),
        ("scored by both", f"{summary.scored:,}"),
        ("expensive average", number(summary.expensive_avg)),
        ("cheap average", number(summary.cheap_avg)),
        ("mean absolute gap", f"{number(summary.abs_gap_mean)} (target: at most 0.5)"),
        ("signed gap", f"{signed(summary.gap)} (positive: the cheap judge is too strict)"),
        ("items with a pattern that fired", "no patterns" if view.match is None else f"{view.match:.0%}"),
        ("cost of the expensive judge", cost),
    ]
    return [
        *_table(("", ""), rows),
        "A signed gap of zero proves nothing: items too high and items too low cancel out in it.",
        "",
    ]


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
    checks = [(_MARKS[one.held], one.says, f"{number(one.value)}{_interval(one.interval)}") for one in tracking.checks]
    return lines + _table(("", "check", "figure (95 %)"), checks)


def _large(view: DualView) -> list[str]:
    large = view.summary.large
    if not large:
        return ["## Items far apart", "", "No item has a gap over 0.5.", ""]
    rows = [
        (
            inline(one.story_id),
            number(one.expensive),
            number(one.cheap),
            signed(one.gap),
            inline(shortened(one.issue, 240)),
            inline(one.action),
        )
        for one in large[:_MOST_ROWS]
    ]
    lines = ["## Items far apart", "", f"{plural(len(large), 'item')} of {view.summary.scored:,} with a gap over 0.5.", ""]
    lines += _table(("item", "expensive", "cheap", "gap", "issue", "action"), rows)
    more = len(large) - _MOST_ROWS
    return [*lines, f"{plural(more, 'further item')}: `gap_analysis.json`.", ""] if more > 0 else lines


def _unscored(dual: DualEvaluation) -> list[str]:
    found = [
        (mode, one)
        for mode, results in (("expensive", dual.expensive.results), ("cheap", dual.cheap))
        for one in results
        if isinstance(one, Unscored)
    ]
    if not found:
        return []
    rows = [(inline(one.story_id), mode, one.kind, inline(one.message)) for mode, one in found[:_MOST_ROWS]]
    return ["## Not scored", "", plural(len(found), "result") + ".", "", *_table(("item", "mode", "kind", "why"), rows)]


def _health(dual: DualEvaluation) -> list[str]:
    rows = [
        (name.replace("_", " "), "healthy" if one.healthy else "**not healthy**", ", ".join(one.flags) or "—")
        for name, one in dual.health.items()
    ]
    return ["## Health", "", *_table(("component", "", "flags"), rows)]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [row(heads), row("---" for _ in heads), *(row(cells) for cells in rows), ""]


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f" ({number(interval.low)} to {number(interval.high)})"
