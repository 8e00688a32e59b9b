"""``command``: whatever a program prints as its score."""

from __future__ import annotations

from jumar.errors import ConfigError
from jumar.loop.scorers.base import Builtin, ScorerRuntime, broken, reading, run_for_score
from jumar.loop.scorers.options import Options
from jumar.model.protocols import Scorer, StepContext
from jumar.model.records import ScoreReading
from jumar.processes.process import ProcessResult
from jumar.processes.values import parse_score


class CommandScorer:
    """Runs a command that prints one number in [0, 1], or a JSON object with ``score`` and perhaps ``reason``.

    The score may be all of its standard output or the last line. Exit code 0 with anything else is an *invalid* score; any other
    exit code, a timeout or a command that is not found is a *broken* scorer.
    """

    def __init__(self, dimension: str, command: str | tuple[str, ...], *, timeout: float | None, runtime: ScorerRuntime) -> None:
        self.dimension = dimension
        self._command = command
        self._timeout = timeout
        self._runtime = runtime
        self._name = command if isinstance(command, str) else " ".join(command)

    def score(self, context: StepContext) -> ScoreReading:
        """Run the command once."""
        log = f"{self.dimension} {self._name}"
        result = run_for_score(self._command, context, self._runtime, name=log, timeout=self._timeout)
        if result.exit_code != 0 or result.failure is not None:
            return broken(self.dimension, "command", _why(result), seconds=result.seconds)
        return reading(self.dimension, "command", parse_score(result.stdout), seconds=result.seconds)


def _why(result: ProcessResult) -> str:
    last = result.stderr.strip().rpartition("\n")[2].strip()[:300]
    return f"{result.failure}: {last}" if last else f"{result.failure}"


def _build(dimension: str, options: Options, runtime: ScorerRuntime) -> Scorer:
    command = options.command()
    if command is None:
        raise ConfigError(f"{options.where}: option 'command' is missing")
    return CommandScorer(dimension, command, timeout=options.timeout(), runtime=runtime)


COMMAND = Builtin(build=_build, options=("command", "timeout"), dimension=None)
