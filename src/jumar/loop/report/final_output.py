"""``final-output/``: a copy of the selected iteration's artifacts, with their real modes, exchanged as a whole.

The copy is built and synced beside it and takes its name in one step, so that whoever looks there finds one iteration's files
and never a mixture of two. A process that dies on the way leaves the old directory, or at worst none; the next refresh makes it
again.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import secrets
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jumar.core import files, leftovers
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.restore import plan_restore, restore

if TYPE_CHECKING:
    from jumar.loop.store.loop_store import LoopStore

_PREFIX: Final = f"{leftovers.TEMPORARY}final-output-"
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_NOT_HERE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


def fill_final_output(store: LoopStore, iteration: int, only: Collection[str] | None = None) -> None:
    """Make ``final-output/`` hold what iteration ``iteration`` holds, or the paths ``only`` of it; the caller holds the lock.

    Errors: :class:`jumar.errors.StoreWriteError`, with the old directory still there;
    :class:`jumar.errors.StoreDamagedError` when the snapshot lacks a file.
    """
    target = store.paths.final_output
    with files.as_write_error("fill", target):
        for leftover in store.paths.directory.glob(f"{_PREFIX}*"):
            leftovers.remove_any(leftover)
        built = store.paths.directory / f"{_PREFIX}{secrets.token_hex(6)}"
        built.mkdir()
        manifest = store.manifest(iteration)
        if only is not None:
            manifest = Manifest({path: detail for path, detail in manifest.entries.items() if path in only})
        try:
            restore(plan_restore(manifest, store.artifacts(iteration), built, ()))
            files.fsync_directory(built)
            _put_in_place(built, target)
        finally:
            with contextlib.suppress(OSError):
                leftovers.remove_any(built)  # the old one, once they are exchanged
        files.fsync_directory(target.parent)


def _put_in_place(built: Path, target: Path) -> None:
    if not os.path.lexists(target):
        built.rename(target)
        return
    if _exchange(built, target):
        return
    aside = built.with_name(f"{built.name}-old")
    target.rename(aside)
    built.rename(target)
    leftovers.remove_any(aside)


@functools.cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; False where the system or the file system cannot."""
    function = _renameat2()
    if function is None:
        return False
    if function(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_HERE:
        return False
    raise OSError(number, os.strerror(number), str(other))
