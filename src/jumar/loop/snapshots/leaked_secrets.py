"""Known secrets in the files of a snapshot: those are never altered, so that a person is told, by path and name."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from jumar.core.redaction import Redactor, current
from jumar.core.text import escape

_CHUNK: Final = 1 << 20
_SHOWN: Final = 5


def planted_in(path: Path, redactor: Redactor) -> frozenset[str]:
    """Return the names of the known values that stand in a regular file; none for what is no file, or cannot be read."""
    found: set[str] = set()
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return frozenset()
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return frozenset()
        rest = b""
        while chunk := os.read(fd, _CHUNK):
            data = rest + chunk
            found |= redactor.known_in(data)
            rest = data[-redactor.longest :]
    except OSError:
        return frozenset(found)
    finally:
        os.close(fd)
    return frozenset(found)


def tell_planted(loop_id: str, artifacts: Path, paths: Iterable[str], notice: Callable[[str], None]) -> None:
    """Tell of each of ``paths`` below ``artifacts`` that holds the value of a known variable; of the first five.

    ``notice`` tells a person, without the secrets that a path may be made of.
    """
    redactor, told = current(), 0
    for path in paths if redactor.knows_values else ():
        names = planted_in(artifacts / path, redactor)
        if names and told == _SHOWN:
            notice("more files of the snapshot hold secrets; `jumar verify` names them all")
            return
        if names:
            told += 1
            notice(
                f"the snapshot holds a secret: {escape(path)} has the value of {', '.join(sorted(names))}; exclude the file"
                f" under [artifacts], and revoke the secret or delete the snapshot (`jumar cleanup {loop_id}`) or the loop"
                f" (`jumar rm {loop_id}`)"
            )
