"""A case's file: the expert's report, a line of three dashes, a line with the marker, and the query for the agent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from jumar.core.text import escape, plural
from jumar.errors import ConfigError

__all__ = ["MARKER", "SEPARATOR", "CaseText", "read_case_file"]

MARKER: Final = "E2E Test Query"
SEPARATOR: Final = "---"
_LARGEST: Final = 16 << 20


class CaseText(NamedTuple):
    """The two texts of a case, without the blank lines around them; neither is empty."""

    report: str
    prompt: str


def read_case_file(path: Path, *, marker: str = MARKER, separator: str = SEPARATOR) -> CaseText:
    """Read a case. The first line that contains ``marker`` begins the query; the last ``separator`` before it ends the report.

    Without a separator the report goes up to the marker. Errors: :class:`jumar.errors.ConfigError` that names file and line.
    """
    shown = escape(os.fspath(path))
    lines = _text(path, shown).replace("\r\n", "\n").split("\n")
    at = next((index for index, line in enumerate(lines) if marker in line), None)
    if at is None:
        raise ConfigError(
            f"{shown}: no line with the marker {escape(repr(marker))} in {plural(sum(map(bool, lines)), 'line')} of text; "
            f"a case is the expert's report, a line '{escape(separator)}', a line with the marker, and the query below it"
        )
    end = next((index for index in range(at - 1, -1, -1) if lines[index].strip() == separator), at)
    report = "\n".join(lines[:end]).strip()
    prompt = "\n".join(lines[at + 1 :]).strip()
    if not report:
        raise ConfigError(f"{shown}:{end + 1}: the expert's report is empty: there is nothing above this line")
    if not prompt:
        raise ConfigError(f"{shown}:{at + 1}: the query is empty: there is nothing below the marker in this line")
    return CaseText(report=report, prompt=prompt)


def _text(path: Path, shown: str) -> str:
    try:
        if not path.is_file():
            problem = "is a directory; name a file" if path.is_dir() else "there is no such file"
            raise ConfigError(f"{shown}: {problem}")
        if path.stat().st_size > _LARGEST:
            raise ConfigError(f"{shown}: larger than {_LARGEST >> 20} MB; that is no case file")
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown}: not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be read: {os.strerror(error.errno or 0)}") from None
