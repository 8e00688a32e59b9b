"""What stands where jumar works and was not made by it: moved to ``quarantine/``, never gone through, never deleted."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jumar.core import files, leftovers
from jumar.core.refusals import give_rights
from jumar.core.text import natural

QUARANTINE: Final = "quarantine"
_LONGEST: Final = 200  # bytes of a name that a number comes before, so that a name as long as there can be fits


def replaced(directory: Path, places: Iterable[Path], *, around: Iterable[Path] = ()) -> list[str]:
    """Move away what is no directory of ours: what is written or deleted through a link may be a person's; return what to tell.

    Of ``places``, which lie in ``directory``, and of those ``around`` them, what is ours and was closed is opened. The caller
    holds the lock.
    """
    places = tuple(places)
    closed = [place for place in (*around, *places) if files.is_directory(place) and give_rights(place)]
    told = [f"{place.name} was closed to its owner, and is open again" for place in closed]
    for place in (place for place in places if os.path.lexists(place) and not files.is_directory(place)):
        with contextlib.suppress(FileNotFoundError):  # another process, or thread, was faster
            told.append(f"{place.name} was no directory of jumar's: it lies in {move_aside(directory, place)} now")
    return told


def own_directory(path: Path) -> list[str]:
    """Make a directory of jumar's in one that is there, or may be made; what is none makes way as in :func:`replaced`."""
    told = replaced(path.parent, (path,)) if os.path.lexists(path) else []
    files.make_directory(path)
    return told


def next_place(directory: Path, name: str = "") -> Path:
    """Return the next numbered place in a directory where nothing lies yet: ``0003-NAME``, without a name ``0003``."""
    taken = (natural(other.partition("-")[0]) for other in os.listdir(directory))
    first = max((each for each in taken if each is not None), default=0) + 1
    suffix = name and "-" + os.fsdecode(os.fsencode(name)[:_LONGEST])
    places = (directory / f"{number:04d}{suffix}" for number in itertools.count(first))
    return next(place for place in places if not os.path.lexists(place))


def move_aside(directory: Path, path: Path) -> str:
    """Move ``path`` to the ``quarantine/`` of ``directory`` and return where it lies there."""
    quarantine = directory / QUARANTINE
    if os.path.lexists(quarantine) and not files.is_directory(quarantine):
        os.rename(quarantine, directory / leftovers.temporary_name())
    files.make_directory(quarantine)
    place = next_place(quarantine, path.name)
    os.rename(path, place)
    return f"{QUARANTINE}/{place.name}"
