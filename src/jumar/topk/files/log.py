"""Selections out of logs: what :class:`jumar.topk.JsonFormatter` writes, what ``jumar topk select --json`` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from jumar.core.text import escape
from jumar.errors import ScoreError
from jumar.topk.contract import as_float
from jumar.topk.files.rankings import lines
from jumar.topk.tuning.drift import Reading

__all__ = ["SelectionLog", "read_log"]


class SelectionLog(NamedTuple):
    """The selections of a log in its order, and how many lines held none."""

    readings: tuple[Reading, ...]
    skipped: int


def read_log(path: Path) -> SelectionLog:
    """Return the selections in a log, one JSON object a line, ``-`` for stdin; lines of others are skipped and counted.

    Errors: :class:`jumar.errors.NotFoundError`; :class:`jumar.errors.ScoreError` when there is no selection in it.
    """
    found: list[Reading] = []
    skipped = 0
    for line, _ in lines(path):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        readings = list(_readings(row)) if isinstance(row, dict) else []  # pyright: ignore[reportUnknownArgumentType]
        found += readings
        skipped += not readings
    if not found:
        raise ScoreError(
            f"{escape(str(path))}: no selection in it; it takes lines with 'retrieval', as jumar.topk.JsonFormatter "
            "writes them, or the output of `jumar topk select --json`"
        )
    return SelectionLog(tuple(found), skipped)


def _readings(row: Mapping[str, Any]) -> Iterator[Reading]:
    if isinstance(row.get("retrieval"), dict):
        kinds: dict[str, Any] = row["retrieval"]
        where = _time(row.get("time")) or str(row.get("logical_turn_id") or "")
        for kind, one in kinds.items():
            if isinstance(one, dict):
                selection = cast("dict[str, Any]", one)
                yield from _reading(f"{kind} · {selection.get('strategy')}", selection, "output_count", where)
    elif "method" in row:
        yield from _reading(str(row["method"]), row, "kept", f"query {row.get('query_id')}")


def _reading(stream: str, row: Mapping[str, Any], counted: str, where: str) -> Iterator[Reading]:
    cutoff, kept = as_float(row.get("cutoff_score")), row.get(counted)
    if cutoff - cutoff == 0.0 and isinstance(kept, int) and not isinstance(kept, bool) and kept >= 0:
        yield Reading(stream, cutoff, kept, where)


def _time(value: Any) -> str:
    """Return seconds since 1970 as a time for people, and a text as it is."""
    if isinstance(value, str):
        return value
    seconds = as_float(value)
    if not 0 <= seconds < 253_402_300_800:  # the year 10000
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
