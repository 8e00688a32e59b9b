"""The built-in step ``feedback``: the judge's result, turned into what the next iteration is to improve."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from jumar.cases.ranking import thresholds_reached
from jumar.cases.records import CaseLimits
from jumar.cases.store.judged import read_judgement
from jumar.core.codec import FORMAT
from jumar.model.pipeline import DEFAULT_KEYS, CaseStepContext

__all__ = ["write_feedback"]

_SHOWN: Final = ("composite_score", "grade", "summary")
_DIMENSION: Final = ("name", "score", "weight", "explanation", "matched_elements", "missing_elements")


def write_feedback(context: CaseStepContext, limits: CaseLimits, *, keys: Mapping[str, str] = DEFAULT_KEYS) -> None:
    """Write the role ``feedback`` from the role ``judge``, in the original orchestrator's fields.

    ``stop_reached`` says whether every threshold holds. A judge's file that cannot be used is said under ``problems``, and its
    scores are null: that is for the iteration's record to judge, and no failure of this step.
    """
    judgement = read_judgement(context.inputs["judge"], keys)
    judged = _document(context.inputs["judge"])
    listed = judged.get("dimensions")
    items = cast("list[object]", listed) if isinstance(listed, list) else []
    dimensions = [_picked(cast("dict[str, Any]", item), _DIMENSION) for item in items if isinstance(item, dict)]
    feedback = {
        "format": FORMAT,
        "run_id": context.run_id,
        "iter_num": context.iteration,
        "average_score": judgement.values.get("overall"),
        "accuracy_score": judgement.values.get("accuracy"),
        "scores": dict(judgement.values),
        "problems": sorted(set(judgement.problems.values())),
        "per_case": {context.case_id: {**_picked(judged, _SHOWN), "dimensions": dimensions}},
        "stop_reached": thresholds_reached(judgement.values, limits.thresholds, limits.at_most),
        "stop": {f"{'max' if name in limits.at_most else 'min'}_{name}": limit for name, limit in limits.thresholds.items()},
    }
    context.outputs["feedback"].write_bytes(_encoded(_finite(feedback)))


def _encoded(document: Any) -> bytes:
    """Return JSON that people can read, whatever their language; a text that is no Unicode is escaped instead."""
    try:
        return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode("ascii")


def _finite(value: Any) -> Any:
    """Return a document without numbers that JSON does not have: ``1e999`` is read as an infinity, and becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_finite(item) for item in cast("list[Any]", value)]
    return value


def _document(path: Path) -> dict[str, Any]:
    try:
        found: object = json.loads(path.read_bytes(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _no_number(_name: str) -> None:
    """NaN and the infinities are no JSON, and no scores."""


def _picked(item: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: item[name] for name in names if name in item}
