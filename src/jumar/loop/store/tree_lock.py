"""The lock of a working directory: two loops of one root must not change one tree."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from jumar.core.files import sha256_bytes
from jumar.core.lock import LoopLock, who_holds
from jumar.core.text import escape
from jumar.errors import LockedError
from jumar.loop.store.loop_store import LoopStore


@contextlib.contextmanager
def locked_tree(store: LoopStore, workdir: Path) -> Generator[None]:
    """Hold the lock of ``workdir`` among the loops of the store's root. A loop that stands alone has no root and no such lock.

    Errors: :class:`LockedError` naming who works there.
    """
    if store.paths.root == store.paths.directory:
        yield
        return
    path = store.paths.lock.with_name(_name(workdir))
    lock = LoopLock(path)
    try:
        lock.acquire()
    except LockedError as error:
        raise _busy(workdir, who_holds(path) or {}) from error
    try:
        yield
    finally:
        lock.release()


def refuse_busy_tree(root: Path, workdir: Path) -> None:
    """Raise :class:`LockedError` when a loop of ``root`` changes ``workdir`` right now; for those who have no loop yet."""
    holder = who_holds(root / "locks" / _name(workdir))
    if holder is not None:
        raise _busy(workdir, holder)


def _name(workdir: Path) -> str:
    return "workdir-" + sha256_bytes(str(workdir.resolve()).encode("utf-8", "surrogateescape"))[:16]


def _busy(workdir: Path, holder: Mapping[str, Any]) -> LockedError:
    who = f"process {holder['pid']} ({escape(str(holder.get('command')))})" if "pid" in holder else "another process"
    return LockedError(
        f"{who} works in {escape(str(workdir))}; wait for it to end, stop it, or work beside it with --isolation copy or worktree"
    )
