"""What is to be kept, looked at before anything is written: folders, names and their stat, without following a link.

Directories are opened one below the other with ``O_NOFOLLOW``, so that no path can leave its root however its parents change
meanwhile, and everything in a folder is looked at by its bare name.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from jumar.core.file_cache import Identity
from jumar.core.text import escape
from jumar.errors import ArtifactError

ALWAYS_OUT: Final = frozenset({".git", ".jumar"})
"""Names that are never part of a snapshot: the repository's own history, and the store."""

RESTORE_PREFIX: Final = ".jumar-tmp-"
"""A restore writes its files into a directory of this name first; one that was killed leaves it behind."""


def parents_of(path: str) -> Iterator[str]:
    """Yield the directories around a relative path, the outermost first, without the root."""
    at = path.find("/")
    while at != -1:
        yield path[:at]
        at = path.find("/", at + 1)


_OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Folder:
    """One directory and those of its entries that are kept. ``path`` is relative, ``""`` for the root itself."""

    path: str
    entries: tuple[tuple[str, Identity], ...]


class OpenFolders:
    """Opens relative directories below ``root`` without ever following a link; keeps only the current chain open.

    Asking in sorted order opens each directory once. Errors of :meth:`open`: ``ArtifactError`` for a link or file in the way, a
    missing or unreadable directory.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._chain: list[tuple[str, int]] = []

    def __enter__(self) -> Self:
        try:
            self._chain.append(("", os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)))
        except OSError as error:
            raise ArtifactError(f"the directory {self._root} cannot be read: {os.strerror(error.errno or 0)}") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        while self._chain:
            os.close(self._chain.pop()[1])

    def open(self, path: str) -> int:
        """Return a descriptor of the directory ``path`` (``""`` is the root); it stays valid until the next call."""
        while not _is_above(self._chain[-1][0], path):
            os.close(self._chain.pop()[1])
        above, fd = self._chain[-1]
        for part in path[len(above) :].strip("/").split("/") if path != above else ():
            above = f"{above}/{part}" if above else part
            try:
                fd = os.open(part, _OPEN_FOLDER, dir_fd=fd)
            except OSError as error:
                raise ArtifactError(_why_not(above, part, fd, error)) from error
            self._chain.append((above, fd))
        return fd


def _is_above(directory: str, path: str) -> bool:
    return not directory or path == directory or path.startswith(directory + "/")


def _why_not(path: str, name: str, parent: int, error: OSError) -> str:
    shown = escape(path)
    if error.errno in {errno.ENOTDIR, errno.ELOOP}:
        try:
            is_link = stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except OSError:
            is_link = False
        if is_link:
            return f"'{shown}' is a symbolic link: name the file where it really is, links are kept and never followed"
        return f"'{shown}' is not a directory"
    if error.errno == errno.ENOENT:
        return f"there is no directory '{shown}'"
    if error.errno == errno.EMFILE:
        return f"'{shown}' is nested too deeply to be read: exclude it"
    return f"the directory '{shown}' cannot be read: {os.strerror(error.errno or 0)}"


def normalise(root: Path, paths: Iterable[str]) -> list[str]:
    """Return ``paths`` relative to ``root``, without ``.`` parts and doubled slashes; absolute ones below ``root`` are allowed.

    Errors: ``ArtifactError`` for ``..``, an absolute path elsewhere, an empty path, or a NUL in it. Nothing is looked up on
    disk but ``root`` itself.
    """
    result: list[str] = []
    anchors: tuple[str, ...] | None = None
    for path in paths:
        if path and path[0] not in "/." and path[-1] != "/" and "/." not in path and "//" not in path and "\0" not in path:
            result.append(path)
            continue
        if not path or "\0" in path:
            raise ArtifactError(f"'{escape(path)}' is not a path")
        relative = path
        if path[0] == "/":
            if anchors is None:
                anchors = (os.path.abspath(root), os.path.realpath(root))
            relative = _below(path, anchors)
        parts = [part for part in relative.split("/") if part not in {"", "."}]
        if ".." in parts:
            raise ArtifactError(f"the artifact '{escape(path)}' leaves its directory with '..': name it relative to {root}")
        result.append("/".join(parts))
    return result


def _below(path: str, anchors: tuple[str, ...]) -> str:
    for anchor in anchors:
        prefix = anchor.rstrip("/") + "/"
        if path.startswith(prefix):
            return path[len(prefix) :]
        if path.rstrip("/") == anchor:
            return "."
    raise ArtifactError(f"the artifact '{escape(path)}' lies outside of {anchors[0]}: only files below it can be kept")


def survey(root: Path, paths: Iterable[str], never: Iterable[Path] = ()) -> list[Folder]:
    """Look at every path and return the folders that hold something to keep, sorted, each entry once.

    A path may be a file, a link, a special file, or a directory, which stands for all below it but :data:`ALWAYS_OUT` and
    ``never``. Errors: ``ArtifactError`` naming the path that is missing, unreadable, or reached through a link.
    """
    wanted: dict[str, list[str]] = {}
    for path in normalise(root, paths):
        folder, _, name = path.rpartition("/")
        if folder in wanted:
            wanted[folder].append(name)
        else:
            wanted[folder] = [name]
    found: dict[str, dict[str, Identity]] = {}
    directories: list[str] = []
    with OpenFolders(root) as folders:
        for folder in sorted(wanted):
            fd = folders.open(folder)
            entries = found[folder] = _look_at(folder, wanted[folder], fd)
            for name in [name for name, status in entries.items() if stat.S_ISDIR(status.st_mode)]:
                del entries[name]
                directories.append(f"{folder}/{name}" if folder else name)
        left_out = {(status.st_dev, status.st_ino) for status in _statuses(never)}
        for directory in directories:
            for folder, entries in _everything_below(directory, folders, left_out):
                found.setdefault(folder, {}).update(entries)
    return [Folder(folder, tuple(sorted(entries.items()))) for folder in sorted(found) if (entries := found.pop(folder))]


def _look_at(folder: str, names: list[str], fd: int) -> dict[str, Identity]:
    name = ""
    try:
        found: dict[str, Identity] = {}
        for name in names:
            found[name] = Identity.of(os.stat(name or ".", dir_fd=fd, follow_symlinks=False))
    except FileNotFoundError as error:
        shown = escape(f"{folder}/{name}" if folder else name)
        raise ArtifactError(f"the artifact '{shown}' does not exist: nothing was recorded") from error
    except OSError as error:
        shown = escape(f"{folder}/{name}" if folder else name)
        raise ArtifactError(f"the artifact '{shown}' cannot be read: {os.strerror(error.errno or 0)}") from error
    return found


def _statuses(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    for path in paths:
        try:
            yield os.stat(path)
        except OSError:
            continue


def _everything_below(
    directory: str, folders: OpenFolders, left_out: set[tuple[int, int]]
) -> Iterator[tuple[str, dict[str, Identity]]]:
    pending = [directory]
    while pending:
        folder = pending.pop()
        fd = folders.open(folder)
        here = os.fstat(fd)
        if (here.st_dev, here.st_ino) in left_out:
            continue
        try:
            names = os.listdir(fd)
        except OSError as error:
            raise ArtifactError(f"the directory '{escape(folder)}' cannot be read: {os.strerror(error.errno or 0)}") from error
        kept = [name for name in names if name not in ALWAYS_OUT and not name.startswith(RESTORE_PREFIX)]
        looked = _look_at(folder, kept, fd)
        below = [name for name, status in looked.items() if stat.S_ISDIR(status.st_mode)]
        pending += [f"{folder}/{name}" if folder else name for name in below]
        yield folder, {name: status for name, status in looked.items() if not stat.S_ISDIR(status.st_mode)}
