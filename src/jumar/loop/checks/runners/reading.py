"""A command's output, made ready for reading, and all runners that speak in it."""

from __future__ import annotations

from typing import Final

from jumar.core.text import without_escapes
from jumar.loop.checks.runners.go import read_go
from jumar.loop.checks.runners.node import read_dots
from jumar.loop.checks.runners.pytest import read_pytest
from jumar.loop.checks.runners.suite import SuiteRun
from jumar.loop.checks.runners.table import RUNNERS
from jumar.loop.checks.runners.tap import read_tap
from jumar.loop.checks.runners.unittest import read_unittest

__all__ = ["cleaned", "read_runs"]

_LONGEST: Final = 2_000


def cleaned(text: str) -> str:
    """Return ``text`` without escape sequences and trailing blanks, between blank lines.

    What a carriage return overwrote is left out, and a line is cut at 2,000 characters: longer ones are data, and a pattern may
    take time over them.
    """
    lines = (line.rstrip().rpartition("\r")[2] for line in without_escapes(text).split("\n"))
    return "\n\n" + "\n".join(line[:_LONGEST] for line in lines) + "\n\n"


def read_runs(text: str) -> list[SuiteRun]:
    """Return every run that closes in ``text``."""
    runs, lines = read_pytest(cleaned(text).split("\n"))
    output = "\n".join(lines)
    runs += [*read_unittest(output), *read_go(lines), *read_tap(lines)]
    runs += [run for runner in RUNNERS if (run := runner.read(output)) is not None]
    return runs or read_dots(output)
