"""One row an iteration for pandas, Polars and whatever reads Parquet: the same columns with the same types for every loop.

Behind :data:`COLUMNS` come the loop's own dimensions, each as ``dimension_NAME``. What is not known is null, never nought.
"""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from jumar.core.given import Given
from jumar.core.lazy import need_extra
from jumar.core.redaction import current
from jumar.loop.report.diff import DiffLimits, Side, SnapshotDiff, compare, side_of
from jumar.loop.report.export import safe_cell
from jumar.loop.report.read import LoopReport
from jumar.model import CheckResult, IterationRecord, Spend
from jumar.model.attempts import Attempt
from jumar.model.budget.ledger import spend

if TYPE_CHECKING:
    from jumar.loop.store.loop_store import LoopStore

Cell = str | int | float | bool | datetime | None
Kind = Literal["text", "int", "float", "bool", "time"]
Rows = list[dict[str, Cell]]

_LIMITS: Final = DiffLimits(file_bytes=131_072, file_lines=2_000)
_LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the cells of one row are made of. ``spent`` is what all its attempts took, None where none was written."""

    report: LoopReport
    record: IterationRecord
    rank: int | None
    attempts: Sequence[Attempt]
    spent: Spend | None
    changes: SnapshotDiff | None

    @property
    def number(self) -> int:
        return self.record.iteration_number

    @property
    def decided(self) -> list[CheckResult]:
        """The checks that gave a verdict."""
        return [check for check in self.record.checks if check.broken is None]

    def tests(self, what: Literal["passed", "failed", "missing", "total"]) -> int | None:
        """Return a sum over the checks that count tests; None where none does."""
        counts = [check.tests for check in self.decided if check.tests is not None]
        return sum(getattr(each, what) for each in counts) if counts else None

    def lines(self, sign: str) -> int | None:
        """Return how many lines were added (``+``) or removed (``-``); None where a changed file could not be compared."""
        if self.changes is None:
            return None
        changed = (*self.changes.added, *self.changes.removed, *self.changes.changed)
        if any(change.text is None and change.note for change in changed):
            return None
        return sum(line.startswith(sign) for change in changed for line in (change.text or "").split("\n"))

    def files(self) -> int | None:
        return None if (found := self.changes) is None else len(found.added) + len(found.removed) + len(found.changed)

    def started_at(self) -> datetime | None:
        made_by = (attempt.start for attempt in self.attempts if attempt.start.number == self.record.attempt)
        return next((_time(start.started_at) for start in made_by), None)


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and type, and how a row's cell is found."""

    name: str
    kind: Kind
    cell: Callable[[_Seen], Cell]


_VERIFIED: Final[Mapping[str, bool]] = {"passed": True, "failed": False}

COLUMNS: Final[tuple[Column, ...]] = (
    Column("loop_id", "text", lambda row: row.report.loop_id),
    Column("iteration", "int", lambda row: row.number),
    Column("status", "text", lambda row: row.record.status),
    Column("failure", "text", lambda row: row.record.failure),
    Column("score", "float", lambda row: row.record.quality_score),
    Column("score_delta", "float", lambda row: row.record.quality_delta),
    Column("score_all_readings", "float", lambda row: row.report.score_of(row.number)),
    Column("readings", "int", lambda row: None if row.record.quality_score is None else row.report.readings_of(row.number)),
    Column("rank", "int", lambda row: row.rank),
    Column("verified", "bool", lambda row: _VERIFIED.get(row.record.verification_status)),
    Column("selected", "bool", lambda row: row.number == row.report.chosen),
    Column("checks_passed", "int", lambda row: sum(each.passed for each in row.decided) if row.record.checks else None),
    Column("checks_total", "int", lambda row: len(row.record.checks) or None),
    Column("tests_passed", "int", lambda row: row.tests("passed")),
    Column("tests_failed", "int", lambda row: row.tests("failed")),
    Column("tests_missing", "int", lambda row: row.tests("missing")),
    Column("tests_total", "int", lambda row: row.tests("total")),
    Column("cost_usd", "float", lambda row: row.record.token_cost_usd),
    Column("tokens", "int", lambda row: row.record.tokens_used),
    Column("input_tokens", "int", lambda row: row.record.usage.input_tokens),
    Column("output_tokens", "int", lambda row: row.record.usage.output_tokens),
    Column("cached_tokens", "int", lambda row: row.record.usage.cached_tokens),
    Column("seconds", "float", lambda row: _seconds(row.record)),
    Column("attempts", "int", lambda row: len(row.attempts) or None),
    Column("attempts_cost_usd", "float", lambda row: row.spent and row.spent.cost_usd),
    Column("attempts_known_cost_usd", "float", lambda row: row.spent and row.spent.known_cost_usd),
    Column("attempts_estimated_cost_usd", "float", lambda row: row.spent and row.spent.assumed_cost_usd),
    Column("attempts_tokens", "int", lambda row: row.spent and row.spent.tokens),
    Column("attempts_seconds", "float", lambda row: row.spent and row.spent.seconds),
    Column("started_at", "time", lambda row: row.started_at()),
    Column("recorded_at", "time", lambda row: _time(row.record.timestamp)),
    Column("parent", "int", lambda row: row.record.parent),
    Column("batch", "int", lambda row: row.record.batch),
    Column("candidate", "int", lambda row: row.record.candidate),
    Column("files_changed", "int", lambda row: row.files()),
    Column("lines_added", "int", lambda row: row.lines("+")),
    Column("lines_removed", "int", lambda row: row.lines("-")),
    Column("model", "text", lambda row: row.record.usage.model),
    Column("metric", "text", lambda row: row.record.measured and row.record.measured.metric),
    Column("kept_by_agent", "bool", lambda row: row.record.measured and row.record.measured.kept),
    Column("completed", "bool", lambda row: row.record.analysis.completed or row.record.usage.completed),
    Column("reason", "text", lambda row: row.record.status_reason or None),
    Column("tampering", "text", lambda row: "\n".join(row.record.tampering) or None),
    Column("note", "text", lambda row: "\n".join(row.record.reflections) or None),
)
"""Every column that is always there, in order."""

