"""The way of a step as a coroutine: what must run elsewhere is handed out, what touches the store stays with its owner.

A *way* yields callables and gets their results back. Whoever holds the store's lock drives it; the callables run programs and may
run in another thread. So a step reads from top to bottom, alone or as one of several in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

__all__ = ["Way", "Work", "drive", "elsewhere"]

T = TypeVar("T")

Work = Callable[[], object]
"""Something that touches no store and may run in another thread."""

Way = Generator[Work, Any, T]


def elsewhere(work: Callable[[], T]) -> Way[T]:
    """Hand ``work`` out and return its result; used with ``yield from``."""
    result: T = yield work
    return result


def drive(way: Way[T]) -> T:
    """Go a way to its end in this thread, and return its result."""
    try:
        work = next(way)
        while True:
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - the way decides what becomes of it
                work = way.throw(error)
            else:
                work = way.send(result)
    except StopIteration as end:
        value: T = end.value
        return value
