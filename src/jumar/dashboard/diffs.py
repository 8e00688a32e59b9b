"""What changed between two snapshots, as lines for a page: numbered, marked and coloured by syntax."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from jumar.core.redaction import current
from jumar.core.text import plural

if TYPE_CHECKING:
    from jumar.loop.report.diff import PathChange, SnapshotDiff

Coloured = Sequence[tuple[str, str]]
"""A line in parts: a class of the style sheet, empty for plain text, and the text."""

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_MOST_COLOURED: Final = 100_000  # characters of a file: hostile text must not keep a regular expression busy
_LONGEST_COLOURED: Final = 1_000
_SECONDS_COLOURING: Final = 1.0  # of all files of a page
_MOST_FILES: Final = 500
_LEXERS: Final = {
    **dict.fromkeys((".py", ".pyi"), "PythonLexer"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "JavascriptLexer"),
    **dict.fromkeys((".ts", ".tsx"), "TypeScriptLexer"),
    **dict.fromkeys((".c", ".h"), "CLexer"),
    **dict.fromkeys((".cc", ".cpp", ".hpp"), "CppLexer"),
    **dict.fromkeys((".sh", ".bash"), "BashLexer"),
    **dict.fromkeys((".yml", ".yaml"), "YamlLexer"),
    ".css": "CssLexer",
    ".go": "GoLexer",
    ".java": "JavaLexer",
    ".json": "JsonLexer",
    ".rb": "RubyLexer",
    ".rs": "RustLexer",
    ".sql": "SqlLexer",
    ".toml": "TOMLLexer",
}
_KINDS: Final = (
    ("Comment", "s-com"),
    ("Literal.String", "s-str"),
    ("Literal.Number", "s-num"),
    ("Keyword", "s-key"),
    ("Name.Function", "s-fun"),
)


def shown_diff(diff: SnapshotDiff) -> dict[str, Any]:
    """Return the files that differ, each with its lines, for the template."""
    marked = [("added", diff.added), ("removed", diff.removed), ("changed", diff.changed)]
    changes = [(what, change) for what, group in marked for change in group]
    until = time.monotonic() + _SECONDS_COLOURING
    return {
        "files": [_file(what, change, until) for what, change in changes[:_MOST_FILES]],
        "more": max(0, len(changes) - _MOST_FILES),
        "unchanged": plural(diff.unchanged, "file"),
        "empty": diff.is_empty,
    }


def _file(what: str, change: PathChange, until: float) -> dict[str, Any]:
    lines: list[tuple[str, str, str, str]] = []
    old = new = 0
    given = current().redact(change.text or "")  # before it is in parts: a secret may stand in several
    for line in given.removesuffix("\n").split("\n") if given else ():  # at nothing else: other breaks are part of a line
        found = _HUNK.match(line)
        if found is not None:
            old, new = int(found[1]), int(found[2])
            lines.append(("hunk", "", "", line))
        elif line.startswith("+"):
            lines.append(("plus", "", str(new), line[1:]))
            new += 1
        elif line.startswith("-"):
            lines.append(("minus", str(old), "", line[1:]))
            old += 1
        elif line.startswith("\\"):
            lines.append(("hunk", "", "", line[2:]))
        else:
            lines.append(("same", str(old), str(new), line[1:]))
            old, new = old + 1, new + 1
    kinds = [kind for kind, *_ in lines]
    texts = _coloured(change.path, [(kind, text) for kind, _, _, text in lines], until)
    return {
        "path": change.path,
        "what": what,
        "note": change.note or ("" if change.text else ", ".join(change.what)),
        "lines": [(kind, before, after, text) for (kind, before, after, _), text in zip(lines, texts, strict=True)],
        "saved": quote(change.path) if change.after is not None and change.after.kind == "file" and _is_text(change.path) else "",
        "plus": kinds.count("plus"),
        "minus": kinds.count("minus"),
    }


def _is_text(path: str) -> bool:
    """Return whether a name can stand in an address: one of undecodable bytes cannot."""
    return path.isprintable() and not any("\ud800" <= char <= "\udfff" for char in path)


def _coloured(path: str, lines: Sequence[tuple[str, str]], until: float) -> list[Coloured]:
    """Return every line in parts; each side of a hunk is read as one piece of source, in plain text when the time is up."""
    plain: list[Coloured] = [[("", text)] for _, text in lines]
    name = _LEXERS.get(PurePosixPath(path).suffix.lower())
    if name is None or sum(len(text) for _, text in lines) > _MOST_COLOURED:
        return plain
    for side in ("minus", "plus"):
        for place in _hunks(lines, {side, "same"}):
            for index, parts in zip(place, _lexed(name, [lines[index][1] for index in place], until), strict=True):
                if lines[index][0] == side or (lines[index][0] == "same" and side == "plus"):
                    plain[index] = parts
    return plain


def _hunks(lines: Sequence[tuple[str, str]], kinds: set[str]) -> Iterable[list[int]]:
    """Yield the places of the lines of one side, a hunk at a time."""
    place: list[int] = []
    for index, (kind, _) in enumerate(lines):
        if kind == "hunk":
            yield place
            place = []
        elif kind in kinds:
            place.append(index)
    yield place


def _lexed(name: str, lines: Sequence[str], until: float) -> list[Coloured]:
    plain: list[Coloured] = [[("", line)] for line in lines]
    if time.monotonic() > until or any(len(line) > _LONGEST_COLOURED or "\r" in line for line in lines):
        return plain
    from pygments import lexers

    lexer = getattr(lexers, name)(stripnl=False, ensurenl=False)
    made: list[list[tuple[str, str]]] = [[]]
    for token, value in lexer.get_tokens("\n".join(lines)):
        if time.monotonic() > until:
            return plain
        kind = _kind_of(str(token).removeprefix("Token."))
        for number, part in enumerate(value.split("\n")):
            if number:
                made.append([])
            if part:
                made[-1].append((kind, part))
    return list(made) if len(made) == len(lines) else plain


def _kind_of(token: str) -> str:
    return next((kind for start, kind in _KINDS if token.startswith(start)), "")
