"""What the scorers share: how they are run, and how an answer becomes a reading."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jumar.loop.captured_output import DEFAULT_OUTPUT_CAP
from jumar.loop.process import ProcessResult, run_command
from jumar.loop.scorers.options import Options
from jumar.loop.values import ScoreValue
from jumar.loop.workfiles import log_name
from jumar.model.protocols import Scorer, StepContext
from jumar.model.records import ScoreReading

if TYPE_CHECKING:
    from jumar.loop.scorers.judge import SharedEvaluation

__all__ = ["Builder", "Builtin", "ScorerRuntime", "broken", "reading", "run_for_score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerRuntime:
    """What a loop gives all its scorers: the stop event, the cap on output, where ``python`` functions are imported from.

    ``evaluators`` makes the evaluation of a ``judge`` scorer from its options; equal options give the same one.
    """

    stop: threading.Event | None = None
    output_cap: int = DEFAULT_OUTPUT_CAP
    search: tuple[Path, ...] = ()
    evaluators: Callable[[Mapping[str, object]], SharedEvaluation] | None = None


Builder = Callable[[str, Options, ScorerRuntime], Scorer]
"""Makes a scorer of a dimension from its checked options. Errors: :class:`jumar.errors.ConfigError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Builtin:
    """One kind of scorer: its builder, its options, and the dimension that it scores unless told otherwise (None: must be)."""

    build: Builder
    options: tuple[str, ...]
    dimension: str | None


def reading(dimension: str, scorer: str, value: ScoreValue, *, seconds: float = 0.0) -> ScoreReading:
    """Return a reading from what a scorer found."""
    return ScoreReading(
        dimension=dimension, scorer=scorer, score=value.score, reason=value.reason, invalid=value.invalid, seconds=seconds
    )


def broken(dimension: str, scorer: str, why: str, *, seconds: float = 0.0) -> ScoreReading:
    """Return the reading of a scorer that could not answer: nothing about the candidate."""
    return ScoreReading(dimension=dimension, scorer=scorer, score=None, broken=why, seconds=seconds)


def run_for_score(
    command: str | tuple[str, ...], context: StepContext, runtime: ScorerRuntime, *, name: str, timeout: float | None
) -> ProcessResult:
    """Run a scorer's command in the working directory."""
    return run_command(
        command,
        cwd=context.workdir,
        env=context.environment,
        timeout=timeout,
        log=context.log_directory / log_name("score", name),
        output_cap=runtime.output_cap,
        stop=runtime.stop,
        marker=context.nonce or None,
    )
