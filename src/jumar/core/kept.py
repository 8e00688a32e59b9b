"""Files that stay as they were, kept in memory: the configuration in use, and the script that is run when all has ended."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumar.core import copying, files, leftovers

VERSIONS: Final = "protected"
"""Directory of the logs with what the generator made of protected files."""

_FILE: Final = 1 << 20
_ALL: Final = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One of them, and ``what`` it is. Its content decides, so that a mere touch is no change; of a link, where it leads."""

    path: Path
    what: str
    content: bytes | None
    target: str | None
    mode: int

    @classmethod
    def of(cls, path: Path, what: str) -> Kept | None:
        """Return a copy of the file or link; None when it is neither, or cannot be read."""
        content, target = files.content_of(path), _target(path)
        if content is None and target is None:
            return None
        return cls(path=path, what=what, content=content, target=target, mode=stat.S_IMODE(os.lstat(path).st_mode))

    def differs(self) -> bool:
        """Return whether it is not as it was."""
        return _target(self.path) != self.target or (self.content is not None and not files.holds(self.path, self.content))

    def put_back(self, logs: Path) -> str:
        """Make it as it was, its present version kept below ``logs``; return what became of it, for the person."""
        keep_versions(self.path.parent, (self.path.name,), logs / VERSIONS)
        self.restore()
        return "and could not be put back: look at it before the next run" if self.differs() else "and put back"

    def restore(self) -> None:
        """Make it as it was, whatever stands in its place; one that cannot be written stays."""
        if self.content is not None:
            put(self.path, self.content, self.mode)
        elif self.target is not None:
            with contextlib.suppress(OSError):
                leftovers.remove_any(self.path)
                self.path.symlink_to(self.target)


def leading_to(path: Path | None) -> Iterator[tuple[Path, str]]:
    """Yield the file of a configuration, and the links by which it is found; nothing of none."""
    seen: set[Path] = set()
    while path is not None and path not in seen and os.path.lexists(path):
        seen.add(path)
        yield path.absolute(), "the configuration in use"
        path = path.parent / path.readlink() if path.is_symlink() else None


def copies_of(wanted: Iterable[tuple[Path, str]]) -> tuple[Kept, ...]:
    """Return copies of these paths, each with what it is; of what is no file or link there is none."""
    return tuple(kept for path, what in wanted if (kept := Kept.of(path, what)) is not None)


def _target(path: Path) -> str | None:
    try:
        return os.fspath(path.readlink())
    except OSError:
        return None


def put(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file, whatever stands in its place; one that cannot be written stays."""
    with contextlib.suppress(OSError):
        if path.is_symlink() or not path.is_file():
            leftovers.remove_any(path)
        files.replace_file(path, data, mode=mode)


def keep_versions(tree: Path, paths: Iterable[str], target: Path) -> None:
    """Copy the generator's versions of what is put back; a copy that fails is none, the loop goes on."""
    left = _ALL
    for path in paths:
        source, place = tree / path, target / path
        with contextlib.suppress(OSError):
            status = os.lstat(source)
            if not stat.S_ISREG(status.st_mode) or status.st_size > min(left, _FILE):
                continue
            left -= status.st_size
            if not files.is_inside(place, target.parent.parent):  # a program may have put a link there
                continue
            files.make_directory(place.parent)
            leftovers.remove_any(place)
            copying.copy_file(source, place)
