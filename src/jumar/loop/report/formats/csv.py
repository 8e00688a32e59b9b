"""The records as CSV: one row an iteration, unknown is an empty cell, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Final

from jumar.core.text import escape
from jumar.loop.report.read import LoopReport
from jumar.model import IterationRecord

__all__ = ["COLUMNS", "export_csv", "render_csv", "safe_cell"]

COLUMNS: Final = (
    "iteration",
    "timestamp",
    "quality_score",
    "quality_delta",
    "tokens_used",
    "cost_usd",
    "execution_time_ms",
    "verification_status",
)

# = + - @, tab and carriage return begin a formula; spreadsheets set to Japanese or Chinese take the full-width forms as well.
_FORMULA = re.compile("^[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def render_csv(report: LoopReport) -> str:
    """Return all records of the report as CSV; see :func:`export_csv`."""
    return export_csv(report.records)


def export_csv(records: Iterable[IterationRecord]) -> str:
    """Return the header and a row for each record, in their order, quoted as RFC 4180 says, with line feeds as line ends."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        values = (
            record.iteration_number,
            record.timestamp,
            record.quality_score,
            record.quality_delta,
            record.tokens_used,
            record.token_cost_usd,
            record.execution_time_ms,
            record.verification_status,
        )
        writer.writerow([safe_cell(value) for value in values])
    return out.getvalue()


def safe_cell(value: str | float | None) -> str:
    """Return one cell: unknown is empty; whole numbers have no decimals; text that a spreadsheet would run begins with ``'``.

    Text that is a plain number, such as ``-2.0``, stays as it is.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        shown = escape(value)
        runs = _FORMULA.match(value) is not None and _NUMBER.fullmatch(value) is None
        return f"'{shown}" if runs else shown
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)
