"""Every call of a judge, on file: a line before it and a line after it, which the next start reads again.

A process that is killed loses no line that was written, and a line is one write to the end of the file. The line before a call is
on the disk before the call is made, so that no power failure hides one; the line after it is not waited for: a call without it is
charged what the dearest one took.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import math
import os
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from jumar.core.files import as_write_error, content_of, fsync_directory, make_directory, wait_for_lock, write_all
from jumar.core.marks import marked, origin
from jumar.core.text import escape, plural
from jumar.errors import FormatTooNewError, LockedError
from jumar.model.attempts import Spend
from jumar.model.budget.gate import Go, Stop, may_begin
from jumar.model.budget.ledger import add_exactly
from jumar.model.budget.pricing import Budget, Prices, Reservation
from jumar.model.protocols import FailureKind
from jumar.model.records import Usage

FILE: Final = "calls.jsonl"
_FORMAT: Final = 1
_PLACE: Final = "calls/"
_OPENED: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_PATIENCE: Final = 0.25  # seconds; whoever has the file asks a judge, which takes longer
_log = logging.getLogger("jumar.judging.expensive")


class CallLog:
    """The calls for one ``purpose`` since it was last :meth:`done`, those of earlier starts included; without ``path`` in memory.

    ``calls`` have begun, ``lost`` of them in a process that never saw their end; ``told`` say what a call costs, and ``largest``
    is the most of it (USD), None before that. ``reserve`` is charged at least for a call that did not say. A line that cannot be
    read, or that another program wrote, is a lost call, with a warning. Not ``durable``: nothing waits for the disk, as nothing
    is paid for.

    Errors: :class:`jumar.errors.LockedError` while another process has the file, :class:`jumar.errors.StoreWriteError`,
    :class:`jumar.errors.FormatTooNewError`.
    """

    def __init__(
        self, path: Path | None = None, purpose: str = "evaluate", *, reserve: float | None = None, durable: bool = True
    ) -> None:
        self.path = path
        self.reserve = reserve
        self._purpose = purpose
        self._durable = durable
        self._fd: int | None = None
        self._number = 0
        self._sequence = 0
        self._place = f"{_PLACE}{secrets.token_hex(8)}"
        self._cut = b""
        self._forget()
        if path is not None:
            with as_write_error("open", path):
                make_directory(path.parent)
                self._fd = os.open(path, _OPENED, 0o644)
                try:
                    self._begin(self._fd, path)
                except BaseException:
                    self.close()
                    raise

    def _begin(self, fd: int, path: Path) -> None:
        if not wait_for_lock(fd, _PATIENCE):
            shown = escape(str(path))
            raise LockedError(f"{shown}: another process asks the judge and counts here; try again when it has ended")
        data = content_of(path)
        if data is None:
            raise OSError(errno.EINVAL, "no regular file")
        self._read(data, path)
        fsync_directory(path.parent)

    def _forget(self) -> None:
        self.calls = self.lost = self.told = 0
        self.largest: float | None = None
        self._unknown = 0
        self._known: list[float] = []
        self._open: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others have the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    # ------------------------------------------------------------------------------------------------------- figures

    @property
    def in_flight(self) -> int:
        """Calls of this process that have not ended."""
        return len(self._open)

    @property
    def each(self) -> float | None:
        """What a call is charged that did not say what it cost, USD; None while nobody knows."""
        return max((one for one in (self.reserve, self.largest) if one is not None), default=None)

    @property
    def known_usd(self) -> float:
        """What the calls cost that said so."""
        return math.fsum(self._known)

    @property
    def assumed_usd(self) -> float:
        """What the others are charged: those that ended without saying, and the lost ones."""
        return (self._unknown + self.lost) * (self.each or 0.0)

    @property
    def charged_usd(self) -> float:
        """What all calls are charged, those in flight like lost ones."""
        return self.known_usd + self.assumed_usd + self.in_flight * (self.each or 0.0)

    @property
    def uncharged(self) -> int:
        """Calls that may have cost something and are charged nothing, because nobody knows what."""
        return self._unknown + self.lost if self.each is None else 0

    @property
    def total_usd(self) -> float | None:
        """What all calls cost, lost ones as they are charged; None when one that ended did not say, or nobody knows."""
        return None if self._unknown or self.uncharged else self.known_usd + self.assumed_usd

    # --------------------------------------------------------------------------------------------------------- calls

    def begin(self) -> int:
        """Write that a call begins, and return its number. It may be made after :meth:`sync`."""
        self._append({"call": self._number + 1})
        self._number += 1
        self._begun(self._number)
        return self._number

    def sync(self) -> None:
        """Wait until what was written is on the disk; from any thread."""
        if self._fd is not None and self.path is not None and self._durable:
            with as_write_error("write", self.path):
                os.fsync(self._fd)

    def end(self, call: int, cost: float | None, failure: FailureKind | None = None) -> None:
        """Write what a call cost (USD, None when nobody knows), and that it gave an answer or how it failed."""
        self._append({"call": call, "cost_usd": cost, "was": failure or "ok"})
        self._ended(call, cost, failed=failure is not None)

    def done(self) -> None:
        """Write that what the calls were for has come to its end: what follows is counted anew."""
        if self.calls:
            self._append({"done": _now()})
            self._forget()

    def _append(self, entry: Mapping[str, Any]) -> None:
        if self._fd is None or self.path is None:
            return
        log = self._place.removeprefix(_PLACE)
        head = {"format": _FORMAT, "for": self._purpose, "at": _now(), "pid": os.getpid(), "log": log}
        data = self._cut + b"".join(map(self._line, [entry] if self._number else [head, entry]))
        self._cut = b"\n"  # a full disk may cut it off anywhere
        with as_write_error("write", self.path):
            write_all(self._fd, data)
        self._cut = b""

    def _line(self, entry: Mapping[str, Any]) -> bytes:
        self._sequence += 1
        line = json.dumps({**entry, "line": self._sequence}).encode()
        return (marked(line, self._place) if self._place else line).rstrip() + b"\n"

    def _begun(self, call: int) -> None:
        self._open.add(call)
        self.calls += 1

    def _ended(self, call: int, cost: float | None, *, failed: bool) -> None:
        self._open.remove(call)
        if cost is None:
            self._unknown += 1
        else:
            add_exactly(self._known, cost)
            if cost or not failed:  # a refused connection says nothing about the price of an answer
                self.told += 1
                self.largest = max(self.largest or 0.0, cost)

    # ------------------------------------------------------------------------------------------------------- reading

    def _read(self, data: bytes, path: Path) -> None:
        mine, damaged = True, 0
        lines = data.split(b"\n")
        self._place = _place_of(next(filter(None, lines), None)) if data else self._place
        for number, line in enumerate(lines, 1):
            if line:
                try:
                    mine = self._take(self._entry(line), path, mine=mine)
                except (ValueError, TypeError, KeyError, AttributeError):
                    damaged = damaged or number
                    self.calls += mine
                    self.lost += mine
        self._lose_open()
        if damaged:
            said = "it is no line of a call; each such line is charged as a call that did not say what it cost"
            _log.warning("jumar.calls_damaged: %s:%d: %s", escape(str(path)), damaged, said)
        self._cut = b"" if data.endswith(b"\n") or not data else b"\n"

    def _entry(self, line: bytes) -> Mapping[str, Any]:
        """Return a line's entry. Errors: ``ValueError`` for one that is no JSON, not jumar's, or a line that was there before."""
        if self._place and origin(line, self._place) != "ours":
            raise ValueError(line)
        entry = json.loads(line)
        if self._place and entry["line"] <= self._sequence:
            raise ValueError(line)
        self._sequence = entry.get("line", 0)
        return entry

    def _take(self, entry: Mapping[str, Any], path: Path, *, mine: bool) -> bool:
        """Count an entry; return whether those after it are of this purpose."""
        if "for" in entry:
            if entry["format"] > _FORMAT:
                raise FormatTooNewError(f"{escape(str(path))}: format {entry['format']}; this jumar reads up to 1, update it")
            self._lose_open()
            return entry["for"] == self._purpose
        if mine and "done" in entry:
            self._forget()
        elif mine and "cost_usd" in entry:
            cost = entry["cost_usd"]
            if not (cost is None or 0.0 <= float(cost) < math.inf):
                raise ValueError(cost)
            self._ended(entry["call"], None if cost is None else float(cost), failed=entry["was"] != "ok")
        elif mine:
            if entry["call"] in self._open:
                raise ValueError(entry["call"])
            self._begun(int(entry["call"]))
        return mine

    def _lose_open(self) -> None:
        self.lost += len(self._open)
        self._open.clear()


def _place_of(first: bytes | None) -> str:
    """Return what the marks of a file's lines say, by its first one; empty for a file of an older jumar or another machine."""
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        place = f"{_PLACE}{json.loads(first or b'')['log']}"
        if origin(first or b"", place) == "ours":
            return place
    return ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


