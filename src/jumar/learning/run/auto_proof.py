"""The proof that mode ``auto`` rests on: read, computed again, and held against the set, the rubric and the judge at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from jumar.core.text import escape
from jumar.errors import ConfigError, StoreDamagedError
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.auto.conformal import ConformalIntervals, fit_intervals, intervals_of
from jumar.judging.auto.escalation import AutoRules, distrust, sealed_check
from jumar.judging.auto.results import AuditLog, Trust
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.dual import require_statistics
from jumar.judging.items.item import patterns_digest
from jumar.judging.patterns.models import PatternSet
from jumar.judging.patterns.storage import load_pattern_set
from jumar.judging.proofs import Proof, ProofJudge, read_proof
from jumar.judging.rubric import StoryRubric, TextRubric
from jumar.learning.proof.make import verify_proof
from jumar.learning.run.verdicts import judge_of_proof
from jumar.model.judges import Judge

_RECORDED = "replay:"
_COMMAND = "command:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What the cheap judge may decide by: the set, its proof, its intervals and what these were made of."""

    patterns: PatternSet
    proof: Proof
    intervals: ConformalIntervals
    source: Literal["open", "sealed"]

    def evaluator(self, rubric: StoryRubric | TextRubric) -> CheapModeEvaluator:
        """Return the cheap judge that was proven. Errors: :class:`jumar.errors.ConfigError` for another rubric."""
        if rubric.digest != self.proof.rubric.hash:
            raise ConfigError(
                f"the proof was made with the rubric '{escape(self.proof.rubric.name)}', and this is another one, "
                f"'{escape(rubric.name)}', or another version of it; give --rubric as `jumar learn` was given it"
            )
        return CheapModeEvaluator(self.patterns, rubric=rubric)

    def check_judge(self, judge: Judge, rubric: StoryRubric | TextRubric, settings: JudgeSettings) -> bool:
        """Return whether the proof is known to be about this judge: of recorded verdicts nobody knows whose they are.

        Errors: :class:`jumar.errors.ConfigError` for another judge, or one that is asked otherwise.
        """
        proven, here = self.proof.judge, judge_of_proof(judge, rubric.judge, settings)
        if getattr(judge, "recorded", False) or proven.identity.startswith(_RECORDED):
            return False
        differs = _differences(proven, here)
        if differs:
            raise ConfigError(
                f"the proof is about another expensive judge: {'; '.join(differs)}. Give the judge that was proven, as it was "
                "asked then, prove the set against this one with `jumar learn`, or take mode expensive"
            )
        return True


def read_basis(patterns: Path, proof: Path) -> Basis:
    """Read a set and its proof, and compute the proof's figures again.

    Errors: those of the files; :class:`jumar.errors.StoreDamagedError` for a proof whose figures do not follow from its rows,
    :class:`jumar.errors.ConfigError` for one of another set, and where the extra ``judge`` is not installed.
    """
    require_statistics()
    known, found = load_pattern_set(patterns), read_proof(proof)
    problems = verify_proof(found).problems
    if problems:
        raise StoreDamagedError(
            f"{escape(str(proof))} does not hold: {problems[0]}; `jumar prove --verify {escape(str(proof))}` says all, and "
            "`jumar prove OUT` makes a new one"
        )
    if found.patterns.hash != patterns_digest(known):
        raise ConfigError(
            f"{escape(str(proof))} proves another set of patterns than {escape(str(patterns))}; give the patterns.json that lies "
            "beside the proof, or prove this one with `jumar prove OUT`"
        )
    intervals = intervals_of(known)
    return Basis(
        patterns=known,
        proof=found,
        intervals=intervals or _of_sealed(found),
        source="sealed" if intervals is None else "open",
    )


def trust_of(
    basis: Basis,
    rules: AutoRules,
    now: datetime,
    *,
    judge_known: bool,
    scores: Sequence[float] = (),
    groups: Sequence[str | None] | None = None,
    log: AuditLog | None = None,
) -> Trust:
    """Return what the proof allows at this time, for these cheap scores of items of these groups, after these audits."""
    check = None if basis.source == "sealed" else sealed_check(basis.proof, basis.intervals, rules)
    audits = log or AuditLog()
    reasons = distrust(
        basis.proof, now, scores=scores, audits=audits.pairs, groups=groups, audit_groups=audits.groups, check=check
    )
    return Trust(proof=basis.proof, intervals=basis.source, check=check, judge_known=judge_known, reasons=tuple(reasons))


def _of_sealed(proof: Proof) -> ConformalIntervals:
    rows = proof.rows
    return fit_intervals([row.cheap for row in rows], [row.score for row in rows], [row.group for row in rows])


def _differences(proven: ProofJudge, here: ProofJudge) -> list[str]:
    found: list[str] = []
    if proven.identity != here.identity:
        both = proven.identity.startswith(_COMMAND) and here.identity.startswith(_COMMAND)
        why = " (the hash is of the command's words and of what is in its files: a word or a file has changed)" if both else ""
        found.append(f"it is {escape(proven.identity)}, and this is {escape(here.identity)}{why}")
    if (proven.question_hash, proven.template) != (here.question_hash, here.template):
        found.append("it was asked another question")
    named = [name for name in ("scale", "explain") if name in proven.settings]
    changed = [name for name in named if proven.settings[name] != here.settings.get(name)]
    return [*found, *(f"its {name} was {proven.settings[name]}, and is {here.settings.get(name)}" for name in changed)]
