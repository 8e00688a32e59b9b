"""A learning run as one JSON document."""

from __future__ import annotations

from typing import Any

from jumar.core.text import json_text
from jumar.learning.report.course import course_notes, lost_lines, merges
from jumar.learning.report.verdict import lead, next_steps, verdict_lines
from jumar.learning.report.view import LearningReport


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
        "proposals": {str(number): one.get("by", {}) for number, one in sorted(report.proposals.items())},
        "merged": merges(report),
        "calibration": report.calibration,
        "patterns": [_pattern(report, pattern) for pattern in report.patterns],
        "split": {name: report.split[name] for name in ("seed", "heldout", "items", "items_hash", "cross_fitted")},
    }
    return json_text(document)


def _pattern(report: LearningReport, one: Any) -> dict[str, Any]:
    """Return a pattern with its points of the scale and what the held-out items say of it alone."""
    worth = float(one["weight"]) * (1 if one["type"] == "good" else -1)
    return {
        **one,
        "points": None if report.unit is None else worth * report.unit,
        "sealed": report.members.get(str(one["id"])),
    }
