"""Text that reaches a person: control characters made visible, numbers and scores shown rounded.

Artifact names, generator output and reasons come from programs that nobody vetted; a terminal that gets them raw can be
made to show something else. Every rendering goes through :func:`escape`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from jumar.core.given import Given
from jumar.errors import UsageError

# C0, DEL and C1 controls, lone surrogates (undecodable bytes), and the Unicode controls that reorder or break lines.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")  # C0 always is
# Escape sequences of a terminal: colours and cursor moves (ECMA-48 CSI), titles and links (OSC), character sets (ISO 2022).
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~])")
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_OUTER: Final = 2  # levels of a document that are worth a line each
_PLAIN: Final = str.maketrans(
    {"−": "-", "—": "-", "–": "-", "Δ": "+/-", "✓": "+", "✗": "x", "×": "x", "★": "*", "·": "|", "…": "...", "→": "->"}
    | {"≥": ">=", "±": "+/-"}
)
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


def without_escapes(text: str) -> str:
    """Return ``text`` without the escape sequences that colour it or move a cursor."""
    return _ESCAPES.sub("", text)


class TwiceError(ValueError):
    """A JSON object has a key twice, and nobody can tell which of the values is meant."""


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object that a person wrote (``object_pairs_hook``). Errors: :class:`TwiceError`."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise TwiceError(f"the key '{escape(twice)[:60]}' is there twice in one object")
    return found


def json_text(document: Mapping[str, Any]) -> str:
    """Return a JSON document that people read too: indented, in their letters, with a line feed at its end.

    Characters that a terminal would obey are escaped.

    Errors: ValueError for a number that is not finite, which is no JSON.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", text) + "\n"


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
        return "[\n" + ",\n".join(inner + _compact(row) for row in rows) + "\n" + inner[2:] + "]"
    return _compact(value)


_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def human_size(size: int) -> str:
    """Return a number of bytes for people: ``812 B``, ``10.0 kB``, ``1.2 GB``; powers of 1,000."""
    if size < 1000:
        return f"{size} B"
    amount = float(size)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:.1f} TB"


def points(value: float, *, sign: bool = False) -> str:
    """Return a score of 0–100 rounded to one decimal; whole numbers without a decimal: ``85``, ``83.3``, ``+13``.

    One on a scale of its own is returned as it was given.
    """
    if isinstance(value, Given):
        return value.text(sign=sign)
    shown = f"{value:+.1f}" if sign else f"{value:.1f}"
    shown = shown.removesuffix(".0")
    return "0" if shown in {"-0", "+0"} else shown


def signed_points(value: float) -> str:
    """Return a difference of two scores as a page shows it, with a real minus: ``+13``, ``−4.2``."""
    return points(value, sign=True).replace("-", "−")


def percent(value: float | None) -> str:
    """Return a score of 0–100 as people read it, ``85%``; ``—`` when there is none."""
    return "—" if value is None else points(value) if isinstance(value, Given) else f"{points(value)}%"


def short_dollars(value: float) -> str:
    """Return ``$0.12``; what is below a cent and not zero has four places: ``$0.0042``."""
    return f"${value:,.{2 if value >= 0.01 or value == 0 else 4}f}"


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


def in_ascii(text: str) -> str:
    """Return ``text`` with the signs that we draw with in plain characters, ``->`` for an arrow; other letters stay."""
    return text.translate(_PLAIN)


def cell_width(text: str) -> int:
    """Return how many columns of a terminal ``text`` takes: wide characters two, combining and invisible ones none."""
    return len(text) if text.isascii() else sum(map(_column, text))


def _column(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit(text: str, width: int, end: str = "…") -> str:
    """Return the beginning of ``text`` that takes at most ``width`` columns; a longer one ends with ``end``."""
    if cell_width(text) <= width:
        return text
    room, kept = width - len(end), 0
    for char in text:
        room -= _column(char)
        if room < 0:
            break
        kept += 1
    return (text[:kept] + end)[: max(0, width)]


def wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Return ``text`` in lines of at most ``width`` columns, broken at spaces; all but the first begin after ``indent`` blanks.

    A word that is longer than a line stays whole: a path or a command is to be copied. Line feeds begin a new line.
    """
    lines: list[str] = []
    for part in text.split("\n"):
        line, gap = " " * indent if lines else "", ""
        for word in part.split(" "):
            if cell_width(line + gap) > indent and word and cell_width(line + gap + word) > width:
                lines.append(line.rstrip())
                line, gap = " " * indent, ""
            line, gap = line + gap + word, " "
        lines.append(line.rstrip())
    return lines


def plural(count: int, noun: str) -> str:
    """Return ``1 file``, ``2 files``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


_DIGITS: Final = 9


def natural(digits: str) -> int | None:
    """Return the number that jumar wrote as ``digits``; None for anything else, and for what it has never counted to.

    Names are anybody's: ``str.isdigit`` takes ``²``, which is no number, and a number of 200 digits has no successor that fits.
    """
    return int(digits) if len(digits) <= _DIGITS and digits.isascii() and digits.isdigit() else None


def nearest(name: str, known: list[str] | tuple[str, ...]) -> str:
    """Return `` (did you mean 'x'?)`` for the closest known name, or an empty string when none is close."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f" (did you mean '{close[0]}'?)" if close else ""


def named(paths: Sequence[str]) -> str:
    """Return the first three of ``paths`` for people, and how many more there are."""
    return ", ".join(escape(path) for path in paths[:3]) + (f" and {len(paths) - 3:,} more" if len(paths) > 3 else "")


def check_id(name: str, what: str) -> str:
    """Return ``name`` when it may name a directory of ours, else raise :class:`UsageError` that calls it ``what``."""
    if not _ID.fullmatch(name):
        raise UsageError(
            f"'{escape(name)[:120]}' cannot be a {what}: use 1 to 100 of A-Z a-z 0-9 . _ -, not starting with a dot or dash"
        )
    return name


def number(value: float | None) -> str:
    """Return two decimals, a dash for what does not exist; never a minus before a zero."""
    return "—" if value is None else f"{round(value, 2) + 0.0:.2f}"


def signed(value: float | None) -> str:
    """Return two decimals with their sign; a zero has a plus."""
    return "—" if value is None else f"{round(value, 2) + 0.0:+.2f}"


def shortened(text: str, most: int = 160) -> str:
    """Return ``text`` in at most ``most`` characters, cut at a word, with an ellipsis where it was cut."""
    if len(text) <= most:
        return text
    return text[: most - 1].rsplit(" ", 1)[0].rstrip(",;:") + "…"
