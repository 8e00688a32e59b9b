"""A learning run as one self-contained page; see :mod:`jumar.core.rendering.html`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from jumar.core.rendering.html import render_page
from jumar.core.text import number, plural
from jumar.core.version import __version__
from jumar.learning.report.course import (
    converged_text,
    course_notes,
    course_rows,
    decisions_text,
    kept_texts,
    lost_lines,
    merges,
    proposal_lines,
)
from jumar.learning.report.decisions import DecisionGroup
from jumar.learning.report.plot import NARROW, WIDE, course_plot, course_summary
from jumar.learning.report.reasons import set_text, shown_features, shown_phrases
from jumar.learning.report.verdict import (
    checks,
    cost_text,
    figure_rows,
    lead,
    looks_text,
    next_steps,
    noise_text,
    nothing_learned,
    paid_text,
    probe_rows,
    quality_text,
    verdict_lines,
)
from jumar.learning.report.view import LearningProgress, LearningReport

_NAMED: Final = 400
_PHRASES: Final = 60
_MERGES: Final = 200
_SIGNS: Final = {"yes": ("✓", "good", "yes"), "no": ("✗", "bad", "no"), "open": ("?", "quiet", "open")}
_CODE: Final = re.compile(r"`([^`]+)`")


def render_html(report: LearningReport) -> str:
    """Return the page as HTML."""
    return render_page("learning.html.j2", _page(report), package="jumar.learning.report", styles=("report.css", "learning.css"))


def _page(report: LearningReport) -> Mapping[str, Any]:
    found, flat = merges(report), report.flat
    (said, less), (counted, fewer) = (([], ""), ([], "")) if flat else (shown_phrases(report), shown_features(report))
    first, *others = course_notes(report) or [""]
    return {
        "name": report.name,
        "lead": lead(report),
        "tone": "open" if nothing_learned(report) else {"tracks": "sure", "fails": "bad"}.get(report.verdict or "", "open"),
        "verdict": [_parts(one) for one in verdict_lines(report)],
        "facts": _facts(report),
        "figures": figure_rows(report),
        "checks": [{"sign": _SIGNS[check.sign], "says": check.says, "figure": check.figure} for check in checks(report)],
        "notes": [_parts(one) for one in _notes(report) if one],
        "next": [_parts(one) for one in next_steps(report)],
        "wide": course_plot(report, WIDE),
        "narrow": course_plot(report, NARROW),
        "course": course_summary(report),
        "level": report.constant is not None,
        "back": any(iteration.decisions.rollbacks for iteration in report.iterations),
        "rows": course_rows(report),
        "first": first,
        "others": others,
        "iterations": [_iteration(iteration, report, kept_texts(report)) for iteration in report.iterations],
        "decisions": decisions_text(report),
        "lost": lost_lines(report),
        "proposals": proposal_lines(report),
        "merges": [(f"{one['iteration']}", str(one["explanation"])) for one in found[:_MERGES]],
        "merges_left_out": f"{len(found) - _MERGES:,}" if len(found) > _MERGES else "",
        "probes": [{"sign": _SIGNS[sign], "what": what, "told": told} for sign, what, told in probe_rows(report)],
        "set": [_parts(one) for one in set_text(report)],
        "worth": "Points" if report.calibration is not None else "Weight",
        "features": counted,
        "fewer": fewer,
        "less": less,
        "phrases": said[:_PHRASES],
        "more_phrases": said[_PHRASES:],
        "footer": _footer(report),
    }


def _notes(report: LearningReport) -> list[str]:
    converged = "" if report.summary is None else f"Converged: {converged_text(report.summary, report.logs)}."
    return [noise_text(report), looks_text(report), quality_text(report), converged, paid_text(report)]


def _parts(text: str) -> list[tuple[bool, list[str]]]:
    """Return a text as its parts: whether each is code, which stands between backticks in it, and its words where it is."""
    parts = enumerate(_CODE.split(text))
    return [(bool(place % 2), part.split(" ") if place % 2 else [part]) for place, part in parts if part]


def _facts(report: LearningReport) -> list[dict[str, str]]:
    facts: list[dict[str, str]] = []
    proof, summary = report.proof, report.summary
    if proof is not None:
        found, intervals = proof["statistics"]["figures"], proof["statistics"]["intervals"]
        constant = f"{_within(intervals.get('mae'))}a constant {number(found['constant_mae'])}"
        facts.append(_fact("MAE, held-out items", f"{number(found['mae'])} points", constant))
        length = f"{_within(intervals.get('spearman'))}the length {number(found['length_spearman'])}".replace("-", "−")
        facts.append(_fact("Rank correlation, held-out items", number(found["spearman"]).replace("-", "−"), length))
    best = "" if report.best is None else "the start is kept" if report.best == 0 else f"the best is {report.best}"
    facts.append(_fact("Iterations", f"{len(report.logs):,}", best))
    facts.append(_fact("Patterns in the set", f"{len(report.patterns):,}", _kinds(report)))
    if summary is not None and report.replayed:
        facts.append(_fact("Judge", "a file", f"{plural(int(summary['judge_calls']), 'recorded answer')}"))
    elif summary is not None:
        facts.append(_fact("Judge asked", plural(int(summary["judge_calls"]), "time"), cost_text(summary["cost_usd"])))
    facts.append(
        _fact("Items", f"{int(report.split['items']):,}", f"{float(report.split['heldout']):.0%} of the groups held out")
    )
    return facts


def _within(pair: Any) -> str:
    return "" if pair is None else f"{pair[0]:.2f} to {pair[1]:.2f} (95 %); ".replace("-", "−")


def _kinds(report: LearningReport) -> str:
    steps = len(report.steps)
    said = plural(len(report.patterns) - steps, "phrase")
    return f"{said}, {plural(steps, 'step')} of features" if steps else said


def _fact(name: str, value: str, small: str = "") -> dict[str, str]:
    return {"name": name, "value": value, "small": small}


def _iteration(one: LearningProgress, report: LearningReport, kept: Mapping[int, str]) -> dict[str, Any]:
    found = one.decisions
    figures = f"gap {number(one.abs_gap)}, rank {number(one.spearman)}".replace("-", "−")
    told = [*found.rollbacks, *found.recoveries, *([kept[one.iteration]] if one.iteration in kept else [])]
    return {
        "number": f"{one.iteration}",
        "best": one.iteration == report.best,
        "short": f"{figures}, {plural(one.patterns, 'pattern')}; {found.short}",
        "course": one.divergence,
        "told": [text[:1].upper() + text[1:] for text in told],
        "decided": [_decided(group) for group in found.decided],
        "plan": one.plan,
        "open": bool(found.rollbacks or found.recoveries) and len(report.logs) <= 3,
    }


def _decided(group: DecisionGroup) -> dict[str, Any]:
    return {"head": group.head, "names": group.names(_NAMED), "left": group.rest(_NAMED)}


def _footer(report: LearningReport) -> str:
    proven = "" if report.proof is None else f", proof of {str(report.proof['created_at'])[:16].replace('T', ' ')}"
    judge = "" if report.proof is None else f" · judge {report.proof['judge']['identity']}"
    return f"jumar {__version__} · {plural(len(report.logs), 'iteration')}{proven}{judge}, read from {report.directory}"
