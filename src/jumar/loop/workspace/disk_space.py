"""Room on the disk: looked at before a step is paid for, and a little of it kept back so that its end can still be written.

A step that finds a full disk has been paid for all the same. So the loop's directory holds a small file, the ballast. It is given
up when the disk refuses, which makes room for the end of the attempt, and is laid in again when there is room.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from jumar.core.files import fsync_directory, write_all
from jumar.core.text import escape
from jumar.errors import JumarError
from jumar.loop.store.loop_reader import LoopReader

BALLAST: Final = "ballast"
BALLAST_BYTES: Final = 512 * 1024
"""Enough for the end of an attempt, its record and its logs' last lines several times over."""

_MARGIN_BYTES: Final = 4 * 1024 * 1024
_MARGIN_FILES: Final = 64
_USED_UP_FILES: Final = 8
_MEGABYTE: Final = 1_000_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What is free for an ordinary user on one file system. ``files`` is None where a file system does not count them."""

    device: int
    bytes: int
    files: int | None


def room_of(path: Path) -> Room:
    """Return the room on the file system of ``path``. Errors: ``OSError``."""
    found = os.statvfs(path)
    return Room(
        device=path.stat().st_dev,
        bytes=found.f_bavail * found.f_frsize,
        files=found.f_favail if found.f_files else None,
    )


def disk_is_full(error: BaseException | None) -> bool:
    """Return whether ``error``, or what it was raised from, says that a disk or a quota is used up."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return True
        error = error.__cause__ or error.__context__
    return False


def with_room(space: Space | None, write: Callable[[], T]) -> T:
    """Return what ``write`` returns; when the disk is full for it, the ballast is given up and it is tried once more."""
    try:
        return write()
    except (JumarError, OSError) as error:
        if space is None or not disk_is_full(error) or not space.release():
            raise
    return write()


class Space:
    """The room that one loop needs where its store lies and where it works.

    A snapshot of few files is a copy of them, one that is kept by its contents has what is new; the largest so far, twice, and a
    margin is taken for enough: the generator writes into the working directory what the store then takes in. Only the newest
    snapshot and the first are measured when a loop is opened, and each new one after that.
    """

    def __init__(
        self,
        store: LoopReader,
        workdir: Path,
        *,
        ballast_bytes: int = BALLAST_BYTES,
        margin_bytes: int = _MARGIN_BYTES,
        room: Callable[[Path], Room] = room_of,
    ) -> None:
        self._store = store
        self._directory = store.paths.directory
        self._workdir = workdir
        self._ballast = self._directory / BALLAST
        self._ballast_bytes = ballast_bytes
        self._margin = margin_bytes
        self._room = room
        self._measured: int | None = None
        self._bytes = self._files = 0
        self._known = frozenset[str | None]()

    @property
    def directory(self) -> str:
        """Where the ballast lies, for people."""
        return escape(str(self._directory))

    def check(self) -> str | None:
        """Return why there is too little room for another step, as a sentence for people; None when there is enough.

        A file system that cannot be asked has room: its refusal is told when it comes.
        """
        self._measure()
        looked_at: set[int] = set()
        for place, snapshots in ((self._directory, 2), (self._workdir, 1)):  # where both share a disk, the larger need counts
            try:
                room = self._room(place)
            except OSError:
                continue
            if room.device in looked_at:
                continue
            looked_at.add(room.device)
            missing = self._missing(place, room, snapshots)
            if missing is not None:
                return missing
        return None

    def _missing(self, place: Path, room: Room, snapshots: int) -> str | None:
        needed, many = snapshots * self._bytes + self._margin, snapshots * self._files + _MARGIN_FILES
        where = escape(str(place))
        if room.bytes < needed:
            return (
                f"{_size(room.bytes)} are free where {where} lies, and an iteration may need {_size(needed)}: the disk is full; "
                "free some space, and run the same command again"
            )
        if room.files is not None and room.files < many:
            return (
                f"only {room.files:,} more files can be made where {where} lies, and an iteration may need {many:,}: remove "
                "some, and run the same command again"
            )
        return None

    def used_up(self) -> bool:
        """Whether next to nothing is left: a program that failed now may have failed for that."""
        for place in (self._directory, self._workdir):
            with contextlib.suppress(OSError):
                room = self._room(place)
                if room.bytes < 2 * self._ballast_bytes or (room.files is not None and room.files < _USED_UP_FILES):
                    return True
        return False

    def rebuild(self) -> bool:
        """Lay in the ballast where it is missing or too small; return whether it is there. Never raises.

        A quota that is used up shows here first: what is free on the disk says nothing of it.
        """
        try:
            if self._ballast.is_symlink() or not self._ballast.exists() or self._ballast.stat().st_size < self._ballast_bytes:
                self._write()
        except OSError:
            with contextlib.suppress(OSError):
                self._ballast.unlink(missing_ok=True)
            return False
        return True

    def release(self) -> bool:
        """Give the ballast up, so that what has to be written can be; return whether there was one."""
        try:
            self._ballast.unlink()
            fsync_directory(self._directory)
        except OSError:
            return False
        return True

    def _write(self) -> None:
        self._ballast.unlink(missing_ok=True)
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            write_all(descriptor, os.urandom(self._ballast_bytes))  # zeros would take no room where files are compressed
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _measure(self) -> None:
        numbers = self._store.iteration_numbers()
        if not numbers or numbers[-1] == self._measured:
            return
        fresh = [number for number in (numbers[0], numbers[-1]) if self._measured is None or number > self._measured]
        for number in fresh:
            manifest = self._store.manifest(number)
            entries = tuple(manifest.entries.values())
            if manifest.by_hash:  # what is there is not written again, and what is new lies in few files
                known, self._known = self._known, frozenset(entry.content_hash for entry in entries)
                entries = tuple(entry for entry in entries if known and entry.content_hash not in known)
            else:
                self._files = max(self._files, len(entries))
            self._bytes = max(self._bytes, sum(entry.size for entry in entries))
        self._measured = numbers[-1]


def _size(count: int) -> str:
    return f"{count / _MEGABYTE:,.1f} MB"
