"""One writer at a time for a file, such as one of patterns: a ``flock`` beside it that the kernel drops when its holder dies."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path
from typing import Final

from jumar.core.files import wait_for_lock
from jumar.core.text import escape
from jumar.errors import JumarError, LockedError, PatternSaveError

__all__ = ["writing"]

_PATIENCE: Final = 10.0  # seconds; whoever holds it writes one file


@contextlib.contextmanager
def writing(path: Path, *, patience: float = _PATIENCE, error: type[JumarError] = PatternSaveError) -> Generator[None]:
    """Hold the lock of the file ``path``: ``path`` with ``.lock`` added, which stays there.

    Errors: :class:`LockedError` when another process or object still holds it after ``patience`` seconds; ``error`` when the lock
    cannot be written, because the file could not be either.
    """
    lock = path.with_name(path.name + ".lock")
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as problem:
        raise error(f"{escape(str(path))} was not written: {problem.strerror}: {escape(str(lock))}") from problem
    try:
        if not wait_for_lock(fd, patience):
            raise LockedError(f"{escape(str(path))} is being written by another process; try again when it is done")
        yield
    finally:
        os.close(fd)
