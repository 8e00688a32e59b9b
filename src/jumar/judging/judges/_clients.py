"""What the adapters of language models share: one client an event loop, and failures without keys in them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Any, Final, Generic, TypeVar

from jumar.core.text import escape
from jumar.judging.judges.endpoint import kind_of_status, retry_after_seconds
from jumar.judging.judges.keys import scrub
from jumar.model.judges import FailureKind, JudgeFailure
from jumar.model.records import Usage

__all__ = ["MAX_TOKENS", "Clients", "Features", "describe", "failure_of_status", "usage_unless_refused"]

MAX_TOKENS: Final = 2000
"""Of an answer, where nobody says otherwise."""

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
