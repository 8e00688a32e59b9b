"""``events.jsonl``: what a loop told, one JSON object a line, for whoever watches it from outside.

A convenience and never a source of truth: nothing is decided from it, it may be deleted at any time, and an error of the disk
here ends no loop. One ``write`` an event, without a sync; what a power failure cuts off is mended by the next run.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from pathlib import Path
from typing import Any, Final, cast

from jumar.core.clock import SystemClock
from jumar.core.files import read_from
from jumar.core.redaction import current, redacted_json
from jumar.loop.events.events import Event
from jumar.model import Clock

_log = logging.getLogger("jumar.loop")

EVENTS_LIMIT: Final = 8 << 20
"""Bytes after which ``events.jsonl`` becomes ``events.1.jsonl``, in the place of an older one: both together hold twice that."""

_TAIL: Final = 1 << 16
_LONGEST: Final = 64 << 10  # bytes of one line; a longer event is written without its long texts
_KEPT: Final = 500  # characters of a text in an event that would be too long
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


def rotated(path: Path) -> Path:
    """Return where the older part lies: ``events.jsonl`` → ``events.1.jsonl``."""
    return path.with_name(f"{path.stem}.1{path.suffix}")


def _line(document: dict[str, Any]) -> bytes:
    """Return one event as a line, without secrets."""
    line = json.dumps(document, separators=(",", ":"), default=str).encode("ascii")
    redactor = current()
    if redactor.finds(line):
        clean = redacted_json(json.loads(line), redactor.redact)
        line = json.dumps(clean, separators=(",", ":")).encode("ascii")
    return line + b"\n"


class EventLog:
    """Appends events to ``path``; the caller holds the loop's lock. :meth:`hear` is a listener and never raises.

    The file is opened with the first event. ``seq`` counts from 1 and goes on where an earlier run ended, ``at`` is UTC,
    ``monotonic`` seconds that only compare within one ``run``.
    """

    def __init__(self, path: Path, *, clock: Clock | None = None, limit: int = EVENTS_LIMIT) -> None:
        self.path = path
        self.run = secrets.token_hex(4)
        self._clock = clock or SystemClock()
        self._limit = limit
        self._fd: int | None = None
        self._size = 0
        self._seq = 0
        self._failed = False

    def hear(self, event: Event) -> None:
        """Append ``event``. After the first error of the disk nothing more is tried until :meth:`close`."""
        if self._failed:
            return
        try:
            if self._fd is None:
                self._open()
            elif self._size >= self._limit:
                self._rotate()
            self._append(event)
        except OSError as error:
            self._failed = True
            _log.warning("jumar.events_not_written: %s: %s", self.path, os.strerror(error.errno or 0))

    def close(self) -> None:
        """Give the file back; a later event opens it again."""
        self._failed = False
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    def __del__(self) -> None:
        self.close()

    def _append(self, event: Event) -> None:
        if self._fd is None:
            return
        self._seq += 1
        head = {"seq": self._seq, "at": self._clock.now(), "monotonic": round(self._clock.monotonic(), 6), "run": self.run}
        line = _line({**head, **event.to_json()})
        if len(line) > _LONGEST:
            line = _line({**head, **_shortened(event.to_json())})
        written = os.write(self._fd, line)
        self._size += written
        if written < len(line):  # a disk that is full in the middle of a line: take the half away again
            os.ftruncate(self._fd, self._size - written)
            raise OSError(28, os.strerror(28))

    def _open(self) -> None:
        self._fd = os.open(self.path, _FLAGS, 0o644)
        if os.fstat(self._fd).st_nlink > 1:  # what was linked there may be a person's
            os.close(self._fd)
            self._fd = None
            self.path.unlink(missing_ok=True)
            self._fd = os.open(self.path, _FLAGS | os.O_EXCL, 0o644)
        self._size = os.fstat(self._fd).st_size
        self._mend()
        self._seq = max(self._seq, _last_seq(self.path), 0 if self._size else _last_seq(rotated(self.path)))

    def _mend(self) -> None:
        """Take away a last line that was cut off."""
        if self._fd is None or not self._size:
            return
        begin = max(0, self._size - _TAIL)
        tail = os.pread(self._fd, _TAIL, begin)
        if tail.endswith(b"\n"):
            return
        self._size = begin + tail.rfind(b"\n") + 1
        os.ftruncate(self._fd, self._size)

    def _rotate(self) -> None:
        self.close()
        self.path.replace(rotated(self.path))
        self._open()


class EventTail:
    """Reads the events of ``path`` as they come, from another process or thread: across rotation, mending and deletion.

    Takes no lock and keeps nothing open. What was rotated away twice between two looks is missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode: int | None = None
        self._offset = 0
        self._known: dict[str, int] = {}  # the last number of each run

    def news(self) -> list[dict[str, Any]]:
        """Return the whole events that came since the last call, oldest first; the first call returns all there are."""
        found: list[dict[str, Any]] = []
        status = _status(self._path)
        if status is None or status.st_ino != self._inode:
            older = _status(rotated(self._path))
            if older is not None:
                begin = self._offset if older.st_ino == self._inode else 0
                found += self._read(rotated(self._path), begin)[0]
            self._inode, self._offset = None if status is None else status.st_ino, 0
        if status is not None and status.st_size != self._offset:
            events, self._offset = self._read(self._path, min(self._offset, status.st_size))
            found += events
        return found

    def _read(self, path: Path, begin: int) -> tuple[list[dict[str, Any]], int]:
        """Return the new events from ``begin`` on, and where the last whole line ends."""
        try:
            data = read_from(path, begin)
        except OSError:
            return [], begin
        end = data.rfind(b"\n") + 1
        found = [event for line in data[:end].splitlines(keepends=True) if (event := _parsed(line)) is not None]
        fresh: list[dict[str, Any]] = []
        for event in found:
            run = str(event.get("run"))
            if event["seq"] > self._known.get(run, 0):
                self._known[run] = event["seq"]
                fresh.append(event)
        return fresh, begin + end


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _parsed(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    event = cast("dict[str, Any]", found)
    usable = type(event.get("seq")) is int and isinstance(event.get("type"), str)
    return event if usable else None


def _last_seq(path: Path) -> int:
    """Return the number of the last whole event of ``path``, 0 without one."""
    try:
        lines = read_from(path, -_TAIL).splitlines(keepends=True)
    except OSError:
        return 0
    return next((event["seq"] for line in reversed(lines) if (event := _parsed(line)) is not None), 0)


def _shortened(value: Any) -> Any:
    """Return ``value`` with its long texts cut, whatever it nests."""
    if isinstance(value, str):
        return value if len(value) <= _KEPT else value[:_KEPT] + "…"
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_shortened(item) for item in cast("list[Any]", value)[:100]]
    return value
