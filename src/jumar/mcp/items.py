"""The tools that need no loop: score items with what the cheap judge knows, and choose how many of a ranking to keep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jumar.core.lazy import need_extra

_SHOWN: Final = 20


def evaluate_items(path: Path, rubric: str | None, patterns: Path | None, *, detail: bool) -> dict[str, Any]:
    """Return how the items of a file score from 1 to 5, by the cheap judge: nothing is asked and nothing is paid."""
    from jumar.app.evaluate import CheapRequest, evaluate_cheaply

    done = evaluate_cheaply(CheapRequest(items=path, rubric=rubric, patterns=patterns))
    document = done.document()
    if detail:
        return document
    cheap = document["cheap"]
    return {
        "items": document["story_count"],
        "scored": document["scored"],
        "mean": cheap["gestalt_avg"],
        "lowest": cheap["gestalt_min"],
        "highest": cheap["gestalt_max"],
        "per_item": [{"id": item.id, "score": item.score} for item in done.few[:_SHOWN]],
    }


def choose_k(scores: Sequence[float], strategy: str, max_k: int) -> dict[str, Any]:
    """Return how many of the items with these ``scores`` to keep, which, and by which rule."""
    need_extra("topk", "choosing how many to keep", "numpy")
    from jumar.topk.result import ScoredItem
    from jumar.topk.strategies import create_selection_strategy

    items = [ScoredItem(position, score) for position, score in enumerate(scores)]
    result = create_selection_strategy(strategy).select(items, max_k, 1, assume_sorted=False)
    return {
        "k": len(result.selected),
        "kept": [item.item for item in result.selected],
        "cutoff_score": None if result.abstained else result.cutoff_score,
        "rule": result.explain().rule,
    }
