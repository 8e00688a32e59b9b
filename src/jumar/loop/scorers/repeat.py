"""A scorer that is asked several times about one candidate, so that its noise is seen and halved with every fourfold asking."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import Final

from jumar.core.files import as_write_error, make_directory
from jumar.model.protocols import Scorer, StepContext
from jumar.model.records import ScoreReading
from jumar.processes.environment import SEED_VARIABLE, step_seed

REPEAT_VARIABLE: Final = "JUMAR_REPEAT"
"""Which asking it is, from 1; set for scorers that are asked more than once."""


class RepeatedScorer:
    """Asks ``scorer`` ``times`` times (2 or more) about the same candidate and keeps every answer in ``repeats``.

    The score is the mean of the answers. An answer that is missing because the scorer broke leaves the others standing, and is
    told in the reason; all broken is broken. An answer that is no number in [0, 1] makes the whole reading invalid: a scorer
    that says such a thing once is not to be averaged. Each asking has a seed of its
    own. The logs of the second asking go to ``repeat-2/``, and so on.
    """

    def __init__(self, scorer: Scorer, times: int, *, stop: threading.Event | None = None) -> None:
        if times < 2:
            raise ValueError(f"a repeated scorer is asked twice or more, not {times} times")
        self.scorer = scorer
        self.times = times
        self._stop = stop

    @property
    def dimension(self) -> str:
        return self.scorer.dimension

    def score(self, context: StepContext) -> ScoreReading:
        """Ask until every answer is there, one is invalid, or the loop is stopped (then the reading is thrown away anyway)."""
        answers: list[ScoreReading] = []
        for number in range(1, self.times + 1):
            answers.append(self.scorer.score(_asking(context, number)))
            if answers[-1].invalid is not None or (self._stop is not None and self._stop.is_set()):
                break
        return _together(answers)


def _asking(context: StepContext, number: int) -> StepContext:
    directory = context.log_directory if number == 1 else context.log_directory / f"repeat-{number}"
    with as_write_error("create", directory):
        make_directory(directory)
    seed = context.seed if number == 1 else step_seed(context.seed, iteration=number, candidate=None, purpose="repeat")
    environment = {**context.environment, REPEAT_VARIABLE: str(number), SEED_VARIABLE: str(seed)}
    return replace(context, environment=environment, seed=seed, log_directory=directory)


def _together(answers: list[ScoreReading]) -> ScoreReading:
    seconds = math.fsum(answer.seconds for answer in answers)
    repeats = tuple(answer.score for answer in answers)
    invalid = next((answer for answer in answers if answer.invalid is not None), None)
    if invalid is not None:
        return replace(invalid, seconds=seconds, repeats=repeats)
    good = [answer for answer in answers if answer.score is not None]
    failed = [answer.broken or "no answer" for answer in answers if answer.score is None]
    if not good:
        return replace(answers[0], seconds=seconds, repeats=repeats)
    scores = [answer.score for answer in good if answer.score is not None]
    mean = math.fsum(scores) / len(scores)
    return replace(good[0], score=mean, reason=_reason(good[0].reason, scores, failed), seconds=seconds, repeats=repeats)


def _reason(first: str, scores: list[float], failed: list[str]) -> str:
    asked = len(scores) + len(failed)
    answers = f"{len(scores)} of {asked} answers" if failed else f"{asked} answers"
    told = f"mean of {answers}, {min(scores):.3g} to {max(scores):.3g}"
    if failed:
        told += f" (not: {failed[0]})"
    return f"{told}; the first: {first}" if first else told
