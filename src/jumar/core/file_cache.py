"""What is known of files that were looked at before."""

from __future__ import annotations

import mmap
import operator
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

_SETTLED_NS: Final = 2_000_000_000
_Identity = tuple[int, int, int, int, int, int]
T = TypeVar("T")


class FileCache(Generic[T]):
    """What files held that were looked at before, believed while their stat is the same.

    Time stamps are coarse: a file that was written in the two seconds before it was looked at may be written again without a
    visible change, so it is not remembered. Neither is one on a file system of which :func:`times_tell` found that they do not
    tell. In memory only.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Identity, T]] = {}

    def get(self, path: str, status: os.stat_result) -> T | None:
        """Return what ``path`` held when its stat was last ``status``, or None when that is not known for certain."""
        found = self._known.get(path)
        return found[1] if found is not None and found[0] == file_identity(status) else None

    def put(self, path: str, status: os.stat_result, looked_at: int, held: T) -> None:
        """Remember what a file ``held`` whose stat was ``status`` before and after it was read, from ``looked_at`` (ns) on."""
        settled = max(status.st_mtime_ns, status.st_ctime_ns) <= looked_at - _SETTLED_NS
        if settled and _TELLS.get(status.st_dev, True):
            self._known[path] = (file_identity(status), held)
        else:
            self._known.pop(path, None)


_TELLS: Final[dict[int, bool]] = {}
_PAGE: Final = b"0"


def times_tell(directory: Path) -> bool:
    """Return whether every write changes the times of a file in ``directory``; asked once of each file system.

    Where files lie in memory alone (tmpfs), a program that maps a file and reads it first can write it without a trace.
    """
    try:
        device = directory.stat().st_dev
        if device not in _TELLS:
            _TELLS[device] = _write_tells(directory)
        return _TELLS[device]
    except OSError:  # who cannot write there need not fear that others do
        return True


def _write_tells(directory: Path) -> bool:
    import tempfile

    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        file.write(_PAGE)
        os.utime(file.fileno(), ns=(0, 0))
        with mmap.mmap(file.fileno(), len(_PAGE)) as mapped:
            mapped[:] = mapped[:]
            if os.fstat(file.fileno()).st_mtime_ns == 0:
                mapped.flush()  # a file system of the network says so later
        return os.fstat(file.fileno()).st_mtime_ns != 0


# In C, because it is asked for every file of every snapshot.
file_identity: Callable[[os.stat_result], _Identity] = operator.attrgetter(
    "st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns", "st_mode"
)
