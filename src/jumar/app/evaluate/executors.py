"""``--executor``: where cases that do not depend on each other, or chunks of items, are worked on side by side."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Generator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

from jumar.core.text import escape
from jumar.errors import ConfigError

__all__ = ["hear_no_interrupt", "open_executor"]

_LOCAL = re.compile(r"(threads|processes)(?::([1-9]\d{0,3}))?")
_DASK = re.compile(r"dask://([^/\s]+:\d{1,5})")


@contextlib.contextmanager
def open_executor(spec: str | None) -> Generator[Executor | None]:
    """Open the executor that ``spec`` names and close it again; None for None.

    ``threads`` or ``threads:4``, ``processes:4``, ``dask://HOST:PORT``. The number defaults to that of the processors. Errors:
    :class:`jumar.errors.ConfigError`, :class:`jumar.integrations.dask.DaskError`.
    """
    if spec is None:
        yield None
        return
    remote = _DASK.fullmatch(spec)
    if remote is not None:
        from jumar.integrations.dask import dask_executor

        with dask_executor(remote[1]) as executor:
            yield executor
        return
    local = _LOCAL.fullmatch(spec)
    if local is None:
        raise ConfigError(f"--executor {escape(spec)}: write threads:N, processes:N or dask://HOST:PORT")
    workers = int(local[2]) if local[2] else os.cpu_count() or 1
    made = ThreadPoolExecutor(workers) if local[1] == "threads" else ProcessPoolExecutor(workers, initializer=hear_no_interrupt)
    with made as executor:
        yield executor


def hear_no_interrupt() -> None:
    """Leave Ctrl-C to the process that the person started. Not SIG_IGN, which the programs of steps would inherit."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda _number, _frame: None)
