"""``best-output-tracking.json`` and ``best-tracker.json``: the records in the two seeds' own formats.

The original tool does arithmetic on every number of an iteration, so what is unknown is 0 there, and a key of ours beside it
says that it is not known. Keys of ours come after the original's: ``baseline`` (iteration 0), ``derived_from``, ``*_known``,
``status``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from jumar.loop.ranking.choose import running_best
from jumar.loop.report.read import LoopReport
from jumar.loop.store.layout import iteration_name
from jumar.model import IterationRecord

__all__ = ["MOST_LISTED", "best_document", "tracking_chunks", "tracking_entry"]

MOST_LISTED: Final = 500
"""With more artifacts than this an iteration lists their directory: a long loop over a large tree has millions of them."""


def tracking_chunks(
    report: LoopReport, records: Iterable[IterationRecord], *, at: str, derived_from: dict[str, Any]
) -> Iterator[bytes]:
    """Yield the tracking view piece by piece, one iteration at a time, so that it is never in memory as a whole.

    ``records`` are those of the report, with their artifacts. ``at`` becomes ``last_updated``.
    """
    head = {
        "loop_id": report.loop_id,
        "config": {
            "storage_path": report.storage_path,
            "selection": report.criteria.to_json(),
            "keep_all_iterations": report.config.get("keep_all_iterations", True) is not False,
            "quality_weights": dict(report.weights),
        },
    }
    yield _inside(head) + b',\n  "iterations": ['
    baseline: dict[str, Any] | None = None
    begun = False
    for record in records:
        entry = tracking_entry(record, report.storage_path)
        if record.iteration_number == 0:
            baseline = entry
            continue
        yield (b"," if begun else b"") + b"\n    " + _dump(entry).replace(b"\n", b"\n    ")
        begun = True
    yield b"\n  ],\n" if begun else b"],\n"
    tail: dict[str, Any] = {"best_iteration_number": _best_pass(report), "last_updated": at}
    if baseline is not None:
        tail["baseline"] = baseline
    tail["derived_from"] = derived_from
    yield _dump(tail).removeprefix(b"{\n") + b"\n"


def _dump(data: dict[str, Any]) -> bytes:
    return json.dumps(data, allow_nan=False, indent=2).encode("ascii")


def _inside(data: dict[str, Any]) -> bytes:
    return _dump(data).removesuffix(b"\n}")


def _best_pass(report: LoopReport) -> int | None:
    """The best of those that the view lists; iteration 0 is not among them."""
    best = running_best(view for view in report.views if view.number > 0)
    return None if best is None else best.number


def tracking_entry(record: IterationRecord, storage_path: str) -> dict[str, Any]:
    """Return one iteration with the original's fields in its order. Paths begin with ``storage_path``, as the original's do.

    ``snapshot_path`` ends in ``iteration-NNN``, by which the original's readers know an iteration. In our layout the files lie
    one level deeper, in the directory ``artifacts/`` that the record itself names, and ``artifacts`` lists them there.

    An invalid score stays null: in the original's sums it counts as nothing, and it is never the best.
    """
    inside = f"iterations/{iteration_name(record.iteration_number)}"
    here = record.snapshot_path.removesuffix(inside)
    snapshot = f"{storage_path.rstrip('/')}/{inside}" if storage_path else inside

    def as_stored(path: str) -> str:
        return snapshot + path.removeprefix(here + inside) if path.startswith(here + inside) else path

    many = len(record.artifacts) > MOST_LISTED
    entry: dict[str, Any] = {
        "iteration_number": record.iteration_number,
        "timestamp": record.timestamp,
        "quality_score": record.quality_score,
        "quality_delta": record.quality_delta,
        "dimensions": dict(record.dimensions),
        "tokens_used": record.tokens_used or 0,
        "token_cost_usd": record.token_cost_usd or 0,
        "execution_time_ms": record.execution_time_ms or 0,
        "verification_status": record.verification_status,
        "snapshot_path": snapshot,
        "artifacts": [f"{snapshot}/artifacts"] if many else [as_stored(path) for path in record.artifacts],
        "reflections": list(record.reflections),
        "status": record.status,
    }
    known = {
        "tokens_known": record.tokens_used is not None,
        "token_cost_known": record.token_cost_usd is not None,
        "execution_time_known": record.execution_time_ms is not None,
        "artifacts_listed": not many,
    }
    return entry | {name: False for name, value in known.items() if not value}


def best_document(report: LoopReport, *, derived_from: dict[str, Any], output: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``best-tracker.json``: seed 1's running best, verified or not, and ``output``: what ``final-output/`` holds."""
    current: dict[str, Any] | None = None
    if report.leaders:
        best = report.record(report.leaders[-1])
        path = f"{report.storage_path.rstrip('/')}/iterations/{iteration_name(best.iteration_number)}/artifacts/"
        current = {"iteration": best.iteration_number, "quality_score": best.quality_score, "artifacts_path": path}
    return {"current_best": current, **output, "derived_from": derived_from}
