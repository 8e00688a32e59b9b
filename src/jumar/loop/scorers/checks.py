"""``checks``: how far the checks pass, each weighing the same."""

from __future__ import annotations

import math

from jumar.core.text import plural
from jumar.loop.scorers.base import Builtin, Options, ScorerRuntime, broken, reading
from jumar.model.protocols import Scorer, StepContext
from jumar.model.records import CheckResult, ScoreReading
from jumar.processes.usage import ScoreValue

_SHOWN = 10


class ChecksScorer:
    """Scores the mean of what this iteration's checks give: one that runs tests the share that pass, any other 1 or 0.

    A broken check counts neither way. Without checks the score is invalid, with only broken ones this scorer is broken.
    """

    def __init__(self, dimension: str = "validation") -> None:
        self.dimension = dimension

    def score(self, context: StepContext) -> ScoreReading:
        """Count; nothing is run again."""
        known = [check for check in context.checks if check.broken is None]
        if not context.checks:
            return reading(self.dimension, "checks", ScoreValue(score=None, invalid="there are no checks to count"))
        if not known:
            return broken(self.dimension, "checks", "every check is broken")
        score = math.fsum(check.share for check in known) / len(known)
        return reading(self.dimension, "checks", ScoreValue(score=score, reason=_reason(known)))


def _reason(checks: list[CheckResult]) -> str:
    """Return ``11 of 12 tests pass`` for each check that runs tests, and how many of the others passed."""
    counted = [check for check in checks if check.tests is not None]
    parts = [str(check.tests) if len(checks) == 1 else f"{check.name}: {check.tests}" for check in counted[:_SHOWN]]
    parts += [f"{len(counted) - _SHOWN} more"] if len(counted) > _SHOWN else []
    others = [check for check in checks if check.tests is None]
    failing = [check.name for check in others if not check.passed]
    if others:
        parts.append(f"{len(others) - len(failing)} of {plural(len(others), 'check')} passed")
    if failing:
        parts.append(f"failing: {', '.join(failing[:_SHOWN])}{', …' if len(failing) > _SHOWN else ''}")
    return "; ".join(parts)


def _build(dimension: str, options: Options, runtime: ScorerRuntime) -> Scorer:
    del options, runtime  # it has none and runs nothing
    return ChecksScorer(dimension)


CHECKS = Builtin(build=_build, options=(), dimension="validation")
