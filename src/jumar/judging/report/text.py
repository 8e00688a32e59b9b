"""Evaluations for people: the dashboard of one iteration as text, and the gap report as markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from jumar.core.rendering.html import inline, row
from jumar.core.text import escape, number, plural, short_dollars, shortened, signed, wrapped
from jumar.judging.dual import DualEvaluation
from jumar.judging.gap import GAP_TARGET, QUALITY_TARGET, GapSummary, LargeGap
from jumar.judging.models import ComponentHealthStatus, Unscored

if TYPE_CHECKING:  # numpy, which the expensive judge does without
    from jumar.judging.tracking import Tracking

_MOST_GAPS = 5
_MOST_ADVICE = 3
_WIDTH = 80
_LABEL = 10
_MET: dict[bool | None, str] = {True: ", met", False: ", missed", None: ""}
_HELD: dict[bool | None, str] = {True: "held", False: "failed", None: "open"}
_STATISTICS = {
    "mae": "mean absolute error",
    "bias": "bias (cheap − expensive)",
    "off_by_more_than_half": "share off by more than half a point",
    "spearman": "Spearman",
    "kendall": "Kendall",
    "quadratic_kappa": "quadratic kappa",
}
_VERDICTS = {
    "tracks": "tracks: agrees with the judge beyond chance, a constant and the length of the text",
    "not_proven": "not proven: these items leave open whether it agrees with the judge",
    "does_not_track": "does not track: a check failed beyond its interval",
}


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
    about: tuple[tuple[str, str], ...] = ()


def render_dashboard(view: DualView) -> str:
    """Return the dashboard: averages, gap, the items that are far apart, whether the cheap judge tracks, and a decision."""
    summary = view.summary
    cost = "cost not reported" if view.cost_usd is None else short_dollars(view.cost_usd)
    match = "no patterns" if view.match is None else f"a pattern fired on {view.match:.0%} of the items"
    scored = f"{summary.scored} of {plural(view.items, 'item')} scored by both judges{_unscored(view.unscored)}"
    lines = [
        *_line("iteration", f"{view.iteration}: {scored}"),
        *_line("judge", f"{number(summary.expensive_avg)} · {plural(view.calls, 'call')}, {view.cached:,} cached · {cost}"),
        *(_line("stopped", view.stopped) if view.stopped else ()),
        *(_line("health", ", ".join(view.flags)) if view.flags else ()),
        *_line("cheap", f"{number(summary.cheap_avg)} · target: at least {QUALITY_TARGET}{_MET[summary.quality_met]} · {match}"),
        *_line("gap", _gap(summary)),
        "",
        *_large(summary.large, view.items),
        *_tracking(view.tracking),
    ]
    return "\n".join([*lines, "", *wrapped(f"DECISION: {escape(decision(view))}", _WIDTH, _LABEL), ""])


def _line(label: str, text: str) -> list[str]:
    """Return ``text`` after its label in lines that fit a terminal, further ones below the first."""
    return wrapped(f"{label:<{_LABEL}}{escape(text)}", _WIDTH, _LABEL)


def _gap(summary: GapSummary) -> str:
    if summary.abs_gap_mean is None or summary.gap is None:
        return "none: no item was scored by both judges"
    way = "too strict" if summary.gap > 0 else "too generous"
    on_average = f"signed {signed(summary.gap)}: the cheap judge is {way} on average" if round(summary.gap, 2) else "signed 0.00"
    return f"MAE {number(summary.abs_gap_mean)} · target: at most {GAP_TARGET}{_MET[summary.gap_met]} · {on_average}"


def _large(large: tuple[LargeGap, ...], items: int) -> list[str]:
    if not large:
        return _line("far apart", f"no item by more than {GAP_TARGET}")
    lines = _line("far apart", f"{len(large):,} of {plural(items, 'item')} by more than {GAP_TARGET}, the farthest first")
    told: set[str] = set()
    for one in large[:_MOST_GAPS]:
        lines.append(f"  {escape(one.story_id)}: judge {one.expensive:.2f}, cheap {one.cheap:.2f}, gap {one.gap:+.2f}")
        if one.issue not in told:  # what is said of an item above is not said again
            lines += wrapped(f"    Issue: {escape(shortened(one.issue))}", _WIDTH, 11)
        if one.action not in told:
            lines += wrapped(f"    Action: {escape(one.action)}", _WIDTH, 12)
        told |= {one.issue, one.action}
    more = len(large) - _MOST_GAPS
    lines += [f"  … and {more:,} more: gap_analysis.json has them all (-o DIR)"] if more > 0 else []
    return [*lines, *_elsewhere(large)]


def _elsewhere(large: tuple[LargeGap, ...]) -> list[str]:
    """Return what the items that are not shown speak for, the surest first."""
    shown = {one.support.phrase for one in large[:_MOST_GAPS] if one.support is not None}
    others = {one.support.phrase: one.support for one in large if one.support is not None and one.support.phrase not in shown}
    surest = sorted(others.values(), key=lambda one: -one.errors)[:_MOST_ADVICE]
    return [line for one in surest for line in _line("advice", one.says)]


def _tracking(tracking: Tracking | None) -> list[str]:
    if tracking is None:
        return []
    figures, constant, length = tracking.agreement, tracking.baselines["constant"], tracking.baselines["length_only"]
    rows: list[tuple[str, Any, Any, Any]] = [
        ("MAE", figures.mae, constant.mae, length.mae),
        (
            "share off by more than half",
            figures.off_by_more_than_half,
            constant.off_by_more_than_half,
            length.off_by_more_than_half,
        ),
        ("Spearman", figures.spearman, constant.spearman, length.spearman),
        ("Kendall", figures.kendall, constant.kendall, length.kendall),
        ("quadratic kappa", figures.quadratic_kappa, constant.quadratic_kappa, length.quadratic_kappa),
    ]
    lines = ["", f"  {'':<27}{'cheap':>8}{'constant':>10}{'length':>8}"]
    lines += [f"  {name:<27}{number(own):>8}{number(one):>10}{number(other):>8}" for name, own, one, other in rows]
    lines.append("")
    if tracking.noise is not None:
        lines += _line("noise", f"two readings of the judge differ by {number(tracking.noise.mean_abs_difference)} on average")
    lines += [line for check in tracking.checks for line in _line(_HELD[check.held], check.says)]
    from jumar.judging.tracking import FEWEST_GROUPS, FEWEST_ITEMS

    verdict = _VERDICTS[tracking.verdict]
    if tracking.items < FEWEST_ITEMS or tracking.groups < FEWEST_GROUPS:
        found = f"{plural(tracking.items, 'item')} in {plural(tracking.groups, 'group')}"
        verdict = f"not proven: {found} are too few, {FEWEST_ITEMS} in {FEWEST_GROUPS} are the least"
    return [*lines, *_line("verdict", verdict)]


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
    if summary.gap_met and tracking.verdict == "does_not_track":
        return "The mean gap is small, but the cheap judge does no better than what needs no judge: look at the checks"
    if summary.gap_met:
        return "The mean gap is small, but that the cheap judge tracks is not proven: look at the checks"
    return "Gap over its target: read the items that are far apart; `jumar learn` makes a cheap judge from these verdicts"


def _unscored(unscored: Mapping[str, int]) -> str:
    told = [f"{count} unscored in {mode} mode" for mode, count in unscored.items() if count]
    return f" ({', '.join(told)})" if told else ""


_MOST_ROWS = 50
_REPORT_STATISTICS = {
    "mae": "mean absolute error",
    "bias": "bias (cheap − expensive)",
    "off_by_more_than_half": "share off by more than half a point",
    "spearman": "Spearman",
    "kendall": "Kendall",
    "quadratic_kappa": "quadratic kappa",
}
VERDICT_SENTENCES = {
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


def render_gap_report(view: DualView, dual: DualEvaluation) -> str:
    """Return the report: both verdicts first, then what they rest on, the items that are far apart, and what was not scored."""
    parts = (
        [f"# Iteration {view.iteration}: the gap between two judges", ""],
        _verdicts(view),
        _about(view),
        _averages(view),
        _tracking_section(view.tracking),
        _large_section(view, dual),
        _unscored_section(dual),
        _health(dual),
    )
    return "\n".join(chain.from_iterable(parts)).rstrip("\n") + "\n"


def _verdicts(view: DualView) -> list[str]:
    tracking = "Nothing was scored by both judges." if view.tracking is None else VERDICT_SENTENCES[view.tracking.verdict]
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


def _tracking_section(tracking: Tracking | None) -> list[str]:
    if tracking is None:
        return []
    document = tracking.to_json()
    lines = ["## Tracking", "", f"{plural(tracking.items, 'item')} in {plural(tracking.groups, 'group')}.", ""]
    lines += _table(("", "cheap judge (95 %)", "a constant", "length alone"), statistic_rows(document))
    if tracking.noise is not None:
        lines += [noise_sentence(document["judge_noise"]), ""]
    return lines + _table(("", "check", "figure (95 %)"), check_rows(document))


def statistic_rows(tracking: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return a row a statistic: its name, what it is for the cheap judge with its interval, for a constant, for the length."""
    baselines = tracking["baselines"]
    return [
        (
            label,
            f"{number(tracking[name])}{_interval(tracking['intervals'].get(name))}",
            number(baselines["constant"][name]),
            number(baselines["length_only"][name]),
        )
        for name, label in _STATISTICS.items()
    ]


def check_rows(tracking: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return a row a check: whether it held, what it says, and its figure with the interval."""
    return [
        (_HELD[check["held"]], check["says"], f"{number(check['value'])}{_interval(check['interval'])}")
        for check in tracking["checks"].values()
    ]


def noise_sentence(noise: Mapping[str, Any]) -> str:
    """Return how far the judge is from itself."""
    distance, items = number(noise["mean_abs_difference"]), plural(int(noise["items"]), "item")
    return f"Asked again, the expensive judge is {distance} from itself ({items} with several readings)."


def _large_section(view: DualView, dual: DualEvaluation) -> list[str]:
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


def _unscored_section(dual: DualEvaluation) -> list[str]:
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


def _interval(interval: Sequence[float] | None) -> str:
    return "" if interval is None else f" ({number(interval[0])} to {number(interval[1])})"
