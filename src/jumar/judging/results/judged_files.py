"""What an evaluation with an expensive judge leaves behind: a line an item, and the folder of one iteration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jumar.core.files import as_write_error, fsync_directory, rename_new, replace_file
from jumar.core.text import json_rows, json_text
from jumar.core.version import __version__
from jumar.judging.asking.summary import Evaluation
from jumar.judging.dual import DualEvaluation
from jumar.judging.history import check_convergence, detect_divergence
from jumar.judging.models import CheapModeResult, ExpensiveModeResult, IterationLog, IterationMetrics, Unscored
from jumar.judging.report.dashboard import DualView, render_dashboard
from jumar.judging.report.gap_report import render_gap_report
from jumar.judging.results.evaluation_files import check_per_item, item_row
from jumar.judging.results.iteration_folder import learned_from_words, new_iteration, refuse_learning, sources_of
from jumar.judging.results.judged_model import JudgedEvaluation, JudgedRequest
from jumar.judging.rubric import JudgeRubric


def row_of(expensive: ExpensiveModeResult | Unscored, cheap: CheapModeResult | Unscored | None) -> dict[str, Any]:
    """Return an item's line for ``--per-item``; ``cheap`` is None where only the expensive judge was asked."""
    judged = expensive if isinstance(expensive, ExpensiveModeResult) else None
    other = cheap if isinstance(cheap, CheapModeResult) else None
    return {
        "id": expensive.story_id,
        "cheap": None if other is None else other.gestalt,
        "expensive": None if judged is None else judged.gestalt,
        "gap": None if judged is None or other is None else judged.gestalt - other.gestalt,
        "reasons": [] if other is None else other.reasons,
        "patterns_matched": [] if other is None else other.patterns_matched,
        "patterns_missed": [] if other is None else other.patterns_missed,
        "readings": [] if judged is None else judged.readings,
        "reasoning": None if judged is None else judged.reasoning,
        "strengths": [] if judged is None else judged.strengths,
        "weaknesses": [] if judged is None else judged.weaknesses,
        "contributions": [] if other is None else [contribution.model_dump() for contribution in other.contributions],
        "sub_scores": {} if other is None else other.sub_scores,
        "cost_usd": expensive.cost_usd,
        "unscored": {
            mode: {"kind": one.kind, "message": one.message, "raw": one.raw}
            for mode, one in (("expensive", expensive), ("cheap", cheap))
            if isinstance(one, Unscored)
        }
        or None,
    }


