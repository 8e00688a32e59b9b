"""Known secrets in the files of a snapshot: those are never altered, so that a person has to be told."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from jumar.redaction import Redactor

__all__ = ["planted_in", "planted_secrets"]

_CHUNK: Final = 1 << 20


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


def planted_secrets(artifacts: Path, paths: Iterable[str], redactor: Redactor) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each of the relative ``paths`` that holds known values, with their names, sorted; never a value."""
    if redactor.knows_values:
        for path in paths:
            names = planted_in(artifacts / path, redactor)
            if names:
                yield path, tuple(sorted(names))
