"""A file that somebody's loop wrote, as columns and rows: separated by tabs, commas, semicolons or spaces, or JSON objects.

Nothing is taken as data that is none, and what is left out is counted: comments are metadata, a line that is no row is skipped.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

from jumar.core.files import read_bytes, sha256_bytes
from jumar.core.text import escape, human_size
from jumar.errors import UsageError
from jumar.model.ordering import Direction

MOST_BYTES: Final = 256 << 20
_MOST: Final = 1e300  # what is beyond, the infinities and NaN are no measurements
_DIRECTIONS: Final[Mapping[str, Direction]] = {
    **dict.fromkeys(("higher", "higher_is_better", "max", "maximize", "maximise", "up"), "max"),
    **dict.fromkeys(("lower", "lower_is_better", "min", "minimize", "minimise", "down"), "min"),
}
_QUOTED: Final = re.compile(r'^\s*"([^"]*)"\s*$')
_DECIMALS: Final = re.compile(r"^(\s*[-+]?\d+),(\d+\s*)$")
_DECLARED: Final = re.compile(r"(?:metric[ _-]?)?direction\W+(\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``cells`` are texts, one a column at most: a short row has fewer, and an object lacks some. ``line`` counts from 1."""

    line: int
    cells: tuple[str | None, ...]

    def has(self, column: int) -> bool:
        """Return whether the row has this cell, be it empty."""
        return column < len(self.cells) and self.cells[column] is not None

    def cell(self, column: int | None) -> str:
        """Return one cell, empty where there is none."""
        return (self.cells[column] or "").strip() if column is not None and column < len(self.cells) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``names`` are those of the columns, empty without a header. ``metric`` and ``directions`` are what the file says of itself.

    ``skipped`` are lines that hold no row, and why. ``zero_is_none``: the format writes 0 where nothing was measured. ``note``
    says what of the file was taken, where that is not all; ``sha256`` is that of the bytes that were read.
    """

    path: Path
    names: tuple[str, ...]
    rows: tuple[Row, ...]
    metric: str | None = None
    directions: frozenset[Direction] = frozenset()
    skipped: tuple[tuple[int, str], ...] = ()
    zero_is_none: bool = False
    note: str = ""
    sha256: str = ""

    @property
    def width(self) -> int:
        """The number of columns."""
        return max([len(self.names), *(len(row.cells) for row in self.rows)], default=0)

    def column(self, name: str) -> int | None:
        """Return the first column of that name, whatever its case."""
        wanted = name.casefold()
        return next((place for place, known in enumerate(self.names) if known.casefold() == wanted), None)


def number_in(cell: str) -> float | None:
    """Return the finite number that a cell holds, ``83.4``, ``+2e-3`` or ``12%``; None for anything else."""
    try:
        found = float(cell.strip().removesuffix("%"))
    except ValueError:
        return None
    return found if abs(found) <= _MOST and "_" not in cell else None


def read_table(path: Path) -> Table:
    """Read a file. Errors: :class:`UsageError` that names it, for one that cannot be read or holds no rows."""
    shown = escape(str(path))
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise UsageError(f"{shown} has {human_size(size)}; the most that is read is {human_size(MOST_BYTES)}")
        content = read_bytes(path, links=True)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{shown} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown}, byte {error.start}: not UTF-8 text; write it as UTF-8") from error
    csv.field_size_limit(max(csv.field_size_limit(), MOST_BYTES))  # the library's own limit is 131,072, for all readers
    start = text.lstrip()[:1]
    try:
        table = _objects(path, text) if start in {"{", "["} else _lines(path, text)
    except csv.Error as error:
        raise UsageError(f"{shown}: not readable as a table ({error})") from error
    if not table.rows:
        raise UsageError(f"{shown} holds no rows: expected a header and rows, or a JSON object a line")
    return replace(table, sha256=sha256_bytes(content))


# ------------------------------------------------------------------------------------------------------------- rows of text


def _lines(path: Path, text: str) -> Table:
    declared: set[Direction] = set()
    kept: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("#"):
            declared |= _declared(line)
        elif line.strip():
            kept.append((number, line))
    if not kept:
        return Table(path=path, names=(), rows=())
    split = _splitter(kept[0][1])
    first = split(kept[0][1])
    named = not any(number_in(cell) is not None for cell in first)
    width = len(first)
    skipped: list[tuple[int, str]] = []
    rows: list[Row] = []
    for number, cells in _split(text, kept, split):
        if len(cells) == 1 < width:
            skipped.append((number, "one field only"))
        elif not (named and number == kept[0][0]) and cells != first[: len(cells)] * named:
            rows.append(Row(line=number, cells=tuple(cells)))
    names = tuple(cell.strip() for cell in first) if named else ()
    return Table(path=path, names=names, rows=tuple(rows), directions=frozenset(declared), skipped=tuple(skipped))


def _declared(line: str) -> set[Direction]:
    return {_DIRECTIONS[word.lower()] for word in _DECLARED.findall(line) if word.lower() in _DIRECTIONS}


def _splitter(header: str) -> Callable[[str], list[str]]:
    """Return what splits a line into cells, by what separates the first one."""
    if "\t" in header:
        return lambda line: [_QUOTED.sub(r"\1", cell) for cell in line.split("\t")]
    if "," in header:
        return lambda line: next(csv.reader([line]))
    if ";" in header:  # as spreadsheets write it where a comma stands before the decimals
        return lambda line: [_DECIMALS.sub(r"\1.\2", cell) for cell in next(csv.reader([line], delimiter=";"))]
    wide = re.split(r" {2,}", header.strip())
    if len(wide) > 1:
        return lambda line: re.split(r" {2,}|\t", line.strip())
    width = len(header.split())
    return lambda line: re.split(r"\s+", line.strip(), maxsplit=max(0, width - 1))


def _split(text: str, kept: Sequence[tuple[int, str]], split: Callable[[str], list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each line. Quoted cells of commas may hold line feeds; a tab ends a cell whatever stands before it."""
    if "\t" in kept[0][1] or "," not in kept[0][1]:
        yield from ((number, split(line)) for number, line in kept)
        return
    reader = csv.reader(io.StringIO(text, newline=""))
    begun = 1
    for cells in reader:
        if cells and not cells[0].lstrip().startswith("#"):
            yield begun, cells
        begun = reader.line_num + 1


