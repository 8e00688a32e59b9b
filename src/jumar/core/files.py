"""The few file-system moves that everything durable is made of.

Each one says what is true when it returns, and what may be true when it raises. The rules come from ``docs/design/store.md``:
a name that must never be overwritten is created with ``link(2)``; a view is replaced by ``rename(2)``; nothing is
acknowledged before its parent directory was synced; and an error of a rename or a link is not believed until the
directory was looked at, because the call may have happened and its answer been lost.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import hashlib
import itertools
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path

from jumar.core.leftovers import folders_of, is_of_the_machine, sweep_once, temporary_name
from jumar.errors import ArtifactError, StoreDamagedError, StoreWriteError

_CHUNK = 1 << 20
_SMALL = 1 << 16
LARGEST = 1 << 30
"""Bytes that a file which is read at once may have: many times what the largest manifest or log has."""
_MOST_HASHED = 16 << 30
_LOCK_POLL = 0.01  # seconds
_SYNCFS_FROM = 24  # above this many directory entries one syncfs is cheaper than single fsyncs


@contextlib.contextmanager
def as_write_error(what: str, path: Path) -> Generator[None]:
    """Turn an ``OSError`` of the body into a :class:`StoreWriteError` that names the file and the way out."""
    try:
        yield
    except OSError as error:
        raise StoreWriteError(_refusal(what, path, error)) from error


def _refusal(what: str, path: Path, error: OSError) -> str:
    hints = {
        errno.ENOSPC: "the disk is full: free some space and run the command again",
        errno.EDQUOT: "the disk quota is used up: free some space and run the command again",
        errno.EROFS: "the file system is read-only: remount it or choose another folder",
        errno.EACCES: "permission denied: check the owner and mode, or choose another folder",
        errno.EPERM: "not permitted: check the owner, mode and attributes, or choose another folder",
    }
    reason = hints.get(error.errno or 0, f"{os.strerror(error.errno or 0)}: run the command again, then `jumar verify`")
    return f"could not {what} {path}: {reason}"


def fsync_directory(path: Path) -> None:
    """Make the names in ``path`` durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directory(path: Path) -> None:
    """Create ``path`` and its missing parents, each of them durable. An existing directory is fine."""
    missing: list[Path] = []
    current = path
    while not current.exists():
        missing.append(current)
        current = current.parent
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
        fsync_directory(directory.parent)


def write_all(fd: int, data: bytes | bytearray) -> None:
    """Write all of ``data``, however few bytes a single call takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_chunks(fd: int) -> Iterator[bytes]:
    """Yield what is left of a file's content."""
    while chunk := os.read(fd, _CHUNK):
        yield chunk


def chunks_of(path: str | Path) -> Iterator[bytes]:
    """Yield the content of the file at ``path``; a link is not followed, and a FIFO not waited for."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield from read_chunks(fd)
    finally:
        os.close(fd)


def _write_temporary(directory: Path, data: bytes, mode: int) -> Path:
    sweep_once(directory)
    temporary = directory / temporary_name()
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        write_all(fd, data)
        os.fsync(fd)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    finally:
        os.close(fd)
    return temporary


def write_once(path: Path, data: bytes, *, temporary_in: Path | None = None) -> None:
    """Create ``path`` with ``data``, whole and durable, or raise ``FileExistsError`` and leave what is there.

    After any other error the file is either whole or absent. ``temporary_in`` is where the temporary lies meanwhile, by default
    beside ``path``: a process that is killed leaves it there, which a directory that is about to become immutable should not
    hold.
    """
    temporary = _write_temporary(temporary_in or path.parent, data, 0o644)
    try:
        try:
            os.link(temporary, path)
        except OSError:
            if not _same_file(temporary, path):
                raise
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    fsync_directory(path.parent)


def replace_file(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Set the content of ``path`` to ``data`` in one step; readers see the old or the new content, never a part."""
    temporary = _write_temporary(path.parent, data, mode)
    try:
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    fsync_directory(path.parent)


def write_named(path: Path, data: bytes) -> None:
    """Write where a person said: a file is replaced in one step; what is none, such as a device or a pipe, is written into."""
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            stream.write(data)
    else:
        replace_file(path, data)


def rename_new(source: Path, target: Path) -> None:
    """Rename the directory ``source`` to ``target``, which must not exist, and make both parents durable.

    The caller holds the lock: between the look and the rename nobody else may create ``target``. An error is believed
    only when ``source`` is still where it was.
    """
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    identity = os.lstat(source)
    try:
        os.rename(source, target)
    except OSError:
        if not _is_inode(target, identity):
            raise
    fsync_directory(target.parent)
    if source.parent != target.parent:
        fsync_directory(source.parent)


