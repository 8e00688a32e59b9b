"""One JSON document with everything that the other renderings are made from."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from jumar.core.codec import FORMAT
from jumar.loop.report.advice import causes, recommendations
from jumar.loop.report.checklist import checklist
from jumar.loop.report.read import LoopReport
from jumar.loop.report.reasons import degradation_sentence, rationale, reason_of
from jumar.loop.report.rows import quality_trajectory, summary
from jumar.loop.report.spending import took_document

__all__ = ["render_json", "report_document"]


def render_json(report: LoopReport) -> str:
    """Return :func:`report_document` as strict JSON (ASCII, no NaN) that ends with a line feed."""
    return json.dumps(report_document(report), allow_nan=False, indent=2) + "\n"


def report_document(report: LoopReport) -> dict[str, Any]:
    """Return the report as plain values. Scores are 0–100, dimensions 0–1, unknown is None."""
    selection, stop = report.selection, report.stop
    return {
        "format": FORMAT,
        "loop_id": report.loop_id,
        "created_at": report.created_at,
        "storage_path": report.storage_path,
        "selected_iteration": report.chosen,
        "reason": reason_of(report),
        "selection": None if selection is None else selection.to_json(),
        "override": None if report.override is None else report.override.to_json(),
        "order": list(report.order),
        "ranking": [_ranked(report, number) for number in report.order],
        "criteria": report.criteria.to_json(),
        "weights": dict(report.weights),
        "stop": None if stop is None else {"reason": stop.reason, "detail": stop.detail},
        "spend": report.spend.to_json(),
        "budget": report.budget.to_json(),
        "course": took_document(report.took),
        "summary": summary(report.records),
        "trajectory": quality_trajectory(report.records),
        "degradation": {
            **report.degradation.to_json(),
            "final_degraded": report.degraded,
            "sentence": degradation_sentence(report),
            "likely_causes": [asdict(cause) for cause in causes(report)],
        },
        "diminishing_returns": {"detected": report.diminishing.detected, "iteration": report.diminishing.iteration},
        "rationale": list(rationale(report)),
        "rechecked": report.recheck and report.recheck.rechecked,
        "rechecked_because": report.recheck and report.recheck.because,
        "certainty": None if report.certainty is None else report.certainty.to_json(),
        "recommendations": list(recommendations(report)),
        "checklist": [line.to_json() for line in checklist(report)],
        "artifacts_complete": report.artifacts_complete,
        "records": [record.to_json() for record in report.records],
        "decisions": [decision.to_json() for decision in report.decisions],
        "config": dict(report.config),
    }


def _ranked(report: LoopReport, number: int) -> dict[str, Any]:
    """One place in the order: ``score`` is what it was ranked by, the mean of ``readings``; ``loop_score`` the first of these."""
    return {
        "iteration": number,
        "score": report.score_of(number),
        "readings": report.readings_of(number),
        "loop_score": report.record(number).quality_score,
    }
