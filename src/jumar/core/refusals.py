"""What the system refuses: whose fault that is, and giving the owner of a file the rights back that somebody took away."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
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

    What is somebody else's, or a link, is left as it is.
    """
    with contextlib.suppress(OSError):
        mode = os.lstat(path).st_mode
        needed = stat.S_IRWXU if stat.S_ISDIR(mode) else stat.S_IRUSR | (stat.S_IWUSR if write else 0)
        if not stat.S_ISLNK(mode) and mode & needed != needed:
            os.chmod(path, stat.S_IMODE(mode) | needed)
            return True
    return False


def is_of_the_machine(error: BaseException | None) -> bool:
    """Return whether ``error``, or what it was raised from, is the machine's, so that no candidate may be blamed for it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
            return True
        error = error.__cause__
    return False
