"""``jumar evaluate`` with an expensive judge: alone, or beside the cheap one.

Items are held in memory, unlike in cheap mode: each of them costs a call, so there are never so many.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from jumar.core import __version__
from jumar.core.files import as_write_error, read_bytes, replace_file
from jumar.core.text import escape, json_rows, json_text
from jumar.errors import EvaluationUnreliableError, ItemError
from jumar.judging.asking.cache import reply_cache
from jumar.judging.asking.call_log import FILE, CallLog
from jumar.judging.asking.evaluate import JudgeRun, judge_items
from jumar.judging.asking.settings import JudgeConfig
from jumar.judging.asking.summary import Evaluation, JudgeInterruptedError, JudgeRejectedError, Result
from jumar.judging.cheap.evaluator import CheapModeEvaluator
from jumar.judging.component_health import check_expensive_evaluator, every_component
from jumar.judging.dual import DualEvaluation, combine, evaluation_document, require_statistics
from jumar.judging.files import (
    check_per_item,
    claimed,
    item_rows,
    learned_from,
    learned_from_words,
    new_iteration,
    proof_beside,
    refuse_learning,
    sources_of,
    write_folder,
)
from jumar.judging.history import check_convergence, detect_divergence
from jumar.judging.items.item import Item, digest_of, item_digest
from jumar.judging.items.records import read_items
from jumar.judging.judges import make_judge
from jumar.judging.models import CheapModeResult, ExpensiveModeResult, IterationLog, IterationMetrics, Unscored
from jumar.judging.report.text import DualView, render_dashboard, render_gap_report
from jumar.judging.rubric import JudgeRubric, kind_of_items, load_rubric, rubric_of
from jumar.model.protocols import Judge

_log = logging.getLogger("jumar.judging.expensive")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRequest:
    """What to evaluate, and by what."""

    items: Path
    mode: Literal["expensive", "dual"]
    judge: JudgeConfig
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    patterns: Path | None = None
    rubric: str | None = None
    per_item: Path | None = None
    output: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedEvaluation:
    """What came out. ``dual`` is None in expensive mode; ``directory`` is where ``-o`` wrote to.

    ``history`` are the metrics of the iterations that were there before, oldest first. ``learned_from`` is how many of the items
    the cheap judge's set was learned from, None where nothing tells.
    """

    items: tuple[Item, ...]
    expensive: Evaluation
    dual: DualEvaluation | None
    directory: Path | None
    history: tuple[Mapping[str, Any], ...] = ()
    learned_from: int | None = None

    @property
    def scored(self) -> int:
        """Items that every judge of the mode scored."""
        return self.expensive.scored if self.dual is None else self.dual.summary.scored

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` prints: the figures without the single items."""
        if self.dual is not None:
            figures = self.dual.figures()
        else:
            health = every_component(expensive_evaluator=check_expensive_evaluator(self.expensive.results))
            expensive = self.expensive.figures()
            figures = evaluation_document("expensive", len(self.items), self.scored, health=health, expensive=expensive)
        output = None if self.directory is None else str(self.directory.absolute())
        return {**figures, "learned_from": self.learned_from, "output": output}


def row_of(expensive: ExpensiveModeResult | Unscored, cheap: CheapModeResult | Unscored | None) -> dict[str, Any]:
    """Return an item's line for ``--per-item``; ``cheap`` is None where only the expensive judge was asked."""
    judged = expensive if isinstance(expensive, ExpensiveModeResult) else None
    other = cheap if isinstance(cheap, CheapModeResult) else None
    return {
        "id": expensive.story_id,
        "cheap": None if other is None else other.gestalt,
        "expensive": None if judged is None else judged.gestalt,
        "gap": None if judged is None or other is None else judged.gestalt - other.gestalt,
        "reasons": [] if other is None else other.reasons,
        "patterns_matched": [] if other is None else other.patterns_matched,
        "patterns_missed": [] if other is None else other.patterns_missed,
        "readings": [] if judged is None else judged.readings,
        "reasoning": None if judged is None else judged.reasoning,
        "strengths": [] if judged is None else judged.strengths,
        "weaknesses": [] if judged is None else judged.weaknesses,
        "contributions": [] if other is None else [asdict(contribution) for contribution in other.contributions],
        "sub_scores": {} if other is None else other.sub_scores,
        "cost_usd": expensive.cost_usd,
        "unscored": {
            mode: {"kind": one.kind, "message": one.message, "raw": one.raw}
            for mode, one in (("expensive", expensive), ("cheap", cheap))
            if isinstance(one, Unscored)
        }
        or None,
    }


