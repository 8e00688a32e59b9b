"""How a loop ended, as one value: what ``jumar run --json`` prints, and the exit code that goes with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from jumar.errors import LoopFinishedError, NothingEvaluatedError
from jumar.loop.ranking.confirmed import Certainty
from jumar.model import IterationRecord, SelectionResult, StopDecision
from jumar.model.attempts import Spend
from jumar.model.budget.gate import budget_left
from jumar.model.budget.pricing import Budget
from jumar.model.decisions import Rechecked
from jumar.model.selection import LIMIT_REASONS

_GATE_MET = 0
_FAILED = 1
_BELOW_THRESHOLD = 10
_LIMIT = 11
_REQUESTED = {"interrupted": 130, "stop_file": 130, "terminated": 143}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOutcome:
    """What a run leaves. ``selection`` is None when no iteration has a valid score.

    ``start`` is iteration 0, None where there is none. ``output`` is ``final-output/``; ``output_holds`` says whether it has the
    whole selected iteration or what differs from the start, None where it was not filled. ``verified`` tells whether the selected
    iteration passed its checks (None without checks). ``applied`` is the number of the apply decision that restored the best into
    the working directory, None when nothing had to be written. ``writes_back`` is False when the loop was told to leave the
    working directory alone. ``already_finished`` is True when the loop had ended before and this run paid for nothing.
    ``certainty`` is how sure the choice is, None when nothing is known of noise.
    ``tie_with_start`` is True when the start was selected although an iteration is as good, which stands then.
    ``recheck`` is what came of running its checks once more.
    """

    loop_id: str
    directory: Path
    workdir: Path
    selection: SelectionResult | None
    chosen: IterationRecord | None
    start: IterationRecord | None
    stop: StopDecision
    spend: Spend
    output: Path
    output_holds: Literal["full", "changed"] | None
    passes_ok: int
    has_validators: bool
    resumed: bool = False
    applied: int | None = None
    apply_problem: str | None = None
    writes_back: bool = True
    already_finished: bool = False
    failures: Mapping[str, int] = field(default_factory=dict[str, int])
    budget: Budget = field(default_factory=Budget)
    certainty: Certainty | None = None
    tie_with_start: bool = False
    recheck: Rechecked | None = None

    @property
    def verified(self) -> bool | None:
        """Whether the selected iteration passed all checks, and no strict recheck refused it; None when there are none."""
        if not self.has_validators:
            return None
        refused = self.recheck is not None and self.recheck.refused
        return self.chosen is not None and self.chosen.verification_status == "passed" and not refused

    @property
    def gate_met(self) -> bool:
        """The threshold's verdict; without one, at least as good as the start and not refused by a check."""
        if self.selection is None:
            return False
        if self.selection.meets_threshold is not None:
            return self.selection.meets_threshold
        return not self.selection.below_start and self.verified is not False

    @property
    def exit_code(self) -> int:
        """The exit code of ``jumar run``, as documented."""
        if self.already_finished:
            return LoopFinishedError.exit_code
        if self.stop.reason in _REQUESTED:
            return _REQUESTED[self.stop.reason]
        if self.stop.reason == "disk_full":
            return _LIMIT  # the best is safe, and not in place yet
        if self.selection is None:
            return NothingEvaluatedError.exit_code
        if self.stop.reason == "consecutive_failures" and self.passes_ok == 0:
            return _FAILED
        if self.apply_problem is not None:
            return _FAILED
        if self.gate_met:
            return _GATE_MET
        return _LIMIT if self.stop.reason in LIMIT_REASONS else _BELOW_THRESHOLD

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``jumar run --json``."""
        selection = self.selection
        return {
            "loop_id": self.loop_id,
            "selected_iteration": selection and selection.selected_iteration,
            "quality_score": selection and selection.quality_score,
            "final_iteration": selection and selection.final_iteration,
            "final_quality": selection and selection.final_quality,
            "degradation_detected": selection is not None and selection.degradation_detected,
            "meets_threshold": selection and selection.meets_threshold,
            "gate_met": self.gate_met,
            "stop_reason": self.stop.reason,
            "stop_detail": self.stop.detail,
            "verified": self.verified,
            "rechecked": self.recheck and self.recheck.rechecked,
            "rechecked_because": self.recheck and self.recheck.because,
            "checks": _checks_json(self.chosen),
            "start": self.start and {"quality_score": self.start.quality_score, "checks": _checks_json(self.start)},
            "spend": self.spend.to_json(),
            "output": str(self.output),
            "output_holds": self.output_holds,
            "reason": selection and selection.reason,
            "fallback": selection and selection.fallback,
            "runner_up": selection and selection.runner_up,
            "margin": selection and selection.margin,
            "optimism": self.certainty and self.certainty.optimism,
            "confirmed": self.certainty and self.certainty.confirmed and self.certainty.confirmed.to_json(),
            "below_start": selection is not None and selection.below_start,
            "resumed": self.resumed,
            "applied": self.applied,
            "tie_with_start": self.tie_with_start,
            "kept": self.selection and self.selection.kept,
            "apply_problem": self.apply_problem,
            "already_finished": self.already_finished,
            "failures": dict(self.failures),
            "budget_left": budget_left(self.spend, self.budget),
            "directory": str(self.directory),
            "exit_code": self.exit_code,
        }


def _checks_json(record: IterationRecord | None) -> list[dict[str, Any]]:
    checks = () if record is None else record.checks
    return [{"name": check.name, "passed": check.passed, "tests": check.tests and check.tests.to_json()} for check in checks]
