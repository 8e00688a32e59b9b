"""The parts that users write: generators, checks, scorers; and the clock.

A part gets a frozen context and returns a value. It never sees the engine or the store, and what it raises becomes a typed
failure of its own kind: an exception of a generator is a failed attempt, one of a check or scorer says that the *part* is
broken and nothing about the candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from jumar.model.checks import CheckResult
from jumar.model.records import IterationView, ScoreReading, Usage


def _no_environment() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """Where a step runs and what it may read.

    ``workdir`` is the directory to change (generator) or to judge (check, scorer). ``prompt_file``, ``feedback_file``
    exist; ``usage_file`` may be written by the generator. ``environment`` is complete: the allow-list and the ``JUMAR_*``
    variables. ``artifacts`` are the relative paths that the loop keeps. ``checks`` and ``generator_exit`` are known to
    scorers only. ``baseline_checks`` are the checks of the start, and behind them those of the first iteration in which their
    tests ran, where that is a later one. ``history`` are the iterations so far. ``nonce`` marks the processes of the step, so
    that those of a run that was killed can be found and ended later. ``since_ns`` is the wall clock (``time.time_ns``) when this
    iteration's steps began, after its tree was prepared: a test or coverage report that is older belongs to another one. None:
    nobody looks. ``seed`` is a number in [0, 2³¹) that is a function of the loop's seed, iteration, candidate and purpose alone.
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
    environment: Mapping[str, str] = field(default_factory=_no_environment)
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
    ``printed`` is whether it printed anything, None when nobody looked.
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
