"""``python``: a function that returns a score, in a child process."""

from __future__ import annotations

from jumar.loop.scorers.base import Builtin, Options, ScorerRuntime, broken, reading
from jumar.model.protocols import Scorer, StepContext
from jumar.model.records import ScoreReading
from jumar.processes.functions import ask, check_reference
from jumar.processes.usage import ScoreValue
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


def _build(dimension: str, options: Options, runtime: ScorerRuntime) -> Scorer:
    return PythonScorer(dimension, options.text("python"), timeout=options.timeout(), runtime=runtime)


PYTHON = Builtin(build=_build, options=("python", "timeout"), dimension=None)
