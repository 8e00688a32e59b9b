"""What the loop of ``jumar demo`` is made of: the commands, their weights, and the text to begin with."""

from __future__ import annotations

import codecs
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from jumar.core.text import escape
from jumar.demo.reading import Text, decode, is_binary
from jumar.errors import UsageError

__all__ = ["DOCUMENT", "MOST_BYTES", "DemoPlan", "default_file", "demo_plan"]

DOCUMENT = "document.md"
MOST_BYTES = 64_000
"""More than that is cut, so that the demo stays a matter of seconds: about 10,000 words of English."""

_WEIGHTS = {"coverage": 0.4, "length": 0.3, "readability": 0.1, "structure": 0.1, "novelty": 0.1}
_GUESSED = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}
_CHECKS = ("title", "markup", "links")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """An ordinary loop. All commands run in the working directory, which holds ``content`` as ``document`` and nothing else.

    ``scorers`` are (dimension, command), ``validators`` (name, command). ``notice`` says what the reader should know
    about the input (cut, read as another encoding), else None.
    """

    source: Path
    document: str
    content: bytes
    generator: tuple[str, ...]
    scorers: tuple[tuple[str, tuple[str, ...]], ...]
    validators: tuple[tuple[str, tuple[str, ...]], ...]
    weights: Mapping[str, float]
    objective: str
    iterations: int
    notice: str | None


def default_file() -> Path:
    """Return the text that jumar ships for the demo."""
    return Path(__file__).with_name("field-guide.md")


def demo_plan(file: Path) -> DemoPlan:
    """Return the loop that condenses a copy of ``file``. The file itself is read, never written.

    Raises :class:`UsageError` for a file that is missing, unreadable, not a regular file, empty or not text.
    """
    source = file.resolve()
    data, whole = _read(file)
    content = data if whole else _cut(data)
    text = decode(content)
    if not any(character.isalnum() for character in text.text):
        raise UsageError(f"{escape(str(file))} has no words: give the demo a text to condense")
    cut = () if whole else ("--bytes", str(len(content)))
    python = (sys.executable, "-P", "-m")

    def measure(name: str) -> tuple[str, ...]:
        return (*python, "jumar.demo.measure", name, DOCUMENT, "--reference", str(source), *cut)

    return DemoPlan(
        source=source,
        document=DOCUMENT,
        content=content,
        generator=(*python, "jumar.demo.condense", DOCUMENT),
        scorers=tuple((name, measure(name)) for name in _WEIGHTS),
        validators=tuple((name, measure(name)) for name in _CHECKS),
        weights=MappingProxyType(_WEIGHTS),
        objective="Condense document.md to about a third of its length without losing what it says.",
        iterations=8,
        notice=_notice(text, whole=whole, used=len(content)),
    )


def _read(file: Path) -> tuple[bytes, bool]:
    shown = escape(str(file))
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise UsageError(f"{shown} is not a regular file: give the demo a text file")
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"could not read {shown}: {error.strerror}") from error
    if not data:
        raise UsageError(f"{shown} is empty: give the demo a text to condense")
    if is_binary(data):
        raise UsageError(f"{shown} is not text: the demo condenses plain text, markdown and the like")
    return data[:MOST_BYTES], len(data) <= MOST_BYTES


def _cut(data: bytes) -> bytes:
    """Return the beginning of ``data`` up to the end of a paragraph, else of a line, else of a word, in its second half."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        end = len(data) - len(data) % 2
        high = data[end - 1 if data.startswith(codecs.BOM_UTF16_LE) else end - 2]
        return data[: end - 2 if 0xD8 <= high <= 0xDB else end]  # not between the halves of a surrogate pair
    for mark in (b"\n\n", b"\n\r\n", b"\n", b" "):
        at = data.rfind(mark, len(data) // 2)
        if at >= 0:
            return data[: at + len(mark)]
    end = len(data)
    while end > len(data) - 4 and data[end - 1] & 0xC0 == 0x80:  # not inside a UTF-8 character
        end -= 1
    return data[: end - 1] if data[end - 1] >= 0xC0 else data[:end]


def _notice(text: Text, *, whole: bool, used: int) -> str | None:
    notes: list[str] = []
    if not whole:
        notes.append(f"the file is long: only its first {used:,} bytes are condensed")
    if text.encoding in _GUESSED:
        notes.append(f"the file is not UTF-8: it is read as {_GUESSED[text.encoding]}")
    return "; ".join(notes) or None
