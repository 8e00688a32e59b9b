"""``jumar evaluate`` with an expensive judge: alone, or beside the cheap one.

Items are held in memory, unlike in cheap mode: each of them costs a call, so there are never so many.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from collections.abc import Callable, Generator, Sequence

from jumar.core.text import escape
from jumar.errors import EvaluationUnreliableError, ItemError
from jumar.judging.asking.cache import reply_cache
from jumar.judging.asking.call_log import FILE, CallLog
from jumar.judging.asking.evaluate import JudgeRun, judge_items
from jumar.judging.asking.summary import Evaluation, JudgeInterruptedError, JudgeRejectedError, Result
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.digests import digest_of, item_digest
from jumar.judging.dual import combine
from jumar.judging.items.item import Item
from jumar.judging.items.records import read_items
from jumar.judging.judges import make_judge
from jumar.judging.results.evaluation_files import claimed
from jumar.judging.results.iteration_folder import learned_from, proof_beside
from jumar.judging.results.judged_files import check_outputs, row_of, write_iteration, write_rows
from jumar.judging.results.judged_model import JudgedEvaluation, JudgedRequest
from jumar.judging.rubric import JudgeRubric, kind_of_items, load_rubric, rubric_of
from jumar.judging.tracking import require_statistics
from jumar.model.judges import Judge

_log = logging.getLogger("jumar.judging.expensive")

Hear = Callable[[Result, int], None]
"""Told after each item: its result, and how many items there are."""


def evaluate_judged(request: JudgedRequest, hear: Hear | None = None) -> JudgedEvaluation:
    """Ask the expensive judge about every item of a file and, in dual mode, the cheap one afterwards.

    Errors: :class:`jumar.errors.ConfigError` of judge, rubric and settings and :class:`ItemError` of the file, before anything is
    asked; :class:`EvaluationUnreliableError`, :class:`JudgeRejectedError` and :class:`JudgeInterruptedError`, after what was
    judged has been written to ``per_item``.
    """
    evaluator = None
    rubric = load_rubric(request.rubric)
    if request.mode == "dual":
        require_statistics()
        evaluator = CheapModeEvaluator(request.patterns, rubric=rubric)
    judge = make_judge(request.judge.spec, max_tokens=request.judge.max_tokens)
    check_outputs(request)
    kind = kind_of_items(rubric)
    items = list(read_items(request.items, request.fields, kind=kind))
    if not items:
        raise ItemError(f"{escape(str(request.items))}: there are no items in it; give one JSON object a line")
    question = rubric_of(rubric, items)

    cache = reply_cache(request.judge.cache, judge)

    def told(result: Result) -> None:
        if hear is not None:
            hear(result, len(items))

    async def ask(calls: CallLog) -> Evaluation:
        async with contextlib.aclosing(judge), contextlib.AsyncExitStack() as stack:
            return await judge_items(
                items,
                judge,
                question,
                request.judge.settings,
                on_result=told,
                cache=cache,
                prices=request.judge.prices,
                calls=calls,
                total=len(items),
                started=lambda run: stack.enter_context(interruptible(run)),
            )

    with claimed(request.per_item), call_log(request, judge, items, question) as calls, cut_short(request):
        expensive = asyncio.run(ask(calls))
        dual = None if evaluator is None else combine(items, expensive, list(evaluator.evaluate(items)), evaluator.patterns)
        known = None if evaluator is None else learned_from(items, proof_beside(request.patterns, evaluator.patterns))
        found = JudgedEvaluation(items=tuple(items), expensive=expensive, dual=dual, directory=None, learned_from=known)
        written = _written(request, question, found)
        if expensive.stopped is None:
            calls.done()
    return written


def call_log(request: JudgedRequest, judge: Judge, items: Sequence[Item], question: JudgeRubric) -> CallLog:
    """Return what counts the calls of an evaluation over all its starts: in its folder, beside its rows, or with the replies.

    With the replies it is found by what is judged and by whom, because they serve many evaluations. Where nothing is kept, and
    for a judge whose answers are on file, it is in memory. Errors: those of :class:`CallLog`.
    """
    path = None
    if getattr(judge, "recorded", False):
        return CallLog()
    if request.output is not None:
        path = request.output / FILE
    elif request.per_item is not None:
        path = request.per_item.with_name(f"{request.per_item.name}.{FILE}")
    elif request.judge.cache is not None:
        what = [judge.identity, question.model_dump(mode="json"), sorted(item_digest(item) for item in items)]
        path = request.judge.cache / "calls" / f"{digest_of(what)}.jsonl"
    return CallLog(path, reserve=request.judge.settings.reserve_cost)


@contextlib.contextmanager
def cut_short(request: JudgedRequest) -> Generator[None]:
    """Write the rows of what was judged when the asking ends early, and raise what it ended by."""
    try:
        yield
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except (EvaluationUnreliableError, JudgeRejectedError, JudgeInterruptedError) as error:
        if request.per_item is not None and error.evaluation is not None:
            write_rows(request.per_item, [row_of(result, None) for result in error.evaluation.results])
        raise


@contextlib.contextmanager
def interruptible(run: JudgeRun) -> Generator[None]:
    """Let the first SIGINT end the asking and a second one everything; the handler before is put back."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in {signal.SIG_IGN, None}:
        yield
        return
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        if interrupted and task is not None:
            task.cancel()
        elif not interrupted:
            _log.warning("jumar.judge_stopping: waiting for the calls in flight, which are paid for; Ctrl-C again gives them up")
            run.stop()
        interrupted = True

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


def _written(request: JudgedRequest, question: JudgeRubric, found: JudgedEvaluation) -> JudgedEvaluation:
    """Write what was asked for, and return the evaluation with its folder."""
    if request.per_item is not None:
        cheap = found.dual.cheap if found.dual is not None else (None,) * len(found.items)
        write_rows(request.per_item, [row_of(one, other) for one, other in zip(found.expensive.results, cheap, strict=True)])
    if request.output is None:
        return found
    return write_iteration(request.output, request, question, found)
