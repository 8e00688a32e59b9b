"""What is known of files that were looked at before."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Final, Generic, TypeVar

_SETTLED_NS: Final = 2_000_000_000
_Identity = tuple[int, int, int, int, int, int]
T = TypeVar("T")


class FileCache(Generic[T]):
    """What files held that were looked at before, believed while their stat is the same.

    Time stamps are coarse: a file that was written in the two seconds before it was looked at may be written again without a
    visible change, so it is not remembered. In memory only.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Identity, T]] = {}

    def get(self, path: str, status: os.stat_result) -> T | None:
        """Return what ``path`` held when its stat was last ``status``, or None when that is not known for certain."""
        found = self._known.get(path)
        return found[1] if found is not None and found[0] == file_identity(status) else None

    def put(self, path: str, status: os.stat_result, looked_at: int, held: T) -> None:
        """Remember what a file ``held`` whose stat was ``status`` before and after it was read, from ``looked_at`` (ns) on."""
        if max(status.st_mtime_ns, status.st_ctime_ns) <= looked_at - _SETTLED_NS:
            self._known[path] = (file_identity(status), held)
        else:
            self._known.pop(path, None)


# In C, because it is asked for every file of every snapshot.
file_identity: Callable[[os.stat_result], _Identity] = operator.attrgetter(
    "st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns", "st_mode"
)
