"""The learning run as a loop of the engine: its generator is an iteration of learning, its score what the test items say.

The working directory holds ``patterns.json`` and the files of :mod:`jumar.learning.state`; whatever else an iteration leaves for
people is published beside it and follows from those.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from jumar.core.files import replace_file, sha256_bytes
from jumar.core.text import plural
from jumar.errors import EvaluationUnreliableError, JumarError
from jumar.judging.agreement import spearman
from jumar.judging.items.item import digest_of
from jumar.judging.patterns.models import PatternSet
from jumar.judging.patterns.storage import PatternStore, load_pattern_set, serialised
from jumar.learning.material import Material
from jumar.learning.state import LEDGER, PREDICTIONS, STATE, Checkpoint, pattern_hash, read_checkpoint, write_checkpoint
from jumar.learning.step import IterationOutcome, begin, learn_once
from jumar.model.checks import CheckResult
from jumar.model.judgement import Judgement
from jumar.model.protocols import GenerateOutcome, StepContext
from jumar.model.records import ScoreReading, Usage

PATTERNS: Final = "patterns.json"
ARTIFACTS: Final = (PATTERNS, STATE, LEDGER, PREDICTIONS)
DIMENSIONS: Final = ("closeness", "ranking")
_SPAN: Final = 4.0  # from 1 to 5
_DIGITS: Final = 2


class MaterialSource(Protocol):
    """Gives what the run learns from: the first call asks the judge about the open items.

    ``judgement`` is what it said and was paid, once: it belongs to one reading and no other.
    """

    def material(self) -> Material: ...

    def judgement(self) -> Judgement | None: ...


@dataclass(frozen=True, slots=True)
class Learner:
    """The generator: one iteration of learning. ``publish`` is told of each, to leave its files for people."""

    judged: MaterialSource
    publish: Callable[[IterationOutcome, Material], None]
    now: Callable[[], datetime]

    def generate(self, context: StepContext) -> GenerateOutcome:
        began = time.monotonic()
        try:
            material = self.judged.material()
            with material.features.used():
                checkpoint = checkpoint_in(context.workdir, material)
                learned = learn_once(checkpoint, material, iteration=context.iteration, now=self.now())
        except EvaluationUnreliableError as error:
            return GenerateOutcome(exit_code=1, seconds=time.monotonic() - began, failure=str(error))
        save_set(learned.checkpoint.state.patterns, context.workdir / PATTERNS, message_of(learned))
        write_checkpoint(learned.checkpoint, context.workdir)
        with material.features.used():
            self.publish(learned, material)
        return GenerateOutcome(
            exit_code=0,
            seconds=time.monotonic() - began,
            usage=Usage(token_cost_usd=learned.proposed.cost_usd, completed=True if learned.checkpoint.stopped else None),
            printed=True,
        )


def message_of(learned: IterationOutcome) -> str:
    """Return what the log of versions says of an iteration's set."""
    metrics = learned.metrics
    rolled = " rolled back" if metrics.regression_detected else ""
    done = Counter(action["action"] for action in learned.actions)
    counts = f"{done['committed_pattern']} committed, {done['rejected_pattern']} rejected"
    return f"iteration {metrics.iteration}:{rolled} {counts}"


def checkpoint_in(directory: Path, material: Material) -> Checkpoint:
    """Return what the files below ``directory`` hold; before the first iteration that is the set alone."""
    if (directory / STATE).exists():
        return read_checkpoint(directory)
    patterns = load_pattern_set(directory / PATTERNS)
    name = digest_of(patterns.model_dump(mode="json"))
    if name not in material.begun:
        material.begun[name] = begin(patterns, material)
    return material.begun[name]


def write_set(patterns: PatternSet, path: Path) -> None:
    """Write a set as its file is written, without a version in its log."""
    replace_file(path, serialised(patterns, path))


def save_set(patterns: PatternSet, path: Path, message: str) -> None:
    """Save a set with a version, unless the last one is this very set: an iteration made again after a kill is not two."""
    store = PatternStore(path)
    log = store.log()
    if log and log[-1].hash == sha256_bytes(serialised(patterns, path)) and path.exists() and store.load() == patterns:
        return
    store.save(patterns, message)


@dataclass(frozen=True, slots=True)
class SetCheck:
    """The validator: the set can be read, is the one that was learned, and was tried on every test item that it can score."""

    judged: MaterialSource
    name: str = "sound"

    def validate(self, context: StepContext) -> CheckResult:
        try:
            material = self.judged.material()
            checkpoint, patterns = checkpoint_in(context.workdir, material), load_pattern_set(context.workdir / PATTERNS)
        except EvaluationUnreliableError as error:
            return CheckResult(name=self.name, passed=False, broken=str(error))
        except JumarError as error:
            return CheckResult(name=self.name, passed=False, output_tail=str(error))
        if pattern_hash(patterns) != pattern_hash(checkpoint.state.patterns):
            return CheckResult(name=self.name, passed=False, output_tail=f"{PATTERNS} is not the set of the state")
        untried = [one.item.id for one in material.tested if one.item.id not in checkpoint.tested]
        said = f"{plural(len(checkpoint.tested), 'test item')} scored" + (f", {len(untried):,} abstained from" if untried else "")
        return CheckResult(name=self.name, passed=bool(checkpoint.tested), output_tail=said)


class LearnerScorer:
    """One dimension of what the test items say: ``closeness`` is 1 - MAE / 4, ``ranking`` is (1 + Spearman) / 2.

    Both figures are taken in hundredths, as every table shows them: a set is not better than one before it by less than that, and
    of equals the loop keeps the earlier one.
    """

    def __init__(self, dimension: str, judged: MaterialSource) -> None:
        self.dimension = dimension
        self._judged = judged

    def score(self, context: StepContext) -> ScoreReading:
        began = time.monotonic()
        try:
            material = self._judged.material()
        except EvaluationUnreliableError as error:
            return ScoreReading(dimension=self.dimension, score=None, broken=str(error), seconds=time.monotonic() - began)
        checkpoint = checkpoint_in(context.workdir, material)
        tested = [one for one in material.tested if one.item.id in checkpoint.tested]
        if not tested:
            return ScoreReading(dimension=self.dimension, score=None, invalid="the set abstains from every test item")
        score, said = self._of([one.score for one in tested], [checkpoint.tested[one.item.id] for one in tested])
        reading = ScoreReading(
            dimension=self.dimension, score=max(0.0, min(1.0, score)), reason=said, seconds=time.monotonic() - began
        )
        # the start is scored first, and once: what the judge said of the open items was paid for it
        return reading.with_judgement(self._judged.judgement() if context.iteration == 0 else None)

    def _of(self, judge: Sequence[float], cheap: Sequence[float]) -> tuple[float, str]:
        truth, guess = np.asarray(judge, dtype=np.float64), np.asarray(cheap, dtype=np.float64)
        if self.dimension == "closeness":
            mae = round(float(np.abs(truth - guess).mean()), _DIGITS)
            return 1.0 - mae / _SPAN, f"MAE {mae:.2f}"
        rank = spearman(truth, guess)
        return (1.0 + round(rank or 0.0, _DIGITS)) / 2.0, f"Spearman {'—' if rank is None else f'{rank:.2f}'}"
