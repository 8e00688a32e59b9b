"""The parts that users write: generators, checks, scorers; and the clock.

A part gets a frozen context and returns a value. It never sees the engine or the store, and what it raises becomes a typed
failure of its own kind: an exception of a generator is a failed attempt, one of a check or scorer says that the *part* is
broken and nothing about the candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from jumar.core.record import nothing
from jumar.model.judgement import Judgement
from jumar.model.records import CheckResult, IterationView, ScoreReading, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """Where a step runs and what it may read.

    ``workdir`` is the directory to change (generator) or to judge (check, scorer). ``prompt_file``, ``feedback_file``
    exist; ``usage_file`` may be written by the generator. ``environment`` is complete: the allow-list and the ``JUMAR_*``
    variables. ``artifacts`` are the relative paths that the loop keeps. ``checks`` and ``generator_exit`` are known to
    scorers only. ``baseline_checks`` are the checks of the start, and behind them those of the first iteration in which their
    tests ran, where that is a later one. ``history`` are the iterations so far. ``nonce`` marks the processes of the step, so
    that those of a run that was killed can be found and ended later. ``since_ns`` is the wall clock (``time.time_ns``) when the
    checks, or where there are none this iteration's steps, began: a test or coverage report that is older belongs to another one,
    or to the generator. None: nobody looks. ``seed`` is a number in [0, 2³¹) that is a function of the loop's seed, iteration,
    candidate and purpose alone.
    ``candidate`` counts the parallel ones from 1, None where there is one.
    ``session_id`` is the agent's session that the generator is to resume, None for a fresh one; ``session_usage`` is what
    earlier runs were charged for it.
    ``fresh`` names a reading that must not be answered from what was answered before; empty in the loop itself.
    """

    loop_id: str
    iteration: int
    workdir: Path
    prompt_file: Path
    feedback_file: Path
    usage_file: Path
    log_directory: Path
    environment: Mapping[str, str] = field(default_factory=nothing)
    objective: str = ""
    artifacts: tuple[str, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    baseline_checks: tuple[CheckResult, ...] = ()
    generator_exit: int | None = None
    history: tuple[IterationView, ...] = ()
    nonce: str = ""
    since_ns: int | None = None
    seed: int = 0
    candidate: int | None = None
    session_id: str | None = None
    session_usage: Usage | None = None
    fresh: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateOutcome:
    """How a generator run ended. ``failure`` is None for success, else a sentence that says what happened.

    ``stdout`` is its standard output, the middle left out where it was long; ``errors`` the lines of its output that look like
    errors; ``notes`` what was wrong with the usage that it reported. ``rate_limited`` when it failed because its provider
    wants it to wait (``usage.retry_after`` seconds, where that is known); ``blocked`` is why it cannot go on without a person.
    ``printed`` is whether it printed anything, None when nobody looked; ``said`` a summary of that, where there is one.
    ``reported`` is what its output alone says that it used, where it was asked to: programs that it ran write the usage file too.
    """

    exit_code: int | None
    seconds: float
    output_tail: str = ""
    timed_out: bool = False
    interrupted: bool = False
    failure: str | None = None
    usage: Usage = field(default_factory=Usage)
    errors: tuple[str, ...] = ()
    stdout: str = ""
    notes: tuple[str, ...] = ()
    rate_limited: bool = False
    blocked: str | None = None
    printed: bool | None = None
    said: tuple[str, ...] = ()
    reported: Usage | None = None


class Generator(Protocol):
    """Changes the working directory. Must end its children; the engine ends those that are left."""

    def generate(self, context: StepContext) -> GenerateOutcome: ...


class Validator(Protocol):
    """Says whether the candidate passes. Must not change what the loop keeps."""

    @property
    def name(self) -> str: ...

    def validate(self, context: StepContext) -> CheckResult: ...


class Scorer(Protocol):
    """Gives one dimension a number in [0, 1]. Anything else makes the iteration invalid, never best."""

    @property
    def dimension(self) -> str: ...

    def score(self, context: StepContext) -> ScoreReading: ...


class Clock(Protocol):
    """Time, passed in. ``now`` is a UTC timestamp for people; ``monotonic`` counts seconds and never goes back."""

    def now(self) -> str: ...

    def monotonic(self) -> float: ...


FailureKind = Literal["rate_limited", "timed_out", "unavailable", "refused", "rejected", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """One question. ``schema`` is the JSON Schema that the answer has to keep; ``repeat`` counts from 0 for one item.

    ``item`` is the record itself, for judges that are no language model; ``seed`` and ``temperature`` are for those that are.
    """

    item_id: str
    item: Mapping[str, Any]
    system: str
    user: str
    schema: Mapping[str, Any]
    repeat: int = 0
    temperature: float | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """The answer, word for word. What it cost may be unknown."""

    text: str
    usage: Usage = field(default_factory=Usage)


class JudgeFailure(Exception):  # noqa: N818 - a failure of a judge is a value that is recorded, not an error of jumar's
    """The judge gave no answer. ``retry_after`` is in seconds, as the judge asked for; None when it did not.

    ``rate_limited``, ``timed_out`` and ``unavailable`` may pass and are tried again; ``refused`` (the model declines),
    ``rejected`` (wrong key,
    unknown model) and ``missing`` (a recorded judge that lacks the item) will not.
    """

    def __init__(self, kind: FailureKind, message: str, *, retry_after: float | None = None, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message
        self.retry_after = retry_after
        self.usage = usage


class Judge(Protocol):
    """``identity`` names what decides about its answers (provider, model, endpoint), without any key: part of the cache's key.

    ``judge`` must be safe to call for several requests at once. Raises :class:`JudgeFailure`; any other exception ends the
    evaluation.
    """

    @property
    def identity(self) -> str: ...

    async def judge(self, request: JudgeRequest) -> JudgeReply: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """An evaluator's answer: ``parts`` from 0 to 1 by name, ``gestalt`` among them, with a reason in words.

    Without parts one of three says why: ``missing``, there is nothing to judge, which is the candidate's doing and scores 0;
    ``invalid``, what there is cannot be read as items; ``broken``, the judge could not answer, which says nothing about the
    candidate. ``judgement`` is there whenever somebody was asked, so that what it cost is on record. ``forged`` are replies that
    somebody else had written, and that were not taken.
    """

    parts: Mapping[str, float] = field(default_factory=nothing)
    reason: str = ""
    missing: str | None = None
    invalid: str | None = None
    broken: str | None = None
    seconds: float = 0.0
    judgement: Judgement | None = None
    forged: tuple[str, ...] = ()


class Evaluator(Protocol):
    """Judges the items in a working directory. Same items, same answer: a killed step is evaluated again.

    ``name`` says what it is, in readings. ``asks`` is whether :meth:`evaluate` asks a judge that may have to be
    paid. An evaluator may have ``warnings`` too, texts for a person before a run begins: each what is so, a semicolon, and what
    to do about it.
    """

    @property
    def name(self) -> str: ...

    @property
    def asks(self) -> bool: ...

    def evaluate(self, context: StepContext) -> Evaluated:
        """Judge what is in ``context.workdir``; details go below ``context.log_directory``."""
        ...

    def look(self, context: StepContext) -> int:
        """Return how many items there are, without asking anybody. Errors: :class:`jumar.errors.JumarError`."""
        ...
