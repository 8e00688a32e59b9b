"""All runners that speak in one output."""

from __future__ import annotations

from jumar.loop.checks.runners.go import read_go
from jumar.loop.checks.runners.lines import cleaned
from jumar.loop.checks.runners.node import read_dots
from jumar.loop.checks.runners.pytest import read_pytest
from jumar.loop.checks.runners.suite import SuiteRun
from jumar.loop.checks.runners.table import RUNNERS
from jumar.loop.checks.runners.tap import read_tap
from jumar.loop.checks.runners.unittest import read_unittest

__all__ = ["read_runs"]


def read_runs(text: str) -> list[SuiteRun]:
    """Return every run that closes in ``text``."""
    runs, lines = read_pytest(cleaned(text).split("\n"))
    output = "\n".join(lines)
    runs += [*read_unittest(output), *read_go(lines), *read_tap(lines)]
    runs += [run for runner in RUNNERS if (run := runner.read(output)) is not None]
    return runs or read_dots(output)
