"""What stands in the place of a loop's directories and was not made by jumar: moved to ``quarantine/``, never gone through.

Directories that were closed to their owner are open again. And a loop leaves its root: one rename takes it out of everybody's
sight, then it is deleted. Killed before the rename, the loop is whole; after it, what is left is under a name that no command
takes for a loop, and the next run or removal deletes it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from pathlib import Path
from typing import Final

from jumar.core import files
from jumar.core.files import as_write_error, remove_tree, rename_new
from jumar.core.refusals import give_rights
from jumar.loop.store.layout import LoopPaths, loops_directory, natural
from jumar.loop.store.staging import ARTIFACTS, QUARANTINE

__all__ = ["move_aside", "next_place", "open_to_owner", "replaced", "take_away", "tidy_removed"]

_LONGEST: Final = 200  # bytes of a name that a number comes before, so that a name as long as there can be fits


def replaced(paths: LoopPaths) -> list[str]:
    """Move away what is no directory of ours: what is written or deleted through a link may be a person's; return what to tell.

    Those that are ours and were closed are opened. The caller holds the lock.
    """
    places = (*paths.subdirectories, paths.checks, paths.recheck)
    closed = [place for place in (*_around(paths), *places) if files.is_directory(place) and give_rights(place)]
    told = [f"{place.name} was closed to its owner, and is open again" for place in closed]
    wrong = [place for place in places if os.path.lexists(place) and not files.is_directory(place)]
    return told + [f"{place.name} was no directory of jumar's: it lies in {move_aside(paths, place)} now" for place in wrong]


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


def next_place(directory: Path, name: str = "") -> Path:
    """Return the next numbered place in a directory where nothing lies yet: ``0003-NAME``, without a name ``0003``."""
    taken = (natural(other.partition("-")[0]) for other in os.listdir(directory))
    first = max((each for each in taken if each is not None), default=0) + 1
    suffix = name and "-" + os.fsdecode(os.fsencode(name)[:_LONGEST])
    places = (directory / f"{number:04d}{suffix}" for number in itertools.count(first))
    return next(place for place in places if not os.path.lexists(place))


def move_aside(paths: LoopPaths, path: Path) -> str:
    """Move ``path`` to ``quarantine/`` and return where it lies in the loop."""
    directory = paths.directory / QUARANTINE
    if os.path.lexists(directory) and not files.is_directory(directory):
        os.rename(directory, paths.directory / files.temporary_name())
    files.make_directory(directory)
    place = next_place(directory, path.name)
    os.rename(path, place)
    return f"{QUARANTINE}/{place.name}"


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
