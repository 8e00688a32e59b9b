"""Giving the owner of a file or directory the rights back that somebody took away."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

__all__ = ["give_rights"]


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