SUFFIXES: Final = {".csv": "csv", ".parquet": "parquet", ".json": "json"}


def columns_of(report: LoopReport) -> tuple[Column, ...]:
    """Return :data:`COLUMNS` and a column for each dimension that an iteration of the loop was scored in."""
    return (*COLUMNS, *(_dimension(name) for name in report.dimensions))


def _dimension(name: str) -> Column:
    return Column(_text(f"dimension_{name}"), "float", lambda row: row.record.dimensions.get(name))


def export_rows(store: LoopStore, report: LoopReport) -> Rows:
    """Return a row for every iteration, the start (0) first: times as ``datetime`` in UTC, unknown as None, secrets redacted."""
    attempts: defaultdict[int | None, list[Attempt]] = defaultdict(list)
    for attempt in store.attempts():
        attempts[attempt.start.iteration].append(attempt)

    @lru_cache(maxsize=8)
    def side(number: int) -> Side:
        return side_of(store, number)

    columns, rows = columns_of(report), Rows()
    ranks = {number: rank for rank, number in enumerate(report.order, 1)}
    for record in report.records:
        parent, number = report.compared_with(record), record.iteration_number
        sides = None if parent is None else (side(parent.iteration_number), side(number))
        told = sides is not None and (sides[0][1] or sides[1][1])  # an imported loop has no snapshots
        made = attempts.get(number, [])
        row = _Seen(
            report=report,
            record=record,
            rank=ranks.get(number),
            attempts=made,
            spent=spend(made, report.budget) if made else None,
            changes=compare(report.loop_id, *sides, limits=_LIMITS) if sides and told and record.measured is None else None,
        )
        rows.append({column.name: _plain(column.kind, column.cell(row)) for column in columns})
    return rows


def render_rows(form: str, store: LoopStore, report: LoopReport) -> bytes:
    """Return the rows as a file's content. Errors: :class:`jumar.errors.MissingExtraError` for ``parquet`` without its extra."""
    return {"csv": _csv, "json": _json, "parquet": _parquet}[form](columns_of(report), export_rows(store, report))


def need_format(form: str) -> None:
    """Return where ``form`` can be written here. Errors: :class:`jumar.errors.MissingExtraError`."""
    if form == "parquet":
        need_extra("parquet", "a Parquet file", "pyarrow")


def _csv(columns: Sequence[Column], rows: Rows) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([safe_cell(column.name) for column in columns])
    writer.writerows([_csv_cell(row[column.name]) for column in columns] for row in rows)
    return out.getvalue().encode()


def _csv_cell(value: Cell) -> str:
    """Return a cell: a fraction keeps its decimals also where it is whole, so that its column is read as one of fractions."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else safe_cell(_written(value))


def _json(_: Sequence[Column], rows: Rows) -> bytes:
    written = [{name: _written(value) for name, value in row.items()} for row in rows]
    return (json.dumps(written, allow_nan=False, indent=1) + "\n").encode()


def _parquet(columns: Sequence[Column], rows: Rows) -> bytes:
    need_format("parquet")
    import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]
    from pyarrow import parquet  # pyright: ignore[reportMissingTypeStubs]

    arrow: Any = pa
    files: Any = parquet
    types = {
        "text": arrow.string(),
        "int": arrow.int64(),
        "float": arrow.float64(),
        "bool": arrow.bool_(),
        "time": arrow.timestamp("us", tz="UTC"),
    }
    schema = arrow.schema([(column.name, types[column.kind]) for column in columns])
    sink = arrow.BufferOutputStream()
    files.write_table(arrow.Table.from_pylist(rows, schema=schema), sink)
    return sink.getvalue().to_pybytes()


def _written(value: Cell) -> str | int | float | None:
    if isinstance(value, datetime):  # all with the same number of digits, which readers take for one format
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value


def _plain(kind: Kind, value: Cell) -> Cell:
    """Return a cell of its column's type; a whole number that no column holds is not known."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Given):
        return value.value
    if kind == "float" and isinstance(value, int):
        return float(value)
    return None if isinstance(value, int) and abs(value) > _LARGEST else value


def _text(text: str) -> str:
    """Return text that any file takes, with secrets redacted."""
    return current().redact(text).encode("utf-8", "backslashreplace").decode()


def _seconds(record: IterationRecord) -> float | None:
    return None if record.execution_time_ms is None else round(record.execution_time_ms / 1000, 6)


def _time(text: str) -> datetime | None:
    """Return the moment; one that says no zone is in UTC, and what a foreign program wrote need not be one."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
