"""What is known of one iteration: frozen records, and how they stand on disk (``metrics.json``, ``readings/``).

Field names are those of seed 2's IterationRecord; ``None`` always means *unknown*, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, get_args

from jumar.core.given import Given, OwnScale, better_words
from jumar.core.record import FileRecord, Record, nothing, octal, read_octal, stored
from jumar.core.text import plural
from jumar.model.judgement import Judgement

NO_TESTS = "no tests ran"
NOT_COLLECTED = "does not collect"
"""How the note of a check begins whose runner came to no test: there was none, or what holds them could not be loaded."""

Known = Literal["start", "each", "none"]
"""Which tests a run is held against: those that ran first, its own each time, or none, and it only says yes or no."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCounts(Record):
    """The tests of one check, held against those that are *known*: the tests that ran at the start.

    ``total`` is what is counted against: the known tests and the new ones that fail. ``passed`` are known tests that pass,
    ``failed`` known and new ones that fail, ``missing`` known ones that were skipped or did not run; together they are ``total``.
    A new test that passes is in none of them, and is counted in ``new_passing``. ``known`` is how many are known, 0 where each
    run is counted by itself. ``cut_short``: it ended before all tests had run. ``note`` says what a person should know of the
    counts (that, or an exit code that disagrees), and is empty as a rule.
    """

    passed: int
    failed: int
    missing: int
    total: int
    known: int = 0
    new_passing: int = 0
    cut_short: bool = False
    note: str = ""

    @property
    def share(self) -> float:
        """The share that passes, in [0, 1]; 0 where there is nothing to count."""
        return self.passed / self.total if self.total else 0.0

    def __str__(self) -> str:
        """Return the counts as people read them: ``11 of 12 tests pass, 1 missing, 2 new`` (passing, and worth nothing)."""
        gone = f", {self.missing:,} missing" if self.missing else ""
        more = f", {self.new_passing:,} new" if self.new_passing else ""
        return f"{self.passed:,} of {plural(self.total, 'test')} pass{gone}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult(Record):
    """One check's verdict on one iteration.

    ``broken`` is set when the check itself could not give one (not found, timed out): that says nothing about the candidate.
    ``failures`` are the identities of single failing tests where the check names them; with ``baseline`` set to
    ``no_new_failures``, only ``new_failures`` (those not failing at the start) count against the candidate. ``tests`` is None for
    a check that only says yes or no. ``added`` are failing tests that are not known, ``missing`` known ones that were skipped or
    did not run; of many names the first 5,000 are kept. ``known`` are the identities of all tests that ran, in the one record
    that makes them known (iteration 0, else the first in which any ran), else empty. ``note`` says why its tests are not
    counted as it was asked to, or why none ran, and is empty as a rule.
    """

    name: str
    passed: bool
    exit_code: int | None = None
    seconds: float = 0.0
    output_tail: str = ""
    broken: str | None = None
    failures: tuple[str, ...] = ()
    new_failures: tuple[str, ...] = ()
    tests: SuiteCounts | None = None
    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    note: str = ""

    @property
    def share(self) -> float:
        """The check's part of the score, in [0, 1]: the share of its tests that pass, else whether it passes."""
        return float(self.passed) if self.tests is None else self.tests.share


Verification = Literal["passed", "failed", "skipped"]
VERIFICATIONS: Final[tuple[str, ...]] = get_args(Verification)

Status = Literal[
    "ok",
    "generator_failed",
    "generator_timeout",
    "interrupted",
    "validator_broken",
    "scorer_broken",
    "invalid_score",
    "snapshot_failed",
    "crashed",
    "unranked",
]
STATUSES: Final[tuple[str, ...]] = get_args(Status)

NOT_GENERATED: Final[frozenset[Status]] = frozenset({"generator_failed", "generator_timeout", "interrupted", "snapshot_failed"})
"""Statuses of an iteration whose generator did not do its work, or left what cannot be kept: nothing goes on from it."""

FailureKind = Literal[
    "generator_failed",
    "generator_timeout",
    "rate_limited",
    "blocked",
    "produced_nothing",
    "changed_nothing",
    "validator_broken",
    "scorer_broken",
    "invalid_score",
    "snapshot_failed",
    "lost",
]
FAILURES: Final[tuple[str, ...]] = get_args(FailureKind)
"""What can go wrong with a step, by kind. A candidate that its checks refuse is none of these."""

