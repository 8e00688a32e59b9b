"""``command``: whatever a program prints as its score."""

from __future__ import annotations

from jumar.errors import ConfigError
from jumar.loop.scorers.base import Builtin, Options, ProgramScorer, ScorerRuntime, broken, reading
from jumar.model.protocols import Scorer, StepContext
from jumar.model.records import ScoreReading
from jumar.processes.usage import parse_score


class CommandScorer(ProgramScorer):
    """Runs a command that prints one number in [0, 1], or a JSON object with ``score`` and perhaps ``reason``.

    The score may be all of its standard output or the last line. Exit code 0 with anything else is an *invalid* score; any other
    exit code, a timeout or a command that is not found is a *broken* scorer.
    """

    def score(self, context: StepContext) -> ScoreReading:
        """Run the command once."""
        command = self.command or ""
        result = self.run(command, context, command if isinstance(command, str) else " ".join(command))
        if result.exit_code == 0 and result.failure is None:
            return reading(self.dimension, "command", parse_score(result.stdout), seconds=result.seconds)
        last = result.stderr.strip().rpartition("\n")[2].strip()[:300]
        return broken(self.dimension, "command", f"{result.failure}{f': {last}' if last else ''}", seconds=result.seconds)


def _build(dimension: str, options: Options, runtime: ScorerRuntime) -> Scorer:
    command = options.command()
    if command is None:
        raise ConfigError(f"{options.where}: option 'command' is missing")
    return CommandScorer(dimension, command, timeout=options.timeout(), runtime=runtime)


COMMAND = Builtin(build=_build, options=("command", "timeout"), dimension=None)
