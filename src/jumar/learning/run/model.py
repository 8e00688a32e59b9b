"""What ``jumar learn`` is asked, and what came out."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import JudgeInterruptedError
from jumar.judging.history import FEWEST_ITERATIONS
from jumar.learning.run.prove_request import ProveRequest
from jumar.loop.engine.outcome import LoopOutcome
from jumar.model.budget.prices import Prices

__all__ = ["LOOP", "RESULT", "ROOT", "SEALED_TESTS", "LearnRequest", "LearnResult", "Proposer", "prove_request"]

LOOP: Final = "learn"
ROOT: Final = ".jumar"
RESULT: Final = "result.json"
SEALED_TESTS: Final = "sealed_tests.json"
"""Tests of single proposals on the held-out items, of all looks; their ``iteration`` is the number of the look."""

Proposer = Literal["terms", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnRequest:
    """A learning run into ``output``.

    ``heldout`` is the share of groups held out. ``patterns`` is the set to begin with, None for none. ``proposer`` says who
    proposes: statistics of ``terms``, or the model of the ``judge``. ``cache`` is the folder of replies, None for none.
    Before ``min_iterations`` a run is not converged, whatever it found.
    """

    items: Path
    output: Path
    judge: str
    settings: JudgeSettings
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    patterns: Path | None = None
    rubric: str | None = None
    heldout: float = 0.4
    seed: int = 0
    max_iterations: int = 10
    min_iterations: int = FEWEST_ITERATIONS
    profile: Literal["evidence", "seed"] = "evidence"
    proposer: Proposer = "terms"
    cache: Path | None = None
    prices: Prices | None = None
    max_tokens: int = 2000


def prove_request(request: LearnRequest) -> ProveRequest:
    """Return what `jumar prove` is asked of the same run."""
    return ProveRequest(
        output=request.output,
        items=request.items,
        judge=request.judge,
        settings=request.settings,
        fields=request.fields,
        rubric=request.rubric,
        cache=request.cache,
        prices=request.prices,
        max_tokens=request.max_tokens,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnResult:
    """How a run ended. ``summary`` is what ``result.json`` holds; None when the run was stopped before there was a verdict.

    ``cut_off`` says how it was stopped while the held-out items were being judged, None when it was not.
    """

    output: Path
    outcome: LoopOutcome
    summary: Mapping[str, Any] | None
    cut_off: Literal["interrupted", "terminated"] | None = None

    @property
    def exit_code(self) -> int:
        """0 with a verdict, whichever; else the loop's own."""
        if self.cut_off is not None:
            return 128 + signal.SIGTERM if self.cut_off == "terminated" else JudgeInterruptedError.exit_code
        return 0 if self.summary is not None else self.outcome.exit_code

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        stop = {"stop_reason": self.outcome.stop.reason, "stop_detail": self.outcome.stop.detail}
        shared = {**stop, "resumed": self.outcome.resumed, "output": str(self.output.absolute())}
        return {**(self.summary or {"verdict": None}), **shared}
