"""``jumar evaluate --mode auto``: the cheap judge decides where it is proven and certain, the expensive one elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from jumar.core.text import escape
from jumar.errors import ItemError
from jumar.judging.asking.cache import reply_cache
from jumar.judging.asking.call_log import CallLog
from jumar.judging.asking.evaluate import judge_items
from jumar.judging.asking.summary import CallTotals, Evaluation, Result
from jumar.judging.auto.escalation import AutoRules, outcome, plan
from jumar.judging.auto.results import (
    AuditLog,
    AutoEvaluation,
    AutoRequest,
    new_audits,
    read_audits,
    write_audits,
    write_auto,
    write_auto_rows,
)
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.expensive import Hear, call_log, check_outputs, cut_short, interruptible
from jumar.judging.files import check_per_item, claimed, learned_from
from jumar.judging.items.item import Item
from jumar.judging.items.records import read_items
from jumar.judging.judges import make_judge
from jumar.judging.models import CheapModeResult, ExpensiveModeResult
from jumar.judging.rubric import kind_of_items, load_rubric
from jumar.learning.run.auto_proof import Basis, read_basis, trust_of
from jumar.learning.run.prove import rubric_of_items

Ask = Callable[[Sequence[Item]], Awaitable[Evaluation]]
"""Asks the expensive judge about items; what was called and paid is that of all questions so far."""


def evaluate_auto(request: AutoRequest, now: datetime, hear: Hear | None = None) -> AutoEvaluation:
    """Score every item of a file cheaply, and ask the expensive judge where that is not certain, or drawn for an audit.

    Errors: those of the proof (:func:`jumar.learning.run.auto_proof.read_basis`) and of
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
