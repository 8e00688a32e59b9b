"""``jumar evaluate --mode auto``: the cheap judge decides where it is proven and certain, the expensive one elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from jumar.app.auto_audits import AuditLog, new_audits, read_audits, write_audits
from jumar.app.auto_files import write_auto, write_auto_rows
from jumar.app.auto_model import AutoEvaluation, AutoRequest
from jumar.app.auto_proof import Basis, read_basis, trust_of
from jumar.app.evaluation_files import check_per_item
from jumar.app.items import read_items
from jumar.app.judged import Hear, interruptible, reply_cache
from jumar.app.judged_files import check_outputs, row_of, write_rows
from jumar.app.judges import make_judge
from jumar.app.learned_from import learned_from
from jumar.app.proving import rubric_of_items
from jumar.app.rubrics import kind_of_items, load_rubric
from jumar.errors import EvaluationUnreliableError, ItemError
from jumar.judging.auto import AutoRules, outcome, plan
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.expensive.evaluate import judge_items
from jumar.judging.expensive.settings import JudgeSettings
from jumar.judging.expensive.summary import Evaluation, JudgeInterruptedError, JudgeRejectedError, Result, Tally
from jumar.judging.items import Item
from jumar.judging.models import CheapModeResult, ExpensiveModeResult
from jumar.text import escape

__all__ = ["Ask", "decide", "evaluate_auto"]

Ask = Callable[[Sequence[Item], Evaluation | None], Awaitable[Evaluation]]
"""Asks the expensive judge about items; the second time it is given what came of the first."""


def evaluate_auto(request: AutoRequest, now: datetime, hear: Hear | None = None) -> AutoEvaluation:
    """Score every item of a file cheaply, and ask the expensive judge where that is not certain, or drawn for an audit.

    Errors: those of the proof (:func:`jumar.app.auto_proof.read_basis`) and of
    :func:`jumar.app.judged.evaluate_judged`, all that can be known before anything is asked.
    """
    judged = request.judged
    chosen = load_rubric(judged.rubric)
    basis = read_basis(request.patterns, request.proof)
    judge = make_judge(judged.judge, max_tokens=judged.max_tokens)
    check_outputs(judged)
    check_per_item(judged.per_item, request.proof, request.audits)
    log = read_audits(request.audits, basis.proof.patterns.hash)
    kind = kind_of_items(chosen)
    items = list(read_items(judged.items, judged.fields, kind=kind))
    if not items:
        raise ItemError(f"{escape(str(judged.items))}: there are no items in it; give one JSON object a line")
    rubric = rubric_of_items(judged.rubric, items)
    evaluator = basis.evaluator(rubric)
    known = basis.check_judge(judge, rubric, judged.settings)
    cache = reply_cache(judged.cache, judge)

    async def work() -> AutoEvaluation:
        async with contextlib.aclosing(judge):

            async def ask(asked: Sequence[Item], before: Evaluation | None) -> Evaluation:
                def told(result: Result) -> None:
                    if hear is not None:
                        hear(result, len(asked))

                with contextlib.ExitStack() as inner:
                    return await judge_items(
                        asked,
                        judge,
                        rubric.judge,
                        left_of(judged.settings, before),
                        on_result=told,
                        cache=cache,
                        prices=judged.prices,
                        total=len(asked),
                        started=lambda run: inner.enter_context(interruptible(run)),
                    )

            return await decide(items, basis, evaluator, request.rules, now, ask, judge_known=known, log=log)

    try:
        found = asyncio.run(work())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except (EvaluationUnreliableError, JudgeRejectedError, JudgeInterruptedError) as error:
        if judged.per_item is not None and error.evaluation is not None:
            write_rows(judged.per_item, [row_of(one, None) for one in error.evaluation.results])
        raise
    if judged.per_item is not None:
        write_auto_rows(judged.per_item, found)
    if request.audits is not None:
        write_audits(request.audits, found.log)
    return found if judged.output is None else write_auto(judged.output, request, found)


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
    expensive = await ask(asked, None)
    after = before.added(new_audits(items, planned, _scores(expensive), before.patterns))
    later = trust_of(basis, rules, now, judge_known=judge_known, scores=known, groups=groups, log=after)
    rest = [item for item, one in zip(items, planned, strict=True) if not one.asked]
    failed = bool(later.reasons) and not trust.reasons and bool(rest)
    if failed:
        expensive = joined(expensive, await ask(rest, expensive), ids)
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


def left_of(settings: JudgeSettings, before: Evaluation | None) -> JudgeSettings:
    """Return the settings with what an earlier evaluation left of the money."""
    if before is None or settings.max_cost is None:
        return settings
    return replace(settings, max_cost=max(0.0, settings.max_cost - before.known_cost_usd))


def joined(one: Evaluation, other: Evaluation, order: Sequence[str]) -> Evaluation:
    """Return two evaluations of different items by the same judge as one, with its results in ``order``."""
    place = {name: number for number, name in enumerate(order)}
    results = tuple(sorted((*one.results, *other.results), key=lambda result: place[result.story_id]))
    tally = Tally()
    for result in results:
        tally.add(result)
    costs = (one.cost_usd, other.cost_usd)
    tokens = tally.tokens
    return replace(
        one,
        results=results,
        story_count=tally.story_count,
        scored=tally.scored,
        unscored_kinds={str(kind): count for kind, count in tally.kinds.items()},
        gestalt_avg=tally.average,
        cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        known_cost_usd=one.known_cost_usd + other.known_cost_usd,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        calls=one.calls + other.calls,
        retries=one.retries + other.retries,
        cached=one.cached + other.cached,
        repeat=max(one.repeat, other.repeat),
        noise=tally.noise.noise(),
        stopped=one.stopped or other.stopped,
    )


def _scores(evaluation: Evaluation) -> dict[str, float]:
    return {one.story_id: one.gestalt for one in evaluation.results if isinstance(one, ExpensiveModeResult)}
