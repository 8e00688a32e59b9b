"""What ``jumar evaluate --mode auto`` is asked, and what came out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jumar.judging.asking.summary import Evaluation
from jumar.judging.auto import AutoOutcome, AutoRules, Planned, SealedCheck
from jumar.judging.component_health import check_expensive_evaluator, check_patterns, every_component
from jumar.judging.dual import cheap_document
from jumar.judging.gap import QUALITY_TARGET
from jumar.judging.items.item import Item
from jumar.judging.models import CheapModeResult, ExpensiveModeResult, Unscored
from jumar.judging.patterns.models import PatternSet
from jumar.judging.proofs import Proof
from jumar.judging.results.auto_audits import AuditLog
from jumar.judging.results.judged_model import JudgedRequest

CheapResult = CheapModeResult | Unscored


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoRequest:
    """What to evaluate: as with an expensive judge, with a proof of the patterns and the rules of escalation.

    ``audits`` is the file of all audits so far, None for those of this evaluation alone.
    """

    judged: JudgedRequest
    patterns: Path
    proof: Path
    rules: AutoRules
    audits: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What the proof allows. ``reasons`` are why the cheap judge decides nothing, empty where it may.

    ``intervals`` says what the intervals were made of; ``check`` is None where that is the held-out items themselves.
    ``judge_known`` is False where one of the two judges is a file of recorded verdicts, which does not say whose they are.
    """

    proof: Proof
    intervals: Literal["open", "sealed"]
    check: SealedCheck | None
    judge_known: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoEvaluation:
    """What came out. ``expensive`` is of the items that were asked about; ``rest_asked``: failed audits led to all the others.

    ``evidence`` is that of the audits (:func:`jumar.judging.proofs.audit_evidence`) in ``log``, which has those of earlier
    evaluations, too. ``learned_from`` is how many of the items the set was learned from. ``directory`` is where ``-o`` wrote to.
    """

    items: tuple[Item, ...]
    rules: AutoRules
    trust: Trust
    planned: tuple[Planned, ...]
    cheap: tuple[CheapResult, ...]
    expensive: Evaluation
    outcome: AutoOutcome
    evidence: float
    rest_asked: bool
    patterns: PatternSet
    log: AuditLog
    learned_from: int = 0
    directory: Path | None = None

    @property
    def scored(self) -> int:
        """Items with a score of the judge that decided."""
        return len(self.items) - self.outcome.undecided

    @property
    def not_asked(self) -> int:
        """Items about which the expensive judge was not asked."""
        return 0 if self.rest_asked else sum(not one.asked for one in self.planned)

    @property
    def calls_saved(self) -> int:
        """Questions that the expensive judge was not asked: readings an item, for the items that it was not asked about."""
        return self.not_asked * self.expensive.repeat

    @property
    def cost_saved_usd(self) -> float | None:
        """What these would have cost at the average of those that were paid for; None where nobody knows."""
        if not self.not_asked:
            return 0.0
        paid = [
            result.cost_usd for result in self.expensive.results if isinstance(result, ExpensiveModeResult) and not result.cached
        ]
        known = [cost for cost in paid if cost is not None]
        return None if not known or len(known) < len(paid) else self.not_asked * sum(known) / len(known)

    @property
    def pattern_match(self) -> float | None:
        """The share of items that the cheap judge scored on which at least one pattern fired; None without any."""
        scored = [one for one in self.cheap if isinstance(one, CheapModeResult)]
        return sum(bool(one.patterns_matched) for one in scored) / len(scored) if scored else None

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` prints: the figures without the single items."""
        cheap = cheap_document(self.cheap, self.pattern_match)
        average = cheap["gestalt_avg"]
        health = {
            "expensive_evaluator": check_expensive_evaluator(self.expensive.results),
            "pattern_migration": check_patterns(self.patterns),
        }
        return {
            "mode": "auto",
            "story_count": len(self.items),
            "scored": self.scored,
            "unscored": self.outcome.undecided,
            "cheap": {key: value for key, value in cheap.items() if key in _CHEAP},
            "expensive": self.expensive.figures(),
            "gap": None,
            "abs_gap_mean": None,
            "tracking": None,
            "quality": {"cheap_avg": average, "met": None if average is None else average >= QUALITY_TARGET},
            "auto": self.figures(),
            "health": {name: one.model_dump() for name, one in every_component(**health).items()},
            "learned_from": self.learned_from,
            "output": None if self.directory is None else str(self.directory.absolute()),
        }

    def figures(self) -> dict[str, Any]:
        """Return what is particular to this mode."""
        found, errors = self.outcome, self.outcome.errors
        return {
            "decision_line": self.rules.line,
            "confidence": self.rules.confidence,
            "audit": self.rules.audit,
            "seed": self.rules.seed,
            "cheap": found.cheaply,
            "audited": found.audited,
            "escalated": found.escalated,
            "undecided": found.undecided,
            "above": found.above,
            "below": found.below,
            "calls_saved": self.calls_saved,
            "saved_share": self.not_asked / len(self.items) if self.items else None,
            "cost_saved_usd": self.cost_saved_usd,
            "average": None if found.average is None else found.average.to_json(),
            "audits": {
                "items": len(errors),
                "mean_error": sum(errors) / len(errors) if errors else None,
                "mean_abs_error": sum(map(abs, errors)) / len(errors) if errors else None,
                "of_all_evaluations": len(self.log.pairs),
                "evidence": self.evidence,
                "rest_asked": self.rest_asked,
            },
            "guarantee": found.guarantee.to_json(),
            "proof": {
                "trusted": not self.trust.reasons,
                "reasons": list(self.trust.reasons),
                "verdict": self.trust.proof.verdict,
                "created_at": self.trust.proof.created_at.isoformat(),
                "judge_known": self.trust.judge_known,
                "intervals": self.trust.intervals,
                "sealed": None if self.trust.check is None else self.trust.check.to_json(),
            },
        }


_CHEAP = frozenset({"gestalt_avg", "story_count", "scored", "unscored", "pattern_match"})
