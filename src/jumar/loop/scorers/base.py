"""What the scorers share: how they are run, how an answer becomes a reading, and which files a text is in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jumar.core.files import UnreadableFileError
from jumar.loop.scorers.options import Options
from jumar.model.judges import Evaluated, Evaluator
from jumar.model.protocols import Scorer, StepContext
from jumar.model.records import ScoreReading
from jumar.processes.captured_output import DEFAULT_OUTPUT_CAP
from jumar.processes.process import ProcessResult, run_command
from jumar.processes.values import ScoreValue
from jumar.processes.written_files import log_name, read_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerRuntime:
    """What a loop gives all its scorers: the stop event, the cap on output, where ``python`` functions are imported from.

    ``evaluators`` makes the evaluation of a ``judge`` scorer from its options; equal options give the same one.
    """

    stop: threading.Event | None = None
    output_cap: int = DEFAULT_OUTPUT_CAP
    search: tuple[Path, ...] = ()
    evaluators: Callable[[Mapping[str, object]], SharedEvaluation] | None = None


Builder = Callable[[str, Options, ScorerRuntime], Scorer]
"""Makes a scorer of a dimension from its checked options. Errors: :class:`jumar.errors.ConfigError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Builtin:
    """One kind of scorer: its builder, its options, and the dimension that it scores unless told otherwise (None: must be)."""

    build: Builder
    options: tuple[str, ...]
    dimension: str | None


def reading(dimension: str, scorer: str, value: ScoreValue, *, seconds: float = 0.0) -> ScoreReading:
    """Return a reading from what a scorer found."""
    return ScoreReading(
        dimension=dimension, scorer=scorer, score=value.score, reason=value.reason, invalid=value.invalid, seconds=seconds
    )


def broken(dimension: str, scorer: str, why: str, *, seconds: float = 0.0) -> ScoreReading:
    """Return the reading of a scorer that could not answer: nothing about the candidate."""
    return ScoreReading(dimension=dimension, scorer=scorer, score=None, broken=why, seconds=seconds)


def run_for_score(
    command: str | tuple[str, ...], context: StepContext, runtime: ScorerRuntime, *, name: str, timeout: float | None
) -> ProcessResult:
    """Run a scorer's command in the working directory."""
    return run_command(
        command,
        cwd=context.workdir,
        env=context.environment,
        timeout=timeout,
        log=context.log_directory / log_name("score", name),
        output_cap=runtime.output_cap,
        stop=runtime.stop,
        marker=context.nonce or None,
    )


class SharedEvaluation:
    """An evaluator that several scorers of one step ask: it judges once a context, and keeps the answer for the others."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self._last: tuple[StepContext, Evaluated] | None = None
        self._forged: list[str] = []

    def of(self, context: StepContext) -> tuple[Evaluated, bool]:
        """Return the evaluation of this very context, and whether it was made now."""
        last = self._last
        if last is not None and last[0] is context:
            return last[1], False
        found = self.evaluator.evaluate(context)
        self._last = (context, found)
        self._forged += found.forged
        return found, True

    def forged(self) -> tuple[str, ...]:
        """Return the judge's replies that somebody else had written, and that were not taken, since this was last asked."""
        found = tuple(self._forged)
        self._forged.clear()
        return found


class TextScorer:
    """Reads the files that ``paths`` (relative paths or globs) name, as one text, and gives it to ``measure``.

    A document that is missing is the candidate's doing: 0.0 with the reason "missing". One that may not be read (a link out of
    the working directory, no regular file, too large) has no measure: an invalid score.
    """

    def __init__(self, dimension: str, name: str, paths: tuple[str, ...], measure: Callable[[str], ScoreValue]) -> None:
        self.dimension = dimension
        self._name = name
        self._paths = paths
        self._measure = measure

    def score(self, context: StepContext) -> ScoreReading:
        """Read and measure."""
        try:
            text = read_text(context.workdir, self._paths, among=frozenset(context.artifacts))
        except UnreadableFileError as error:
            return reading(self.dimension, self._name, ScoreValue(score=None, invalid=str(error)))
        if text is None:
            return reading(self.dimension, self._name, ScoreValue(score=0.0, reason=f"missing: {', '.join(self._paths)}"))
        return reading(self.dimension, self._name, self._measure(text))
