"""What a test run left, turned into counts: JUnit reports, TAP, and the closing lines of test runners. Pure."""

from __future__ import annotations

from jumar.loop.checks.runners.junit import parse_xml, read_junit, read_sessions
from jumar.loop.checks.runners.suite import Outcome, SuiteRun, joined, short_identity, together

__all__ = [
    "Outcome",
    "SuiteRun",
    "joined",
    "parse_xml",
    "read_junit",
    "read_runs",
    "read_sessions",
    "short_identity",
    "together",
]


def read_runs(text: str) -> list[SuiteRun]:
    """Return every run that closes in a command's output: several of pytest, which writes one report a session.

    ``text`` is standard output followed by standard error, and may be anything: a program that nobody vetted wrote it.
    """
    from jumar.loop.checks.runners.table import read_runs  # the patterns are compiled where a check printed something

    return read_runs(text)
