"""Parts whose behaviour is written down beforehand, and a clock that stands still until it is told: for tests of loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from jumar.model import CheckResult, GenerateOutcome, Generator, Scorer, ScoreReading, StepContext, Usage, Validator


class ScriptedGenerator:
    """Writes the ``iteration``-th text of ``script`` into ``file``; a text of None is a failed iteration. The script repeats.

    ``calls`` counts how often it ran, whatever became of the runs. ``seconds`` and ``usage`` are what each run reports.
    """

    def __init__(
        self, script: Sequence[str | None], *, file: str = "out.txt", seconds: float = 1.0, usage: Usage | None = None
    ) -> None:
        self._script = tuple(script)
        self._file = file
        self._seconds = seconds
        self._usage = usage or Usage()
        self.calls = 0

    def generate(self, context: StepContext) -> GenerateOutcome:
        """Do what the script says for this iteration."""
        self.calls += 1
        text = self._script[(context.iteration - 1) % len(self._script)]
        if text is None:
            (context.workdir / self._file).write_text("left by a failed iteration")
            return GenerateOutcome(exit_code=1, seconds=self._seconds, failure="exit code 1", usage=self._usage)
        (context.workdir / self._file).write_text(text)
        return GenerateOutcome(exit_code=0, seconds=self._seconds, usage=self._usage)


class ReadingScorer:
    """Scores what stands in ``file``: ``scores`` maps its text to a number, else the text itself is the number."""

    def __init__(self, dimension: str = "quality", *, file: str = "out.txt", scores: Mapping[str, float] | None = None) -> None:
        self.dimension = dimension
        self._file = file
        self._scores = dict(scores or {})

    def score(self, context: StepContext) -> ScoreReading:
        """Read the file and return its score; text that is no number is an unusable answer."""
        text = (context.workdir / self._file).read_text().strip()
        try:
            score = self._scores[text] if text in self._scores else float(text)
        except ValueError:
            return ScoreReading(dimension=self.dimension, score=None, scorer="reading", invalid=f"{text!r} is no number")
        return ScoreReading(dimension=self.dimension, score=score, scorer="reading")


class PassingValidator:
    """Passes unless ``file`` holds one of ``refused``."""

    def __init__(self, name: str = "passing", *, file: str = "out.txt", refused: Sequence[str] = ()) -> None:
        self.name = name
        self._file = file
        self._refused = frozenset(refused)

    def validate(self, context: StepContext) -> CheckResult:
        """Look into the file."""
        return CheckResult(name=self.name, passed=(context.workdir / self._file).read_text().strip() not in self._refused)


_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """Implements :class:`jumar.model.Clock`. ``tick`` seconds pass with every look at the monotonic time."""

    def __init__(self, *, tick: float = 0.0) -> None:
        self._elapsed = 0.0
        self._tick = tick

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass. Errors: ``ValueError`` for a negative number, because monotonic time never goes back."""
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} s")
        self._elapsed += seconds

    def now(self) -> str:
        """Return the time as ISO 8601 in UTC; it began at 2026-01-01."""
        return (_EPOCH + timedelta(seconds=self._elapsed)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def monotonic(self) -> float:
        """Return the seconds that have passed."""
        self._elapsed += self._tick
        return self._elapsed


def make_context(workdir: Path, logs: Path, *, iteration: int = 1) -> StepContext:
    """Return a context like the engine's, with a prompt and a feedback file in ``logs``; both directories must exist."""
    for name, text in (("prompt.md", "Make it better.\n"), ("feedback.json", "{}\n")):
        (logs / name).write_text(text)
    return StepContext(
        loop_id="conformance",
        iteration=iteration,
        workdir=workdir,
        prompt_file=logs / "prompt.md",
        feedback_file=logs / "feedback.json",
        usage_file=logs / "usage.json",
        log_directory=logs,
        nonce="conformance",
    )


def check_generator(generator: Generator, context: StepContext) -> GenerateOutcome:
    """Run ``generator`` once: it returns an outcome, never raises, reports a finite time, and says why it failed."""
    outcome = _outcome_of(generator, context)
    assert isinstance(outcome, GenerateOutcome), f"generate returned {type(outcome).__name__}, not GenerateOutcome"
    assert math.isfinite(outcome.seconds), f"seconds is {outcome.seconds}"
    assert outcome.seconds >= 0, f"seconds is {outcome.seconds}"
    failed = outcome.timed_out or outcome.interrupted or (outcome.exit_code not in {0, None})
    assert not failed or outcome.failure, "a failed run does not say why: set failure"
    for name in ("tokens_used", "token_cost_usd"):
        value = getattr(outcome.usage, name)
        assert value is None or (math.isfinite(value) and value >= 0), f"usage.{name} is {value}; unknown is None"
    return outcome


def _outcome_of(generator: Generator, context: StepContext) -> GenerateOutcome:
    try:
        return generator.generate(context)
    except Exception as error:
        raise AssertionError(f"generate raised {type(error).__name__}: {error}; return an outcome with failure set") from error


def check_validator(validator: Validator, context: StepContext) -> CheckResult:
    """Run ``validator`` twice: it returns a named result, the same both times, and leaves the working directory as it was."""
    before = _tree(context.workdir)
    first, second = validator.validate(context), validator.validate(context)
    assert isinstance(first, CheckResult), f"validate returned {type(first).__name__}, not CheckResult"
    assert first.name == validator.name, f"the result is called {first.name!r}, the check {validator.name!r}"
    assert first.passed == second.passed, "two looks at the same tree give two verdicts"
    assert not (first.passed and first.broken), "a broken check cannot pass"
    assert before == _tree(context.workdir), "the check changed the working directory"
    return first


def check_scorer(scorer: Scorer, context: StepContext) -> ScoreReading:
    """Run ``scorer`` once: a number in [0, 1], or none with the reason why; the working directory stays as it was."""
    before = _tree(context.workdir)
    reading = scorer.score(context)
    assert isinstance(reading, ScoreReading), f"score returned {type(reading).__name__}, not ScoreReading"
    assert reading.dimension == scorer.dimension, f"it scores {reading.dimension!r}, but is called {scorer.dimension!r}"
    if reading.score is None:
        assert reading.broken or reading.invalid, "no score and no reason: set broken or invalid"
    else:
        assert math.isfinite(reading.score), f"the score is {reading.score}"
        assert 0 <= reading.score <= 1, f"the score {reading.score} is not in [0, 1]"
    assert before == _tree(context.workdir), "the scorer changed the working directory"
    return reading


def _tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
