"""As much of Markdown as scoring a text needs: its headings, and its prose without code, tables and addresses.

Line by line and forgiving; not a parser. Headings are ``# …`` and underlined ones, outside of fenced code. The text is the
candidate's, so that every pattern here takes time in proportion to its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,9}[.)])[ \t]+")
_QUOTE = re.compile(r"^\s*>+ ?")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_INLINE = (
    (re.compile(r"!\[[^\[\]\n]*\]\([^)\[\n]*\)"), " "),  # images
    (re.compile(r"\[([^\[\]\n]*)\]\([^)\[\n]*\)"), r"\1"),  # links keep their text
    (re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)"), " "),  # code
    (re.compile(r"</?[A-Za-z][^<>\n]*>"), " "),  # HTML, and addresses in angle brackets
    (re.compile(r"\b(?:https?|ftp)://\S+"), " "),
)


_LONGEST_TITLE = 500
_PIECE = 2_000  # characters that the inline patterns see at once: some of them look ahead as far as they can


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: level 1–6 and its text, as written."""

    level: int
    text: str


def _lines(text: str) -> Iterator[str | None]:
    """Yield the lines outside of fenced code; None stands for a whole fenced block."""
    fence = ""
    for line in text.splitlines():
        marker = _FENCE.match(line)
        if not fence:
            if marker:
                fence = marker[1]
                yield None
            else:
                yield line
        elif marker and marker[1][0] == fence[0] and len(marker[1]) >= len(fence) and not line[marker.end() :].strip():
            fence = ""


def headings(text: str) -> list[Heading]:
    """Return the headings of ``text`` in order."""
    found: list[Heading] = []
    previous = ""
    for line in _lines(_FRONT_MATTER.sub("", text)):
        if line is None:
            previous = ""
            continue
        atx = _ATX.match(line)
        underline = _UNDERLINE.match(line)
        if atx:
            found.append(Heading(len(atx[1]), _title(line[atx.end() :])))
        elif underline and previous.strip():
            found.append(Heading(1 if underline[1][0] == "=" else 2, _title(previous)))
        previous = "" if atx or underline or _ITEM.match(line) or _QUOTE.match(line) or "|" in line else line
    return found


def _title(text: str) -> str:
    """Return the text of a heading without the ``#`` that may close it."""
    title = text.strip()
    closed = title.rstrip("#")
    if not closed or closed[-1] in " \t":
        title = closed.rstrip()
    return title[:_LONGEST_TITLE]


def _without_comments(text: str) -> str:
    parts: list[str] = []
    position = 0
    while (start := text.find("<!--", position)) >= 0 and (end := text.find("-->", start)) >= 0:
        parts.append(text[position:start])
        position = end + 3
    return " ".join([*parts, text[position:]])


def prose_blocks(text: str) -> list[str]:
    """Return the prose of ``text``: one string for each paragraph, heading and list item, without what nobody reads aloud."""
    blocks: list[str] = []
    current: list[str] = []

    def finish() -> None:
        if current:
            blocks.append(" ".join(current))
            current.clear()

    for line in _lines(_without_comments(_FRONT_MATTER.sub("", text))):
        if line is None or not line.strip() or _UNDERLINE.match(line) or line.lstrip().startswith("|"):
            finish()
            continue
        body = _QUOTE.sub("", line, count=1)
        atx = _ATX.match(body)
        if atx or _ITEM.match(body):
            finish()
        current.append(_plain(_title(body[atx.end() :]) if atx else _ITEM.sub("", body, count=1)).strip())
        if atx:
            finish()
    finish()
    return [block for block in blocks if block.strip()]


def _plain(line: str) -> str:
    pieces = [line[start : start + _PIECE] for start in range(0, len(line), _PIECE)]
    for pattern, replacement in _INLINE:
        pieces = [pattern.sub(replacement, piece) for piece in pieces]
    return "".join(pieces)
