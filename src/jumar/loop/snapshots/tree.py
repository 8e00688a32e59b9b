"""A working directory that is looked at and changed without ever following a link.

Every path is walked from the root's descriptor, one name at a time, with ``O_NOFOLLOW``: a directory that is exchanged for a link
between the look and the write makes the write fail, it does not lead it elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from jumar.core.copying import write_like
from jumar.core.files import as_write_error, outdate, read_chunks, sha256_bytes, sha256_chunks
from jumar.core.text import escape
from jumar.errors import ConflictError, UsageError
from jumar.model.records import ArtifactDetail

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_A_DIRECTORY = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


class Look(NamedTuple):
    """What was found at a path.

    ``detail`` is None when neither a file nor a link nor anything special stands there: nothing does, or a directory, or one
    of the parents is no directory. ``stamp`` changes whenever the file does; it is None exactly when ``detail`` is.
    """

    detail: ArtifactDetail | None
    stamp: tuple[int, ...] | None


NOTHING = Look(None, None)


def same(one: ArtifactDetail | None, other: ArtifactDetail | None) -> bool:
    """Return whether two looks, or a look and a manifest entry, describe the same thing: kind, content, and a file's mode."""
    if one is None or other is None:
        return one is other
    if one.kind != other.kind or one.kind == "special":
        return False
    if one.kind == "symlink":
        return one.target == other.target
    return (one.content_hash, one.mode) == (other.content_hash, other.mode)


_MTIME = 3


@contextlib.contextmanager
def _none_there(*others: int) -> Generator[None]:
    """End the body where a name on the way is missing or no real directory, and at ``others`` of the errors."""
    try:
        yield
    except OSError as error:
        if error.errno not in {*_NOT_A_DIRECTORY, *others}:
            raise


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)


