"""What is known of files that were looked at before."""

from __future__ import annotations

import mmap
import operator
import os
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeVar

_SETTLED_NS: Final = 2_000_000_000
T = TypeVar("T")


class Identity(NamedTuple):
    """What of a file's stat tells whether it changed, under the same names, in a third of the memory."""

    st_dev: int
    st_ino: int
    st_size: int
    st_mtime_ns: int
    st_ctime_ns: int
    st_mode: int

    @classmethod
    def of(cls, status: os.stat_result | Identity) -> Identity:
        return status if isinstance(status, Identity) else cls._make(_FIELDS(status))


_FIELDS: Final = operator.attrgetter(*Identity._fields)  # in C, because it is asked for every file of every snapshot


class FileCache(Generic[T]):
    """What files held that were looked at before, believed while their stat is the same.

    Time stamps are coarse: a file that was written in the two seconds before it was looked at may be written again without a
    visible change, so it is not remembered. Neither is one on a file system of which :func:`times_tell` found that they do not
    tell. In memory only.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Identity, T]] = {}

    def get(self, path: str, status: os.stat_result | Identity) -> T | None:
        """Return what ``path`` held when its stat was last ``status``, or None when that is not known for certain."""
        found = self._known.get(path)
        if found is None:
            return None
        now = status if isinstance(status, Identity) else _FIELDS(status)  # no Identity is made of what is only compared
        return found[1] if found[0] == now else None

    def put(self, path: str, status: os.stat_result | Identity, looked_at: int, held: T) -> None:
        """Remember what a file ``held`` whose stat was ``status`` before and after it was read, from ``looked_at`` (ns) on."""
        settled = max(status.st_mtime_ns, status.st_ctime_ns) <= looked_at - _SETTLED_NS
        if settled and _TELLS.get(status.st_dev, True):
            self._known[path] = (Identity.of(status), held)
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
