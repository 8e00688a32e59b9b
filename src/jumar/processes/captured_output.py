"""What a command prints, without secrets: its beginning as it comes, its end when it is there, and what was left out counted.

A program may print a gigabyte: what will not be shown is only counted, at the speed of the pipe. Once the beginning is full, the
newest chunks wait as they are, and only those that are left at the end are looked through for secrets.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jumar.core.files import as_write_error
from jumar.core.leftovers import remove_any
from jumar.core.redaction import RedactedStream, current
from jumar.core.text import without_escapes

DEFAULT_OUTPUT_CAP: Final = 1 << 20
READ: Final = 1 << 16
"""Bytes of a chunk at most."""

TAIL: Final = 8 << 10
"""Bytes of a tail that goes into records and prompts."""

_LOG_TAIL: Final = 64 << 10  # of the log's cap, what is kept for the end of the output
SHOWN_AT_ONCE: Final = DEFAULT_OUTPUT_CAP - _LOG_TAIL
"""Bytes of output that reach a log as they come; of a longer one, the end is written when it is there."""


class _Bounded:
    """The first ``head`` bytes of a stream, handed to ``keep`` as they come, and its last ``end`` bytes, held in memory."""

    def __init__(self, head: int, end: int, keep: Callable[[bytes], object]) -> None:
        self._head = head
        self._end = end
        self._keep = keep
        self._held = max(end, TAIL)
        self._recent = bytearray()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        room = self._head - self.total
        if room > 0:
            self._keep(chunk[:room])
        self.total += len(chunk)
        self._recent += chunk
        if len(self._recent) > 2 * self._held + READ:  # seldom, so that the moves cost nothing
            del self._recent[: -self._held]

    def skip(self, count: int) -> None:
        """Count bytes that nobody will see; the beginning is full."""
        self.total += count
        self._recent.clear()

    @property
    def full(self) -> bool:
        """Whether all of the beginning is there."""
        return self.total >= self._head

    @property
    def held(self) -> int:
        """How many bytes of the end are shown somewhere."""
        return self._held

    def rest(self) -> bytes:
        """Return what came after the first bytes, or as much of its end as is kept."""
        length = min(self._end, max(0, self.total - self._head), len(self._recent))
        return bytes(self._recent[len(self._recent) - length :])

    @property
    def dropped(self) -> int:
        return max(0, self.total - self._head - min(self._end, len(self._recent)))

    def tail_text(self) -> str:
        """Return the end without colours: they are for a terminal, and may be most of it."""
        return without_escapes(_text(bytes(self._recent), cut=self.total > len(self._recent)))[-TAIL:]


class _Stream(_Bounded):
    """One output of a command, whole up to ``cap`` bytes."""

    def __init__(self, cap: int) -> None:
        self._first = bytearray()
        super().__init__(cap - cap // 2, cap // 2, self._first.extend)

    def text(self) -> str:
        if not self.dropped:
            return _text(bytes(self._first) + self.rest(), cut=False)
        return f"{_text(bytes(self._first), cut=False)}\n{_left_out(self.dropped)}\n{_text(self.rest(), cut=True)}"


@dataclass(slots=True)
class _Channel:
    """One output of a command as it comes in; ``waiting`` are numbered chunks, ``size`` bytes, that nobody has looked through.

    ``gap``: between them and what was looked through, some went by.
    """

    shown: _Stream
    clean: RedactedStream
    waiting: deque[tuple[int, bytes]] = field(default_factory=deque[tuple[int, bytes]])
    size: int = 0
    gap: bool = False


class CapturedOutput:
    """Everything that a command prints: each stream, both in the order of their arrival, and the log; all of it without secrets.

    A line is held back until it has an end, since it may hold a secret: each arrives whole. Errors:
    :class:`jumar.errors.StoreWriteError` when the log cannot be created.
    """

    def __init__(self, log: Path | None, cap: int, kept: int) -> None:
        self.log_error: str | None = None
        self._fd: int | None = None
        if log is not None:
            with as_write_error("create the log", log):
                self._fd = create_anew(log)
        end = min(_LOG_TAIL, cap // 4)
        self._redactor = redactor = current()
        self.merged = _Bounded(cap - end, end, self._write)
        self._clean = redactor.stream()
        self._out, self._err = _Channel(_Stream(kept), redactor.stream()), _Channel(_Stream(kept), redactor.stream())
        # before the end, so much that a secret or a line in which it begins can be told
        self._leading = 2 * redactor.reach
        self._kept = max(self._out.shown.held, self.merged.held)
        self._number = 0
        self._gap = False

    @property
    def out(self) -> _Stream:
        return self._out.shown

    @property
    def err(self) -> _Stream:
        return self._err.shown

    def stdout(self, chunk: bytes) -> None:
        self._take(self._out, chunk)

    def stderr(self, chunk: bytes) -> None:
        self._take(self._err, chunk)

    def _take(self, channel: _Channel, chunk: bytes) -> None:
        if not self.merged.full:
            self._add(channel, channel.clean.feed(chunk))
            return
        self._number += 1
        channel.waiting.append((self._number, chunk))
        channel.size += len(chunk)
        while channel.size - len(channel.waiting[0][1]) >= self._kept + self._leading:
            _, first = channel.waiting.popleft()
            channel.size -= len(first)
            self._let_go(channel, first)

    def _let_go(self, channel: _Channel, chunk: bytes) -> None:
        """Take a chunk that is far from the end: into the beginning of its own stream, or just count it."""
        self._gap = True
        if channel.gap:
            channel.shown.skip(len(chunk))
            self.merged.skip(len(chunk))
            return
        clean = channel.clean.feed(chunk)
        if channel.shown.full:
            clean += channel.clean.finish()
            channel.gap = True
        channel.shown.add(clean)
        self.merged.skip(len(clean))

    def _add(self, channel: _Channel, clean: bytes) -> None:
        channel.shown.add(clean)
        self.merged.add(self._clean.feed(clean))  # half of a secret on each of the two is one in the log

    def _take_end(self) -> None:
        """Look through what waits, in the order of its arrival."""
        if self._gap:
            self.merged.skip(len(self._clean.finish()))
        channels = (self._out, self._err)
        leading = [max(0, channel.size - self._kept) if channel.gap else 0 for channel in channels]
        waiting = [(number, place, chunk) for place, channel in enumerate(channels) for number, chunk in channel.waiting]
        for _, place, chunk in sorted(waiting):
            channel = channels[place]
            cut = min(len(chunk), leading[place])
            leading[place] -= cut
            if cut:
                before = len(channel.clean.feed(chunk[:cut]))
                channel.shown.skip(before)
                self.merged.skip(before)
            self._add(channel, channel.clean.feed(chunk[cut:]))

    def _write(self, data: bytes) -> None:
        """A log that cannot be written ends no step that was paid for; the result says that it is incomplete."""
        if self._fd is None or self.log_error is not None:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            self.log_error = f"the log is incomplete: {os.strerror(error.errno or 0)}"

    def finish(self, note: str | None) -> None:
        """Take what was held back, and write the end of the log: what was left out, the last bytes, and ``note``."""
        self._take_end()
        self._add(self._out, self._out.clean.finish())
        self._add(self._err, self._err.clean.finish())
        self.merged.add(self._clean.finish())
        if self.merged.dropped:
            self._write(f"\n{_left_out(self.merged.dropped)}\n".encode())
        self._write(self.merged.rest())
        if note is not None:
            self._write(self._redactor.redact_bytes(f"\n[jumar: {note}]\n".encode(errors="backslashreplace")))
        self.close()

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def create_anew(path: Path) -> int:
    """Return a descriptor of the new empty file ``path``; what lies there, or is linked from there, is not written into."""
    remove_any(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def _left_out(count: int) -> str:
    return f"[jumar: {count:,} bytes left out here]"


def _text(data: bytes, *, cut: bool) -> str:
    """Decode ``data``; where it was ``cut`` from something longer, the rest of a character at its start is left out."""
    start = 0
    while cut and start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode("utf-8", "backslashreplace")
