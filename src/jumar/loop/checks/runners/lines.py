"""A command's output, made ready for reading."""

from __future__ import annotations

from typing import Final

from jumar.core.text import without_escapes

__all__ = ["cleaned"]

_LONGEST: Final = 2_000


def cleaned(text: str) -> str:
    """Return ``text`` without escape sequences and trailing blanks, between blank lines.

    What a carriage return overwrote is left out, and a line is cut at 2,000 characters: longer ones are data, and a pattern may
    take time over them.
    """
    lines = (line.rstrip().rpartition("\r")[2] for line in without_escapes(text).split("\n"))
    return "\n\n" + "\n".join(line[:_LONGEST] for line in lines) + "\n\n"
