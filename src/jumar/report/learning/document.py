"""A learning run as one JSON document."""

from __future__ import annotations

import json

from jumar.report.learning.view import LearningReport

__all__ = ["render_json"]


def render_json(report: LearningReport) -> str:
    """Return the summary, a record an iteration with its actions, the active patterns, and what is sealed."""
    kept = ("metrics", "divergence_check", "convergence_check", "actions_taken", "next_iteration_plan")
    document = {
        "run": report.name,
        "state": report.state,
        "summary": report.summary,
        "iterations": [{name: log[name] for name in kept} for log in report.logs],
        "patterns": list(report.patterns),
        "split": {name: report.split[name] for name in ("seed", "heldout", "items", "items_hash", "cross_fitted")},
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
