"""What the scorers share: how they are run, how an answer becomes a reading, and which files a text is in."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from jumar.core.files import UnreadableFileError
from jumar.core.text import nearest
from jumar.errors import ConfigError
from jumar.model.protocols import Evaluated, Evaluator, Scorer, StepContext
from jumar.model.records import ScoreReading
from jumar.processes.captured_output import DEFAULT_OUTPUT_CAP
from jumar.processes.process import ProcessResult, check_command, check_timeout, run_command
from jumar.processes.usage import ScoreValue
from jumar.processes.written_files import check_relative, log_name, read_text

DEFAULT_TIMEOUT = 600.0


class Options:
    """The options of one scorer. Every method raises :class:`jumar.errors.ConfigError` naming scorer and option.

    ``known`` are the options that the scorer has, and anything else is refused at once; None: it checks them itself.
    """

    def __init__(self, values: Mapping[str, object], *, scorer: str, known: tuple[str, ...] | None) -> None:
        self.where = f"scorer '{scorer}'"
        self.values = values
        for name in values:
            if known is not None and name not in known:
                has = f"it has {', '.join(known)}" if known else "it has none"
                raise ConfigError(f"{self.where}: unknown option '{name}'{nearest(name, known)}; {has}")

    def _fail(self, name: str, wanted: str) -> ConfigError:
        found = f"is {self.values[name]!r:.60}" if name in self.values else "is missing"
        return ConfigError(f"{self.where}: option '{name}' should be {wanted}, {found}")

    def text(self, name: str, default: str | None = None) -> str:
        """Return text that is not empty; without a default it is required."""
        value = self.values.get(name, default)
        if not isinstance(value, str) or not value.strip():
            raise self._fail(name, "text")
        return value

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return one of ``choices``; the first is the default."""
        value = self.text(name, choices[0])
        if value not in choices:
            raise ConfigError(
                f"{self.where}: option '{name}' should be one of {', '.join(choices)}, is {value!r}{nearest(value, choices)}"
            )
        return value

    def number(self, name: str, default: float | None = None) -> float | None:
        """Return a finite number of at least 0."""
        value = self.values.get(name, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise self._fail(name, "a number of at least 0")
        return value

    def band(self, name: str, default: tuple[float, float]) -> tuple[float, float]:
        """Return two finite numbers, the lower first."""
        value = self.values.get(name, default)
        if isinstance(value, list | tuple):
            numbers = [
                float(item)
                for item in cast("list[object]", value)
                if isinstance(item, int | float) and not isinstance(item, bool) and math.isfinite(item)
            ]
            if len(numbers) == len(cast("list[object]", value)) == 2 and numbers[0] <= numbers[1]:
                return numbers[0], numbers[1]
        raise self._fail(name, "two numbers, the lower one first, such as [8, 12]")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; a single text is a list of one, nothing is an empty one."""
        value = self.values.get(name, [])
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            raise self._fail(name, "a list of texts")
        found = [item for item in cast("list[object]", items) if isinstance(item, str) and item.strip()]
        if len(found) != len(cast("list[object]", items)):
            raise self._fail(name, "a list of texts")
        return tuple(found)

    def paths(self, name: str = "path") -> tuple[str, ...]:
        """Return relative paths or globs, at least one."""
        found = self.texts(name)
        if not found:
            raise self._fail(name, "a path below the working directory, such as 'docs/guide.md' or 'docs/**/*.md'")
        return tuple(check_relative(path, where=self.where) for path in found)

    def path(self) -> str:
        """Return the one relative path or glob of a report."""
        return check_relative(self.text("path"), where=self.where)

    def command(self, name: str = "command") -> str | tuple[str, ...] | None:
        """Return a command, text for the shell or a list for none; None when there is none."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, str):
            return check_command(value, where=self.where)
        return check_command(self.texts(name), where=self.where)

    def timeout(self) -> float | None:
        """Return seconds."""
        return check_timeout(self.number("timeout", DEFAULT_TIMEOUT), where=self.where)


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
    """One kind of scorer: its builder, its options (None: it checks them itself), and its dimension unless told otherwise."""

    build: Builder
    options: tuple[str, ...] | None
    dimension: str | None


def reading(dimension: str, scorer: str, value: ScoreValue, *, seconds: float = 0.0) -> ScoreReading:
    """Return a reading from what a scorer found."""
    return ScoreReading(
        dimension=dimension, scorer=scorer, score=value.score, reason=value.reason, invalid=value.invalid, seconds=seconds
    )


def broken(dimension: str, scorer: str, why: str, *, seconds: float = 0.0) -> ScoreReading:
    """Return the reading of a scorer that could not answer: nothing about the candidate."""
    return ScoreReading(dimension=dimension, scorer=scorer, score=None, broken=why, seconds=seconds)


class ProgramScorer:
    """Base of the scorers that run a program: :meth:`run` runs it in the working directory, with its output in a log."""

    def __init__(
        self, dimension: str, command: str | tuple[str, ...] | None, *, timeout: float | None, runtime: ScorerRuntime
    ) -> None:
        self.dimension = dimension
        self.command = command
        self._timeout = timeout
        self._runtime = runtime

    def run(self, command: str | tuple[str, ...], context: StepContext, name: str) -> ProcessResult:
        """Run ``command``; ``name`` is that of the log."""
        return run_command(
            command,
            cwd=context.workdir,
            env=context.environment,
            timeout=self._timeout,
            log=context.log_directory / log_name("score", f"{self.dimension} {name}"),
            output_cap=self._runtime.output_cap,
            stop=self._runtime.stop,
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
