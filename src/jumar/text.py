"""Text that reaches a person: control characters made visible, numbers shown rounded.

Artifact names, generator output and reasons come from programs that nobody vetted; a terminal that gets them raw can be
made to show something else. Every rendering goes through :func:`escape`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

__all__ = ["cut", "escape", "escape_block", "json_rows", "json_text", "last_line", "nearest", "percent", "plural", "points"]

# C0, DEL and C1 controls, lone surrogates (undecodable bytes), and the Unicode controls that reorder or break lines.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_OUTER: Final = 2  # levels of a document that are worth a line each
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _shown(match: re.Match[str]) -> str:
    char = match.group()
    if char in _NAMED:
        return _NAMED[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as PEP 383 carries it
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def escape(text: str) -> str:
    r"""Return ``text`` on one line with every control character shown, such as ``\x1b`` or ``\n``."""
    return _UNSAFE.sub(_shown, text)


def escape_block(text: str) -> str:
    """Like :func:`escape`, but line feeds and tabs stay: for output of several lines."""
    return _UNSAFE.sub(lambda m: m.group() if m.group() in "\n\t" else _shown(m), text)


def json_text(document: Mapping[str, Any]) -> str:
    """Return a JSON document that people read too: indented, in their letters, with a line feed at its end.

    Errors: ValueError for a number that is not finite, which is no JSON.
    """
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def json_rows(document: Mapping[str, Any]) -> str:
    """Return a JSON document of many records: its own layout indented, and an object a line where a list holds objects.

    Faster than :func:`json_text`, and shorter. Errors: ValueError for a number that is not finite.
    """
    return f"{_laid_out(document, 0)}\n"


def _laid_out(value: Any, depth: int) -> str:
    inner = "  " * (depth + 1)
    if isinstance(value, Mapping) and value and depth < _OUTER:
        known = cast("Mapping[str, Any]", value)
        shown = [f"{inner}{_compact(str(name))}: {_laid_out(one, depth + 1)}" for name, one in known.items()]
        return "{\n" + ",\n".join(shown) + "\n" + inner[2:] + "}"
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        rows = cast("list[Any]", value)
        return "[\n" + ",\n".join(inner + _compact(one) for one in rows) + "\n" + inner[2:] + "]"
    return _compact(value)


_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def points(value: float, *, sign: bool = False) -> str:
    """Return a score of 0–100 rounded to one decimal; whole numbers without a decimal: ``85``, ``83.3``, ``+13``."""
    shown = f"{value:+.1f}" if sign else f"{value:.1f}"
    shown = shown.removesuffix(".0")
    return "0" if shown in {"-0", "+0"} else shown


def percent(value: float | None) -> str:
    """Return a score of 0–100 as people read it, ``85%``; ``—`` when there is none."""
    return "—" if value is None else f"{points(value)}%"


def cut(text: str, most: int) -> str:
    """Return ``text`` in at most ``most`` characters: a longer one ends after a word, with ``…``."""
    if len(text) <= most:
        return text
    kept = text[: max(0, most - 1)]
    if not text[len(kept)].isspace():
        words = kept.rstrip().rpartition(" ")[0]
        kept = words if len(words) * 2 > most else kept  # one long word is cut inside
    return f"{kept.rstrip(' ,;:')}…"


def last_line(output: str) -> str:
    """Return the last line of a program's output that is not blank, stripped; empty when there is none."""
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")


def plural(count: int, noun: str) -> str:
    """Return ``1 file``, ``2 files``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def nearest(name: str, known: list[str] | tuple[str, ...]) -> str:
    """Return `` (did you mean 'x'?)`` for the closest known name, or an empty string when none is close."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f" (did you mean '{close[0]}'?)" if close else ""
