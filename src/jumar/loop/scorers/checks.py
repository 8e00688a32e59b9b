"""``checks``: the share of the validators that pass."""

from __future__ import annotations

from jumar.loop.scorers.base import Builtin, ScorerRuntime, broken, reading
from jumar.loop.scorers.options import Options
from jumar.loop.values import ScoreValue
from jumar.model.protocols import Scorer, StepContext
from jumar.model.records import ScoreReading
from jumar.text import plural

__all__ = ["CHECKS", "ChecksScorer"]


class ChecksScorer:
    """Scores the share of this iteration's validators that pass; what they were given to pass is their own affair.

    A broken validator counts neither way. Without validators the score is invalid, with only broken ones this scorer is broken.
    """

    def __init__(self, dimension: str = "validation") -> None:
        self.dimension = dimension

    def score(self, context: StepContext) -> ScoreReading:
        """Count; nothing is run again."""
        known = [check for check in context.checks if check.broken is None]
        if not context.checks:
            return reading(self.dimension, "checks", ScoreValue(score=None, invalid="there are no validators to count"))
        if not known:
            return broken(self.dimension, "checks", "every validator is broken")
        failing = [check.name for check in known if not check.passed]
        reason = f"{len(known) - len(failing)} of {plural(len(known), 'check')} passed"
        if failing:
            reason += f"; failing: {', '.join(failing[:10])}{', …' if len(failing) > 10 else ''}"
        return reading(self.dimension, "checks", ScoreValue(score=1 - len(failing) / len(known), reason=reason))


def _build(dimension: str, options: Options, runtime: ScorerRuntime) -> Scorer:
    del options, runtime  # it has none and runs nothing
    return ChecksScorer(dimension)


CHECKS = Builtin(build=_build, options=(), dimension="validation")
