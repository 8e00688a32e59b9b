"""Files as records know them: what is in them, whether they are still that, and copies that are."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path
from typing import Final

from jumar.cases.records import RoleFile
from jumar.core import copying, files
from jumar.core.file_cache import FileCache, times_tell
from jumar.core.leftovers import is_of_the_machine, remove_any

_HASHES: Final = FileCache[str]()


def role_file(path: Path, shown: str) -> RoleFile | None:
    """Return what is in ``path``, recorded as ``shown``; None when it is no regular file. A link is not followed."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    sha256 = _HASHES.get(os.fspath(path), status)
    if sha256 is None:
        times_tell(path.parent)
        looked_at = time.time_ns()
        sha256 = files.sha256_file(path)
        _HASHES.put(os.fspath(path), os.lstat(path), looked_at, sha256)
    return RoleFile(path=shown, sha256=sha256, size=status.st_size)


def is_as_recorded(directory: Path, file: RoleFile) -> bool:
    """Return whether a file of ``directory`` is what was recorded; of one that has another size nothing is read.

    Errors: :class:`jumar.errors.StoreWriteError` of a machine that refuses to read it.
    """
    path = directory / file.path
    try:
        return os.lstat(path).st_size == file.size and role_file(path, file.path) == file
    except OSError as error:
        if is_of_the_machine(error):
            with files.as_write_error("read", path):
                raise
        return False


def copy_as_recorded(source: bytes | Path, target: Path, file: RoleFile, mode: int = 0o644) -> bool:
    """Write ``source``, or copy it, to a name that does not exist; False, and no file, where it is not what was recorded.

    What is compared is what was copied, so that nobody can change it in between. Errors: ``OSError`` of the machine.
    """
    if isinstance(source, bytes):
        if files.sha256_bytes(source) != file.sha256:
            return False
        target.write_bytes(source)
        target.chmod(mode)
        return True
    digest = hashlib.sha256()
    try:
        if os.lstat(source).st_size == file.size:
            copying.copy_file(source, target, mode, digest.update)
            if digest.hexdigest() == file.sha256:
                return True
            remove_any(target)
    except OSError as error:
        if is_of_the_machine(error):
            raise
    return False
