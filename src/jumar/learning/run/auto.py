"""``jumar evaluate --mode auto``: the cheap judge decides where it is proven and certain, the expensive one elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from jumar.core.text import escape
from jumar.errors import ConfigError, ItemError, StoreDamagedError
from jumar.judging.asking.cache import reply_cache
from jumar.judging.asking.call_log import CallLog
from jumar.judging.asking.evaluate import judge_items
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import CallTotals, Evaluation, Result
from jumar.judging.auto.escalation import AutoRules, distrust, outcome, plan, sealed_check
from jumar.judging.auto.intervals import ConformalIntervals, fit_intervals, intervals_of
from jumar.judging.auto.results import (
    AuditLog,
    AutoEvaluation,
    AutoRequest,
    Trust,
    new_audits,
    read_audits,
    write_audits,
    write_auto,
    write_auto_rows,
)
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.dual import require_statistics
from jumar.judging.expensive import Hear, call_log, check_outputs, cut_short, interruptible
from jumar.judging.files import check_per_item, claimed, learned_from
from jumar.judging.items.item import Item, patterns_digest
from jumar.judging.items.records import read_items
from jumar.judging.judges import make_judge
from jumar.judging.models import CheapModeResult, ExpensiveModeResult
from jumar.judging.patterns.models import PatternSet
from jumar.judging.patterns.storage import load_pattern_set
from jumar.judging.proofs import Proof, ProofJudge, read_proof
from jumar.judging.rubric import StoryRubric, TextRubric, kind_of_items, load_rubric
from jumar.learning.proof.make import verify_proof
from jumar.learning.run.prove import rubric_of_items
from jumar.learning.run.verdicts import judge_of_proof
from jumar.model.protocols import Judge

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


Ask = Callable[[Sequence[Item]], Awaitable[Evaluation]]
"""Asks the expensive judge about items; what was called and paid is that of all questions so far."""


def evaluate_auto(request: AutoRequest, now: datetime, hear: Hear | None = None) -> AutoEvaluation:
    """Score every item of a file cheaply, and ask the expensive judge where that is not certain, or drawn for an audit.

    Errors: those of the proof (:func:`jumar.learning.run.auto.read_basis`) and of
    :func:`jumar.judging.expensive.evaluate_judged`, all that can be known before anything is asked.
    """
    judged = request.judged
    chosen = load_rubric(judged.rubric)
    basis = read_basis(request.patterns, request.proof)
    judge = make_judge(judged.judge.spec, max_tokens=judged.judge.max_tokens)
    check_outputs(judged)
    check_per_item(judged.per_item, request.proof, request.audits)
    log = read_audits(request.audits, basis.proof.patterns.hash)
    kind = kind_of_items(chosen)
    items = list(read_items(judged.items, judged.fields, kind=kind))
    if not items:
        raise ItemError(f"{escape(str(judged.items))}: there are no items in it; give one JSON object a line")
    rubric = rubric_of_items(judged.rubric, items)
    evaluator = basis.evaluator(rubric)
    known = basis.check_judge(judge, rubric, judged.judge.settings)
    cache = reply_cache(judged.judge.cache, judge)

    async def work(calls: CallLog) -> AutoEvaluation:
        async with contextlib.aclosing(judge):

            async def ask(asked: Sequence[Item]) -> Evaluation:
                def told(result: Result) -> None:
                    if hear is not None:
                        hear(result, len(asked))

                with contextlib.ExitStack() as inner:
                    return await judge_items(
                        asked,
                        judge,
                        rubric.judge,
                        judged.judge.settings,
                        on_result=told,
                        cache=cache,
                        prices=judged.judge.prices,
                        calls=calls,
                        total=len(asked),
                        started=lambda run: inner.enter_context(interruptible(run)),
                    )

            return await decide(items, basis, evaluator, request.rules, now, ask, judge_known=known, log=log)

    with claimed(judged.per_item), call_log(judged, judge, items, rubric.judge) as calls, cut_short(judged):
        found = asyncio.run(work(calls))
        if judged.per_item is not None:
            write_auto_rows(judged.per_item, found)
        if request.audits is not None:
            write_audits(request.audits, found.log)
        if judged.output is not None:
            found = write_auto(judged.output, request, found)
        if found.expensive.stopped is None:
            calls.done()
    return found


async def decide(
    items: Sequence[Item],
    basis: Basis,
    evaluator: CheapModeEvaluator,
    rules: AutoRules,
    now: datetime,
    ask: Ask,
    *,
    judge_known: bool,
    log: AuditLog | None = None,
) -> AutoEvaluation:
    """Score ``items`` cheaply, have ``ask`` judge what is to be judged, and return what became of them all.

    ``log`` has the audits of earlier evaluations. Where the audits say that the proof does not hold any more, the judge is asked
    about the rest, too.
    """
    cheap = tuple(evaluator.evaluate(items))
    scores = [one.gestalt if isinstance(one, CheapModeResult) else None for one in cheap]
    scored = [(one, item.group) for one, item in zip(scores, items, strict=True) if one is not None]
    known, groups = [one for one, _ in scored], [group for _, group in scored]
    before = log or AuditLog(patterns=basis.proof.patterns.hash)
    trust = trust_of(basis, rules, now, judge_known=judge_known, scores=known, groups=groups, log=before)
    ids = [item.id for item in items]
    planned = plan(zip(ids, scores, strict=True), basis.intervals, rules, trusted=not trust.reasons)
    asked = [item for item, one in zip(items, planned, strict=True) if one.asked]
    expensive = await ask(asked)
    after = before.added(new_audits(items, planned, _scores(expensive), before.patterns))
    later = trust_of(basis, rules, now, judge_known=judge_known, scores=known, groups=groups, log=after)
    rest = [item for item, one in zip(items, planned, strict=True) if not one.asked]
    failed = bool(later.reasons) and not trust.reasons and bool(rest)
    if failed:
        expensive = joined(expensive, await ask(rest), ids)
    return AutoEvaluation(
        items=tuple(items),
        rules=rules,
        trust=later,
        planned=tuple(planned),
        cheap=cheap,
        expensive=expensive,
        outcome=outcome(planned, _scores(expensive), [item.group for item in items], rules, rest_asked=failed),
        evidence=after.evidence(basis.proof),
        log=after,
        rest_asked=failed,
        patterns=basis.patterns,
        learned_from=learned_from(items, basis.proof) or 0,
    )


def joined(one: Evaluation, other: Evaluation, order: Sequence[str]) -> Evaluation:
    """Return two evaluations of different items by the same judge as one, with its results in ``order``.

    What was called and paid is in the ``other``, the later one, for both.
    """
    place = {name: number for number, name in enumerate(order)}
    results = tuple(sorted((*one.results, *other.results), key=lambda result: place[result.story_id]))
    tally = CallTotals()
    for result in results:
        tally.add(result)
    tokens = tally.tokens
    return replace(
        other,
        results=results,
        story_count=tally.story_count,
        scored=tally.scored,
        unscored_kinds={str(kind): count for kind, count in tally.kinds.items()},
        gestalt_avg=tally.average,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        retries=one.retries + other.retries,
        cached=one.cached + other.cached,
        repeat=max(one.repeat, other.repeat),
        noise=tally.noise.noise(),
        stopped=one.stopped or other.stopped,
    )


def _scores(evaluation: Evaluation) -> dict[str, float]:
    return {result.story_id: result.gestalt for result in evaluation.results if isinstance(result, ExpensiveModeResult)}
