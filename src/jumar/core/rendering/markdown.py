"""Names and sentences from elsewhere, made safe to stand in markdown.

A file name, a reason or a validator's name may hold anything. Written with :func:`inline` it stays text on its line: it can
open no heading, list, table cell, code span, link, image or html tag, and ordinary names stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jumar.core.text import escape

_PUNCTUATION = r"""!"#$%&'()*+,\-./:;<=>?@\[\]\\^_`{|}~"""
_SPECIAL = re.compile(
    rf"""
      (?P<backslash>\\(?=[{_PUNCTUATION}]|$))   # would escape what follows
    | (?P<mark>[*`|]|^\[|\](?=[(\[:])|~(?![0-9])|(?<=[^ ])~)   # a bracket alone opens nothing, nor does the tilde of "~2"
    | (?P<underscore>(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))
    | (?P<lead>^(?:[#>+=-]|[0-9]{{1,9}}(?=[.)](?:\ |$))))   # a heading, quote, list or rule at the beginning of a block
    | (?P<entity>&(?=[#A-Za-z]))
    | (?P<less><(?=\S))
    | (?P<link>(?<=[A-Za-z]):(?=//)|(?<=[Ww]{{3}})\.)   # addresses become links by themselves
    | (?P<space>^\ +|\ +$)
    """,
    re.VERBOSE,
)


def _safe(match: re.Match[str]) -> str:
    found = match.group()
    match match.lastgroup:
        case "less":
            return "&lt;"
        case "entity":
            return "&amp;"
        case "space":
            return "&#32;" * len(found)
        case "lead" if found.isdigit():
            return f"&#{ord(found[0])};{found[1:]}"
        case _:
            return "\\" + found


def inline(text: str) -> str:
    r"""Return ``text`` as one line of markdown that renders as just that text, control characters shown (``\x1b``, ``\n``)."""
    return _SPECIAL.sub(_safe, escape(text))


def row(cells: Iterable[str]) -> str:
    """Return one table row; the cells are markdown already."""
    return f"| {' | '.join(cells)} |"
