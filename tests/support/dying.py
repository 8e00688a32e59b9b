"""A process that dies, or whose disk fails, at a chosen call that changes the disk: simulated inside the test's own process.

After a death every further call fails too, so that no clean-up code of the program under test can do what a dead process cannot.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Literal
from unittest import mock

__all__ = ["Killed", "Way", "changing_calls", "dying", "not_waiting"]

_DIRECTORIES = ("mkdir", "rmdir", "unlink", "remove", "rename", "replace", "link", "symlink")
_NAMES = (*_DIRECTORIES, "write", "pwrite", "truncate", "ftruncate", "chmod", "fchmod", "utime", "fsync", "fdatasync")

Way = Literal["killed before", "killed after", "error", "answer lost"]
"""``answer lost``: the call happened, and says that it failed."""


class Killed(BaseException):
    """The process is dead."""


@contextmanager
def dying(at: int, way: Way, errno: int = 5) -> Iterator[Callable[[], int]]:
    """Let the ``at``-th changing call (from 1) fail; 0 lets none. Yields a function that says how many there were."""
    count = 0
    dead = False

    def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal count, dead
            if name == "open" and not arguments[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                return real(*arguments, **named)
            if dead:
                raise Killed
            count += 1
            if count != at:
                return real(*arguments, **named)
            if way == "killed before":
                dead = True
                raise Killed
            if way == "error":
                raise OSError(errno, os.strerror(errno))
            result = real(*arguments, **named)
            if way == "killed after":
                dead = True
                raise Killed
            if name == "open":
                os.close(result)
            raise OSError(errno, os.strerror(errno))

        return call

    with ExitStack() as patches:
        for name in (*_NAMES, "open"):
            patches.enter_context(mock.patch.object(os, name, wrap(name, getattr(os, name))))
        yield lambda: count


def not_waiting() -> AbstractContextManager[object]:
    """Let ``fsync`` return at once: what dies here is a simulated process, not the machine."""
    return mock.patch.object(os, "fsync", return_value=None)


def changing_calls(body: Callable[[], object]) -> int:
    """Return how many changing calls ``body`` makes when nothing fails."""
    with dying(0, "error") as counted:
        body()
        return counted()