def check_outputs(request: JudgedRequest) -> None:
    """Refuse what could not be written, before anything is paid for. Errors: :class:`UsageError`, :class:`StoreWriteError`."""
    kind, _, rest = request.judge.spec.partition(":")
    inputs = (
        request.items,
        request.patterns,
        None if request.rubric is None else Path(request.rubric),
        Path(rest) if kind == "replay" else None,
    )
    check_per_item(request.per_item, *inputs)
    if request.output is not None:
        refuse_learning(request.output)
        with new_iteration(request.output):
            pass


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write ``--per-item``: whole, or not at all."""
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows]
    with as_write_error("write", path):
        replace_file(path, "".join(lines).encode())


def write_iteration(output: Path, request: JudgedRequest, question: JudgeRubric, found: JudgedEvaluation) -> JudgedEvaluation:
    """Write ``iteration_N`` below ``output``; N is one more than the highest there. It appears whole.

    Returns the evaluation with its folder and what came before it.
    """
    with as_write_error("write into", output), new_iteration(output) as (number, temporary, directory):
        found = replace(found, directory=directory, history=tuple(_history(output, number)))
        documents = _documents(number, request, found)
        documents["manifest.json"] = json_text(_manifest(request, question, found))
        for name, text in documents.items():
            replace_file(temporary / name, text.encode())
        fsync_directory(temporary)
        rename_new(temporary, directory)
    return found


def _documents(number: int, request: JudgedRequest, found: JudgedEvaluation) -> dict[str, str]:
    stories = "[\n" + ",\n".join(item_row(item) for item in found.items) + "\n]\n"
    documents = {"stories.json": stories, "expensive_eval.json": json_rows(found.expensive.to_json())}
    if found.dual is None:
        return documents
    log = _log(number, found.dual, found.history)
    if log is not None:
        documents["iteration_log.json"] = json_rows(log.model_dump(mode="json"))
    return documents | dual_documents(number, found.dual, found.history, _about(request, found))


def dual_documents(
    number: int,
    dual: DualEvaluation,
    history: Sequence[Mapping[str, Any]] = (),
    about: tuple[tuple[str, str], ...] = (),
) -> dict[str, str]:
    """Return what is written about both judges and the gap between them, by the names of the files.

    ``about`` is what the report tells of where its figures come from.
    """
    figures = dual.to_json()
    gap_keys = ("scored", "unscored", "gap", "abs_gap_mean", "large_gaps", "tracking", "quality", "health")
    view = replace(dual_view(number, dual, history), about=about)
    return {
        "cheap_eval.json": json_rows(figures["cheap"]),
        "gap_analysis.json": json_rows({"iteration": number, **{key: figures[key] for key in gap_keys}}),
        "dashboard.txt": render_dashboard(view),
        "gap_report.md": render_gap_report(view, dual),
    }


def _history(output: Path, number: int) -> list[dict[str, Any]]:
    """Return the metrics of the iterations before ``number``, oldest first; those without a readable log are left out."""
    found: list[dict[str, Any]] = []
    for one in range(1, number):
        try:
            known = json.loads((output / f"iteration_{one}" / "iteration_log.json").read_text("utf-8"))
            found.append(IterationMetrics.model_validate(known["metrics"]).model_dump(mode="json"))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _log(number: int, dual: DualEvaluation, history: Sequence[Mapping[str, Any]]) -> IterationLog | None:
    """Return the iteration's log, None when no item was scored by both judges: there are no metrics then."""
    previous = history[-1]["gap"] if history else None
    metrics = dual.metrics(number, datetime.now(UTC), previous)
    if metrics is None:
        return None
    records = [*history, metrics]
    return IterationLog(
        iteration=number,
        timestamp=metrics.timestamp,
        component_health=dict(dual.health),
        metrics=metrics,
        divergence_check=detect_divergence(records),
        per_story_results=list(dual.results),
        actions_taken=[],
        convergence_check=check_convergence(records),
        next_iteration_plan=_plan(dual),
    )


def _plan(dual: DualEvaluation) -> dict[str, Any]:
    phrases = {one.support.phrase for one in dual.summary.large if one.support is not None}
    return {"focus": "items with a large gap" if dual.summary.large else "none", "proposed_patterns": len(phrases)}


def _about(request: JudgedRequest, found: JudgedEvaluation) -> tuple[tuple[str, str], ...]:
    """Return where the figures come from, for people."""
    learned = (("learned from", learned_from_words(found.learned_from, len(found.items))),) if found.learned_from else ()
    return (
        *learned,
        ("when", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("items", str(request.items)),
        ("expensive judge", found.expensive.judge),
        ("readings an item", str(found.expensive.repeat)),
        ("rubric", request.rubric or "built-in"),
        ("patterns", "none" if request.patterns is None else str(request.patterns)),
        ("jumar", __version__),
    )


def dual_view(number: int, dual: DualEvaluation, history: Sequence[Mapping[str, Any]] = ()) -> DualView:
    """Return what the dashboard shows of an evaluation."""
    unscored = {
        "expensive": dual.expensive.unscored,
        "cheap": sum(isinstance(one, Unscored) for one in dual.cheap),
    }
    previous = history[-1].get("abs_gap") if history else None
    return DualView(
        iteration=number,
        items=len(dual.items),
        summary=dual.summary,
        tracking=dual.tracking,
        match=dual.pattern_match,
        unscored=unscored,
        cost_usd=dual.expensive.cost_usd,
        previous=previous,
        flags=tuple(dual.health["expensive_evaluator"].flags),
        calls=dual.expensive.calls,
        cached=dual.expensive.cached,
        stopped=dual.expensive.stopped,
    )


def _manifest(request: JudgedRequest, question: JudgeRubric, found: JudgedEvaluation) -> dict[str, Any]:
    """Return what the figures come from: files with their hashes, the judge, what it was asked, and how."""
    evaluation: Evaluation = found.expensive
    return {
        **found.document(),
        "output": None,
        "jumar": __version__,
        "sources": sources_of(request.items),
        "patterns": sources_of(request.patterns),
        "judge": evaluation.judge,
        "question": question.model_dump(mode="json"),
        "settings": evaluation.settings,
    }
