"""One question put to a judge, from the cache or until there is no more hope; and one item read as often as wanted."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import statistics
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, Literal

from jumar.core.text import escape
from jumar.judging.asking.cache import ReplyCache, cache_key
from jumar.judging.asking.call_log import CallLedger
from jumar.judging.asking.prompt import (
    TEMPLATE_VERSION,
    NoReading,
    ParsedReply,
    build_prompt,
    item_record,
    new_nonce,
    parse_reply,
    reply_schema,
    well_formed,
)
from jumar.judging.asking.settings import JudgeSettings
from jumar.judging.asking.summary import Result, plus
from jumar.judging.items.item import Item
from jumar.judging.judges._clients import scrub
from jumar.judging.models import ExpensiveModeResult, Unscored, UnscoredKind
from jumar.judging.rubric import JudgeRubric
from jumar.model.protocols import FailureKind, Judge, JudgeFailure, JudgeReply, JudgeRequest
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
    retry_after: float | None = None


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
            asked = {"repeat": request.repeat, "temperature": request.temperature, "seed": request.seed}
            about = {"judge": self._judge.identity, **asked}
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
                return replace(found, cost=spent)
            if found.kind == "rejected":  # so is every other question, and nobody needs to ask them
                self._stop.set()
            # it was asked, in vain; there is only no further try
            failure = last if found.kind == "budget" and attempt else found
            if failure.kind not in _PASSING or attempt == self._settings.max_retries or self._stop.is_set():
                self._in_vain += found.kind in _PASSING
                if self.failing:
                    self._stop.set()
                times = f" ({attempt + 1} times)" if attempt else ""
                self._note(request.item_id, failure, times)
                return replace(failure, message=f"{failure.message}{times}", cost=spent)
            await self._before_retry(request, failure, found.retry_after, attempt)
            last = failure
            attempt += 1

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

    async def _once(self, request: JudgeRequest) -> Answer | NoAnswer:
        """Make one call, when there is room and money for it."""
        async with self._room:
            await self._gate()
            if self._stop.is_set():
                return NoAnswer("budget", _ENDED)
            call = await self._ledger.begin(self._stop.is_set)
            if call is None:
                return NoAnswer("budget", self._ledger.stopped or _ENDED)
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
        return NoAnswer(failure.kind, self._clean(failure.message), usage, cost, failure.retry_after)

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


@dataclass(slots=True)
class Answers:
    """What one item has been answered so far; ``asked`` counts the questions."""

    asked: int = 0
    readings: list[ParsedReply] = field(default_factory=list[ParsedReply])
    failures: list[tuple[UnscoredKind, str, str | None]] = field(default_factory=list[tuple[UnscoredKind, str, str | None]])
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    answered: int = 0
    cost: float | None = 0.0
    cached: int = 0
    model: str | None = None

    def charge(self, usage: Usage | None, cost: float | None) -> None:
        """Add what one question took."""
        self.cost = None if self.cost is None or cost is None else self.cost + cost
        if usage is not None:
            self.answered += 1
            self.input_tokens = plus(self.input_tokens, usage.input_tokens)
            self.output_tokens = plus(self.output_tokens, usage.output_tokens)
            self.model = usage.model or self.model


class Reader:
    """Reads items with one judge and one rubric."""

    def __init__(
        self, asker: Asker, identity: str, rubric: JudgeRubric, settings: JudgeSettings, nonce: Callable[[], str] | None
    ) -> None:
        self.identity = identity
        self._asker = asker
        self._rubric = rubric
        self._settings = settings
        self._schema = reply_schema(settings.scale, explain=settings.explain)
        self._nonce = nonce or new_nonce

    async def read(self, item: Item, repeat: int, answers: Answers) -> Answers:
        """Ask until ``repeat`` questions have been put, those in ``answers`` included; stop where another makes no sense.

        An item without any text is asked about by nobody: whatever a judge said would be about the question.
        """
        if not item.text.strip():
            answers.failures.append(("abstained", "there is nothing to judge: the text is empty", None))
        while answers.asked < repeat and not _hopeless(answers):
            await self._ask(item, answers)
        return answers

    async def _ask(self, item: Item, answers: Answers) -> None:
        number = answers.asked
        answers.asked += 1
        key = cache_key(self.identity, self._request(item, number, ""), TEMPLATE_VERSION)
        found = await self._asker.ask(self._request(item, number, None), key)
        if isinstance(found, NoAnswer):
            answers.charge(found.usage, found.cost)
            answers.failures.append((found.kind, found.message, None))
            return
        answers.charge(found.reply.usage, found.cost)
        answers.cached += found.cached
        cut_off = found.reply.usage.completed is False
        parsed = parse_reply(found.reply.text, self._settings.scale, cut=cut_off)
        if isinstance(parsed, NoReading):
            cut = "; it was cut off at the limit on its tokens" if cut_off else ""
            answers.failures.append((parsed.kind, f"{escape(item.id)}: {parsed.message}{cut}", found.reply.text))
        else:
            answers.readings += parsed

    def _request(self, item: Item, number: int, nonce: str | None) -> JudgeRequest:
        settings = self._settings
        prompt = build_prompt(self._rubric, item, scale=settings.scale, explain=settings.explain, nonce=nonce, fresh=self._nonce)
        return JudgeRequest(
            item_id=item.id,
            item=item_record(item),
            system=prompt.system,
            user=prompt.user,
            schema=self._schema,
            repeat=number,
            temperature=settings.temperature,
            seed=None if settings.seed is None else settings.seed + number,
        )


def _hopeless(answers: Answers) -> bool:
    return any(kind in {"rejected", "budget", "missing", "abstained"} for kind, _, _ in answers.failures)


def result_of(item: Item, answers: Answers) -> Result:
    """Return the median of the readings, with the words of the reading nearest to it; without readings, the first failure."""
    tokens = {
        "input_tokens": answers.input_tokens if answers.answered else None,
        "output_tokens": answers.output_tokens if answers.answered else None,
    }
    if not answers.readings:
        kind, message, raw = answers.failures[0]
        return Unscored(story_id=item.id, kind=kind, message=message, raw=raw, cost_usd=answers.cost, **tokens)
    gestalts = [reading.gestalt for reading in answers.readings]
    median = statistics.median(gestalts)
    nearest = min(answers.readings, key=lambda reading: abs(reading.gestalt - median))
    return ExpensiveModeResult(
        story_id=item.id,
        gestalt=median,
        reasoning=nearest.reasoning,
        strengths=list(nearest.strengths),
        weaknesses=list(nearest.weaknesses),
        readings=gestalts,
        cost_usd=answers.cost,
        model=answers.model,
        cached=answers.cached == answers.asked,
        **tokens,
    )
