"""How a running loop is asked to end: after this step, or now; by a signal, or by a file called ``STOP``."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Generator, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from jumar.core.files import UnreadableFileError
from jumar.core.text import escape
from jumar.errors import StoreWriteError, UsageError
from jumar.model import Clock, StopDecision
from jumar.processes.written_files import read_regular


class StopSwitch:
    """Two requests, safe to make from a signal handler or another thread.

    ``finish`` ends the loop once the running step is recorded. ``now`` also ends the running programs; what they did so far
    stays in the working directory and the attempt is recorded as interrupted. ``reason`` says which signal asked, ``found`` which
    file did, if one did.
    """

    def __init__(self) -> None:
        self._finish = threading.Event()
        self._files: tuple[Path, ...] = ()
        self.immediate = threading.Event()
        self.reason: Literal["interrupted", "terminated"] = "interrupted"
        self.found: Path | None = None

    @property
    def requested(self) -> bool:
        """Whether the loop shall end, now or after this step. Looks for the files that are watched, one ``lstat`` each."""
        if self._finish.is_set():
            return True
        self.found = stop_file(self._files)
        if self.found is None:
            return False
        self._finish.set()
        return True

    def decision(self) -> StopDecision:
        """Return why the loop ends, once that is :attr:`requested`."""
        if self.found is None:
            return StopDecision(reason=self.reason, detail="on request; run the same command again to resume")
        shown = escape(str(self.found))
        return StopDecision(
            reason="stop_file", detail=f"the file {shown} asks to stop; remove it and run the same command again to resume"
        )

    def watch(self, files: Iterable[Path]) -> None:
        """End the loop after the running step once one of ``files`` exists, whatever it holds."""
        self._files = tuple(files)

    def finish(self) -> None:
        """Ask the loop to end after the running step."""
        self._finish.set()

    def now(self, reason: Literal["interrupted", "terminated"] = "interrupted") -> None:
        """Ask the loop to end at once."""
        self.reason = reason
        self.found = None
        self._finish.set()
        self.immediate.set()


def stop_file(files: Iterable[Path]) -> Path | None:
    """Return the first of ``files`` that exists, None when there is none. A link that leads nowhere counts as well."""
    return next((path for path in files if os.path.lexists(path)), None)


def refuse_stop_file(files: Iterable[Path]) -> None:
    """Refuse to start while one of ``files`` exists. Errors: :class:`UsageError` that names it."""
    found = stop_file(files)
    if found is not None:
        way_out = "`jumar stop --undo` does, with --all that of the root"
        raise UsageError(f"the file {escape(str(found))} asks loops to stop: remove it to resume ({way_out})")


_FIRST: Final = 1.0  # seconds
_EVERY: Final = 5.0
_LIMIT: Final = 64


@contextlib.contextmanager
def beating(path: Path, clock: Clock) -> Generator[None]:
    """Write the seconds since now to ``path``, at once and every five seconds while the body runs.

    A disk that refuses is left alone.
    """
    began = clock.monotonic()
    ended = threading.Event()

    def beat() -> None:
        with contextlib.suppress(OSError):
            _write(path, clock.monotonic() - began)

    def go_on() -> None:
        pause = _FIRST
        while not ended.wait(pause):
            pause = _EVERY
            beat()

    beat()
    heart = threading.Thread(target=go_on, name="jumar-heartbeat", daemon=True)
    heart.start()
    try:
        yield
    finally:
        ended.set()
        heart.join()


def _write(path: Path, seconds: float) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    try:
        if os.fstat(fd).st_nlink != 1:
            return  # what was linked there may be a person's
        os.pwrite(fd, f"{seconds:.3f}\n".ljust(24).encode(), 0)  # one write of one length: a reader sees the old or the new
    finally:
        os.close(fd)


def lost_seconds(path: Path, started_at: str, *, most: float | None) -> float | None:
    """Return how long a step ran that never ended: up to its last beat; None when nobody knows.

    A program can write there what it likes, or delete it, but not choose when it did: the later of what the file says and of when
    it was last written counts, of the latter ``most`` seconds at most. Where ``most`` is None the file is believed.
    """
    said = _last_beat(path)
    if most is None:
        return said
    with contextlib.suppress(OSError, ValueError, TypeError):
        written = os.lstat(path.parent if said is None else path).st_ctime
        end = datetime.fromtimestamp(written, UTC)
        return max(said or 0.0, min((end - datetime.fromisoformat(started_at)).total_seconds(), most))
    return said


def _last_beat(path: Path) -> float | None:
    try:
        seconds = float(read_regular(path, limit=_LIMIT))
    except (OSError, ValueError, StoreWriteError, UnreadableFileError):
        return None
    return seconds if 0 <= seconds < float("inf") else None


@contextlib.contextmanager
def signals_handled(switch: StopSwitch, *, quiet: bool) -> Generator[None]:
    """Ctrl-C once: finish this step; twice: stop now. SIGTERM and SIGHUP: stop now.

    A signal that is ignored already stays so: who started jumar asked for that, as ``nohup`` does.
    """

    def on_interrupt(_number: int, _frame: object) -> None:
        if switch.requested:
            switch.now()
            return
        switch.finish()
        if not quiet:
            sys.stderr.write("\nfinishing this step; press Ctrl-C again to stop now\n")

    def on_terminate(_number: int, _frame: object) -> None:
        switch.now("terminated")

    handlers = {signal.SIGINT: on_interrupt, signal.SIGTERM: on_terminate, signal.SIGHUP: on_terminate}
    heard = {number: handler for number, handler in handlers.items() if signal.getsignal(number) != signal.SIG_IGN}
    previous = {number: signal.signal(number, handler) for number, handler in heard.items()}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
