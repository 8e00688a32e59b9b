"""A working directory that cannot be read or written as a program left it: made so that it can be brought back.

Directories get the rights back that their owner needs. What is too deep to be named goes. What is new or changed is moved to the
loop's ``quarantine/``, as no snapshot holds it; nothing is copied, so that it may be large, or not to be read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from jumar.core.copying import copy_alike
from jumar.core.files import is_directory, make_directory
from jumar.core.leftovers import give_rights, is_of_the_machine, remove_tree
from jumar.errors import ArtifactError, ConflictError, StoreWriteError
from jumar.loop.snapshots.scan import parents_of
from jumar.loop.workspace.disk_space import disk_is_full

_NAMED: Final = 1_000  # bytes of a relative path: what is deeper may be too deep for where it is moved
_DEEPEST: Final = 100  # directories in one another
_WIDTH: Final = 300


def why_of_the_tree(error: BaseException) -> str | None:
    """Return what is wrong with a tree that cannot be kept, or brought back, because of ``error``; None where it is the disk."""
    known = isinstance(error, ArtifactError | ConflictError | RecursionError | OSError)
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(error, StoreWriteError):
        known = isinstance(cause, OSError)
    # a tree's directories are opened one below the other: too many open files are too many of its directories
    refused = is_of_the_machine(error) and not (isinstance(cause, OSError) and cause.errno == errno.EMFILE)
    if not known or refused or disk_is_full(error):
        return None
    if isinstance(error, RecursionError):
        return "its directories are nested too deeply"
    said = "; ".join(line.strip() for line in str(error).splitlines()[:2])
    return said if len(said) <= _WIDTH else f"{said[: _WIDTH // 2]}…{said[-_WIDTH // 2 :]}"


def readable(tree: Path) -> Callable[[str, OSError], bool]:
    """Return what makes a directory of ``tree`` readable, or takes it away where it is too deep; see ``ArtifactRules.list``."""

    def mend(prefix: str, error: OSError) -> bool:
        if error.errno == errno.ENAMETOOLONG:
            _remove(tree, _shortened(prefix))
            return False
        open_folders(tree, [prefix.rstrip("/")])
        return os.access(tree / prefix, os.R_OK | os.X_OK)

    return mend


def _remove(tree: Path, folder: str) -> None:
    """Delete a directory of ``tree``, and those around it that hold nothing else."""
    remove_tree(tree / folder)
    with contextlib.suppress(OSError):
        while folder := folder.rpartition("/")[0]:
            (tree / folder).rmdir()


def _shortened(path: str) -> str:
    """Return the outermost directory of a path that is too deep to be moved."""
    parts, length = path.split("/"), 0
    for count, part in enumerate(parts, 1):
        length += len(os.fsencode(part)) + 1
        if length > _NAMED or count == _DEEPEST:
            return "/".join(parts[:count])
    return path


def open_folders(tree: Path, folders: Iterable[str]) -> None:
    """Let the owner read, write and enter directories of ``tree`` and those around them; others' are left as they are."""
    for each in sorted({"", *(around for folder in folders for around in parents_of(f"{folder}/"))}, key=len):
        if is_directory(tree / each):
            give_rights(tree / each)


def shallow(tree: Path, paths: Iterable[str]) -> None:
    """Delete directories of ``tree`` that hold one of ``paths`` and are too deep to be opened one below the other."""
    for folder in {_shortened(path) for path in paths if path.count("/") > _DEEPEST}:
        _remove(tree, folder)


def occupied(tree: Path, paths: Iterable[str]) -> list[str]:
    """Return those of ``paths``, files of a snapshot, at which a directory stands."""
    return [path for path in paths if is_directory(tree / path)]


def move_out(tree: Path, paths: Iterable[str], place: Path, *, largest: int | None) -> bool:
    """Move ``paths`` of ``tree`` to the same paths below ``place``; return whether there is anything now.

    A file of more than ``largest`` bytes is left, and so is what cannot be moved. Errors: ``OSError`` of a disk that is full.
    """
    moved = False
    for path in paths:
        source, target = tree / path, place / path
        try:
            status = os.lstat(source)
            if largest is not None and stat.S_ISREG(status.st_mode) and status.st_size > largest:
                continue
            make_directory(target.parent)
            _rename(source, target, status)
        except OSError as error:
            if disk_is_full(error):
                raise
            continue
        moved = True
    return moved


def _rename(source: Path, target: Path, status: os.stat_result) -> None:
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV or not stat.S_ISREG(status.st_mode):
            raise
        copy_alike(source, target, follow_symlinks=False)
        source.unlink()
