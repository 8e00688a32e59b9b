"""A chain of cases as plain values for JSON. Scores carry the names of ``best.json``; unknown is None."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from jumar.cases.records import CaseIteration, shown_ranking
from jumar.cases.report.read import CaseReport, ChainReport, Handover, Origin
from jumar.cases.report.words import case_lines, cell_state, handover_sentence
from jumar.core.codec import FORMAT

__all__ = ["case_document", "render_json", "replay_document", "to_json"]


def render_json(report: ChainReport) -> str:
    """Return :func:`to_json` as strict JSON (ASCII, no NaN) that ends with a line feed."""
    return json.dumps(to_json(report), allow_nan=False, indent=2) + "\n"


def to_json(report: ChainReport) -> dict[str, Any]:
    """Return everything that the other renderings are made from."""
    return {
        "format": FORMAT,
        "run_id": report.run_id,
        "run_dir": report.directory,
        "created_at": report.created_at,
        "order": list(report.order.words),
        "tie_breaks": list(report.order.tie_breaks),
        "max_iters": report.planned,
        "spend": asdict(report.paid),
        "cases": [case_document(report, case) for case in report.cases],
        "handovers": [_handover(report, handed) for handed in report.handovers],
        "config": dict(report.config),
    }


def case_document(report: ChainReport, case: CaseReport) -> dict[str, Any]:
    """Return one case with all its records. ``best_iter`` is that of its ``best.json``, once there is one."""
    choice = _choice(report, case)
    by_order = {name: choice.pop(name) for name in ("runner_up", "margin", "decided_by", "explanation")}
    by_order = {"best_iter": choice["best_iter"], "ranking": choice["ranking"], **by_order}
    if case.record is not None:
        choice |= {"best_iter": case.record.best_iter, "ranking": shown_ranking(case.record.values)}
    return {
        **choice,
        "by_order": by_order,
        "case_id": case.case_id,
        "selected_by": None if case.record is None else case.record.selected_by,
        "not_evaluated": [n for n in range(1, report.columns + 1) if cell_state(case, n) == "absent"],
        "pending": case.pending,
        "spend": asdict(case.paid),
        "rationale": case_lines(report, case),
        "iterations": [iteration.to_json() for iteration in case.iterations],
        "inputs": None if case.inputs is None else case.inputs.to_json(),
        "best": None if case.record is None else case.record.to_json(),
        "stopped_by": None if case.end is None else case.end.stopped_by,
        "end": None if case.end is None else case.end.to_json(),
    }


def replay_document(report: ChainReport) -> dict[str, Any]:
    """Return what a selection would have chosen in each case, and what the last iteration was."""
    return {
        "cases": [
            {**_choice(report, case), "iterations": [_iteration(iteration) for iteration in case.iterations]}
            for case in report.cases
        ]
    }


def _choice(report: ChainReport, case: CaseReport) -> dict[str, Any]:
    best, last, ranking = case.best, case.last, case.ranking
    return {
        "case": case.number,
        "best_iter": None if best is None else best.number,
        "last_iter": None if last is None else last.number,
        "ranking": None if best is None else shown_ranking(best.values),
        "last_ranking": None if last is None else shown_ranking(last.values),
        "order": list(report.order.words),
        "runner_up": ranking.runner_up,
        "margin": ranking.margin,
        "decided_by": ranking.decided_by,
        "explanation": ranking.explanation,
        "best_minus_last": shown_ranking(case.behind),
        "carried_from": _origin(case.origin),
        "started_from": case.origin.kind,
        "invalid": [{"iteration": view.number, "reason": view.reason} for view in ranking.invalid],
    }


def _origin(origin: Origin) -> Mapping[str, Any] | None:
    if origin.kind != "carried":
        return None
    return {
        "case": origin.case,
        "iter": origin.iteration,
        "selected_by": origin.selected_by,
        "roles": list(origin.roles),
        "by_hash": origin.by_hash,
    }


def _iteration(iteration: CaseIteration) -> dict[str, Any]:
    return {
        "iteration": iteration.number,
        "status": iteration.status,
        "reason": iteration.reason,
        "ranking": shown_ranking(iteration.values),
        "diff": iteration.diff,
    }


def _handover(report: ChainReport, handed: Handover) -> dict[str, Any]:
    return {
        "from_case": handed.source,
        "to_case": handed.target,
        "carried_iter": handed.carried,
        "best_iter": handed.best,
        "last_iter": handed.last,
        "best_minus_carried": shown_ranking(handed.lost),
        "poisoned": handed.poisoned,
        "sentence": handover_sentence(report, handed),
    }