def check_outputs(request: JudgedRequest) -> None:
    """Refuse what could not be written, before anything is paid for. Errors: :class:`UsageError`, :class:`StoreWriteError`."""
    kind, _, rest = request.judge.spec.partition(":")
    inputs = (
        request.items,
        request.patterns,
        None if request.rubric is None else Path(request.rubric),
        Path(rest) if kind == "replay" else None,
    )
    check_per_item(request.per_item, *inputs)
    if request.output is not None:
        refuse_learning(request.output)
        with new_iteration(request.output):
            pass


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write ``--per-item``: whole, or not at all."""
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows]
    with as_write_error("write", path):
        replace_file(path, "".join(lines).encode())


def write_iteration(output: Path, request: JudgedRequest, question: JudgeRubric, found: JudgedEvaluation) -> JudgedEvaluation:
    """Write ``iteration_N`` below ``output``; N is one more than the highest there. It appears whole.

    Returns the evaluation with its folder and what came before it.
    """

    def documents(number: int, directory: Path) -> dict[str, str]:
        nonlocal found
        found = replace(found, directory=directory, history=tuple(_history(output, number)))
        return _documents(number, request, question, found)

    write_folder(output, documents)
    return found


def _documents(number: int, request: JudgedRequest, question: JudgeRubric, found: JudgedEvaluation) -> dict[str, str]:
    evaluation = found.expensive
    documents = {"stories.json": item_rows(found.items), "expensive_eval.json": json_rows(evaluation.to_json())}
    if found.dual is not None:
        log = _iteration_log(number, found.dual, found.history)
        if log is not None:
            documents["iteration_log.json"] = json_rows(log.model_dump(mode="json"))
        documents |= dual_documents(number, found.dual, found.history, _about(request, found))
    # what the figures come from: files with their hashes, the judge, what it was asked, and how
    made_of = {
        "sources": sources_of(request.items),
        "patterns": sources_of(request.patterns),
        "judge": evaluation.judge,
        "question": question.model_dump(mode="json"),
        "settings": evaluation.settings,
    }
    manifest = {**found.document(), "output": None, "jumar": __version__, **made_of}
    return {**documents, "manifest.json": json_text(manifest)}


def dual_documents(
    number: int,
    dual: DualEvaluation,
    history: Sequence[Mapping[str, Any]] = (),
    about: tuple[tuple[str, str], ...] = (),
) -> dict[str, str]:
    """Return what is written about both judges and the gap between them, by the names of the files.

    ``about`` is what the report tells of where its figures come from.
    """
    figures = dual.to_json()
    gap_keys = ("scored", "unscored", "gap", "abs_gap_mean", "large_gaps", "tracking", "quality", "health")
    view = replace(dual_view(number, dual, history), about=about)
    return {
        "cheap_eval.json": json_rows(figures["cheap"]),
        "gap_analysis.json": json_rows({"iteration": number, **{key: figures[key] for key in gap_keys}}),
        "dashboard.txt": render_dashboard(view),
        "gap_report.md": render_gap_report(view, dual),
    }


def _history(output: Path, number: int) -> list[dict[str, Any]]:
    """Return the metrics of the iterations before ``number``, oldest first; those without a readable log are left out."""
    found: list[dict[str, Any]] = []
    for one in range(1, number):
        try:
            known = json.loads(read_bytes(output / f"iteration_{one}" / "iteration_log.json"))
            found.append(IterationMetrics.model_validate(known["metrics"]).model_dump(mode="json"))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _iteration_log(number: int, dual: DualEvaluation, history: Sequence[Mapping[str, Any]]) -> IterationLog | None:
    """Return the iteration's log, None when no item was scored by both judges: there are no metrics then."""
    previous = history[-1]["gap"] if history else None
    metrics = dual.metrics(number, datetime.now(UTC), previous)
    if metrics is None:
        return None
    records = [*history, metrics]
    phrases = {gap.support.phrase for gap in dual.summary.large if gap.support is not None}
    focus = "items with a large gap" if dual.summary.large else "none"
    return IterationLog(
        iteration=number,
        timestamp=metrics.timestamp,
        component_health=dict(dual.health),
        metrics=metrics,
        divergence_check=detect_divergence(records),
        per_story_results=list(dual.results),
        actions_taken=[],
        convergence_check=check_convergence(records),
        next_iteration_plan={"focus": focus, "proposed_patterns": len(phrases)},
    )


def _about(request: JudgedRequest, found: JudgedEvaluation) -> tuple[tuple[str, str], ...]:
    """Return where the figures come from, for people."""
    learned = (("learned from", learned_from_words(found.learned_from, len(found.items))),) if found.learned_from else ()
    return (
        *learned,
        ("when", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("items", str(request.items)),
        ("expensive judge", found.expensive.judge),
        ("readings an item", str(found.expensive.repeat)),
        ("rubric", request.rubric or "built-in"),
        ("patterns", "none" if request.patterns is None else str(request.patterns)),
        ("jumar", __version__),
    )


def dual_view(number: int, dual: DualEvaluation, history: Sequence[Mapping[str, Any]] = ()) -> DualView:
    """Return what the dashboard shows of an evaluation."""
    unscored = {
        "expensive": dual.expensive.unscored,
        "cheap": sum(isinstance(one, Unscored) for one in dual.cheap),
    }
    previous = history[-1].get("abs_gap") if history else None
    return DualView(
        iteration=number,
        items=len(dual.items),
        summary=dual.summary,
        tracking=dual.tracking,
        match=dual.pattern_match,
        unscored=unscored,
        cost_usd=dual.expensive.cost_usd,
        previous=previous,
        flags=tuple(dual.health["expensive_evaluator"].flags),
        calls=dual.expensive.calls,
        cached=dual.expensive.cached,
        stopped=dual.expensive.stopped,
    )


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
