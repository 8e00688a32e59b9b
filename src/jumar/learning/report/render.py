"""A learning run in its three forms: markdown, one self-contained page, one JSON document. The templates draw the same parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from jumar.core import __version__
from jumar.core.rendering.html import DOCUMENT, Layout, render_page, render_text
from jumar.core.rendering.plot import NARROW, WIDE
from jumar.core.text import json_text, number, plural
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
from jumar.learning.report.life import PatternLife
from jumar.learning.report.plot import course_plot, course_summary
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
from jumar.learning.report.view import LearningReport

_PACKAGE = "jumar.learning.report"
_MOST_ITEMS = 200


def render_markdown(report: LearningReport) -> str:
    """Return the whole report."""
    return render_text("learning.md.j2", _parts(report), package=_PACKAGE).rstrip("\n") + "\n"


def render_html(report: LearningReport, layout: Layout = DOCUMENT) -> str:
    """Return the page as HTML; see :mod:`jumar.core.rendering.html`."""
    tones = {"tracks": "sure", "fails": "bad"}
    page = {
        **_parts(report),
        "tone": "open" if nothing_learned(report) else tones.get(report.verdict or "", "open"),
        "facts": _facts(report),
        "wide": course_plot(report, WIDE),
        "narrow": course_plot(report, NARROW),
        "summary": course_summary(report),
        "level": report.constant is not None,
        "merges": merges(report),
        "footer": _footer(report),
    }
    return render_page("learning.html.j2", page, package=_PACKAGE, styles=("report.css", "learning.css"), layout=layout)


def render_pattern(life: PatternLife, layout: Layout) -> str:
    """Return the page of one pattern; ``layout.links`` lead to the items that it fires on."""
    kind = "Pattern" if life.pattern is None else {"good": "Good pattern", "bad": "Bad pattern"}[str(life.pattern["type"])]
    share = f"{len(life.fired) / life.items:.0%} of {life.items:,} open items" if life.items else ""
    page = {
        "life": life,
        "kind": kind,
        "facts": [
            ("Points where it fires", life.points or "—", ""),
            ("Fires on", f"{len(life.fired):,}", share),
            ("Judge, where it fires", number(life.judge_where), ""),
            ("Judge, elsewhere", number(life.judge_elsewhere), ""),
        ],
        "rows": [
            {
                "id": item.id,
                "key": quote(item.id, safe=""),
                "judge": number(item.expensive),
                "cheap": number(item.cheap),
                "text": item.text,
            }
            for item in life.fired[:_MOST_ITEMS]
        ],
        "more": max(0, len(life.fired) - _MOST_ITEMS),
    }
    return render_page("pattern.html.j2", page, package=_PACKAGE, layout=layout)


def _parts(report: LearningReport) -> dict[str, Any]:
    """Return what the report and the page tell, as texts."""
    (said, less), (counted, fewer) = (
        (([], ""), ([], "")) if report.orders_only else (shown_phrases(report), shown_features(report))
    )
    converged = "" if report.summary is None else f"Converged: {converged_text(report.summary).rstrip('.')}."
    notes = [noise_text(report), looks_text(report), quality_text(report), converged, paid_text(report)]
    return {
        "name": report.name,
        "lead": lead(report),
        "verdict": verdict_lines(report),
        "figures": figure_rows(report),
        "checks": checks(report),
        "notes": [note for note in notes if note],
        "next": next_steps(report),
        "course": course_notes(report),
        "rows": course_rows(report),
        "iterations": _iterations(report),
        "decisions": decisions_text(report),
        "lost": lost_lines(report),
        "proposals": proposal_lines(report),
        "probes": probe_rows(report),
        "set": set_text(report),
        "worth": "Points" if report.calibration is not None else "Weight",
        "phrases": said,
        "less": less,
        "features": counted,
        "fewer": fewer,
    }


def _iterations(report: LearningReport) -> list[dict[str, Any]]:
    kept = kept_texts(report)
    parts: list[dict[str, Any]] = []
    for iteration in report.iterations:
        decisions = iteration.decisions
        told = [*decisions.rollbacks, *decisions.recoveries]
        figures = f"gap {number(iteration.abs_gap)}, rank {number(iteration.spearman)}".replace("-", "−")
        parts.append(
            {
                "number": iteration.iteration,
                "best": iteration.iteration == report.best,
                "short": f"{figures}, {plural(iteration.patterns, 'pattern')}; {decisions.short}",
                "course": iteration.divergence,
                "back": bool(decisions.rollbacks),
                "told": [
                    text[:1].upper() + text[1:]
                    for text in (*told, *([kept[iteration.iteration]] if iteration.iteration in kept else []))
                ],
                "decided": decisions.decided,
                "open": bool(told) and len(report.logs) <= 3,
            }
        )
    return parts


def _facts(report: LearningReport) -> list[tuple[str, str, str]]:
    """Return the figures at the head of the page: what, how much, and beside it in small letters."""
    facts: list[tuple[str, str, str]] = []
    proof, summary = report.proof, report.summary
    if proof is not None:
        figures, intervals = proof["statistics"]["figures"], proof["statistics"]["intervals"]
        constant = f"{_within(intervals.get('mae'))}constant {number(figures['constant_mae'])}"
        facts.append(("MAE, held-out items", f"{number(figures['mae'])} points", constant))
        length = f"{_within(intervals.get('spearman'))}length only {number(figures['length_spearman'])}".replace("-", "−")
        facts.append(("Spearman, held-out items", number(figures["spearman"]).replace("-", "−"), length))
    best = "" if report.best is None else "the start is kept" if report.best == 0 else f"the best is {report.best}"
    facts.append(("Iterations", f"{len(report.logs):,}", best))
    steps = len(report.steps)
    kinds = plural(len(report.patterns) - steps, "phrase") + (f", {plural(steps, 'step')} of features" if steps else "")
    facts.append(("Patterns in the set", f"{len(report.patterns):,}", kinds))
    if summary is not None and report.replayed:
        facts.append(("Judge", "a file", f"{plural(int(summary['judge_calls']), 'recorded answer')}"))
    elif summary is not None:
        facts.append(("Judge asked", plural(int(summary["judge_calls"]), "time"), cost_text(summary["cost_usd"])))
    facts.append(("Items", f"{int(report.split['items']):,}", f"{float(report.split['heldout']):.0%} of the groups held out"))
    return facts


def _within(pair: Any) -> str:
    return "" if pair is None else f"[{pair[0]:.2f}, {pair[1]:.2f}]; ".replace("-", "−")


def _footer(report: LearningReport) -> str:
    proof = report.proof
    proven = "" if proof is None else f", proof of {str(proof['created_at'])[:16].replace('T', ' ')}"
    judge = "" if proof is None else f" · judge {proof['judge']['identity']}"
    return f"jumar {__version__} · {plural(len(report.logs), 'iteration')}{proven}{judge}, read from {report.directory}"


def render_json(report: LearningReport) -> str:
    """Return what the other forms tell: the summary, the proof without its rows, a record an iteration, the active patterns."""
    kept = ("metrics", "divergence_check", "convergence_check", "actions_taken", "next_iteration_plan")
    start = None if report.start is None else {"abs_gap": report.start[0], "spearman": report.start[1]}
    document: dict[str, Any] = {
        "run": report.name,
        "state": report.state,
        "profile": report.profile,
        "stopped": report.stopped or None,
        "verdict": report.verdict,
        "says": [lead(report), *verdict_lines(report)],
        "next": next_steps(report),
        "summary": report.summary,
        "proof": report.proof,
        "start": start,
        "constant_mae": report.constant,
        "best_iteration": report.best,
        "scores": {str(number): score for number, score in sorted(report.scores.items())},
        "course": course_notes(report),
        "not_in_the_set": lost_lines(report),
        "judge_noise": report.noise,
        "iterations": [{name: log[name] for name in kept} for log in report.logs],
        "proposals": {str(number): made.get("by", {}) for number, made in sorted(report.proposals.items())},
        "merged": merges(report),
        "calibration": report.calibration,
        "patterns": [_pattern(report, pattern) for pattern in report.patterns],
        "split": {name: report.split[name] for name in ("seed", "heldout", "items", "items_hash", "cross_fitted")},
    }
    return json_text(document)


def _pattern(report: LearningReport, pattern: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pattern with its points of the scale and what the held-out items say of it alone."""
    weight = float(pattern["weight"]) * (1 if pattern["type"] == "good" else -1)
    points = None if report.unit is None else weight * report.unit
    return {**pattern, "points": points, "sealed": report.members.get(str(pattern["id"]))}
