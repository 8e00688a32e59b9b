"""What stands in the place of a loop's directories and was not made by jumar: moved to ``quarantine/``, never gone through."""

from __future__ import annotations

import os
from pathlib import Path

from jumar import files
from jumar.store.layout import LoopPaths
from jumar.store.staging import QUARANTINE

__all__ = ["move_aside", "next_place", "replaced"]


def replaced(paths: LoopPaths) -> list[str]:
    """Move away what is no directory of ours: what is written or deleted through a link may be a person's; return what to tell.

    The caller holds the lock.
    """
    places = (*paths.subdirectories, paths.checks, paths.recheck)
    wrong = [place for place in places if os.path.lexists(place) and not files.is_directory(place)]
    return [f"{place.name} was no directory of jumar's: it lies in {move_aside(paths, place)} now" for place in wrong]


def next_place(directory: Path, name: str) -> Path:
    """Return the next numbered place for ``name`` in a quarantine: ``0003-NAME``."""
    taken = max((int(other[:4]) for other in os.listdir(directory) if other[:4].isdigit()), default=0)
    return directory / f"{taken + 1:04d}-{name}"


def move_aside(paths: LoopPaths, path: Path) -> str:
    """Move ``path`` to ``quarantine/`` and return where it lies in the loop."""
    directory = paths.directory / QUARANTINE
    if os.path.lexists(directory) and not files.is_directory(directory):
        os.rename(directory, paths.directory / files.temporary_name())
    files.make_directory(directory)
    place = next_place(directory, path.name)
    os.rename(path, place)
    return f"{QUARANTINE}/{place.name}"