class Tree:
    """A context manager around an open root. ``touched`` turns True with the first call that may have changed something."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.touched = False
        self._fd = -1
        self._unsynced: set[str] = set()

    def __enter__(self) -> Self:
        try:
            self._fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            message = f"the working directory {escape(str(self.root))} cannot be opened: {os.strerror(error.errno or 0)}"
            raise UsageError(message) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._fd)
        self._fd = -1

    # ---- looking

    @contextlib.contextmanager
    def _directory(self, path: str) -> Generator[int]:
        """Open the directory at ``path`` ("" is the root). Raises ``OSError`` when a name on the way is no real directory."""
        fd = os.dup(self._fd)
        try:
            for name in filter(None, path.split("/")):
                below = os.open(name, _DIRECTORY, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _parent(self, path: str) -> Generator[tuple[int, str]]:
        directory, _, name = path.rpartition("/")
        with self._directory(directory) as fd:
            yield fd, name

    @contextlib.contextmanager
    def _reading(self, path: str) -> Generator[None]:
        """What cannot be read is refused; where a name on the way is no directory, the body ends, and there is nothing."""
        try:
            with _none_there():
                yield
        except OSError as error:
            message = f"cannot read {escape(path)} in {escape(str(self.root))}: {os.strerror(error.errno or 0)}"
            raise UsageError(message) from error

    def look(self, path: str) -> Look:
        """Return what stands at ``path``, with its content hashed. Errors: :class:`UsageError` when it cannot be read."""
        with self._reading(path), self._parent(path) as (fd, name):
            return _look(fd, name, path)
        return NOTHING

    def open(self, path: str) -> int:
        """Return a descriptor of what stands at ``path``, to read it. Errors: ``OSError``, for a link or ``..`` anywhere too."""
        if ".." in path.split("/"):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        with self._parent(path) as (fd, name):
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)

    def stamp(self, path: str) -> tuple[int, ...] | None:
        """Return the stamp of a file or link, without reading it; None where :meth:`look` finds nothing."""
        with self._reading(path), self._parent(path) as (fd, name):
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            return None if stat.S_ISDIR(found.st_mode) else _stamp(found)
        return None

    def directory_mode(self, path: str) -> int | None:
        """Return the permission bits of the directory at ``path``, or None when there is no real directory."""
        with self._reading(path), self._directory(path) as fd:
            return stat.S_IMODE(os.fstat(fd).st_mode)
        return None

    def listing(self, path: str) -> dict[str, bool]:
        """Return the names in the directory at ``path``, each with whether it is a real directory."""
        with self._reading(path), self._directory(path) as fd, os.scandir(fd) as entries:
            return {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        return {}

    # ---- changing

    def remove(self, path: str, stamp: tuple[int, ...] | None) -> None:
        """Delete the file or link at ``path`` if it is still the one with ``stamp``. Errors: :class:`ConflictError`."""
        self._check(path, stamp)
        with as_write_error("remove", self.root / path), self._parent(path) as (fd, name):
            self._touch(path)
            os.unlink(name, dir_fd=fd)

    def place(self, path: str, staged: Path, stamp: tuple[int, ...] | None, fallback: str) -> None:
        """Move ``staged`` to ``path`` if what stands there is still what had ``stamp``. Errors: :class:`ConflictError`.

        ``fallback`` is the name of the temporary file beside the target that is needed when ``staged`` is on another file system.
        """
        self._check(path, stamp)
        with as_write_error("write", self.root / path):
            try:
                with self._parent(path) as (fd, name):
                    self._touch(path)
                    if stamp is not None:
                        outdate(staged, stamp[_MTIME] / 1e9)
                    _move(staged, fd, name, fallback)
            except OSError as error:
                if error.errno in {*_NOT_A_DIRECTORY, errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST}:
                    raise ConflictError(f"the way to {escape(path)} changed at this moment; it was left alone") from error
                raise

    def make_directory(self, path: str) -> None:
        """Create the directory at ``path``; its parent exists. One that is there already is fine."""
        with as_write_error("create", self.root / path), self._parent(path) as (fd, name):
            self._touch(path)
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=fd)

    def set_directory_mode(self, path: str, mode: int) -> None:
        """Give the directory at ``path`` its permission bits; a missing one is fine."""
        with as_write_error("set the mode of", self.root / path), _none_there(), self._directory(path) as fd:
            os.fchmod(fd, mode)

    def drop_directory(self, path: str) -> None:
        """Remove the directory at ``path`` if it is there and empty; one with something in it stays."""
        stays = _none_there(errno.ENOTEMPTY, errno.EEXIST)
        with as_write_error("remove", self.root / path), stays, self._parent(path) as (fd, name):
            self._touch(path)
            os.rmdir(name, dir_fd=fd)

    def sweep(self, paths: Mapping[str, object], name: str) -> None:
        """Delete temporary files called ``name`` that an interrupted :meth:`place` left beside ``paths``."""
        for directory in sorted({path.rpartition("/")[0] for path in paths}):
            with as_write_error("remove", self.root / directory / name), _none_there(), self._directory(directory) as fd:
                os.unlink(name, dir_fd=fd)

    def sync(self) -> None:
        """Make every name that was changed durable."""
        for directory in sorted(self._unsynced):
            with as_write_error("sync", self.root / directory), _none_there(), self._directory(directory) as fd:
                os.fsync(fd)
        self._unsynced.clear()

    def _touch(self, path: str) -> None:
        self.touched = True
        self._unsynced.add(path.rpartition("/")[0])

    def _check(self, path: str, stamp: tuple[int, ...] | None) -> None:
        if self.stamp(path) != stamp:
            raise ConflictError(f"{escape(path)} changed at this moment; it was left alone")


def _look(fd: int, name: str, path: str) -> Look:
    found = os.stat(name, dir_fd=fd, follow_symlinks=False)
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISDIR(found.st_mode):
        return NOTHING
    if stat.S_ISLNK(found.st_mode):
        target = os.readlink(name, dir_fd=fd)
        digest = sha256_bytes(os.fsencode(target))
        detail = ArtifactDetail(path=path, kind="symlink", content_hash=digest, mode=mode, size=found.st_size, target=target)
        return Look(detail, _stamp(found))
    if not stat.S_ISREG(found.st_mode):
        return Look(ArtifactDetail(path=path, kind="special", mode=mode, skipped="not a regular file"), _stamp(found))
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    try:
        opened = os.fstat(file)
        digest, size = sha256_chunks(read_chunks(file))
    finally:
        os.close(file)
    return Look(ArtifactDetail(path=path, content_hash=digest, mode=mode, size=size), _stamp(opened))


def _move(staged: Path, fd: int, name: str, fallback: str) -> None:
    try:
        os.rename(staged, name, dst_dir_fd=fd)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy_across(staged, fd, name, fallback)


def _copy_across(staged: Path, fd: int, name: str, temporary: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=fd)
    if staged.is_symlink():
        os.symlink(os.readlink(staged), temporary, dir_fd=fd)
    else:
        source = os.open(staged, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _copy_to_new(source, fd, temporary)
        finally:
            os.close(source)
    os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
    staged.unlink()


def _copy_to_new(source: int, fd: int, name: str) -> None:
    target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=fd)
    try:
        write_like(target, source, read_chunks(source))
        os.fchmod(target, stat.S_IMODE(os.fstat(source).st_mode))
        os.fsync(target)
    finally:
        os.close(target)
