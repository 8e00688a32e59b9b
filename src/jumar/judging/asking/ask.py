"""One question put to a judge: from the cache, or asked until there is an answer or no more hope."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Literal

from jumar.core.text import escape
from jumar.judging.asking.cache import ReplyCache
from jumar.judging.asking.ledger import CallLedger
from jumar.judging.asking.parse import NoReading, parse_reply, well_formed
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.judges._clients import scrub
from jumar.model.judges import FailureKind, Judge, JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage

_PASSING: Final[frozenset[FailureKind]] = frozenset({"rate_limited", "timed_out", "unavailable"})
_SHOWN: Final = 3  # different messages of one kind of failure that are logged; how many more there were is said at the end
_ENDED: Final = "not asked: the evaluation had ended"
_log = logging.getLogger("jumar.judging.expensive")


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply; ``cost`` in USD is None when nobody knows, and 0 for one from the cache."""

    reply: JudgeReply
    cost: float | None
    cached: bool = False


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why there is no reply, and what trying cost."""

    kind: FailureKind | Literal["budget"]
    message: str
    usage: Usage | None = None
    cost: float | None = 0.0


class Asker:
    """Puts questions to one judge. Belongs to one event loop; may be used for several questions at once."""

    def __init__(
        self,
        judge: Judge,
        settings: JudgeSettings,
        ledger: CallLedger,
        *,
        cache: ReplyCache | None,
        keys: tuple[str, ...],
        random: Random,
        pause: Callable[[float], Awaitable[object]] | None = None,
    ) -> None:
        self._judge = judge
        self._settings = settings
        self._ledger = ledger
        self._cache = cache
        self._keys = keys
        self._random = random
        self._pause = pause or self._wait
        self._room = asyncio.Semaphore(settings.concurrency)
        self._stop = asyncio.Event()
        self._not_before = 0.0
        self._in_vain = 0
        self.calls = 0
        self.retries = 0
        self.cached = 0
        self.kept = 0
        self._logged: dict[str, set[str]] = {}
        self._unlogged: Counter[str] = Counter()

    @property
    def failing(self) -> bool:
        """Whether as many questions in a row as may be had no answer, after all their tries: nothing more is asked then."""
        return self._in_vain >= self._settings.consecutive_failures

    def stop(self) -> None:
        """End the waiting between retries: what failed by now has failed. Calls in flight go on."""
        self._stop.set()

    def log_rest(self) -> None:
        """Say how many failures were not logged one by one."""
        for kind, count in sorted(self._unlogged.items()):
            _log.warning("jumar.judge_failed: %d more: %s", count, kind)
        self._unlogged.clear()

    async def ask(self, request: JudgeRequest, key: str | None) -> Answer | NoAnswer:
        """Return the reply to ``request``; ``key`` is its place in the cache.

        A reply without a verdict is kept for people to look at, and asked for again: a judge that was mended answers otherwise.
        """
        if self._cache is not None and key is not None:
            known = await asyncio.to_thread(self._cache.get, key)
            if known is not None and self._has_verdict(known):
                self.cached += 1
                return Answer(known, 0.0, cached=True)
        found = await self._ask(request)
        if isinstance(found, Answer) and self._cache is not None and key is not None:
            about = {
                "judge": self._judge.identity,
                "repeat": request.repeat,
                "temperature": request.temperature,
                "seed": request.seed,
            }
            await asyncio.to_thread(self._cache.put, key, found.reply, about)
            self.kept += self._has_verdict(found.reply)
        return found

    def _has_verdict(self, reply: JudgeReply) -> bool:
        found = parse_reply(reply.text, self._settings.scale, cut=reply.usage.completed is False)
        return not isinstance(found, NoReading)

    async def _ask(self, request: JudgeRequest) -> Answer | NoAnswer:
        spent: float | None = 0.0
        attempt = 0
        last = NoAnswer("unavailable", "not asked yet")
        while True:
            found = await self._once(request)
            spent = None if spent is None or found.cost is None else spent + found.cost
            if isinstance(found, Answer):
                self._in_vain = 0
                return Answer(found.reply, spent)
            failure, retry_after = found.failure, found.retry_after
            if failure.kind == "rejected":  # so is every other question, and nobody needs to ask them
                self._stop.set()
            if failure.kind == "budget" and attempt:
                failure = last  # it was asked, in vain; there is only no further try
            if failure.kind not in _PASSING or attempt == self._settings.max_retries or self._stop.is_set():
                self._count_in_vain(found.failure)
                times = f" ({attempt + 1} times)" if attempt else ""
                self._note(request.item_id, failure, times)
                return NoAnswer(failure.kind, f"{failure.message}{times}", failure.usage, spent)
            await self._before_retry(request, failure, retry_after, attempt)
            last = failure
            attempt += 1

    def _count_in_vain(self, failure: NoAnswer) -> None:
        self._in_vain += failure.kind in _PASSING
        if self.failing:
            self._stop.set()

    def _note(self, item_id: str, failure: NoAnswer, times: str) -> None:
        """Log a failure unless it says what was said before: a judge that is down fails for every item in the same words."""
        if failure.kind == "budget":
            return
        known = self._logged.setdefault(failure.kind, set())
        words = failure.message.replace(escape(item_id), "")
        if words in known or len(known) == _SHOWN:
            self._unlogged[failure.kind] += 1
            return
        known.add(words)
        _log.warning("jumar.judge_failed: %s: %s: %s%s", escape(item_id), failure.kind, escape(failure.message), times)

    async def _once(self, request: JudgeRequest) -> Answer | _Failed:
        """Make one call, when there is room and money for it."""
        async with self._room:
            await self._gate()
            if self._stop.is_set():
                return _Failed(NoAnswer("budget", _ENDED), None, 0.0)
            call = await self._ledger.begin(self._stop.is_set)
            if call is None:
                return _Failed(NoAnswer("budget", self._ledger.stopped or _ENDED), None, 0.0)
            self.calls += 1
            reply: JudgeReply | None = None
            failure = JudgeFailure("timed_out", "the call was cancelled")
            try:
                await self._ledger.sync()
                async with asyncio.timeout(self._settings.timeout):
                    reply = await self._judge.judge(request)
            except JudgeFailure as error:
                failure = error
            except TimeoutError:
                failure = JudgeFailure("timed_out", f"no answer within {self._settings.timeout:g} s")
            finally:
                usage = reply.usage if reply is not None else failure.usage
                cost = await self._ledger.end(call, usage, None if reply is not None else failure.kind)
        if reply is not None:
            usage = reply.usage if reply.usage.model is None else replace(reply.usage, model=self._clean(reply.usage.model))
            return Answer(JudgeReply(text=self._clean(reply.text), usage=usage), cost)
        # the exception is dropped here: what it was raised from may know the key
        return _Failed(NoAnswer(failure.kind, self._clean(failure.message), usage), failure.retry_after, cost)

    def _clean(self, text: str) -> str:
        """Return what a judge said without keys, and such that it can be written to a file."""
        return well_formed(scrub(text, self._keys))

    async def _before_retry(self, request: JudgeRequest, failure: NoAnswer, retry_after: float | None, attempt: int) -> None:
        settings = self._settings
        backoff = self._random.uniform(0.0, min(settings.max_wait, settings.backoff_base**attempt))
        wait = backoff
        if retry_after is not None:
            if retry_after > settings.max_wait:
                _log.warning("jumar.judge_wait_capped: the judge asks to wait %g s; waiting %g s", retry_after, settings.max_wait)
            # the time that was asked for is a floor; the jitter on top keeps those who wait from coming back together
            wait = min(settings.max_wait, retry_after + backoff)
            self._not_before = max(self._not_before, asyncio.get_running_loop().time() + min(settings.max_wait, retry_after))
        self.retries += 1
        _log.info(
            "jumar.judge_retried: %s: %s: %s; again in %.1f s",
            escape(request.item_id),
            failure.kind,
            escape(failure.message),
            wait,
        )
        await self._pause(wait)

    async def _gate(self) -> None:
        """Wait while the judge has asked everybody to wait: another call would only be refused, too."""
        left = self._not_before - asyncio.get_running_loop().time()
        if left > 0 and not self._stop.is_set():
            await self._pause(left)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)


@dataclass(frozen=True, slots=True)
class _Failed:
    failure: NoAnswer
    retry_after: float | None
    cost: float | None
