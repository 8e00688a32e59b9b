"""Python's bytecode that an earlier program left: whoever decides runs none that is not made from the sources that are there."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from jumar.core import files, leftovers

CACHE: Final = "__pycache__"
_PREFIX: Final = "PYTHONPYCACHEPREFIX"
_AGENTS: Final = "jumar-agents"
_INSTALLED: Final = frozenset({".git", ".jumar", "node_modules", "site-packages", "dist-packages"})
_ENVIRONMENT: Final = ("pyvenv.cfg", "conda-meta")


def is_bytecode(path: str) -> bool:
    """Return whether a relative path is that of Python's bytecode, or of what else is kept in its caches."""
    return path.endswith((".pyc", ".pyo")) or (CACHE in path and CACHE in path.split("/"))


def installed(root: Path, kept: Sequence[str]) -> Callable[[str], bool]:
    """Return what says of a directory (a relative path, a slash behind it) that it is git's, jumar's or of installed packages.

    A directory that holds one of ``kept``, the sorted paths of a snapshot, is the candidate's own work whatever else lies in it.
    """
    top = os.fspath(root)

    def says(path: str) -> bool:
        place = f"{top}/{path}"
        name = path[path.rfind("/", 0, -1) + 1 : -1]
        if name not in _INSTALLED and not any(os.path.lexists(place + name) for name in _ENVIRONMENT):
            return False
        first = bisect_left(kept, path)
        return first == len(kept) or not kept[first].startswith(path)

    return says


def clear_bytecode(
    root: Path, kept: Iterable[str], environment: Mapping[str, str], *, known: Callable[[str, os.stat_result], bool]
) -> None:
    """Delete the bytecode below ``root`` that is not among ``kept``, the relative paths of the snapshot.

    ``known`` says of what else lies there, by its path and stat, that it was there before any program of the loop ran: a module
    without source stays then. So does what belongs to another user. Where ``environment`` has bytecode written elsewhere, that
    of ``root`` is deleted there.
    """
    ours = sorted(kept)
    compiled = {path for path in ours if is_bytecode(path)}
    for path, entry in files.walk(root, prune=installed(root, ours), lenient=True):
        if not is_bytecode(path) or path in compiled:
            continue
        with _not_to_be_run(), contextlib.suppress(FileNotFoundError):
            if CACHE in path.split("/") or not known(path, entry.stat(follow_symlinks=False)):
                _delete(Path(entry.path))
    if prefix := environment.get(_PREFIX):
        for place in {os.fspath(root.absolute()), os.path.realpath(root)}:
            with contextlib.suppress(OSError):
                leftovers.remove_tree(root / prefix / place.lstrip("/"))


@contextlib.contextmanager
def _not_to_be_run() -> Generator[None]:
    """Leave alone what no program can open: its path is too long, or its directory somebody else's."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENAMETOOLONG, errno.EACCES}:
            raise


def _delete(path: Path) -> None:
    """Delete a file. Errors: :class:`jumar.errors.StoreWriteError` for one that is marked immutable, which a person clears."""
    try:
        path.unlink()
    except PermissionError:
        if os.geteuid() not in {0, path.parent.stat().st_uid}:
            return  # the directory is somebody else's, who wrote this too
        with files.as_write_error("remove the bytecode", path):
            path.parent.chmod(stat.S_IMODE(path.parent.stat().st_mode) | stat.S_IRWXU)
            path.unlink()


def agents_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an agent: where bytecode is written elsewhere, it has a place of its own there."""
    prefix = environment.get(_PREFIX)
    return {**environment, _PREFIX: f"{prefix}/{_AGENTS}"} if prefix else dict(environment)
