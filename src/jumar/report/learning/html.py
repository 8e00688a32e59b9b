"""A learning run as one self-contained page; see :mod:`jumar.report.page`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from jumar.report.judging.numbers import number
from jumar.report.learning.decisions import Decided
from jumar.report.learning.plot import NARROW, WIDE, course_plot, course_summary
from jumar.report.learning.progress import Progress
from jumar.report.learning.proposals import merges, proposal_lines
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
from jumar.report.page import render_page
from jumar.text import plural
from jumar.version import __version__

__all__ = ["render_html"]

_NAMED: Final = 400
_PHRASES: Final = 60
_MERGES: Final = 200
_SIGNS: Final = {"yes": ("✓", "good", "yes"), "no": ("✗", "bad", "no"), "open": ("?", "quiet", "open")}
_CODE: Final = re.compile(r"`([^`]+)`")


def render_html(report: LearningReport) -> str:
    """Return the page as HTML."""
    return render_page("learning.html.j2", _page(report), styles=("report.css", "learning.css"))


def _page(report: LearningReport) -> Mapping[str, Any]:
    said, found = phrases(report), merges(report)
    return {
        "name": report.name,
        "lead": lead(report),
        "tone": {"tracks": "sure", "fails": "bad"}.get(report.verdict or "", "open"),
        "verdict": verdict_lines(report),
        "facts": _facts(report),
        "figures": figure_rows(report),
        "checks": [{"sign": _SIGNS[one.sign], "says": one.says, "figure": one.figure} for one in checks(report)],
        "notes": [one for one in (noise_text(report), looks_text(report), quality_text(report)) if one],
        "next": [_parts(one) for one in next_steps(report)],
        "wide": course_plot(report, WIDE),
        "narrow": course_plot(report, NARROW),
        "course": course_summary(report),
        "level": report.constant is not None,
        "back": any(one.decisions.rollbacks for one in report.iterations),
        "stopped": report.stopped,
        "iterations": [_iteration(one, report) for one in report.iterations],
        "proposals": proposal_lines(report),
        "merges": [(f"{one['iteration']}", str(one["explanation"])) for one in found[:_MERGES]],
        "merges_left_out": f"{len(found) - _MERGES:,}" if len(found) > _MERGES else "",
        "probes": [{"sign": _SIGNS[sign], "what": what, "told": told} for sign, what, told in probe_rows(report)],
        "set": set_text(report),
        "worth": "Points" if report.calibration is not None else "Weight",
        "features": features(report),
        "phrases": said[:_PHRASES],
        "more_phrases": said[_PHRASES:],
        "footer": _footer(report),
    }


def _parts(text: str) -> list[tuple[bool, str]]:
    """Return a text as its parts: whether each is code, which stands between backticks in it."""
    return [(bool(place % 2), part) for place, part in enumerate(_CODE.split(text)) if part]


def _facts(report: LearningReport) -> list[dict[str, str]]:
    facts: list[dict[str, str]] = []
    proof, summary = report.proof, report.summary
    if proof is not None:
        found = proof["statistics"]["figures"]
        facts.append(_fact("Off by, sealed", number(found["mae"]), f"a constant {number(found['constant_mae'])}"))
        length = "—" if found["length_spearman"] is None else number(found["length_spearman"])
        facts.append(_fact("Rank correlation, sealed", number(found["spearman"]), f"the length {length}"))
    best = "" if report.best is None else f"best is {report.best}"
    facts.append(_fact("Iterations", f"{len(report.logs):,}", best))
    facts.append(_fact("Patterns in the set", f"{len(report.patterns):,}", _standing(report)))
    if summary is not None:
        cost = "cost not reported" if summary["cost_usd"] is None else f"${summary['cost_usd']:.4f}"
        facts.append(_fact("Judge asked", plural(int(summary["judge_calls"]), "time"), cost))
    facts.append(_fact("Items", f"{int(report.split['items']):,}", f"{float(report.split['heldout']):.0%} of the groups sealed"))
    return facts


def _standing(report: LearningReport) -> str:
    return "" if report.summary is None else f"{int(report.summary['supported']):,} supported one by one"


def _fact(name: str, value: str, small: str = "") -> dict[str, str]:
    return {"name": name, "value": value, "small": small}


def _iteration(one: Progress, report: LearningReport) -> dict[str, Any]:
    found = one.decisions
    return {
        "number": f"{one.iteration}",
        "best": one.iteration == report.best,
        "short": f"gap {number(one.abs_gap)}, rank {number(one.spearman)}, {plural(one.patterns, 'pattern')}; {found.short}",
        "course": one.divergence,
        "told": [text[:1].upper() + text[1:] for text in (*found.rollbacks, *found.recoveries)],
        "decided": [_decided(group) for group in found.decided],
        "plan": one.plan,
        "open": bool(found.rollbacks or found.recoveries) and len(report.logs) <= 3,
    }


def _decided(group: Decided) -> dict[str, Any]:
    left = len(group.patterns) - _NAMED
    return {"head": group.head, "names": group.names(_NAMED), "left": f"{left:,}" if left > 0 else ""}


def _footer(report: LearningReport) -> str:
    proven = "" if report.proof is None else f", proof of {str(report.proof['created_at'])[:16].replace('T', ' ')}"
    judge = "" if report.proof is None else f" · judge {report.proof['judge']['identity']}"
    return f"jumar {__version__} · {plural(len(report.logs), 'iteration')}{proven}{judge}, read from {report.directory}"
