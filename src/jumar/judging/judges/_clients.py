"""What the adapters of language models share: clients, how failures behind HTTP are called, how long these ask to wait.

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
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC
from typing import Any, Final, Generic, TypeVar

from jumar.core.text import escape
from jumar.judging.asking.settings import MAX_TOKENS
from jumar.model.judges import FailureKind, JudgeFailure
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
_Client = TypeVar("_Client")
_SHOWN = 300


class Clients(Generic[_Client]):
    """Makes a client when one is needed: its connections belong to the event loop that they were made in."""

    def __init__(self, make: Callable[[], _Client]) -> None:
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: _Client | None = None

    def get(self) -> _Client:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = self._make(), loop
        return self._client

    def forget(self) -> _Client | None:
        """Return the client to be closed, if there is one; the next :meth:`get` makes another."""
        client, self._client = self._client, None
        return client if self._loop is asyncio.get_running_loop() else None


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


def failure_of_status(status: int, body: object, message: str, headers: Any, key: str | None) -> JudgeFailure:
    """Return the failure behind an HTTP answer that is none."""
    kind: FailureKind = kind_of_status(status)
    if status == 429 and "insufficient_quota" in str(body):  # no waiting mends an empty account
        kind = "rejected"
    shown = escape(scrub(message, (key,) if key else ()))[:_SHOWN]
    return JudgeFailure(kind, f"HTTP {status}: {shown}", retry_after=retry_after_seconds(headers))


def usage_unless_refused(error: Exception) -> Usage | None:
    """Return that nobody knows what the call cost, as it may have been answered; None where no connection came about."""
    return None if type(error.__cause__).__name__.startswith("Connect") else Usage()


def describe(max_tokens: int | None, *, structured: bool) -> str:
    """Return what else decides about an answer, for the judge's name: a longer limit is another question. Empty by default."""
    limit = "" if max_tokens == MAX_TOKENS else f",max_tokens={max_tokens}"
    return limit if structured else f"{limit},unstructured"
