"""What mode ``auto`` leaves behind: a line an item that says who decided and why, and the folder of one iteration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from jumar.core.files import as_write_error, fsync_directory, rename_new, replace_file
from jumar.core.text import json_rows, json_text
from jumar.core.version import __version__
from jumar.judging.asking.summary import Result
from jumar.judging.auto import Decided
from jumar.judging.dual import cheap_document
from jumar.judging.models import Unscored
from jumar.judging.results.auto_model import AutoEvaluation, AutoRequest, CheapResult
from jumar.judging.results.evaluation_files import item_row
from jumar.judging.results.iteration_folder import new_iteration, sources_of
from jumar.judging.results.judged_files import row_of, write_rows


def write_auto_rows(path: Path, found: AutoEvaluation) -> None:
    """Write ``--per-item``: whole, or not at all."""
    write_rows(path, _rows(found))


def auto_documents(found: AutoEvaluation) -> dict[str, str]:
    """Return what is written about an evaluation, by the names of the files."""
    return {
        "cheap_eval.json": json_rows(cheap_document(found.cheap, found.pattern_match)),
        "expensive_eval.json": json_rows(found.expensive.to_json()),
        "auto_eval.json": json_rows({**found.figures(), "items": [item.to_json() for item in found.outcome.items]}),
    }


def write_auto(output: Path, request: AutoRequest, found: AutoEvaluation) -> AutoEvaluation:
    """Write ``iteration_N`` below ``output``, whole, and return the evaluation with its folder."""
    with as_write_error("write into", output), new_iteration(output) as (_, temporary, directory):
        found = replace(found, directory=directory)
        manifest = {
            **found.document(),
            "output": None,
            "jumar": __version__,
            "sources": sources_of(request.judged.items),
            "patterns": sources_of(request.patterns),
            "proof": sources_of(request.proof),
            "judge": found.expensive.judge,
            "settings": found.expensive.settings,
        }
        stories = "[\n" + ",\n".join(item_row(item) for item in found.items) + "\n]\n"
        for name, text in {"stories.json": stories, **auto_documents(found), "manifest.json": json_text(manifest)}.items():
            replace_file(temporary / name, text.encode())
        fsync_directory(temporary)
        rename_new(temporary, directory)
    return found


def _rows(found: AutoEvaluation) -> list[dict[str, Any]]:
    asked = {result.story_id: result for result in found.expensive.results}
    return [_row(asked.get(decided.id), cheap, decided) for cheap, decided in zip(found.cheap, found.outcome.items, strict=True)]


def _row(expensive: Result | None, cheap: CheapResult, decided: Decided) -> dict[str, Any]:
    """Return an item's line: what every mode has, with the score that counts, who decided it, and why that one."""
    given = expensive or Unscored(story_id=decided.id, kind="missing", message="")
    row = row_of(given, cheap)
    if expensive is None:  # not asked, which is no failure
        row["unscored"] = None
        row["cost_usd"] = 0.0
    return {
        "id": row.pop("id"),
        "score": decided.score,
        "decided_by": decided.judge,
        "why": decided.why,
        "decision": decided.decision,
        "interval": None if decided.interval is None else list(decided.interval),
        "cheap_was_wrong": decided.wrong,
        **row,
    }
