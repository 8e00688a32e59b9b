"""Scorers of a report, with ``junit``: they run the command that writes it, and refuse one that is left from before."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from jumar.core.files import UnreadableFileError
from jumar.loop.checks.runners import read_junit
from jumar.loop.scorers.base import Builtin, Options, ProgramScorer, ScorerRuntime, broken, reading
from jumar.model.protocols import Scorer, StepContext
from jumar.model.records import ScoreReading
from jumar.processes.process import broken_reason
from jumar.processes.usage import ScoreValue
from jumar.processes.written_files import FileIdentity, find_files, identity, read_regular

_TICK: Final = 50_000_000  # ns that a file's time may lag behind the clock: kernels stamp files with the last tick
APART: Final = 2 * _TICK / 1e9
"""So many seconds before a moment a file was written that does not belong to it."""

_COARSE: Final = 2_000_000_000  # the same for file systems that keep whole seconds


class ReportScorer(ProgramScorer):
    """Measures the report files that ``path`` names, after running ``command`` if there is one.

    The command's exit code does not matter: failing tests are what the report is about. That it could not run at all makes the
    scorer broken. No report, or none that belongs to this iteration, is an invalid score: nothing was measured.
    """

    def __init__(
        self, dimension: str, options: Options, runtime: ScorerRuntime, *, name: str, measure: Callable[[list[bytes]], ScoreValue]
    ) -> None:
        super().__init__(dimension, options.command(), timeout=options.timeout(), runtime=runtime)
        self.name = name
        self.path = options.path()
        self.measure = measure

    def score(self, context: StepContext) -> ScoreReading:
        """Make the report where that is asked for, and measure it."""
        seconds = 0.0
        try:
            before = _identities(context.workdir, self.path)
            if self.command is not None:
                result = self.run(self.command, context, self.name)
                seconds = result.seconds
                why = broken_reason(result)
                if why is not None:
                    return broken(self.dimension, self.name, why, seconds=seconds)
            value = self._measured(context, before)
        except (UnreadableFileError, FileNotFoundError) as error:
            value = ScoreValue(score=None, invalid=f"{self.path}: {error}")
        return reading(self.dimension, self.name, value, seconds=seconds)

    def _measured(self, context: StepContext, before: dict[Path, FileIdentity]) -> ScoreValue:
        now = _identities(context.workdir, self.path)
        if not now:
            return ScoreValue(score=None, invalid=f"there is no report at {self.path}: nothing was measured")
        if self.command is not None:
            fresh = [path for path, found in now.items() if found.written_since(before.get(path))]
            stale = f"{self.path} was there before and the command did not write it"
        else:
            fresh = [path for path, found in now.items() if _belongs(found, context.since_ns)]
            stale = f"{self.path} was not written while this iteration was checked: it is another one's, or the generator's own"
        if not fresh:
            return ScoreValue(score=None, invalid=stale)
        return self.measure([read_regular(path) for path in fresh])


def report_builtin(name: str, measure: Callable[[list[bytes]], ScoreValue], *, dimension: str) -> Builtin:
    """Return the kind of scorer that reads reports with ``measure``; it scores ``dimension`` unless told otherwise."""

    def build(dimension: str, options: Options, runtime: ScorerRuntime) -> Scorer:
        return ReportScorer(dimension, options, runtime, name=name, measure=measure)

    return Builtin(build=build, options=("path", "command", "timeout"), dimension=dimension)


def _identities(workdir: Path, pattern: str) -> dict[Path, FileIdentity]:
    found = ((path, identity(path)) for path in find_files(workdir, pattern))
    return {path: each for path, each in found if each is not None}


def _belongs(file: FileIdentity, since_ns: int | None) -> bool:
    if since_ns is None:
        return True
    slack = _COARSE if file.mtime_ns % 1_000_000_000 == 0 else _TICK
    # the time of a status change cannot be set, that of a write can
    changed = file.ctime_ns + (_COARSE if file.ctime_ns % 1_000_000_000 == 0 else _TICK)
    return since_ns <= changed and since_ns - slack <= file.mtime_ns <= time.time_ns() + slack


# ---------------------------------------------------------------------------------------------------------------------- junit


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
