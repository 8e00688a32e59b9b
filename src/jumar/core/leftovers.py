"""What a process that is killed leaves behind: temporaries that name their maker, and removing them.

Every file and directory that jumar makes under another name before it gets its own is called ``.tmp-MACHINE-PID-RANDOM``, so that
whoever comes by can tell one that is in the making from one that nobody will finish, without a lock.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import re
import secrets
import shutil
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_OF_THE_MACHINE: Final = frozenset(
    {
        *(errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EROFS, errno.ENOSPC, errno.EDQUOT),
        *(errno.ENOMEM, errno.ENFILE, errno.EMFILE),
    }
)
"""Errors of a disk or of the system: they say nothing about what a program wrote, and may be gone at the next try."""


def give_rights(path: str | Path, *, write: bool = True) -> bool:
    """Let the owner read and ``write`` a file, and enter a directory; return whether that was needed.

    What is somebody else's, or a link, is left as it is. An ACL that closes whatever is made in a directory is taken away.
    """
    given = False
    with contextlib.suppress(OSError):
        mode = os.lstat(path).st_mode
        needed = stat.S_IRWXU if stat.S_ISDIR(mode) else stat.S_IRUSR | (stat.S_IWUSR if write else 0)
        if not stat.S_ISLNK(mode) and mode & needed != needed:
            os.chmod(path, stat.S_IMODE(mode) | needed)
            given = True
        if stat.S_ISDIR(mode) and _closes_what_is_made(path):
            os.removexattr(path, _DEFAULT_ACL, follow_symlinks=False)
            given = True
    return given


_DEFAULT_ACL: Final = "system.posix_acl_default"
_ACL_ENTRY: Final = struct.Struct("<HHI")  # tag, rights, whose
_ACL_OWNER: Final = 1


def _closes_what_is_made(directory: str | Path) -> bool:
    """Whether a default ACL gives the owner too few rights to what is made in a directory: Linux, the ACLs of POSIX."""
    if not hasattr(os, "getxattr"):
        return False
    try:
        acl = os.getxattr(directory, _DEFAULT_ACL, follow_symlinks=False)
    except OSError:
        return False
    return any(tag == _ACL_OWNER and rights != stat.S_IRWXO for tag, rights, _ in _ACL_ENTRY.iter_unpack(acl[4:]))


def is_of_the_machine(error: BaseException | None) -> bool:
    """Return whether ``error``, or what it was raised from, is the machine's, so that no candidate may be blamed for it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
            return True
        error = error.__cause__
    return False


TEMPORARY: Final = ".tmp-"
_NAME: Final = re.compile(r"\.tmp-([0-9a-f]{8})-([0-9]{1,10})-[0-9a-f]{12}\Z")
_WHERE: Final = ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid")


@functools.cache
def _machine() -> str:
    """Return what tells apart those who count processes for themselves: machines since they were started, containers."""
    parts = [os.uname().nodename]
    with contextlib.suppress(OSError):
        parts += [Path(_WHERE[0]).read_text(encoding="ascii"), str(Path(_WHERE[1]).readlink())]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:8]


def temporary_name() -> str:
    """Return a new name for what this process makes."""
    return f"{TEMPORARY}{_machine()}-{os.getpid()}-{secrets.token_hex(6)}"


def sweep(directory: Path) -> None:
    """Remove from ``directory`` the temporaries of processes of this machine that are gone. What cannot be removed stays."""
    with contextlib.suppress(OSError):
        for path in directory.iterdir():
            found = _NAME.search(path.name)
            if found is not None and found[1] == _machine() and not _lives(int(found[2])):
                with contextlib.suppress(OSError):
                    remove_any(path)


@functools.lru_cache(maxsize=256)
def sweep_once(directory: Path) -> None:
    """As :func:`sweep`, the first time that this process writes there."""
    sweep(directory)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def remove_tree(path: Path) -> None:
    """Delete ``path`` and all below it, read-only or deep as it may be. What is missing, or vanishes meanwhile, is gone too."""
    try:
        _remove_forbidden(path)
    except RecursionError:
        _remove_deep(path)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        _remove_deep(path)


def folders_of(root: str | os.PathLike[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each directory from ``root`` on, its directories, its other names, as ``os.walk`` does, without what cannot be read.

    However deep they lie: that of Python 3.11 calls itself for each level. Who asks may take directories out of the list.
    """
    pending = [os.fspath(root)]
    while pending:
        directory = pending.pop()
        try:
            with os.scandir(directory) as listing:
                entries = {entry.name: entry.is_dir(follow_symlinks=False) for entry in listing}
        except OSError:
            continue
        folders = [name for name, is_folder in entries.items() if is_folder]
        yield directory, folders, [name for name, is_folder in entries.items() if not is_folder]
        pending += [f"{directory}/{name}" for name in reversed(folders)]


def _remove_deep(path: Path) -> None:
    """Rename each directory to the top of the tree before it is looked into."""
    top = os.fspath(path)
    todo = [top]
    while todo:
        directory = todo.pop()
        Path(directory).chmod(0o700)
        with os.scandir(directory) as listing:
            entries = list(listing)
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                Path(entry.path).unlink()
            elif directory == top:
                todo.append(entry.path)
            else:
                Path(entry.path).chmod(0o700)
                todo.append(f"{top}/{temporary_name()}")
                Path(entry.path).rename(todo[-1])
        if directory != top:
            Path(directory).rmdir()
    path.rmdir()


def _remove_forbidden(path: Path) -> None:
    try:
        _remove_tree(path)
    except PermissionError:
        # It is the directory's mode that forbids it; a file's may be shared with a hard link elsewhere and stays as it is.
        path.chmod(0o700)
        for directory, names, _ in folders_of(path):
            for name in names:
                Path(directory, name).chmod(0o700)
        _remove_tree(path)


def _remove_tree(path: Path) -> None:
    def unless_gone(_function: object, _name: str, error: BaseException) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    if sys.version_info >= (3, 12):
        shutil.rmtree(path, onexc=unless_gone)
    else:
        shutil.rmtree(path, onerror=lambda function, name, info: unless_gone(function, name, info[1]))


def remove_any(path: Path) -> None:
    """Delete a file, a link, or a directory and all below it. A missing path is fine."""
    if not path.is_symlink() and path.is_dir():  # a link may lead where nobody may look
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)
