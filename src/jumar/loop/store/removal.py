"""A loop leaves its root: one rename takes it out of everybody's sight, then it is deleted.

Killed before the rename, the loop is whole; after it, what is left is under a name that no command takes for a loop, and the next
run or removal deletes it.
"""

from __future__ import annotations

import contextlib
import secrets
from pathlib import Path
from typing import Final

from jumar.core.files import as_write_error, remove_tree, rename_new
from jumar.loop.store.layout import LoopPaths, loops_directory

__all__ = ["take_away", "tidy_removed"]

_REMOVED: Final = ".removed-"


def take_away(paths: LoopPaths) -> None:
    """Rename the loop out of its root, and delete the file of its lock, which the caller holds. :func:`tidy_removed` deletes it.

    Errors: :class:`jumar.errors.StoreWriteError`; the loop is whole then.
    """
    with as_write_error("remove", paths.directory):
        rename_new(paths.directory, paths.directory.with_name(f"{_REMOVED}{secrets.token_hex(6)}"))
        paths.lock.unlink(missing_ok=True)


def tidy_removed(root: Path) -> None:
    """Delete what is left of removed loops; what cannot be deleted stays, and is in nobody's way."""
    with contextlib.suppress(OSError):
        for entry in loops_directory(root).iterdir():
            if entry.name.startswith(_REMOVED):
                with contextlib.suppress(OSError):
                    remove_tree(entry)
