"""Asking the expensive judge about many items: at most so many at once, in the items' order, never more than a window in memory.

An item without a verdict is an :class:`~jumar.judging.models.Unscored`. When more than a fifth of the items that the judge was
asked about have none, what it said about the others is worth nothing, and that is an error; it is raised as soon as it is
certain. Whoever has to be paid has been paid by then, so the results so far come with the error.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
    Sized,
)
from random import Random
from typing import Any, Final, TypeVar

from jumar.core.text import escape
from jumar.errors import EvaluationUnreliableError
from jumar.judging.asking.ask import Answers, Asker, Reader, result_of
from jumar.judging.asking.cache import ReplyCache
from jumar.judging.asking.call_log import CallLedger, CallLog
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import (
    NOT_ASKED,
    CallTotals,
    Evaluation,
    JudgeInterruptedError,
    JudgeRejectedError,
    Result,
    judge_noise,
)
from jumar.judging.items.item import Item, as_items
from jumar.judging.judges._clients import known_keys
from jumar.judging.models import Story, Unscored
from jumar.judging.rubric import JudgeRubric, Rubric, rubric_of
from jumar.model.budget.pricing import Prices
from jumar.model.protocols import Judge

_log = logging.getLogger("jumar.judging.expensive")
PROBED: Final = 5
"""So many items are read twice, to see how often the others have to be read."""

_WINDOW = 4  # items waiting to be given out in order, for each call in flight: one slow call does not hold up the others
_SHOWN = 100  # characters of an answer in a message
_RUN_OPTIONS: Final = ("cache", "prices", "calls", "random", "pause", "nonce")
_T = TypeVar("_T")


class JudgeRun:
    """One evaluation of ``items``, as a stream: iterate over :meth:`results`, then look at :meth:`evaluation`.

    ``total`` is the number of items where it is known: with it hopeless runs end early. ``calls`` has what was called and spent
    by now, which counts against the limit, and gets what this run adds; by default it is a new one in memory. ``random`` draws
    the jitter, ``pause`` waits, ``nonce`` makes the fence; tests bring their own. To be made inside a running event loop, and
    used once.
    """

    def __init__(
        self,
        items: Iterable[Item] | AsyncIterable[Item],
        judge: Judge,
        rubric: JudgeRubric,
        settings: JudgeSettings | None = None,
        *,
        cache: ReplyCache | None = None,
        prices: Prices | None = None,
        total: int | None = None,
        random: Random | None = None,
        pause: Callable[[float], Awaitable[object]] | None = None,
        nonce: Callable[[], str] | None = None,
        calls: CallLog | None = None,
    ) -> None:
        self._items = items
        self._judge = judge
        self._settings = settings or JudgeSettings()
        self._total = total if total is not None else len(items) if isinstance(items, Sized) else None
        self._calls = calls or CallLog(reserve=self._settings.reserve_cost)
        self._ledger = CallLedger(self._calls, self._settings.max_cost, prices)
        self._recorded = recorded = bool(getattr(judge, "recorded", False))  # on file: no second reading, nothing to keep
        self._asker = Asker(
            judge,
            self._settings,
            self._ledger,
            cache=None if recorded else cache,
            keys=known_keys(),
            random=random or Random(),  # noqa: S311 - jitter, not a secret
            pause=pause,
        )
        self._reader = Reader(self._asker, judge.identity, rubric, self._settings, nonce)
        self._repeat = 1 if recorded else self._settings.repeat
        self._tally = CallTotals()
        self._ended: str | None = None
        self._cached = None if recorded else cache
        self._last: Unscored | None = None

    def stop(self) -> None:
        """Ask nothing more, but wait for the calls in flight: they are paid for, and their replies go to the cache.

        :meth:`results` then gives what there is and raises :class:`JudgeInterruptedError`. To be called in the run's event loop.
        """
        self._end("interrupted")

    async def results(self) -> AsyncGenerator[Result, None]:
        """Yield a result an item, in the items' order.

        Errors, after the last result that there is: :class:`jumar.errors.EvaluationUnreliableError`,
        :class:`JudgeRejectedError`, :class:`JudgeInterruptedError` after :meth:`stop`;
        :class:`jumar.errors.StoreWriteError` of the cache.
        """
        source = _iterate(self._items)
        head = await self._probe(source) if self._repeat is None else []
        window: deque[asyncio.Task[Result]] = deque()
        try:
            for item, answers in head:
                window.append(asyncio.create_task(self._judged(item, answers)))
            async for item in source:
                while len(window) >= _WINDOW * self._settings.concurrency or (window and window[0].done()):
                    yield self._counted(await window.popleft())
                if self._ended is not None:
                    break
                window.append(asyncio.create_task(self._judged(item, Answers())))
                await asyncio.sleep(0)
            while window:
                yield self._counted(await window.popleft())
        finally:
            await _cancelled(window)
            await source.aclose()
            self._asker.log_rest()
        self._raise_unless_reliable()

    async def _probe(self, source: AsyncIterator[Item]) -> list[tuple[Item, Answers]]:
        """Read the first items twice, and decide how often every item is read."""
        items: list[Item] = []
        async for item in source:
            items.append(item)
            if len(items) == PROBED:
                break
        tasks = [asyncio.create_task(self._reader.read(item, 2, Answers())) for item in items]
        try:
            read = await asyncio.gather(*tasks)
        finally:
            await _cancelled(tasks)
        self._repeat = readings_for([[reading.gestalt for reading in answers.readings] for answers in read])
        return list(zip(items, read, strict=True))

    async def _judged(self, item: Item, answers: Answers) -> Result:
        return result_of(item, await self._reader.read(item, self._repeat or 1, answers))

    def _counted(self, result: Result) -> Result:
        self._tally.add(result)
        if isinstance(result, Unscored) and result.kind not in NOT_ASKED:
            self._last = result
        if isinstance(result, Unscored) and result.kind == "rejected" and self._ended is None:
            self._end("rejected")
        if self._asker.failing:
            self._end("failing")
        # what is on record costs nothing, and is given whole
        if not self._recorded and self._total is not None and self._tally.failures > self._settings.max_unscored * self._total:
            self._end("unreliable")
        return result

    def _end(self, why: str) -> None:
        if self._ended is None:
            self._ended = why
            self._asker.stop()

    def _raise_unless_reliable(self) -> None:
        tally = self._tally
        if self._ended == "interrupted":
            raise JudgeInterruptedError(self._interruption())
        if self._ended == "rejected":
            message = "" if self._last is None else self._last.message
            raise JudgeRejectedError(
                f"the judge rejects the questions: {message}; check the key, the model's name and the address"
            )
        asked = tally.scored + tally.failures
        too_many = tally.failures > self._settings.max_unscored * asked
        if too_many or self._ended == "failing":
            why = f"more than {self._settings.max_unscored:.0%}: what the judge said about the others says nothing about them all"
            if self._ended == "failing":
                why = f"{self._settings.consecutive_failures} in a row without an answer, and nothing more was asked"
            kinds = ", ".join(f"{count} {kind}" for kind, count in tally.kinds.most_common() if kind not in NOT_ASKED)
            way_out = "Mend the judge, or ask fewer at once"
            if self._last is not None and self._last.kind == "out_of_range":
                way_out = "Give the judge's own scale with --judge-scale LO,HI (judge_scale in [evaluator]), or mend the judge"
            elif self._last is not None and self._last.kind == "missing":
                way_out = "Name a file that has these items (`jumar evaluate` permits it with --max-unscored 1.0)"
            of = self._total if self._total is not None and self._ended else asked
            raise EvaluationUnreliableError(
                f"{tally.failures:,} of {of:,} items could not be judged ({kinds}), {why}. The last failure: "
                f"{self._last_failure()}. {way_out}, and run it again"
                f"{'' if self._cached is None else ': only what has a verdict is taken from the cache, the rest is asked again'}"
            )

    def _last_failure(self) -> str:
        """Return the last failure of those that count, with what was answered where the message does not show it."""
        last = self._last
        if last is None:
            return "unknown"
        begins = escape(last.message.strip())
        raw = escape((last.raw or "").strip()[:_SHOWN])
        return last.message if not raw or raw[:40] in begins else f"{last.message} (the answer begins '{raw}')"

    def _interruption(self) -> str:
        calls, asker = self._calls, self._asker
        cost = "an unknown cost" if calls.total_usd is None else f"${calls.total_usd:.4f}"
        asked = f"interrupted; calls made: {calls.calls:,}, for {cost}"
        if self._cached is None:
            return f"{asked}; there is no cache, so that running it again asks everything again"
        return (
            f"{asked}; replies kept in {escape(str(self._cached.directory))}: {asker.kept + asker.cached:,}, which are not asked "
            "for again; run it again to resume"
        )

    def evaluation(self, results: Iterable[Result] = ()) -> Evaluation:
        """Return the figures so far; ``results`` are those that were kept."""
        tally, calls, asker = self._tally, self._calls, self._asker
        # a parameter that the judge does not take was asked for in vain, and is None
        left_out: Collection[str] = getattr(self._judge, "left_out", ())
        settings = {name: None if name in left_out else value for name, value in self._settings.to_json().items()}
        tokens = tally.tokens
        return Evaluation(
            results=tuple(results),
            judge=self._reader.identity,
            settings=settings,
            story_count=tally.story_count,
            scored=tally.scored,
            unscored_kinds={str(kind): count for kind, count in tally.kinds.items()},
            gestalt_avg=tally.average,
            cost_usd=calls.total_usd,
            known_cost_usd=calls.known_usd,
            assumed_cost_usd=calls.assumed_usd,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            calls=calls.calls,
            lost_calls=calls.lost,
            retries=asker.retries,
            cached=asker.cached,
            repeat=self._repeat or 1,
            noise=tally.noise.noise(),
            stopped="interrupted" if self._ended == "interrupted" else self._ledger.stopped,
        )


async def judge_items(
    items: Iterable[Item] | AsyncIterable[Item],
    judge: Judge,
    rubric: JudgeRubric,
    settings: JudgeSettings | None = None,
    *,
    on_result: Callable[[Result], None] | None = None,
    keep: bool = True,
    started: Callable[[JudgeRun], object] | None = None,
    **options: Any,
) -> Evaluation:
    """Judge ``items`` and return the evaluation, its results in the items' order; without ``keep`` the results are not kept.

    ``on_result`` gets every result, in the same order. ``started`` gets the run before anything is asked, for its
    :meth:`JudgeRun.stop`. ``options`` are those of :class:`JudgeRun`. The judge is not closed.
    Errors as :meth:`JudgeRun.results`; the error's ``evaluation`` holds the results so far.
    """
    run = JudgeRun(items, judge, rubric, settings, **options)
    if started is not None:
        started(run)
    results: list[Result] = []
    try:
        async for result in run.results():
            if keep:
                results.append(result)
            if on_result is not None:
                on_result(result)
    except (EvaluationUnreliableError, JudgeRejectedError, JudgeInterruptedError) as error:
        error.evaluation = run.evaluation(results)
        raise
    return run.evaluation(results)


def readings_for(probed: Iterable[Sequence[float]]) -> int:
    """Return how often an item has to be read, from the readings of a few: three times where these differ much, else once."""
    noise = judge_noise(probed)
    if noise is None or not noise.high_variance:
        return 1
    _log.warning(
        "jumar.judge_noisy: two readings of one item differ by %.2f on average; reading every item three times",
        noise.mean_abs_difference,
    )
    return 3


def evaluate_expensive(
    stories: Iterable[Item | Story | Mapping[str, Any]],
    *,
    judge: Judge,
    rubric: Rubric | JudgeRubric | None = None,
    settings: JudgeSettings | None = None,
    on_result: Callable[[Result], None] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Judge stories, or any records with ``text``, and return the figures of :meth:`Evaluation.to_json`.

    ``options`` are fields of :class:`JudgeSettings` (``concurrency=…``, ``repeat=…``, ``max_cost=…``), and ``cache``, ``prices``,
    ``calls`` of :class:`JudgeRun`. Without a rubric a built-in one is asked, for stories or for texts. The judge is closed
    afterwards, and may be used again. Works inside a running event loop, too, which it blocks.

    Errors: :class:`jumar.errors.ItemError` for a record that is none, :class:`jumar.errors.ConfigError` for a setting, and those
    of :func:`judge_items`.
    """
    items = as_items(stories)
    chosen, run_options = split_options(settings, options)

    async def work() -> Evaluation:
        async with contextlib.aclosing(judge):
            return await judge_items(items, judge, rubric_of(rubric, items), chosen, on_result=on_result, **run_options)

    return run_async(work).to_json()


def split_options(settings: JudgeSettings | None, options: dict[str, Any]) -> tuple[JudgeSettings, dict[str, Any]]:
    """Return the settings, given or in the options, and those of the options that are :class:`JudgeRun`'s.

    Errors: TypeError for settings that are given twice, :class:`jumar.errors.ConfigError` for one that is out of range.
    """
    run_options = {name: options.pop(name) for name in _RUN_OPTIONS if name in options}
    if settings is not None and options:
        raise TypeError(f"give settings or {', '.join(options)}, not both")
    return settings or JudgeSettings(**options), run_options


def run_async(work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run a coroutine to its end, in a thread of its own where an event loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    outcome: list[_T] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            failure.append(error)

    thread = threading.Thread(target=target, name="jumar-judge")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


async def _cancelled(tasks: Collection[asyncio.Task[Any]]) -> None:
    """End what still runs, and wait for its end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _iterate(items: Iterable[Item] | AsyncIterable[Item]) -> AsyncGenerator[Item, None]:
    if not isinstance(items, AsyncIterable):
        for item in items:
            yield item
        return
    async for item in items:
        yield item
