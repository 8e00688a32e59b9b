"""A command's output, made ready for reading: all runners that speak in it, and what it says of failures. Pure.

An agent is to read why tests fail. ``node --test`` gives five lines to each that passes, ``go test -v`` two, and the end of such
an output may hold no failure at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from jumar.core.text import without_escapes
from jumar.loop.checks.runners.go import read_go
from jumar.loop.checks.runners.node import read_dots
from jumar.loop.checks.runners.pytest import read_pytest
from jumar.loop.checks.runners.suite import SuiteRun
from jumar.loop.checks.runners.table import RUNNERS
from jumar.loop.checks.runners.tap import read_tap
from jumar.loop.checks.runners.unittest import read_unittest

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


_PASSED: Final = re.compile(
    r"(?:[✓✔√] .*"  # mocha, jest, vitest, node
    r"|PASS +\S.*|--- (?:PASS|SKIP): .*|=== (?:RUN|PAUSE|CONT|NAME) .*|ok  \t.*"  # jest, nextest, go
    r"|\S.* \.\.\. (?:ok|ignored|skipped .*)"  # cargo, unittest
    r"|\S+::.* (?:PASSED|SKIPPED|XFAIL)\b.*"  # pytest -v
    r"|\d+/\d+ Test +#\d+: .* Passed .*|Passed .* \[.*\])"  # ctest, dotnet
)
_POINT: Final = re.compile(r"( *)(not )?ok\b")
_STARTED: Final = re.compile(r"( *)# Subtest: ")
_TAP: Final = re.compile(r"^(?:TAP version \d+| *not ok \d+)", re.MULTILINE)
_NOISE: Final = re.compile(
    r"duration_ms: [\d.]+|# [a-z_]+ [\d.]+|1\.\.\d+|.*\((?:node:.*|<anonymous>)\)|node:internal/.*|async Promise\.all .*"
)
"""Lines of a TAP stream that help nobody: how long it took, counts, plans, and what Node's own files have on the stack."""


def without_passing(text: str) -> str | None:
    """Return the lines of a test run's output that are not about a test that passed; None where all of them are kept."""
    lines = without_escapes(text).split("\n")
    kept = list(_of_tap(lines) if _TAP.search("\n".join(lines)) else lines)
    kept = [line for line in kept if len(line) > _LONGEST or not _PASSED.fullmatch(line.strip())]
    return "\n".join(kept) if len(kept) < len(lines) else None


def _of_tap(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines without points that are ok, what stands below them, and the headings of both."""
    headings: list[tuple[int, str]] = []  # of subtests of which nothing was kept so far
    below = -1  # the indent of a point that is ok, while its block may follow
    inside = False
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        if inside or (below >= 0 and indent > below and line.strip() == "---"):
            inside = line.strip() != "..."
            continue
        point, started = _POINT.match(line), _STARTED.match(line)
        below = indent if point is not None and point[2] is None else -1
        if point is not None:
            headings = [heading for heading in headings if heading[0] < indent]
        if started is not None:
            headings.append((indent, line))
        elif below < 0 and (len(line) > _LONGEST or not _NOISE.fullmatch(line.strip())):
            yield from (heading for _, heading in headings)
            headings = []
            yield line
