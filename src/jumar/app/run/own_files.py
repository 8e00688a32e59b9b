"""Files in the working directory that are jumar's own business: the configuration in use, judges' replies, where output goes.

Neither is the work of an iteration. Were they artifacts, putting one back would undo an edit of the configuration, and would
take away the log that ``jumar run > run.log`` is writing at that moment.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

__all__ = ["own_files"]

_OUTPUTS = (1, 2)


def own_files(workdir: Path, config: Path | None, others: Iterable[Path] = ()) -> tuple[str, ...]:
    """Return patterns, in gitignore syntax, for those of these files and of ``others`` that lie below ``workdir``; sorted."""
    known = [*([] if config is None else [config]), *others]
    found = {_pattern(path, workdir) for path in (*_outputs(workdir), *(path.resolve() for path in known))}
    return tuple(sorted(pattern for pattern in found if pattern is not None))


def _outputs(workdir: Path) -> Iterable[Path]:
    """Yield the regular files that standard output and standard error are, found by identity in the top directory."""
    wanted: set[tuple[int, int]] = set()
    for number in _OUTPUTS:
        try:
            status = os.fstat(number)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            wanted.add((status.st_dev, status.st_ino))
    if not wanted:
        return
    for number in _OUTPUTS:
        try:
            yield Path(f"/proc/self/fd/{number}").readlink()
        except OSError:
            continue
    with os.scandir(workdir) as listing:  # where there is no /proc: the usual place is the directory itself
        for entry in listing:
            status = entry.stat(follow_symlinks=False)
            if (status.st_dev, status.st_ino) in wanted:
                yield Path(entry.path)


def _pattern(path: Path, workdir: Path) -> str | None:
    if not path.is_absolute() or not path.is_relative_to(workdir):
        return None
    return "/" + re.sub(r"([\\*?\[\]!# ])", r"\\\1", path.relative_to(workdir).as_posix())
