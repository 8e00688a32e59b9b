"""A learning run as markdown: the verdict, what to do next, the course, every decision with its reason, the set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from jumar.core.rendering.markdown import inline, row
from jumar.learning.report.course import (
    converged_text,
    course_notes,
    course_rows,
    decisions_text,
    kept_texts,
    lost_lines,
    proposal_lines,
)
from jumar.learning.report.decisions import DecisionGroup
from jumar.learning.report.reasons import set_text, shown_features, shown_phrases
from jumar.learning.report.verdict import (
    checks,
    figure_rows,
    lead,
    looks_text,
    next_steps,
    noise_text,
    paid_text,
    probe_rows,
    quality_text,
    verdict_lines,
)
from jumar.learning.report.view import LearningReport

_PATTERNS: Final = 60
_NAMED: Final = 30
COURSE_HEADS: Final = (
    "iteration",
    "gap (points)",
    "too high (+) or low (−)",
    "rank correlation",
    "score of 100",
    "active patterns",
    "committed",
    "rejected",
    "what happened",
)
_SIGNS: Final = {"yes": "✓", "no": "✗", "open": "?"}


def render_markdown(report: LearningReport) -> str:
    """Return the whole report."""
    parts = (_verdict, _next, _course, _decisions, _proposals, _probes, _set)
    lines = [f"# Learning: {inline(report.name)}", "", *(line for part in parts for line in part(report))]
    return "\n".join(lines).rstrip("\n") + "\n"


def _verdict(report: LearningReport) -> list[str]:
    lines = [f"**{lead(report)}** {' '.join(verdict_lines(report))}".rstrip(), ""]
    if report.proof is not None:
        lines += ["| On the held-out items (95 % interval) | learned | constant | length alone |", "|---|---:|---:|---:|"]
        lines += [row(one) for one in figure_rows(report)]
        lines += ["", *(f"- {_SIGNS[check.sign]} {check.says}: {check.figure}" for check in checks(report)), ""]
    told = [noise_text(report), looks_text(report), quality_text(report), _converged(report), paid_text(report)]
    return [*lines, *(part for one in told if one for part in (one, ""))]


def _next(report: LearningReport) -> list[str]:
    return ["## What to do next", "", *(f"- {one}" for one in next_steps(report)), ""]


def _converged(report: LearningReport) -> str:
    return "" if report.summary is None else f"Converged: {converged_text(report.summary, report.logs)}."


def _course(report: LearningReport) -> list[str]:
    if not report.logs:
        return []
    first, *others = course_notes(report)
    lines = ["## Course", "", inline(first), "", row(COURSE_HEADS), "|---:|---:|---:|---:|---:|---:|---:|---:|---|"]
    lines += [
        row([f"**{one.name} ★**" if one.best else one.name, *one.cells[:-1], inline(one.happened)]) for one in course_rows(report)
    ]
    return [*lines, "", *(part for note in others for part in (inline(note), ""))]


def _decisions(report: LearningReport) -> list[str]:
    lines = ["## Decisions", "", decisions_text(report), ""]
    kept, lost = kept_texts(report), lost_lines(report)
    for iteration in report.iterations:
        found = iteration.decisions
        told = [*found.rollbacks, *found.recoveries, *([kept[iteration.iteration]] if iteration.iteration in kept else [])]
        if found.any or told:
            lines += [f"### Iteration {iteration.iteration}", ""]
            lines += [f"- {_sentence(text)}" for text in told]
            lines += [f"- {_decided(group, iteration.iteration)}" for group in found.decided]
            lines.append("")
    if lost:
        lines += ["### At the end", "", *(f"- {inline(line)}" for line in lost), ""]
    return lines if len(lines) > 4 else [*lines[:2], "There were none.", ""]


def _decided(group: DecisionGroup, iteration: int) -> str:
    names = ", ".join(inline(name) for name in group.names(_NAMED))
    rest = group.rest(_NAMED, f" in `iteration_{iteration}/iteration_log.json`")
    return f"{inline(group.head)}: {', and '.join(part for part in (names, rest) if part)}"


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
    if report.flat:
        return lines
    worth = "points" if report.calibration is not None else "weight"
    (counted, fewer), (said, less) = shown_features(report), shown_phrases(report)
    if said or less:
        heads = ["says", worth, "fired on", "on the held-out items", "status"]
        lines += ["### Phrases", "", *_table(heads, "|---|---:|---:|---|---|")]
        shown = said[:_PATTERNS]
        lines += [row([inline(one.says), one.points, f"{one.fired:,}", one.seen, one.standing]) for one in shown]
        over = f"{len(said) - _PATTERNS:,} more" if len(said) > _PATTERNS else ""
        rest = " and ".join(part for part in (over, less) if part)
        lines += ["", f"And {rest}, in `patterns.json`."] if rest else []
        lines.append("")
    if counted or fewer:
        lines += ["### Features", "", *_table(["feature", f"all steps ({worth})", "steps", "fired on"], "|---|---:|---|---:|")]
        lines += [row([inline(one.name), one.points, "; ".join(one.steps), f"{one.fired:,}"]) for one in counted]
        lines += ["", f"And {fewer}, in `patterns.json`."] if fewer else []
        lines.append("")
    return lines


def _table(heads: Sequence[str], rule: str) -> Iterable[str]:
    return (row(heads), rule)
