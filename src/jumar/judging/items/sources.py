"""Files of items, read once and never all in memory: JSON Lines, a JSON array, CSV, Parquet, lines of text, folders of them."""

from __future__ import annotations

import codecs
import contextlib
import io
import sys
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from jumar.errors import ItemError
from jumar.judging.items.chunks import CHUNK_BYTES, CHUNK_RECORDS, LIMIT, Chunk, Origin, Record, limited_lines, named


def read_chunks(path: Path, *, limit: int = LIMIT) -> Iterator[Chunk]:
    """Yield the records of ``path`` in their order; ``-`` is stdin.

    A folder gives the lines of its ``.txt`` files, by name; ``.csv``, ``.tsv`` and ``.parquet`` are tables, ``.txt`` is lines;
    anything else is JSON Lines, or one JSON array when it begins with a bracket. Blank lines are skipped. Errors:
    :class:`jumar.errors.ItemError` that names file and line; :class:`jumar.errors.ConfigError` for Parquet without the extra.
    """
    if path.is_dir():
        files = sorted(one for one in path.iterdir() if one.suffix.lower() == ".txt" and one.is_file())
        if not files:
            raise ItemError(
                f"{named(path)}: there is no .txt file in this folder; name a file, or a folder of stories, one a line"
            )
        before = 0
        for file in files:
            with _opened(file) as stream:
                for chunk in _lines(stream, file.name, "lines", limit):
                    yield replace(chunk, end=before + chunk.end)
            before += file.stat().st_size
        return
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        from jumar.judging.items.tables import read_parquet

        yield from read_parquet(path)
        return
    with _opened(path) as stream:
        if suffix in {".csv", ".tsv"}:
            from jumar.judging.items.tables import read_table

            yield from read_table(stream, named(path), "\t" if suffix == ".tsv" else ",", limit)
        elif suffix == ".txt":
            yield from _lines(stream, named(path), "lines", limit)
        elif _begins_with_bracket(stream):
            from jumar.judging.items.json import read_array

            yield from read_array(stream, named(path), limit)
        else:
            yield from _lines(stream, named(path), "json", limit)


def size_of(path: Path) -> int | None:
    """Return how many bytes there are to read; None where nobody knows before the end (stdin)."""
    if str(path) == "-":
        return None
    with contextlib.suppress(OSError):
        if path.is_dir():
            return sum(one.stat().st_size for one in path.iterdir() if one.suffix.lower() == ".txt")
        return path.stat().st_size if path.is_file() else None
    return None


@contextlib.contextmanager
def _opened(path: Path) -> Generator[io.BufferedReader[Any]]:
    if str(path) == "-":
        given = sys.stdin.buffer
        yield given if isinstance(given, io.BufferedReader) else io.BufferedReader(io.BytesIO(given.read()))
        return
    try:
        stream = io.BufferedReader(io.FileIO(path), CHUNK_BYTES)
    except FileNotFoundError:
        raise ItemError(f"{named(path)}: no such file; name a file of items, one JSON object a line") from None
    except OSError as error:
        raise ItemError(f"{named(path)}: cannot be read: {error.strerror}") from None
    with stream:
        yield stream


def _begins_with_bracket(stream: io.BufferedReader[Any]) -> bool:
    return stream.peek(4096).removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"["


def _lines(stream: BinaryIO, file: str, origin: Origin, limit: int) -> Iterator[Chunk]:
    records: list[tuple[int, Record]] = []
    size = end = 0
    for number, line in enumerate(limited_lines(stream, file, limit), 1):
        end += len(line)
        if not line.isspace():
            records.append((number, line))
            size += len(line)
        if size >= CHUNK_BYTES or len(records) >= CHUNK_RECORDS:
            yield Chunk(file, "line", origin, records, end)
            records, size = [], 0
    if records:
        yield Chunk(file, "line", origin, records, end)
