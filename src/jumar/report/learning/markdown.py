"""A learning run as markdown: the verdict, what to do next, the course, every decision with its reason, the set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from jumar.report.judging.numbers import number, signed
from jumar.report.learning.decisions import Decided
from jumar.report.learning.proposals import proposal_lines
from jumar.report.learning.reasons import features, phrases, set_text
from jumar.report.learning.verdict import (
    checks,
    figure_rows,
    lead,
    looks_text,
    next_steps,
    noise_text,
    probe_rows,
    quality_text,
    verdict_lines,
)
from jumar.report.learning.view import LearningReport
from jumar.report.mdtext import inline, row
from jumar.text import plural

__all__ = ["render_markdown"]

_PATTERNS: Final = 60
_NAMED: Final = 30
_SIGNS: Final = {"yes": "✓", "no": "✗", "open": "?"}


def render_markdown(report: LearningReport) -> str:
    """Return the whole report."""
    parts = (_verdict, _next, _course, _decisions, _proposals, _probes, _set)
    lines = [f"# Learning: {inline(report.name)}", "", *(line for part in parts for line in part(report))]
    return "\n".join(lines).rstrip("\n") + "\n"


def _verdict(report: LearningReport) -> list[str]:
    lines = [f"**{lead(report)}** {' '.join(verdict_lines(report))}".rstrip(), ""]
    if report.proof is not None:
        lines += ["| On the sealed items (95 % interval) | learned | constant | length alone |", "|---|---:|---:|---:|"]
        lines += [row(one) for one in figure_rows(report)]
        lines += ["", *(f"- {_SIGNS[one.sign]} {one.says}: {one.figure}" for one in checks(report)), ""]
    told = [noise_text(report), looks_text(report), quality_text(report), _paid(report)]
    return [*lines, *(part for one in told if one for part in (one, ""))]


def _paid(report: LearningReport) -> str:
    summary = report.summary
    if summary is None:
        return ""
    cost = "unknown" if summary["cost_usd"] is None else f"${summary['cost_usd']:.4f}"
    return f"The judge was asked {plural(int(summary['judge_calls']), 'time')}; cost {cost}."


def _next(report: LearningReport) -> list[str]:
    return ["## What to do next", "", *(f"- {one}" for one in next_steps(report)), ""]


def _course(report: LearningReport) -> list[str]:
    if not report.logs:
        return []
    lines = ["## Course", "", "Every figure is of open items, each scored by a set that did not see it."]
    if report.constant is not None:
        lines[-1] += f" The same score for everything is off by {number(report.constant)} there."
    lines += [
        "",
        "| iteration | gap | signed gap | rank correlation | active patterns | committed | rejected | decided | course |",
        "|---:|---:|---:|---:|---:|---:|---:|---|---|",
    ]
    if report.start is not None:
        lines.append(row(["start", number(report.start[0]), "", number(report.start[1]), "", "", "", "", ""]))
    for one in report.iterations:
        mark = f"**{one.iteration} ★**" if one.iteration == report.best else str(one.iteration)
        found = one.decisions
        done = ", ".join([*(["rolled back"] if found.rollbacks else []), *(["recovery"] if found.recoveries else [])])
        counts = (f"{count:,}" for count in (one.patterns, one.committed, one.rejected))
        lines.append(
            row([mark, number(one.abs_gap), signed(one.gap), number(one.spearman), *counts, done, inline(one.divergence)])
        )
    ended = f"★ is the best. It ended: {inline(report.stopped)}." if report.stopped else "★ is the best so far."
    return [*lines, "", ended, ""]


def _decisions(report: LearningReport) -> list[str]:
    lines = ["## Decisions", ""]
    for one in report.iterations:
        found = one.decisions
        if found.any:
            lines += [f"### Iteration {one.iteration}", ""]
            lines += [f"- {_sentence(text)}" for text in (*found.rollbacks, *found.recoveries)]
            lines += [f"- {_decided(group, one.iteration)}" for group in found.decided]
            lines.append("")
    return lines if len(lines) > 2 else [*lines, "There were none.", ""]


def _decided(group: Decided, iteration: int) -> str:
    left = len(group.patterns) - _NAMED
    more = f", and {left:,} more in `iteration_{iteration}/iteration_log.json`" if left > 0 else ""
    return f"{inline(group.head)}: {', '.join(inline(name) for name in group.names(_NAMED))}{more}"


def _sentence(text: str) -> str:
    return inline(text[:1].upper() + text[1:])


def _proposals(report: LearningReport) -> list[str]:
    lines = proposal_lines(report)
    return ["## Proposals", "", *(f"- {inline(line)}" for line in lines), ""] if lines else []


def _probes(report: LearningReport) -> list[str]:
    rows = probe_rows(report)
    if not rows:
        return []
    lines = [
        "## Can it be gamed?",
        "",
        "Real items made worse, or just longer, must not score higher by more than 0.1 points:",
        "",
    ]
    return [*lines, *(f"- {_SIGNS[sign]} {inline(what)}: {told}" for sign, what, told in rows), ""]


def _set(report: LearningReport) -> list[str]:
    lines = ["## The set", "", " ".join(set_text(report)), ""]
    worth = "points" if report.calibration is not None else "weight"
    counted, said = features(report), phrases(report)
    if counted:
        lines += ["### Features", "", *_table(["feature", f"all steps ({worth})", "steps", "fired on"], "|---|---:|---|---:|")]
        lines += [row([inline(one.name), one.points, "; ".join(one.steps), f"{one.fired:,}"]) for one in counted]
        lines.append("")
    if said:
        heads = ["says", worth, "fired on", "on the sealed items", "standing"]
        lines += ["### Phrases", "", *_table(heads, "|---|---:|---:|---|---|")]
        shown = said[:_PATTERNS]
        lines += [row([inline(one.says), one.points, f"{one.fired:,}", one.seen, one.standing]) for one in shown]
        if len(said) > _PATTERNS:
            lines += ["", f"{len(said) - _PATTERNS:,} more are in `patterns.json`."]
        lines.append("")
    return lines


def _table(heads: Sequence[str], rule: str) -> Iterable[str]:
    return (row(heads), rule)