def _same_file(one: Path, other: Path) -> bool:
    try:
        return _is_inode(other, os.lstat(one))
    except OSError:
        return False


def _is_inode(path: Path, identity: os.stat_result) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (identity.st_dev, identity.st_ino)


def wait_for_lock(fd: int, patience: float, how: int = fcntl.LOCK_EX) -> bool:
    """Take the ``flock`` of ``fd``; return False when another holder kept it for ``patience`` seconds.

    ``how`` may be ``LOCK_SH``. Errors: ``OSError`` of a file system without locks.
    """
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
                raise
            if time.monotonic() >= until:
                return False
            time.sleep(_LOCK_POLL)
        else:
            return True


def sync_tree(root: Path, *, entries: int = 0) -> None:
    """Make every file and directory below ``root`` durable, ``root`` itself included.

    ``entries`` is how many there are at least, where the caller knows: a large tree is then synced without being listed.
    """
    if entries > _SYNCFS_FROM and _syncfs(root):
        return
    directories: list[Path] = [root]
    regular: list[Path] = []
    for directory, names, files in folders_of(root):
        directories += [Path(directory, name) for name in names]
        regular += [Path(directory, name) for name in files]
    if len(directories) + len(regular) > _SYNCFS_FROM and _syncfs(root):
        return
    for file in regular:
        _fsync_if_regular(file)
    for directory in reversed(directories):
        fsync_directory(directory)


def sync_paths(root: Path, paths: Iterable[Path]) -> None:
    """Make ``paths`` below ``root``, and the names of them and of their directories, durable."""
    listed = list(paths)
    directories = {root}
    for folder in {path.parent for path in listed}:  # many paths have few folders
        above = itertools.takewhile(lambda each: each not in directories and each.is_relative_to(root), (folder, *folder.parents))
        directories.update([*above])
    if len(listed) + len(directories) > _SYNCFS_FROM and _syncfs(root):
        return
    for path in listed:
        _fsync_if_regular(path)
    for directory in directories:
        fsync_directory(directory)


def _fsync_if_regular(path: Path) -> None:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@functools.cache
def _syncfs_function() -> Callable[[int], int] | None:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


def _syncfs(root: Path) -> bool:
    """Sync the whole file system of ``root``; False where the platform has no such call."""
    function = _syncfs_function()
    if function is None:
        return False
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if function(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(root))
    finally:
        os.close(fd)
    return True


