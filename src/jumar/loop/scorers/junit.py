"""``junit``: the share of tests that pass, from a JUnit XML report."""

from __future__ import annotations

from jumar.loop.checks.runners import read_junit
from jumar.loop.scorers.reports import report_builtin
from jumar.processes.values import ScoreValue


def junit_score(contents: list[bytes]) -> ScoreValue:
    """Return passed ÷ (total − skipped) over all files; invalid when no test ran.

    Errors: :class:`jumar.processes.written_files.UnreadableFileError`.
    """
    run = read_junit(contents)
    if run.ran == 0:
        return ScoreValue(score=None, invalid="the report says that no test ran")
    failing = run.named("failed")
    reason = f"{run.passed} of {run.ran} tests passed"
    if failing:
        reason += f"; failing: {', '.join(failing[:5])}{', …' if len(failing) > 5 else ''}"
    return ScoreValue(score=run.passed / run.ran, reason=reason)


JUNIT = report_builtin("junit", junit_score, dimension="correctness")
