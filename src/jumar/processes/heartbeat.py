"""How long a step has run so far, left where the next run finds it: so the time of a lost attempt is known."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Final

from jumar.core.files import UnreadableFileError
from jumar.errors import StoreWriteError
from jumar.model import Clock
from jumar.processes.written_files import read_regular

_FIRST: Final = 1.0  # seconds; shorter steps leave nothing and cost nothing
_EVERY: Final = 5.0
_LIMIT: Final = 64


@contextlib.contextmanager
def beating(path: Path, clock: Clock) -> Generator[None]:
    """Write the seconds since now to ``path`` every five seconds while the body runs. A disk that refuses is left alone."""
    began = clock.monotonic()
    ended = threading.Event()

    def beat() -> None:
        pause = _FIRST
        while not ended.wait(pause):
            pause = _EVERY
            with contextlib.suppress(OSError):
                _write(path, clock.monotonic() - began)

    heart = threading.Thread(target=beat, name="jumar-heartbeat", daemon=True)
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


def last_beat(path: Path) -> float | None:
    """Return the seconds of the last beat, or None when there was none or it cannot be read."""
    try:
        seconds = float(read_regular(path, limit=_LIMIT))
    except (OSError, ValueError, StoreWriteError, UnreadableFileError):
        return None
    return seconds if 0 <= seconds < float("inf") else None
