r"""Reading a file of unknown encoding as text, and writing it back the way it was.

UTF-8 first (with or without a byte order mark), UTF-16 when its mark says so, else Windows-1252, else Latin-1, which reads every
byte. The line ends that the file uses most are kept; inside, they are ``\n``.
"""

from __future__ import annotations

import codecs
import os
from typing import NamedTuple

__all__ = ["Text", "decode", "encode", "is_binary", "read_text", "write_text"]


class Text(NamedTuple):
    r"""What a file says (line ends ``\n``), and how it was written down."""

    text: str
    encoding: str
    newline: str


def is_binary(data: bytes) -> bool:
    """Whether ``data`` is no text: NUL bytes outside of UTF-16, or more than one control character in twenty."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    head = data[:65_536]
    if b"\0" in head:
        return True
    controls = sum(byte < 32 and byte not in b"\b\t\n\v\f\r\x1b" for byte in head)
    return controls * 20 > len(head)


def decode(data: bytes) -> Text:
    """Return the text of ``data``. Never fails: what is not UTF-8 or UTF-16 is read as Windows-1252 or Latin-1."""
    for encoding in _candidates(data):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        break
    else:
        encoding = "latin-1"
        text = data.decode(encoding)
    crlf = text.count("\r\n")
    newline = "\r\n" if crlf * 2 > text.count("\n") else "\n"
    if crlf:
        text = text.replace("\r\n", "\n")
    if "\r" in text and "\n" not in text:
        newline, text = "\r", text.replace("\r", "\n")
    return Text(text, encoding, newline)


def _candidates(data: bytes) -> tuple[str, ...]:
    if data.startswith(codecs.BOM_UTF8):
        return ("utf-8-sig", "cp1252")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ("utf-16", "utf-8", "cp1252")
    return ("utf-8", "cp1252")


def encode(text: Text) -> bytes:
    """Return the bytes of ``text`` in its own encoding and with its own line ends."""
    said = text.text if text.newline == "\n" else text.text.replace("\n", text.newline)
    return said.encode(text.encoding)


def read_text(path: str, *, limit: int | None = None) -> Text:
    """Read the file ``path``, or only its first ``limit`` bytes. Raises ``OSError``."""
    with open(path, "rb") as file:  # noqa: PTH123  (a child process that reads one file need not load pathlib)
        return decode(file.read() if limit is None else file.read(limit))


def write_text(path: str, text: Text) -> None:
    """Replace the file ``path`` in one step; a reader sees the old or the new text. Raises ``OSError``."""
    temporary = f"{path}.{os.getpid()}.new"
    try:
        with open(temporary, "wb") as file:  # noqa: PTH123  (as above)
            file.write(encode(text))
        os.replace(temporary, path)  # noqa: PTH105  (as above)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)  # noqa: PTH108  (as above)
        raise
