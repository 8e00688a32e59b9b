"""``judge``: what an evaluator says about the items that a candidate made; one evaluation may give several dimensions."""

from __future__ import annotations

from jumar.errors import ConfigError
from jumar.loop.scorers.base import Builtin, Options, ScorerRuntime, SharedEvaluation, broken, reading
from jumar.model.protocols import Evaluated, Scorer, StepContext
from jumar.model.records import ScoreReading
from jumar.processes.usage import ScoreValue


class JudgeScorer:
    """Scores one ``part`` of an evaluation, ``gestalt`` or another that the evaluator gives.

    Nothing to judge scores 0.0, as a missing document does. Items that cannot be read are an invalid score. A judge that could
    not answer for enough items, or a part that these items don't have, makes the scorer broken.
    """

    def __init__(self, dimension: str, shared: SharedEvaluation, *, part: str = "gestalt") -> None:
        self.dimension = dimension
        self.shared = shared
        self.part = part

    def score(self, context: StepContext) -> ScoreReading:
        """Evaluate, unless another scorer of the same evaluation just did; the judgement is in the first reading only."""
        found, fresh = self.shared.of(context)
        name = self.shared.evaluator.name
        seconds = found.seconds if fresh else 0.0
        if found.broken is not None:
            made = broken(self.dimension, name, found.broken, seconds=seconds)
        elif found.invalid is not None:
            made = reading(self.dimension, name, ScoreValue(score=None, invalid=found.invalid), seconds=seconds)
        elif found.missing is not None:
            made = reading(self.dimension, name, ScoreValue(score=0.0, reason=found.missing), seconds=seconds)
        elif self.part in found.parts:
            value = ScoreValue(score=found.parts[self.part], reason=self._reason(found))
            made = reading(self.dimension, name, value, seconds=seconds)
        else:
            why = f"these items have no '{self.part}'; they have {', '.join(found.parts)}"
            made = broken(self.dimension, name, why, seconds=seconds)
        return made.with_judgement(found.judgement if fresh else None)

    def _reason(self, found: Evaluated) -> str:
        if self.part == "gestalt":
            return found.reason
        return f"mean {self.part.replace('_', ' ')} of the items, by the cheap judge"


def _build(dimension: str, options: Options, runtime: ScorerRuntime) -> Scorer:
    if runtime.evaluators is None:
        raise ConfigError(f"{options.where}: it is put together by `jumar run`; in a program of your own, make a JudgeScorer")
    given = {name: value for name, value in options.values.items() if name != "part"}
    return JudgeScorer(dimension, runtime.evaluators(given), part=options.text("part", "gestalt"))


JUDGE = Builtin(build=_build, options=None, dimension="correctness")
