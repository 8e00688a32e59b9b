"""A learning run as markdown: the verdict, the course of the figures, every decision with its reason, the set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from jumar.report.judging.numbers import number, signed
from jumar.report.learning.progress import told_action
from jumar.report.learning.view import LearningReport
from jumar.report.mdtext import inline, row
from jumar.text import plural

__all__ = ["render_markdown"]

_PATTERNS: Final = 60
_ACTIONS: Final = 200
_VERDICTS: Final = {
    "tracks": (
        "**It tracks the judge**: on items that nothing was learned from it errs less than a constant and than the length of the "
        "text alone, and it ranks better than the length does, all beyond chance."
    ),
    "not_proven": (
        "**Not proven**: the sealed items leave open whether it tracks the judge. More items in more groups would tell."
    ),
    "fails": "**It fails**: on items that nothing was learned from it does worse than what needs no judge, beyond chance.",
}


def render_markdown(report: LearningReport) -> str:
    """Return the whole report."""
    lines = [f"# Learning: {inline(report.name)}", ""]
    lines += _verdict(report) + _course(report) + _decisions(report) + _patterns(report)
    return "\n".join(lines).rstrip("\n") + "\n"


def _verdict(report: LearningReport) -> list[str]:
    summary = report.summary
    if summary is None:
        return [f"There is no verdict yet: the run is {report.state} after {plural(len(report.logs), 'iteration')}.", ""]
    lines = [_VERDICTS[str(summary["verdict"])], ""]
    held: Mapping[str, Any] | None = summary["heldout"]
    if held is not None:
        lines += [
            f"The proof rests on {plural(int(held['items']), 'sealed item')} in {plural(int(held['groups']), 'group')}:",
            "",
            "| | learned | constant | length alone |",
            "|---|---:|---:|---:|",
            row(
                [
                    "mean absolute error",
                    _spread(held, "mae", "interval"),
                    number(held["constant_mae"]),
                    number(held["length_mae"]),
                ]
            ),
            row(["rank correlation", _spread(held, "spearman", "spearman_interval"), "—", number(held["length_spearman"])]),
            "",
        ]
    met = "meets" if summary["quality_met"] else "does not meet"
    cost = "unknown" if summary["cost_usd"] is None else f"${summary['cost_usd']:.4f}"
    return [
        *lines,
        f"The items themselves: their cheap average of {number(summary['cheap_avg'])} {met} the target of 4.0.",
        f"The judge was asked {plural(int(summary['judge_calls']), 'time')}; cost {cost}.",
        "",
    ]


def _spread(held: Mapping[str, Any], name: str, interval: str) -> str:
    pair = held[interval]
    return number(held[name]) + ("" if pair is None else f" ({pair[0]:.2f} to {pair[1]:.2f})")


def _course(report: LearningReport) -> list[str]:
    if not report.logs:
        return []
    best = None if report.summary is None else report.summary["best_iteration"]
    lines = [
        "## Course",
        "",
        "Every figure is of items that the set of its iteration never saw.",
        "",
        "| iteration | gap (mean absolute) | signed gap | active patterns | committed | rejected | course |",
        "|---:|---:|---:|---:|---:|---:|---|",
    ]
    for one in report.iterations:
        mark = f"**{one.iteration}**" if one.iteration == best else str(one.iteration)
        course = "" if one.divergence == "insufficient_data" else one.divergence.replace("_", " ")
        gap = "—" if one.gap is None else signed(one.gap)
        counts = (f"{count:,}" for count in (one.patterns, one.committed, one.rejected))
        lines.append(row([mark, number(one.abs_gap), gap, *counts, inline(course)]))
    return [*lines, ""]


def _decisions(report: LearningReport) -> list[str]:
    lines = ["## Decisions", ""]
    told = 0
    for one in report.iterations:
        actions = _shown(one.actions)
        if not actions or told >= _ACTIONS:
            continue
        lines += [f"### Iteration {one.iteration}", ""]
        lines += [f"- {inline(text)}" for text in actions[: _ACTIONS - told]]
        told += len(actions)
        lines.append("")
    if told > _ACTIONS:
        lines += [f"{told - _ACTIONS:,} more are in the iterations' `iteration_log.json`.", ""]
    return lines if told else [*lines, "There were none.", ""]


def _shown(actions: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what an iteration decided in words: what was done first, then what was committed and rejected."""
    order = {"rolled_back": 0, "recovery": 1, "committed_pattern": 2, "proposed_pattern": 3, "rejected_pattern": 4}
    return [told_action(one) for one in sorted(actions, key=lambda one: order.get(str(one.get("action")), 9))]


def _patterns(report: LearningReport) -> list[str]:
    if not report.patterns:
        return []
    heaviest = sorted(report.patterns, key=lambda one: (-float(one["weight"]), str(one["id"])))
    lines = ["## The set", "", f"{plural(len(heaviest), 'active pattern')}, the heaviest first:", ""]
    lines += ["| says | counts for | weight | fired on |", "|---|---|---:|---:|"]
    for one in heaviest[:_PATTERNS]:
        weight, fired = f"{float(one['weight']):.2f}", f"{int(one['times_fired']):,}"
        lines.append(row([inline(str(one["description"])), str(one["type"]), weight, fired]))
    if len(heaviest) > _PATTERNS:
        lines += ["", f"{len(heaviest) - _PATTERNS:,} more are in `patterns.json`."]
    return [*lines, ""]
