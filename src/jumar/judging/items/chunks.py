"""Records of a file in chunks, and the limits of what is held in memory."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from jumar.core.text import escape
from jumar.errors import ItemError

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
