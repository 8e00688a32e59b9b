"""Mode ``auto`` of ``[evaluator]``: what the cheap judge decides by in a loop."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from jumar.app.config.evaluator import JudgeOptions
from jumar.core.text import escape
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.auto import AutoRules
from jumar.judging.auto.escalation import AUDIT, CONFIDENCE
from jumar.judging.items.item import Item
from jumar.judging.results.auto_model import AutoEvaluation
from jumar.judging.rubric import StoryRubric, TextRubric, builtin_rubric
from jumar.learning.run.auto import Ask, decide
from jumar.learning.run.auto_proof import read_basis, trust_of
from jumar.model.judges import Judge

__all__ = ["LoopAuto", "gaming_warnings"]

_RESULT = "result.json"


class LoopAuto:
    """A set with its proof and the rules of escalation. Errors: those of :func:`jumar.learning.run.auto_proof.read_basis`.

    ``rubric`` None is the built-in one of the kind that was proven.
    """

    def __init__(self, options: JudgeOptions, patterns: Path, proof: Path, rubric: StoryRubric | TextRubric | None) -> None:
        self._basis = read_basis(patterns, proof)
        self._proof = proof
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

    def warnings(self) -> tuple[str, ...]:
        """What a person should know before a run: that the cheap judge will decide nothing, and that it can be gamed.

        Each is what is so, a semicolon, and what to do about it.
        """
        trust = trust_of(self._basis, self._rules, datetime.now(UTC), judge_known=self._judge_known)
        shown = escape(str(self._proof))
        found = [
            f"mode auto: {shown}: {reason}, so the cheap judge decides nothing and the judge is asked about every item; "
            "prove the set again with `jumar prove OUT`, learn from more items, or take mode = 'expensive', which costs the same"
            for reason in trust.reasons
        ]
        return (*found, *gaming_warnings(self._proof, "auto"))

    async def decide(self, items: Sequence[Item], ask: Ask) -> AutoEvaluation:
        """Return what became of the items, at the time of the call."""
        return await decide(
            items, self._basis, self.evaluator, self._rules, datetime.now(UTC), ask, judge_known=self._judge_known
        )


def _probes(path: Path) -> dict[str, Any] | None:
    """Return the probes of a learning run's result; None where there is none that can be read."""
    try:
        found = json.loads(path.read_bytes())["probes"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(found, dict):
        return None
    known = cast("dict[str, Any]", found)
    return known if isinstance(known.get("passed"), bool) else None


def gaming_warnings(file: Path, mode: str) -> list[str]:
    """Return what the probes of the run that wrote ``file`` say of its set: a generator is rewarded for what raises the score.

    The probes are in ``result.json`` beside it. Each is what is so, a semicolon, and what to do about it.
    """
    path = file.with_name(_RESULT)
    probes = _probes(path)
    if probes is None:
        unknown = f"mode {mode}: whether the set of {escape(str(file))} can be gamed is not known"
        return [f"{unknown}: no {_RESULT} with probes lies beside it; name the file in the folder where `jumar learn` wrote it"]
    if probes.get("passed") is not False:
        return []
    single = cast("dict[str, Any]", probes.get("probes") or {})
    failed = [name.replace("_", " ") for name, one in single.items() if not one.get("passed", True)]
    probe = ", ".join(map(escape, failed)) or "a probe"
    gamed = f"mode {mode}: the set can be gamed, says {escape(str(path))}: {probe} raised the cheap score of real items"
    more = "raise audit, " if mode == "auto" else ""
    way = f"a loop rewards what raises it, so keep the set out of the generator's reach, {more}or take mode = 'expensive'"
    return [f"{gamed}; {way}"]
