"""Copies of files: a hole stays a hole, and blocks are shared where the file system can."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from jumar.core.files import read_chunks, write_all

_ZEROS = bytes(1 << 20)
_BLOCK = 4096  # of a file system
_SHARED_FROM = 1 << 16  # bytes: of less it is not worth the call
_FICLONE = 0x40049409  # of Linux: elsewhere there is no such call, and it fails


def write_like(fd: int, source: int, chunks: Iterable[bytes], hear: Callable[[bytes], object] = len) -> None:
    """Write ``chunks``, the content of the file ``source``, into the new file ``fd``; ``hear`` gets each of them.

    Where a file has holes its copy has them too: a sparse one takes no more room than it did. Where the file system can share
    blocks it does, and ``chunks`` are only heard.
    """
    status = os.fstat(source)
    sparse, shared = is_sparse(status), status.st_size >= _SHARED_FROM and _share(fd, source)
    for chunk in chunks:
        hear(chunk)
        if shared:
            continue
        if sparse:
            _write_around_holes(fd, chunk)
        else:
            write_all(fd, chunk)
    if sparse and not shared:
        os.ftruncate(fd, os.lseek(fd, 0, os.SEEK_CUR))


def _share(fd: int, source: int) -> bool:
    """Let the new file ``fd`` have the blocks of ``source`` until one of the two is written; False where that cannot be."""
    try:
        fcntl.ioctl(fd, _FICLONE, source)
    except OSError:
        return False
    return True


def copies_share(directory: Path, other: Path) -> bool:
    """Return whether copies of files from ``directory`` to ``other``, which need not exist, share blocks and take no room."""
    import tempfile

    while not other.exists():
        other = other.absolute().parent
    try:
        if directory.stat().st_dev != other.stat().st_dev:
            return False
        with tempfile.TemporaryFile(dir=directory, buffering=0) as source, tempfile.TemporaryFile(dir=directory) as copy:
            source.write(b"x" * _BLOCK)
            return _share(copy.fileno(), source.fileno())
    except OSError:
        return False


def is_sparse(status: os.stat_result) -> bool:
    """Return whether a file takes less room than it has bytes."""
    return stat.S_ISREG(status.st_mode) and status.st_blocks * 512 < status.st_size


def _write_around_holes(fd: int, chunk: bytes) -> None:
    blocks = (chunk,) if _is_empty(chunk) else (chunk[at : at + _BLOCK] for at in range(0, len(chunk), _BLOCK))
    for empty, same in itertools.groupby(blocks, _is_empty):
        data = b"".join(same)
        if empty:
            os.lseek(fd, len(data), os.SEEK_CUR)
        else:
            write_all(fd, data)


def _is_empty(data: bytes) -> bool:
    return data == _ZEROS[: len(data)]


def copy_alike(source: str | os.PathLike[str], target: str | os.PathLike[str], *, follow_symlinks: bool = True) -> object:
    """Copy a file as :func:`shutil.copy2` does, mode and times included, but leave a hole a hole."""
    status = os.stat(source, follow_symlinks=follow_symlinks)
    if not is_sparse(status) and (status.st_size < _SHARED_FROM or not stat.S_ISREG(status.st_mode)):
        return shutil.copy2(source, target, follow_symlinks=follow_symlinks)
    with open(source, "rb", buffering=0) as reading, open(target, "wb", buffering=0) as writing:
        write_like(writing.fileno(), reading.fileno(), read_chunks(reading.fileno()))
    shutil.copystat(source, target)
    return target


def copy_file(source: Path, target: Path, mode: int = 0o644, hear: Callable[[bytes], object] = len) -> None:
    """Copy a regular file to a name that does not exist; ``hear`` gets each chunk. Nothing is synced; a link is not followed."""
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_like(writing, reading, read_chunks(reading), hear)
            os.fchmod(writing, mode)
        finally:
            os.close(writing)
    finally:
        os.close(reading)