def sha256_bytes(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a regular file's content in hexadecimal; a link is not followed."""
    return sha256_chunks(chunks_of(path))[0]


def digest_of(path: Path) -> str:
    """Return :func:`sha256_file`; of a file of so many bytes that a hole must have made them, only how many there are."""
    size = os.stat(path, follow_symlinks=False).st_size
    return f"{size} bytes" if size > _MOST_HASHED else sha256_file(path)


def sha256_chunks(chunks: Iterable[bytes]) -> tuple[str, int]:
    """Return the SHA-256 of what ``chunks`` are together, in hexadecimal, and how many bytes that is."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def content_of(path: str | Path) -> bytes | None:
    """Return the content of a regular file; None when there is none, and for a link, a FIFO or a directory."""
    try:
        return read_bytes(os.fspath(path))
    except (OSError, ValueError):  # also a path that holds a NUL
        return None


def holds(path: str | Path, content: bytes | None) -> bool:
    """Return whether :func:`content_of` a path is ``content``; what the machine refuses to read counts as unchanged."""
    try:
        return read_bytes(os.fspath(path)) == content
    except (OSError, ValueError) as error:
        return content is None or is_of_the_machine(error)


def names_in(directory: str | Path) -> list[str]:
    """Return the names in a directory. Errors: ``OSError``, for a link to one too."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)


def is_directory(path: str | Path) -> bool:
    """Return whether a directory stands at ``path``: one itself, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


_READS = stat.S_IRUSR | stat.S_IXUSR


def walk(
    root: Path, *, prune: Callable[[str], bool] | None = None, lenient: bool = False
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield ``(relative POSIX path, entry)`` for everything below ``root`` that is not a directory, sorted by name.

    Links are yielded, never followed, so the walk cannot leave ``root``. ``prune`` gets the relative path of a directory with a
    trailing slash and returns True to skip it. ``lenient``: a directory that its owner may not read is open to him as long as the
    walk takes, since a program may find by its name what no list shows; one that cannot be read even so is passed over.
    """
    pending: list[tuple[str, str]] = [("", os.fspath(root))]
    with contextlib.ExitStack() as closing:
        while pending:
            prefix, directory = pending.pop()
            if lenient:
                _open_for_now(directory, closing)
            try:
                with os.scandir(directory) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError:
                if not lenient:
                    raise
                continue
            below: list[tuple[str, str]] = []
            for entry in entries:
                relative = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if prune is None or not prune(relative + "/"):
                        below.append((relative + "/", entry.path))
                else:
                    yield relative, entry
            pending.extend(reversed(below))


def _open_for_now(directory: str, closing: contextlib.ExitStack) -> None:
    """Let the owner list and enter a directory until ``closing`` ends."""

    def close(mode: int) -> None:
        with contextlib.suppress(OSError):
            os.chmod(directory, mode)

    with contextlib.suppress(OSError):
        mode = os.lstat(directory).st_mode
        if mode & _READS != _READS and stat.S_ISDIR(mode):
            os.chmod(directory, stat.S_IMODE(mode) | _READS)
            closing.callback(close, stat.S_IMODE(mode))


def outdate(path: str | Path, replaced: float) -> None:
    """Give the new file ``path`` a time in another second than ``replaced``, the time of the file whose place it will take.

    Who goes by times and sizes, as Python does with its bytecode, would take the one for the other. It is the next second, so
    that ``make`` sees a newer file too. A link is left alone.
    """
    found = os.lstat(path)
    if stat.S_ISREG(found.st_mode) and int(found.st_mtime) == int(replaced):
        os.utime(path, (found.st_atime, int(replaced) + 1))


def is_inside(path: Path, root: Path) -> bool:
    """Return whether ``path`` lies below ``root`` once ``..`` and links of its *parents* are resolved."""
    parent, anchor = Path(os.path.realpath(path.parent)), Path(os.path.realpath(root))
    return (parent == anchor or anchor in parent.parents) and path.name not in {"", ".", ".."}


def free_bytes(path: Path) -> int:
    """Return how many bytes an unprivileged process may still write where ``path`` (or its nearest parent) lies."""
    current = path
    while not current.exists():
        current = current.parent
    return shutil.disk_usage(current).free


def check_names(paths: Iterable[str]) -> None:
    """Refuse relative paths that would leave their root when joined to it: absolute, empty, or with ``..``."""
    for path in paths:
        if not path or path.startswith("/") or "\0" in path or any(part in {"", ".", ".."} for part in path.split("/")):
            raise ArtifactError(f"the path {path!r} would leave its directory")


def read_bytes(path: str | os.PathLike[str], *, links: bool = False) -> bytes:
    """Return a regular file's content; errors are ``OSError``. Faster than ``Path.read_bytes`` for ten thousand small files.

    What else lies there is no file of ours, and may never come to an end: a link (unless ``links`` are a person's to make), a
    FIFO, a device, a file that is larger than :data:`LARGEST`, which a hole makes out of nothing.
    """
    fd = os.open(path, os.O_RDONLY | (0 if links else os.O_NOFOLLOW) | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size = _size_of_regular(fd, path)
        if size > LARGEST:
            raise OSError(errno.EINVAL, f"it has {size:,} bytes, more than a file of jumar's can have", os.fspath(path))
        chunk = os.read(fd, _SMALL)
        return chunk if len(chunk) < _SMALL else b"".join([chunk, *read_chunks(fd)])
    finally:
        os.close(fd)


def read_named(path: Path) -> str:
    """Return the text of a file that a person named; errors are ``OSError`` and ``UnicodeDecodeError``.

    A program may have put a FIFO there meanwhile: only a pipe of the shell's (``/dev/fd/63``) is waited for.
    """
    data = path.read_bytes() if path.is_relative_to("/dev") else read_bytes(path, links=True)
    return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def read_from(path: str | os.PathLike[str], begin: int) -> bytes:
    """Return what a regular file holds from ``begin`` on, from its end where that is negative; errors as :func:`read_bytes`."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size = _size_of_regular(fd, path)
        place = begin if begin >= 0 else max(0, size + begin)
        if size - place > LARGEST:
            raise OSError(errno.EINVAL, f"it has {size:,} bytes, more than a file of jumar's can have", os.fspath(path))
        os.lseek(fd, place, os.SEEK_SET)
        return b"".join(read_chunks(fd))
    finally:
        os.close(fd)


def _size_of_regular(fd: int, path: str | os.PathLike[str]) -> int:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
    return status.st_size


def read_store_file(path: str | Path) -> bytes:
    """Return the content of a file that has to be there. Errors: :class:`StoreDamagedError` when it isn't, or can't be read."""
    try:
        return read_bytes(os.fspath(path))
    except OSError as error:
        reason = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise StoreDamagedError(f"{path} {reason}; `jumar verify` lists what is damaged") from error


class UnreadableFileError(Exception):
    """A file is there and must not be read, or cannot be; the message is a sentence."""
