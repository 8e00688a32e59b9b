"""The lock of a work directory: two loops of one root must not change one tree."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path

from jumar.errors import LockedError
from jumar.files import sha256_bytes
from jumar.store.layout import LOOPS
from jumar.store.lock import LoopLock, who_holds
from jumar.store.loop_store import LoopStore
from jumar.text import escape

__all__ = ["locked_tree"]


@contextlib.contextmanager
def locked_tree(store: LoopStore, workdir: Path) -> Generator[None]:
    """Hold the lock of ``workdir`` among the loops of the store's root. A loop that stands alone has no root and no such lock.

    Errors: :class:`LockedError` naming who works there.
    """
    if store.paths.directory.parent.name != LOOPS:
        yield
        return
    key = sha256_bytes(str(workdir.resolve()).encode("utf-8", "surrogateescape"))[:16]
    path = store.paths.lock.with_name(f"workdir-{key}")
    lock = LoopLock(path)
    try:
        lock.acquire()
    except LockedError as error:
        holder = who_holds(path) or {}
        who = f"process {holder['pid']} ({escape(str(holder.get('command')))})" if "pid" in holder else "another process"
        raise LockedError(f"{who} works in {escape(str(workdir))}; wait for it to end, or stop it") from error
    try:
        yield
    finally:
        lock.release()