NO_EFFECT: Final[frozenset[FailureKind | None]] = frozenset({"produced_nothing", "changed_nothing"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactDetail(Record):
    """One path of a snapshot. ``skipped`` says why a path was recorded but not stored (a FIFO, a device, a socket).

    ``path`` is relative to the artifact root, POSIX; undecodable bytes are lone surrogates. ``kind`` is ``file``, ``symlink`` or
    ``special``. ``content_hash`` is the SHA-256 of a file's content, or of a link's target. ``mode`` holds the permission bits.
    """

    path: str
    kind: Literal["file", "symlink", "special"] = "file"
    content_hash: str | None = None
    mode: int = field(default=0o644, metadata=stored(write=octal, read=read_octal))
    size: int = 0
    target: str | None = None
    skipped: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(Record):
    """What a step reported of its own cost and end. Every field may be unknown (None).

    ``blocked`` is why it cannot go on without a person; ``retry_after`` how many seconds its provider asked to wait.
    ``cached_tokens`` are those of the input that were read from a cache, which are cheaper.
    """

    tokens_used: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    token_cost_usd: float | None = None
    model: str | None = None
    session_id: str | None = None
    completed: bool | None = None
    blocked: str | None = None
    cached_tokens: int | None = None
    rate_limited: bool | None = None
    retry_after: float | None = None

    @property
    def tokens(self) -> int | None:
        """All tokens: as reported, else input and output together; None when that is not known."""
        if self.tokens_used is not None or self.input_tokens is None or self.output_tokens is None:
            return self.tokens_used
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreReading(Record):
    """One scorer's answer: ``score`` in [0, 1], or None with the reason why there is none.

    ``broken``: the scorer failed, which says nothing about the candidate. ``invalid``: it ran, and what it gave is no
    number in [0, 1]. ``judgement``: what an evaluator said about the items, in the first of its readings only.
    ``repeats``: every single answer of a scorer that is asked several times, None where it could not answer; ``score`` is
    then the mean of the answers. Empty when it is asked once.
    """

    dimension: str
    score: float | None
    reason: str = ""
    scorer: str = ""
    seconds: float = 0.0
    broken: str | None = None
    invalid: str | None = None
    judgement: Judgement | None = None
    repeats: tuple[float | None, ...] = ()

    @property
    def scores(self) -> tuple[float, ...]:
        """The single answers that ``score`` is the mean of: one for a scorer that is asked once, none when it has no score."""
        if self.score is None:
            return ()
        return tuple(score for score in self.repeats if score is not None) or (self.score,)

    def with_judgement(self, judgement: Judgement | None) -> ScoreReading:
        """Return the same reading with what an evaluator said."""
        return self if judgement is None else replace(self, judgement=judgement)


class Repeats(NamedTuple):
    """The answers of one scorer to one candidate, each in [0, 1]; at least one."""

    dimension: str
    scores: tuple[float, ...]

    @classmethod
    def of(cls, readings: Iterable[ScoreReading]) -> tuple[Repeats, ...]:
        """Return the answers of every scorer, in their order; empty when none was asked more than once."""
        readings = tuple(readings)
        if not any(reading.repeats for reading in readings) or any(reading.score is None for reading in readings):
            return ()
        return tuple(cls(reading.dimension, reading.scores) for reading in readings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Record):
    """Seed 2's output analysis of a generator run. ``completed`` is the generator's own claim, not a verdict."""

    artifacts_modified: tuple[str, ...] = ()
    tokens_used: int | None = None
    success: bool = True
    completed: bool = False
    errors: tuple[str, ...] = ()


ANALYSIS_UNKNOWN: Final = Analysis()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Record):
    """What stood in the history that an iteration was imported from.

    ``value`` is None where there was no number. ``worst`` and ``best`` are those of the history: 0 and 100 of its scores.
    ``status`` is what it said of the iteration in its own words; ``kept`` whether that means that it was kept, None for neither.
    """

    metric: str
    direction: Literal["max", "min"]
    value: float | None
    worst: float
    best: float
    status: str = ""
    kept: bool | None = None

    @property
    def scale(self) -> OwnScale:
        """The scale that the value is on."""
        return OwnScale(self.metric, self.direction, self.worst, self.best)

    @property
    def better(self) -> str:
        """Which way is better, in words."""
        return better_words(self.direction)


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationRecord(FileRecord):
    """One acknowledged iteration, as written once to ``metrics.json``.

    ``quality_score`` is 0–100, or None when the iteration could not be scored; then ``status`` says why and it is never selected.
    ``quality_delta`` is the difference to the iteration recorded before it. ``tokens_used`` and ``token_cost_usd`` are those of
    the generator's last attempt alone: what an iteration cost with its judges and retries is in the attempts. ``snapshot_path``
    and ``artifacts`` are paths of the stored copies (``iterations/iteration-NNN/artifacts`` and what lies below): relative to the
    loop's directory on disk, joined with it when read. ``best-output-tracking.json`` names the iteration's directory instead.
    ``tampering`` says what the generator changed of the checks or of the store; such an iteration is not verified. ``measured``
    is there for one that was imported from a history on a scale of its own: ``quality_score`` then stands for its value.
    ``origin`` is the file that it was taken over from, None for one that was recorded here.
    """

    iteration_number: int
    timestamp: str
    quality_score: float | None
    quality_delta: float | None = None
    dimensions: Mapping[str, float] = field(default_factory=nothing)
    tokens_used: int | None = None
    token_cost_usd: float | None = None
    execution_time_ms: float | None = None
    verification_status: Verification = "skipped"
    snapshot_path: str = ""
    artifacts: tuple[str, ...] = ()
    reflections: tuple[str, ...] = ()
    artifacts_detail: tuple[ArtifactDetail, ...] = ()
    status: Status = "ok"
    status_reason: str = ""
    readings: tuple[ScoreReading, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    reasons: tuple[str, ...] = ()
    analysis: Analysis = ANALYSIS_UNKNOWN
    usage: Usage = field(default_factory=Usage)
    attempt: int | None = None
    parent: int | None = None
    batch: int | None = None
    candidate: int | None = None
    nonce: str = ""
    commits: tuple[str, ...] = ()
    tampering: tuple[str, ...] = ()
    failure: FailureKind | None = None
    measured: Measured | None = field(default=None, metadata=stored(omit=True))
    origin: str | None = field(default=None, metadata=stored(omit=True))

    def __post_init__(self) -> None:
        found = self.measured
        if found is not None and found.value is not None and self.quality_score is not None:
            object.__setattr__(self, "quality_score", Given(self.quality_score, found.value, found.scale))
            delta = self.quality_delta
            object.__setattr__(self, "quality_delta", None if delta is None else found.scale.apart(delta))

    def view(self) -> IterationView:
        """Return the part of the record that decisions are made from."""
        known = [check for check in self.checks if check.broken is None]
        return IterationView(
            number=self.iteration_number,
            score=self.quality_score,
            verification=self.verification_status,
            status=self.status,
            dimensions=self.dimensions,
            failed_checks=sum(not check.passed for check in known) if self.checks else None,
            completed=self.analysis.completed,
            repeats=Repeats.of(self.readings),
            failure=self.failure,
            blocked=self.usage.blocked if self.failure == "blocked" else None,
            parent=self.parent,
            batch=self.batch,
            candidate=self.candidate,
            tampered=bool(self.tampering),
            converged=any(_converged(reading.judgement) for reading in self.readings),
            verdicts=tuple(Verdict.of(check) for check in self.checks),
        )


class Verdict(NamedTuple):
    """What one check said of an iteration: ``tests`` are the known ones that pass, None where it counts none."""

    name: str
    passed: bool
    tests: int | None = None
    missing: int = 0

    @classmethod
    def of(cls, check: CheckResult) -> Verdict:
        if check.tests is None:
            return cls(check.name, check.passed)
        return cls(check.name, check.passed, check.tests.passed, check.tests.missing)


def _converged(judged: Judgement | None) -> bool:
    return judged is not None and judged.learned is not None and judged.learned.converged


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationView:
    """What ranking and stopping see of an iteration: small, frozen, without paths.

    ``score`` is 0–100 or None when invalid. ``failed_checks`` is None when no check ran. ``keys`` are further named values
    for a lexicographic order. ``repeats`` are the single answers of its scorers, empty when each was asked once. ``failure`` is
    what went wrong, by kind; ``blocked`` what the generator said of it. ``parent`` is the iteration that it was made from, None
    for the start. ``batch`` joins parallel candidates, which ``candidate`` counts from 1. ``tampered``: it is held to have
    changed its checks or the records. ``converged``: an evaluator's cheap judge was found to track the expensive one, and the
    items are good. ``verdicts`` are those of its checks.
    """

    number: int
    score: float | None
    verification: Verification = "skipped"
    status: Status = "ok"
    dimensions: Mapping[str, float] = field(default_factory=nothing)
    failed_checks: int | None = None
    completed: bool = False
    keys: Mapping[str, float] = field(default_factory=nothing)
    repeats: tuple[Repeats, ...] = ()
    failure: FailureKind | None = None
    blocked: str | None = None
    parent: int | None = None
    batch: int | None = None
    candidate: int | None = None
    tampered: bool = False
    converged: bool = False
    verdicts: tuple[Verdict, ...] = ()

    @property
    def counted(self) -> tuple[str, ...]:
        """The names of the checks whose tests were counted."""
        return tuple(verdict.name for verdict in self.verdicts if verdict.tests is not None)


ReadingKind = Literal["rescore", "confirm", "holdout"]
"""Of a finalist, before the choice; of the selected one, by the same scorers, after it; by the hold-out's scorers."""

READING_KINDS: Final[tuple[str, ...]] = get_args(ReadingKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(FileRecord):
    """One file of ``readings/``. ``score`` is 0–100, or None with ``status`` saying why; then it counts as made all the same.

    Only a ``rescore`` takes part in the choice. ``attempt`` is the one that paid for it, None when nothing was run.
    """

    number: int
    kind: ReadingKind
    iteration: int
    at: str
    attempt: int | None
    score: float | None
    status: Status = "ok"
    status_reason: str = ""
    dimensions: Mapping[str, float] = field(default_factory=nothing)
    readings: tuple[ScoreReading, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    seconds: float = 0.0
