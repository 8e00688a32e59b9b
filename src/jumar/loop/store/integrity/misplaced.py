"""What stands in the place of a loop's directories and was not made by jumar: moved to ``quarantine/``, never gone through.

Directories that were closed to their owner are open again. And a loop leaves its root: one rename takes it out of everybody's
sight, then it is deleted. Killed before the rename, the loop is whole; after it, what is left is under a name that no command
takes for a loop, and the next run or removal deletes it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

from jumar.core import quarantine
from jumar.core.files import as_write_error, rename_new
from jumar.core.leftovers import remove_tree
from jumar.core.refusals import give_rights
from jumar.core.text import escape
from jumar.errors import UsageError
from jumar.loop.store.layout import LOCKS, REPLIES, WORK, LoopPaths, list_loops, loops_directory
from jumar.loop.store.staging import ARTIFACTS


def replaced(paths: LoopPaths) -> list[str]:
    """Move away what is no directory of ours: what is written or deleted through a link may be a person's; return what to tell.

    Those that are ours and were closed are opened. The caller holds the lock.
    """
    places = (*paths.subdirectories, paths.checks, paths.recheck)
    return quarantine.replaced(paths.directory, places, around=_around(paths))


def tidy_root(root: Path) -> list[str]:
    """Move away what stands where ``root`` has directories, or loops, and is none of them; return what to tell.

    A link that leads to a loop is a person's, and so is a root that is one. Errors: :class:`jumar.errors.UsageError` for a root
    that is no directory, :class:`jumar.errors.StoreWriteError`.
    """
    if not os.path.lexists(root):
        return []
    if not root.is_dir():
        raise UsageError(f"{escape(str(root))} is no directory: remove it, or choose another one with --root")
    loops = loops_directory(root)
    with as_write_error("set something aside in", root):
        told = quarantine.replaced(root, (root / LOCKS, root / WORK, root / REPLIES))
        if not list_loops(root):
            told += quarantine.replaced(root, (loops,))
        entries = loops.iterdir() if loops.is_dir() else ()
        strangers = [entry for entry in entries if not (entry.name.startswith(".") or os.path.isfile(entry / "loop.json"))]
        return told + quarantine.replaced(root, strangers)


def open_to_owner(paths: LoopPaths, *, snapshots: bool = False, folders_only: bool = False) -> None:
    """Give the owner of a loop the rights back that somebody took away; with ``snapshots`` those to what they hold, too.

    ``folders_only`` looks at no file in them, which costs a large loop little.
    """
    for place in _around(paths):
        give_rights(place)
    for directory, folders, names in os.walk(paths.directory):
        for name in folders:
            give_rights(f"{directory}/{name}")
        if directory.endswith(f"/{ARTIFACTS}") and not snapshots:
            folders.clear()
            continue
        for name in () if folders_only else names:
            give_rights(f"{directory}/{name}", write=f"/{ARTIFACTS}" not in directory)


def _around(paths: LoopPaths) -> tuple[Path, ...]:
    above = () if paths.root == paths.directory else (paths.root, paths.directory.parent)
    return (*above, paths.directory)


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
