"""``exit``: 1 when a command succeeds, 0 when it does not."""

from __future__ import annotations

from jumar.loop.scorers.base import Builtin, Options, ProgramScorer, ScorerRuntime, broken, reading
from jumar.model.protocols import Scorer, StepContext
from jumar.model.records import ScoreReading
from jumar.processes.process import broken_reason
from jumar.processes.usage import ScoreValue


class ExitScorer(ProgramScorer):
    """Scores 1.0 for exit code 0, else 0.0: of its own command, or without one of the generator.

    A command that is not found or timed out makes the scorer broken. Without a command the start state scores 1.0: iterations
    whose generator failed are never scored, so that this keeps the start comparable with those that are. An iteration of a
    callable has no exit code, which is an invalid score.
    """

    def score(self, context: StepContext) -> ScoreReading:
        """Run the command, if there is one, and look at the exit code."""
        if self.command is None:
            return reading(self.dimension, "exit", _of_generator(context))
        result = self.run(self.command, context, "exit")
        why = broken_reason(result)
        if why is not None or result.exit_code is None:
            return broken(self.dimension, "exit", why or "its exit code is unknown", seconds=result.seconds)
        return reading(self.dimension, "exit", _value(result.exit_code, "the command"), seconds=result.seconds)


def _of_generator(context: StepContext) -> ScoreValue:
    if context.generator_exit is not None:
        return _value(context.generator_exit, "the generator")
    if context.iteration == 0:
        return ScoreValue(score=1.0, reason="the start: no generator ran that could have failed")
    return ScoreValue(score=None, invalid="its generator was no process: there is no exit code")


def _value(code: int, who: str) -> ScoreValue:
    return ScoreValue(score=1.0 if code == 0 else 0.0, reason=f"{who} ended with exit code {code}")


def _build(dimension: str, options: Options, runtime: ScorerRuntime) -> Scorer:
    return ExitScorer(dimension, options.command(), timeout=options.timeout(), runtime=runtime)


EXIT = Builtin(build=_build, options=("command", "timeout"), dimension="correctness")
