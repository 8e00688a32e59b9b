"""Parts whose behaviour is written down beforehand, and a clock that stands still until it is told: for tests of loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from jumar.model import CheckResult, GenerateOutcome, ScoreReading, StepContext, Usage


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
