"""``python``: a function that returns a score, in a child process or, for programs, in this one."""

from __future__ import annotations

import time
from collections.abc import Callable

from jumar.loop.scorers.base import Builtin, Options, ScorerRuntime, broken, reading
from jumar.model.protocols import Scorer, StepContext
from jumar.model.records import ScoreReading
from jumar.processes.functions import ask, check_reference, log_exception
from jumar.processes.values import ScoreValue, as_score
from jumar.processes.written_files import log_name


class PythonScorer:
    """Calls ``module:function`` with the :class:`StepContext` in a child process.

    The function returns a number in [0, 1], ``(number, reason)``, or a mapping with ``score`` and perhaps ``reason``. An
    exception or a value of another type is a broken scorer, a number outside of [0, 1] an invalid score.
    """

    def __init__(self, dimension: str, reference: str, *, timeout: float | None, runtime: ScorerRuntime) -> None:
        self.dimension = dimension
        self._reference = check_reference(reference, where=f"scorer of '{dimension}'")
        self._timeout = timeout
        self._runtime = runtime

    def score(self, context: StepContext) -> ScoreReading:
        """Call the function once."""
        answer = ask(
            "score",
            self._reference,
            context,
            search=self._runtime.search,
            timeout=self._timeout,
            log=context.log_directory / log_name("score", f"{self.dimension} {self._reference}"),
            output_cap=self._runtime.output_cap,
            stop=self._runtime.stop,
        )
        seconds = answer.process.seconds
        if answer.value is None:
            return broken(self.dimension, self._reference, answer.error or "it gave no answer", seconds=seconds)
        return reading(self.dimension, self._reference, ScoreValue(**answer.value), seconds=seconds)


class CallableScorer:
    """Calls ``function`` in this process: for loops that are part of a Python program.

    It cannot be timed out. What it may return is what :class:`PythonScorer` says.
    """

    def __init__(self, dimension: str, function: Callable[[StepContext], object]) -> None:
        self.dimension = dimension
        self._function = function
        self._name = getattr(function, "__name__", type(function).__name__)

    def score(self, context: StepContext) -> ScoreReading:
        """Call the function once. A traceback goes to the log only."""
        began = time.monotonic()
        try:
            value = as_score(self._function(context))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever somebody's function may raise
            why = log_exception(error, context.log_directory / log_name("score", f"{self.dimension} {self._name}"))
            return broken(self.dimension, self._name, why, seconds=time.monotonic() - began)
        return reading(self.dimension, self._name, value, seconds=time.monotonic() - began)


def _build(dimension: str, options: Options, runtime: ScorerRuntime) -> Scorer:
    return PythonScorer(dimension, options.text("python"), timeout=options.timeout(), runtime=runtime)


PYTHON = Builtin(build=_build, options=("python", "timeout"), dimension=None)