_BLIND: Final = 3  # calls that may be made before anybody knows what one costs, where they fail or are lost
_FREE: Final[frozenset[FailureKind]] = frozenset({"rate_limited", "unavailable", "rejected", "missing"})
"""Failures without an answer; nobody charges for those unless they say that they may have."""


class CallLedger:
    """The gate before each call, for one limit in USD. Belongs to one event loop."""

    def __init__(self, calls: CallLog, max_cost: float | None = None, prices: Prices | None = None) -> None:
        self.calls = calls
        self._budget = None if max_cost is None else Budget(max_cost_usd=max_cost)
        self._prices = prices
        self._changed = asyncio.Condition()
        self._silent = False
        self.stopped: str | None = None

    async def begin(self, ended: Callable[[], bool]) -> int | None:
        """Wait until a call may be made and return its number; None when none may be made any more, or all has ``ended``."""
        async with self._changed:
            while not ended():
                may = self._may_ask()
                if may is not None:
                    return self.calls.begin() if may else None
                await self._changed.wait()
            return None

    def _may_ask(self) -> bool | None:
        """Return whether a call may be made; None while that depends on those in flight."""
        calls, running = self.calls, self.calls.in_flight
        if self._budget is None or self.stopped is not None:
            return self._budget is None
        each = calls.each
        answer = may_begin(
            spend=Spend(
                known_cost_usd=calls.known_usd,
                assumed_cost_usd=calls.assumed_usd,
                uncharged_costs=calls.uncharged if self._silent or calls.uncharged >= _BLIND else 0,
            ),
            budget=self._budget,
            generate=Reservation(cost_usd=each),
            score=Reservation(cost_usd=0.0),
            in_flight=Reservation(cost_usd=running * (each or 0.0)),
            running=running,
        )
        if isinstance(answer, Stop):
            self.stopped = self._why(blind=answer.decision.reason == "unknown_cost")
            return False
        # what few calls have cost says little about the next ones: as many more at once as there is experience
        return True if isinstance(answer, Go) and running < 1 + calls.told // 4 else None

    def _why(self, *, blind: bool) -> str:
        calls, limit = self.calls, 0.0 if self._budget is None else self._budget.max_cost_usd or 0.0
        where = "" if calls.path is None else f" ({escape(str(calls.path))} has every call since the first start)"
        if blind:
            return (
                f"the judge does not say what a call costs ({plural(calls.uncharged, 'call')} so far), so no limit is kept: "
                f"give the prices of its tokens, what to charge for such a call (--reserve-cost), or no limit{where}"
            )
        spent = calls.known_usd + calls.assumed_usd
        return f"the limit of ${limit:g} is reached: ${spent:.4f} spent, and the next call could exceed it{where}"

    async def sync(self) -> None:
        """Wait until the beginnings of calls are on the disk."""
        if self.calls.path is not None:
            await asyncio.to_thread(self.calls.sync)

    async def end(self, call: int, usage: Usage | None, failure: FailureKind | None = None) -> float | None:
        """Record the end of a call; return what it cost, None when nobody knows."""
        cost = self._cost(usage, failure)
        async with self._changed:
            self.calls.end(call, cost, failure)
            self._silent |= cost is None and failure is None
            self._changed.notify_all()
        return cost

    def _cost(self, usage: Usage | None, failure: FailureKind | None) -> float | None:
        if usage is None:
            return 0.0 if failure in _FREE else None
        if usage.token_cost_usd is None and self._prices is not None:
            return self._prices.cost(usage)
        return usage.token_cost_usd