# ------------------------------------------------------------------------------------------------------------ JSON objects


@dataclass(slots=True)
class _Part:
    """What follows one ``config`` line, which begins another loop in the same file: other code, another benchmark."""

    metric: str | None = None
    directions: frozenset[Direction] = frozenset()
    found: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list[tuple[int, Mapping[str, Any]]])

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> _Part:
        name, direction = config.get("metricName"), _DIRECTIONS.get(str(config.get("bestDirection", "")).lower())
        return cls(name if isinstance(name, str) else None, frozenset([direction] if direction else []))

    @property
    def runs(self) -> int:
        return sum("status" in value for _, value in self.found)


def _objects(path: Path, text: str) -> Table:
    skipped: list[tuple[int, str]] = []
    parts = [_Part()]
    for number, value in _parsed(path, text, skipped):
        if value.get("type") == "config":
            parts.append(_Part.of(value))
        else:
            parts[-1].found.append((number, _flat(value, parts[-1].metric)))
    parts = [part for part in parts if part.found]
    taken = max(parts, key=lambda part: (part.runs, len(part.found)), default=_Part())
    skipped += [(number, "of another loop in the file") for part in parts if part is not taken for number, _ in part.found]
    names = tuple(dict.fromkeys(name for _, value in taken.found for name in value))
    rows = [
        Row(line=number, cells=tuple(_text(value[name]) if name in value else None for name in names))
        for number, value in taken.found
    ]
    return Table(
        path=path,
        names=names,
        rows=tuple(rows),
        metric=taken.metric,
        directions=taken.directions,
        skipped=tuple(skipped),
        zero_is_none=taken.metric is not None,
        note=f"the file holds {len(parts)} loops; this is the longest, from line {rows[0].line}" if len(parts) > 1 else "",
    )


def _parsed(path: Path, text: str, skipped: list[tuple[int, str]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if text.lstrip().startswith("["):
        try:
            every: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{escape(str(path))}: not readable as JSON ({escape(str(error))})") from error
        listed = cast("list[object]", every) if isinstance(every, list) else []
        candidates: Iterable[tuple[int, object]] = enumerate(listed, start=1)
    else:
        candidates = ((number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip())
    for number, given in candidates:
        value = given
        if isinstance(given, str):
            try:
                value = json.loads(given)
            except (ValueError, RecursionError):
                skipped.append((number, "not readable as JSON"))
                continue
        if isinstance(value, Mapping):
            yield number, cast("Mapping[str, Any]", value)
        else:
            skipped.append((number, "no JSON object"))


def _flat(value: Mapping[str, Any], metric: str | None) -> dict[str, Any]:
    """Return an object's own values and those of its ``metrics``; ``metric`` is the name of what stands under that key."""
    more: object = value.get("metrics")
    own = {(metric if metric and key == "metric" else str(key)): each for key, each in value.items() if key != "metrics"}
    return {**cast("Mapping[str, Any]", more), **own} if isinstance(more, Mapping) else own


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value)
