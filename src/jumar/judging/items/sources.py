"""Files of items, read once and never all in memory: JSON Lines, a JSON array, CSV, Parquet, lines of text, folders of them."""

from __future__ import annotations

import codecs
import contextlib
import csv
import functools
import io
import json
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NoReturn

from jumar.core.text import TwiceError, escape, once
from jumar.errors import ConfigError, ItemError

LIMIT: Final = 10_000_000
"""Bytes that one record may have."""

CHUNK_BYTES: Final = 1 << 19
CHUNK_RECORDS: Final = 1000

Record = bytes | dict[str, Any]
Origin = Literal["json", "table", "lines"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one file that follow each other, each with its number there.

    ``word`` is what the numbers count: lines, elements or rows. ``origin`` says what a record is: ``json`` the bytes of a line or
    a parsed object, ``table`` a row (lists in it may be text), ``lines`` a line of text. ``end`` is how many bytes were read.
    """

    file: str
    word: str
    origin: Origin
    records: list[tuple[int, Record]]
    end: int

    def where(self, number: int) -> str:
        """Return the words that name a record in messages."""
        return f"{self.file}, {self.word} {number}"


def named(path: Path) -> str:
    """Return the path for messages."""
    return "stdin" if str(path) == "-" else escape(str(path))


def limited_lines(stream: BinaryIO, file: str, limit: int) -> Iterator[bytes]:
    """Yield the lines with their ends; the first without a byte-order mark."""
    number = 0
    while line := stream.readline(limit + 1):
        number += 1
        if len(line) > limit:
            raise ItemError(
                f"{file}, line {number}: longer than {limit:,} bytes, the limit of one record; is it one JSON object a line?"
            )
        yield line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def grouped(
    records: Iterable[tuple[int, Record]], file: str, word: str, origin: Origin, end: Callable[[], int]
) -> Iterator[Chunk]:
    """Yield ``records`` in chunks; ``end`` says how many bytes were read so far."""
    held: list[tuple[int, Record]] = []
    began = end()
    for record in records:
        held.append(record)
        if len(held) >= CHUNK_RECORDS or end() - began >= CHUNK_BYTES:
            yield Chunk(file, word, origin, held, end())
            held, began = [], end()
    if held:
        yield Chunk(file, word, origin, held, end())


class _NotFiniteError(ValueError):
    """A number that JSON does not know."""


def _refuse(constant: str) -> NoReturn:
    raise _NotFiniteError(f"{constant} is no number of JSON; leave it out or write null")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=once)
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def decode(line: bytes, where: str) -> dict[str, Any]:
    """Return the JSON object of a line; halves of surrogate pairs become U+FFFD. Errors: :class:`ItemError`."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ItemError(f"{where}: not UTF-8 at byte {error.start + 1} of the line") from None
    try:
        found: Any = _DECODER.decode(text)
    except (_NotFiniteError, TwiceError) as error:
        raise ItemError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ItemError(f"{where}: not JSON ({error}); one JSON object a line") from None
    if not isinstance(found, dict):
        raise ItemError(f"{where}: {type(found).__name__} instead of an object; one JSON object a line")
    # without the quick look the expression would cost as much as the parser
    return _whole(found) if "\\u" in text and _HALF.search(text) else found  # pyright: ignore[reportUnknownVariableType]


@functools.cache
def quick_json() -> Any:
    """Return the quick library, None where it is not installed."""
    try:
        import orjson
    except ImportError:
        return None
    return orjson


_KEY: Final = re.compile(rb'"\s*:')


def decode_plainly(line: bytes) -> dict[str, Any] | None:
    """Return what :func:`decode` does of a plain object, several times faster, or None where there may be more to it.

    Plain is one without an object or a key twice in it, without half a surrogate pair. A number that no text is may be told
    otherwise; whoever wants one asks :func:`decode`.
    """
    quick = quick_json()
    if quick is None:
        return None
    try:
        found: Any = quick.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and len(_KEY.findall(line)) == len(found) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {_whole(key): _whole(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


_BLANK: Final = re.compile(r"[ \t\r\n]*")


class _Array:
    """The elements of one JSON array, with no more of it in memory than the element at hand and a block."""

    def __init__(self, stream: BinaryIO, file: str, limit: int) -> None:
        self._stream, self._file, self._limit = stream, file, limit
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._number, self._ended = "", 0, 0, False
        self.end = 0

    def elements(self) -> Iterator[tuple[int, Record]]:
        self._next_char()
        self._at += 1
        while True:
            char = self._next_char()
            if char == "]":
                self._at += 1
                if self._next_char():
                    raise ItemError(f"{self._file}: something follows the end of the array; give one array, or one object a line")
                return
            if self._number:
                if char != ",":
                    raise ItemError(f"{self._where()}: no comma or bracket follows it")
                self._at += 1
                char = self._next_char()
            self._number += 1
            if char != "{":
                raise ItemError(f"{self._where()}: no JSON object; an array of objects is needed")
            yield self._number, self._element()

    def _element(self) -> dict[str, Any]:
        more = CHUNK_BYTES
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
            except (_NotFiniteError, TwiceError) as error:
                raise ItemError(f"{self._where()}: {error}") from None
            except (ValueError, RecursionError) as error:
                if self._ended or isinstance(error, RecursionError):
                    raise ItemError(f"{self._where()}: not JSON ({getattr(error, 'msg', error)})") from None
                if len(self._text) - self._at > self._limit:
                    raise ItemError(f"{self._where()}: not JSON, or longer than {self._limit:,} characters, the limit") from None
                self._read(more)
                more *= 2
                continue
            if end - self._at > self._limit:
                raise ItemError(f"{self._where()}: longer than {self._limit:,} characters, the limit of one record")
            broken = _HALF.search(self._text, self._at, end)
            self._at = end
            return _whole(found) if broken else found

    def _next_char(self) -> str:
        while True:
            blank = _BLANK.match(self._text, self._at)
            self._at = self._at if blank is None else blank.end()
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read(CHUNK_BYTES)

    def _read(self, count: int) -> None:
        data = self._stream.read(count)
        self.end += len(data)
        self._ended = not data
        try:
            self._text, self._at = self._text[self._at :] + self._decoder.decode(data, final=self._ended), 0
        except UnicodeDecodeError:
            raise ItemError(f"{self._where()} or soon after it: not UTF-8") from None

    def _where(self) -> str:
        return f"{self._file}, element {self._number}"


def read_array(stream: BinaryIO, file: str, limit: int) -> Iterator[Chunk]:
    """Yield the objects of a JSON array; numbers count elements, from 1. Errors: :class:`jumar.errors.ItemError`."""
    array = _Array(stream, file, limit)
    yield from grouped(array.elements(), file, "element", "json", lambda: array.end)


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
        if len(names) == 1 and {";", "\t"} & {*names[0]}:
            raise ItemError(
                f"{self._file}, line {number}: one column, '{escape(names[0])}'; columns are separated by commas in .csv and by "
                "tabs in .tsv"
            )
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
        yield from read_parquet(path)
        return
    with _opened(path) as stream:
        if suffix in {".csv", ".tsv"}:
            yield from read_table(stream, named(path), "\t" if suffix == ".tsv" else ",", limit)
        elif suffix == ".txt":
            yield from _lines(stream, named(path), "lines", limit)
        elif _begins_with_bracket(stream):
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
