"""What the adapters of language models share: the asking, how failures behind HTTP are called, how long these ask to wait.

Keys never reach a log, a file or a message: what could hold one goes through :func:`scrub`.
"""

from __future__ import annotations

import asyncio
import email.utils
import functools
import logging
import math
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC
from typing import Any, ClassVar, Final, cast

from jumar.core.text import escape
from jumar.judging.asking.settings import MAX_TOKENS
from jumar.model.protocols import FailureKind, JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage

HIDDEN: Final = "***"
_NAMES: Final = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_SHORTEST: Final = 10  # below this a value is more likely a word of the text than a key


def known_keys(extra: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the values of environment variables whose names say that they are secret, and ``extra``; longest first."""
    values = {value for name, value in os.environ.items() if _NAMES.search(name)} | set(extra)
    return tuple(sorted((value for value in values if len(value) >= _SHORTEST), key=lambda value: (-len(value), value)))


def scrub(text: str, keys: Iterable[str]) -> str:
    """Return ``text`` with every one of ``keys`` replaced by ``***``, also where JSON wrote its characters as escapes."""
    for key in keys:
        text = text.replace(key, HIDDEN)
        if "\\" in text:
            text = _escaped(key).sub(HIDDEN, text)
    return text


@functools.lru_cache(maxsize=64)
def _escaped(key: str) -> re.Pattern[str]:
    """Return what finds ``key`` however JSON escapes its characters."""
    return re.compile("".join(rf"(?:\\?{re.escape(one)}|\\u(?i:{ord(one):04x}))" for one in key))


_KINDS: Final[dict[int, FailureKind]] = {
    401: "rejected",  # the key
    402: "rejected",  # the account
    403: "rejected",  # the key's rights
    404: "rejected",  # the model, or the address
    408: "timed_out",
    409: "unavailable",
    425: "unavailable",
    429: "rate_limited",
    529: "rate_limited",  # "overloaded", as one provider says it
}


def kind_of_status(status: int) -> FailureKind:
    """Return what an HTTP status means for the question; another 4xx is about this one item (too long, not allowed)."""
    if status in _KINDS:
        return _KINDS[status]
    return "refused" if 400 <= status < 500 else "unavailable"


def retry_after_seconds(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return how many seconds the headers ask to wait; None when they don't, or say nonsense.

    RFC 9110, 10.2.3: seconds, or a date. ``now`` is seconds since 1970, by default the clock's. A date in the past is 0.
    """
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            seconds = _until(value, time.time() if now is None else now)
        if seconds is not None and math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _until(date: str, now: float) -> float | None:
    try:
        when = email.utils.parsedate_to_datetime(date)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now


_log = logging.getLogger("jumar.judging.expensive")
_SHOWN = 300


class Features:
    """Parameters that not every model takes: what it refuses by name is left out from then on, with a warning."""

    def __init__(self, names: dict[str, tuple[str, ...]]) -> None:
        self._words = names
        self.left_out: set[str] = set()

    def drop(self, message: str, sent: Collection[str], param: str | None = None) -> bool:
        """Leave out what ``message`` complains about; return whether any of it was ``sent``, so that asking again makes sense.

        ``param`` is the field that the server names, which counts more than its words: those may quote the item.
        """
        said = (param or "").lower()
        if not said.startswith("messages") and not any(word in said for words in self._words.values() for word in words):
            said = message.lower()
        refused = {name for name in sent if any(word in said for word in self._words.get(name, ()))}
        for name in sorted(refused - self.left_out):
            _log.warning("jumar.judge_parameter_refused: the judge does not take '%s'; asking without it", name)
        self.left_out |= refused
        return bool(refused)

    def wanted(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return those of ``values`` that are set and not left out."""
        return {name: value for name, value in values.items() if value is not None and name not in self.left_out}


class ModelJudge(ABC):
    """A language model that is asked through the ``library`` of its provider; these name their errors alike.

    ``optional`` are parameters that not every model takes, with the words of a refusal; ``structured`` is the one that asks for
    structured output. The client's own retries are turned off by ``connect``: jumar counts them, waits as the server asks, and
    records them. ``answer`` is what the server should have sent. Parts: what one question sends, and what its answer says.
    """

    library: Any
    answer: str
    error: str
    optional: ClassVar[dict[str, tuple[str, ...]]]

    def __init__(self, model: str, key: str, max_tokens: int | None, *, structured: str | None, where: str = "") -> None:
        self._model = model
        self._key = key
        self._max_tokens = max_tokens
        self._features = Features(self.optional)
        if structured is not None:
            self._features.left_out.add(structured)
        self._client: tuple[asyncio.AbstractEventLoop, Any] | None = None  # its connections belong to one event loop
        # what else decides about an answer is in the name: a longer limit is another question
        limit = "" if max_tokens == MAX_TOKENS else f",max_tokens={max_tokens}"
        self.identity = f"{where}{limit}{',unstructured' if structured else ''}"

    @property
    def left_out(self) -> frozenset[str]:
        """Parameters that the server refused, and is asked without."""
        return frozenset(self._features.left_out)

    @abstractmethod
    def connect(self) -> Any:
        """Return a client of the library, without retries of its own."""

    @abstractmethod
    def wanted(self, request: JudgeRequest) -> dict[str, Any]:
        """Return the optional parameters of a question."""

    @abstractmethod
    async def create(self, client: Any, request: JudgeRequest, wanted: dict[str, Any]) -> Any:
        """Ask once, and return what the server answered."""

    @abstractmethod
    def reply(self, answer: Any) -> JudgeReply:
        """Return what an answer says, and what it cost."""

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            self._client = loop, self.connect()
        while True:
            wanted = self._features.wanted(self.wanted(request))
            try:
                answer = await self.create(self._client[1], request, wanted)
            except (self.library.BadRequestError, self.library.UnprocessableEntityError) as error:
                if self._features.drop(_told(error), wanted, getattr(error, "param", None)):
                    continue
                raise self._failure(error) from None
            except getattr(self.library, self.error) as error:
                raise self._failure(error) from None
            except ValueError:
                raise self.no_answer() from None
            return self.reply(answer)

    def no_answer(self) -> JudgeFailure:
        """Return the failure for an answer that is none; nobody knows what it cost."""
        return JudgeFailure("unavailable", f"the answer of the server is no {self.answer}", usage=Usage())

    def scrubbed(self, text: str) -> str:
        """Return what the server said without the key."""
        return scrub(text, (self._key,) if self._key else ())

    def _failure(self, error: Any) -> JudgeFailure:
        if isinstance(error, self.library.APITimeoutError):
            return JudgeFailure("timed_out", "no answer in time")
        if isinstance(error, self.library.APIConnectionError):
            reason = escape(self.scrubbed(str(error.__cause__ or error)))[:200]
            refused = type(error.__cause__).__name__.startswith("Connect")  # else it may have been answered, and cost something
            return JudgeFailure("unavailable", f"cannot reach the judge: {reason}", usage=None if refused else Usage())
        if not isinstance(error, self.library.APIStatusError):
            return self.no_answer()
        status: int = error.status_code
        # no waiting mends an empty account
        empty = status == 429 and "insufficient_quota" in str(error.body)
        message = f"HTTP {status}: {escape(self.scrubbed(_told(error)))[:_SHOWN]}"
        wait = retry_after_seconds(error.response.headers)
        return JudgeFailure("rejected" if empty else kind_of_status(status), message, retry_after=wait)

    async def aclose(self) -> None:
        """Close the connections; the judge may be used again."""
        client, self._client = self._client, None
        if client is not None and client[0] is asyncio.get_running_loop():
            await client[1].close()


def _told(error: Any) -> str:
    """Return what a server says is wrong. The library tells only a message that is a string, and servers have other shapes."""
    message: str = error.message
    body: object = error.body
    if body is None or (isinstance(body, Mapping) and isinstance(cast("Mapping[str, Any]", body).get("message"), str)):
        return message
    return (
        " ".join([f"HTTP error {error.status_code}:", *_texts(cast("Any", body))])
        if message.startswith("Error code:")
        else message
    )


def _texts(value: object) -> Iterator[str]:
    """Yield the texts of a JSON value; what stands under ``input`` quotes the question."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in cast("Mapping[str, Any]", value).items():
            if key != "input":
                yield from _texts(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _texts(each)


def count_of(value: object) -> int | None:
    """Return a whole number from 0 up; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def amount_of(value: object) -> float | None:
    """Return a number from 0 up; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        return None
    try:
        return float(value)
    except OverflowError:
        return None
