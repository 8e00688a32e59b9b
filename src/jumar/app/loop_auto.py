"""Mode ``auto`` of ``[evaluator]``: what the cheap judge decides by in a loop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from jumar.app.auto import Ask, decide
from jumar.app.auto_model import AutoEvaluation
from jumar.app.auto_proof import read_basis
from jumar.app.evaluator_config import JudgeOptions
from jumar.judging.auto import AutoRules
from jumar.judging.auto.escalation import AUDIT, CONFIDENCE
from jumar.judging.expensive.settings import JudgeSettings
from jumar.judging.items import Item
from jumar.judging.rubric import StoryRubric, TextRubric, builtin_rubric
from jumar.model.judges import Judge

__all__ = ["LoopAuto"]


class LoopAuto:
    """A set with its proof and the rules of escalation. Errors: those of :func:`jumar.app.auto_proof.read_basis`.

    ``rubric`` None is the built-in one of the kind that was proven.
    """

    def __init__(self, options: JudgeOptions, patterns: Path, proof: Path, rubric: StoryRubric | TextRubric | None) -> None:
        self._basis = read_basis(patterns, proof)
        self.rubric = rubric or builtin_rubric(self._basis.proof.rubric.kind)
        self.evaluator = self._basis.evaluator(self.rubric)
        self._rules = AutoRules(
            line=options.decision_line or 0.0,
            confidence=CONFIDENCE if options.confidence is None else options.confidence,
            audit=AUDIT if options.audit is None else options.audit,
            seed=options.audit_seed or 0,
        )
        self._judge_known = False

    def check_judge(self, judge: Judge, settings: JudgeSettings) -> None:
        """Refuse another judge than the one that was proven. Errors: :class:`jumar.errors.ConfigError`."""
        self._judge_known = self._basis.check_judge(judge, self.rubric, settings)

    async def decide(self, items: Sequence[Item], ask: Ask) -> AutoEvaluation:
        """Return what became of the items, at the time of the call."""
        return await decide(
            items, self._basis, self.evaluator, self._rules, datetime.now(UTC), ask, judge_known=self._judge_known
        )
