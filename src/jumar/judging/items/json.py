"""JSON from files: one object a line, or the elements of one array, without ever holding the array."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NoReturn

from jumar.core.text import TwiceError, once
from jumar.errors import ItemError
from jumar.judging.items.chunks import CHUNK_BYTES, Chunk, Record, grouped


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
