"""Tables of items: CSV, tabs, Parquet. A row is an object whose keys are the columns; an empty cell is empty text or None."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from jumar.errors import ConfigError, ItemError
from jumar.judging.items.chunks import Chunk, Record, grouped, limited_lines, named


def read_table(stream: BinaryIO, file: str, delimiter: str, limit: int) -> Iterator[Chunk]:
    """Yield the rows of a CSV file whose first line names the columns; numbers are those of a row's first line, from 1.

    Errors: :class:`jumar.errors.ItemError` for rows of another length, columns of the same name, open quotes, what is not UTF-8.
    """
    table = _Table(stream, file, delimiter, limit)
    yield from grouped(table.rows(), file, "line", "table", lambda: table.end)


class _Table:
    def __init__(self, stream: BinaryIO, file: str, delimiter: str, limit: int) -> None:
        self._stream, self._file, self._delimiter, self._limit = stream, file, delimiter, limit
        self.end = 0

    def rows(self) -> Iterator[tuple[int, Record]]:
        csv.field_size_limit(max(csv.field_size_limit(), self._limit))  # the library's own limit is 131,072, for all readers
        reader = csv.reader(self._lines(), delimiter=self._delimiter, strict=True)
        begin, header = 1, None
        try:
            for cells in reader:
                number, begin = begin, reader.line_num + 1
                if not cells:
                    continue
                if header is None:
                    header = self._header(cells, number)
                elif len(cells) != len(header):
                    raise ItemError(f"{self._file}, line {number}: {len(cells)} cells below {len(header)} columns")
                else:
                    yield number, dict(zip(header, cells, strict=True))
        except csv.Error as error:
            raise ItemError(
                f"{self._file}, line {begin}: not a table ({error}); quotes come in pairs, around whole cells"
            ) from None

    def _header(self, cells: list[str], number: int) -> list[str]:
        names = [cell.strip() for cell in cells]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ItemError(f"{self._file}, line {number}: two columns are called '{twice}'; give each its own name")
        return names

    def _lines(self) -> Iterator[str]:
        for number, line in enumerate(limited_lines(self._stream, self._file, self._limit), 1):
            self.end += len(line)
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ItemError(f"{self._file}, line {number}: not UTF-8 at byte {error.start + 1} of the line") from None


def read_parquet(path: Path) -> Iterator[Chunk]:
    """Yield the rows of a Parquet file, batch by batch; numbers count rows, from 1.

    Errors: :class:`jumar.errors.ConfigError` without the extra, :class:`jumar.errors.ItemError` for what is no such file.
    """
    try:
        import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]
        from pyarrow import parquet as pq  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise ConfigError(f"{named(path)}: Parquet needs the extra: pip install 'jumar[parquet]'") from None
    file = named(path)
    arrow: Any = pa
    files: Any = pq
    try:
        with files.ParquetFile(path) as parquet:
            size, rows, number = path.stat().st_size, parquet.metadata.num_rows, 0
            for batch in parquet.iter_batches(batch_size=500):
                found: list[dict[str, Any]] = batch.to_pylist()
                records: list[tuple[int, Record]] = [(number + index, row) for index, row in enumerate(found, 1)]
                number += len(found)
                yield Chunk(file, "row", "table", records, size * number // max(1, rows))
    except FileNotFoundError:
        raise ItemError(f"{file}: no such file; name a file of items") from None
    except (arrow.ArrowException, OSError) as error:
        raise ItemError(f"{file}: not a Parquet file that can be read ({str(error).splitlines()[0]})") from None
