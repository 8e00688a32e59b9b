"""Contents by their SHA-256, which the loops of a root share.

    objects/<sha256>.pack    contents of small files, one after the other, then an index; named by the hash of that index
    objects/<sha256>         the content of a large file, or of one with holes
    objects/.lock            held by all who add (shared), and by the one who collects what nobody names (alone)

What has such a name is whole, durable, and never written again. The index of a pack has 40 bytes for each content, in order: its
hash, and its length as a big-endian integer. The last 16 bytes of the file are their number and :data:`_MAGIC`. Small contents go
into packs because an ``fsync`` for each of 100,000 files takes minutes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
import struct
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from jumar.core import copying, files, leftovers
from jumar.core.lock import move_aside, own_directory, set_aside
from jumar.core.text import escape
from jumar.errors import StoreDamagedError, StoreWriteError
from jumar.model.records import ArtifactDetail

SMALL: Final = 1 << 20
"""Bytes of the largest content that goes into a pack."""

_PACK: Final = 256 << 20  # bytes from which another pack is begun: what is collected later is copied once more
_CHUNK: Final = 1 << 20
_MODE: Final = 0o444
_SUFFIX: Final = ".pack"
_NAME: Final = re.compile(r"[0-9a-f]{64}(?:\.pack)?\Z")
_MAGIC: Final = b"jumarpk1"
_ENTRY: Final = struct.Struct(">32sQ")
_TAIL: Final = struct.Struct(">Q8s")
_LOCK: Final = ".lock"
_NO_LOCK: Final = frozenset({errno.EISDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENXIO})
_PATIENCE: Final = 120.0  # seconds that somebody may take to collect
_LOOKS: Final = 5  # at what is there, while somebody collects


class Place(NamedTuple):
    """Where a content lies: the name of a file, the offset there and the length, both in bytes."""

    file: str
    offset: int
    size: int


class Objects:
    """The contents in ``directory``, which need not exist. A content is checked by whoever uses it, against its hash."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._files: dict[str, tuple[str, ...]] = {}
        self._stamps: dict[str, tuple[int, ...]] = {}
        self._places: dict[str, Place] = {}
        self._touched: set[str] = set()
        self._compared: set[str] = set()  # contents that this process wrote, or read and found to be what their hash says
        self.altered: set[str] = set()  # names of files that hold what is not what its hash says

    def holds(self, digest: str | None, size: int) -> bool:
        """Return whether a content of this hash and length was there at the last :meth:`refresh`."""
        place = self._places.get(digest or "")
        return place is not None and place.size == size

    def is_sound(self, digest: str) -> bool:
        """Return whether a content that is there is what its hash says. It is read once, and again when its file was touched."""
        if digest not in self._compared:
            place = self._places[digest]
            if not self._sound(place.file, [(digest, place)]):
                self.altered.add(place.file)
                del self._places[digest]
                return False
            self._compared.add(digest)
        return True

    def __len__(self) -> int:
        """Return how many contents there are."""
        return len(self._places)

    def bytes_of(self, digests: Iterable[str]) -> int:
        """Return how many bytes those of ``digests`` have that are there."""
        return sum(self._places[digest].size for digest in digests if digest in self._places)

    def refresh(self) -> None:
        """Take in what came and went. A pack whose index is not what its name says holds nothing, and so does what is no file.

        Of a file that was touched since the last time all contents are compared: what a program altered is missing then, and the
        next snapshot that has it stores it anew. So is what lies in another file too: where a program put one beside it, it is
        taken from the one that has it.
        """
        for _ in range(_LOOKS):  # what vanishes meanwhile was collected, and what is needed of it lies elsewhere
            with contextlib.suppress(FileNotFoundError):
                self._look()
                break

    def _look(self) -> None:
        there = {name: self._stamp(name) for name in self._names()}
        touched = {name for name in self._files if there.get(name) != self._stamps[name]}
        if touched:  # what lay there may lie in another one as well
            self._touched |= touched
            self._compared.difference_update(*(self._files[name] for name in touched))
            self._files.clear()
            self._places.clear()
        for name in sorted(there.keys() - self._files.keys()):
            try:
                contents = _read_index(self.directory / name)
                sound = self._taken(name, contents)
            except FileNotFoundError:
                raise
            except OSError:
                continue
            self.note(name, sound)
            self.altered.update([name] if sound != contents else [])
        self.altered.intersection_update(there)

    def _taken(self, name: str, contents: list[tuple[str, Place]]) -> list[tuple[str, Place]]:
        """Return what is taken from a file: of what was touched, or lies in another one too, only what is what its hash says."""
        if name in self._touched:
            return self._sound(name, contents) if name.endswith(_SUFFIX) or self._stamps[name][1] == contents[0][1].size else []
        twice = [each for each in contents if each[0] in self._places]
        if not twice:
            return contents
        if name.endswith(_SUFFIX):
            lost = {*twice} - {*self._sound(name, twice)}
        else:  # a file of any size, which is not to be read where a pack has it
            known = self._places[name]
            lost = {*twice} if self._sound(known.file, [(name, known)]) else set[tuple[str, Place]]()
        return [each for each in contents if each not in lost]

    def wrote(self, name: str, contents: list[tuple[str, Place]]) -> None:
        """Take in the file ``name``, which this process made."""
        self.note(name, contents)
        self._compared.update(digest for digest, _ in contents)

    def _names(self) -> list[str]:
        try:
            return [name for name in files.names_in(self.directory) if _NAME.match(name)]
        except OSError:
            return []

    def _stamp(self, name: str) -> tuple[int, ...]:
        found = os.lstat(self.directory / name)
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _sound(self, name: str, contents: list[tuple[str, Place]]) -> list[tuple[str, Place]]:
        fd = os.open(self.directory / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return [(digest, place) for digest, place in contents if files.sha256_chunks(_part(fd, place))[0] == digest]
        finally:
            os.close(fd)

    def note(self, name: str, contents: list[tuple[str, Place]]) -> None:
        """Take in the file ``name``, which has these contents."""
        self._stamps[name] = self._stamp(name)
        self._files[name] = tuple([digest for digest, _ in contents])
        self._places.update(contents)

    def forget(self, digests: Iterable[str]) -> dict[str, list[str]]:
        """Count contents as missing; return the files where they lay, each with the hashes of what else it holds."""
        names = {place.file for digest in digests if (place := self._places.pop(digest, None)) is not None}
        return {name: self.held_in(name) for name in names}

    def held_in(self, name: str) -> list[str]:
        """Return the hashes of what is taken from the file ``name``."""
        return [digest for digest in self._files[name] if digest in self._places and self._places[digest].file == name]

    # ---- as the content of a snapshot

    def name(self, detail: ArtifactDetail) -> str:
        return f"{escape(detail.path)} ({escape(os.fspath(self.directory))}, {detail.content_hash})"

    def chunks(self, detail: ArtifactDetail) -> Iterator[bytes]:
        with self._open(detail) as (fd, place):
            yield from _part(fd, place)

    def copy(self, detail: ArtifactDetail, into: int, hear: Callable[[bytes], object]) -> None:
        with self._open(detail) as (fd, place):
            if place.file.endswith(_SUFFIX):
                for chunk in _part(fd, place):
                    hear(chunk)
                    files.write_all(into, chunk)
            else:
                copying.write_like(into, fd, files.read_chunks(fd), hear)

    def lacking(self, details: Iterable[ArtifactDetail]) -> Iterator[ArtifactDetail]:
        self.refresh()
        yield from (each for each in details if each.kind == "file" and not self.holds(each.content_hash, each.size))

    @contextlib.contextmanager
    def _open(self, detail: ArtifactDetail) -> Generator[tuple[int, Place]]:
        """Open the file with a content, looking again where another jumar has put it elsewhere meanwhile."""
        fd, place = -1, None
        for _ in range(2):
            place = self._places.get(detail.content_hash or "")
            if place is not None and place.size == detail.size:
                with contextlib.suppress(OSError):
                    fd = os.open(self.directory / place.file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                    break
            self.refresh()
        if fd < 0 or place is None:
            raise StoreDamagedError(f"the content of {self.name(detail)} is missing; `jumar verify` lists what is damaged")
        try:
            yield fd, place
        finally:
            os.close(fd)

    # ---- changing

    def alone(self, patience: float) -> contextlib.AbstractContextManager[bool]:
        """Keep others from adding; gives whether that was possible within ``patience`` seconds."""
        return _locked(self.directory, fcntl.LOCK_EX, patience)

    def adding(self, *, alone: bool = False) -> Adding:
        """Return what adds contents, to be used in a ``with`` statement; ``alone`` where the caller is."""
        return Adding(self, alone=alone)

    def collect(self, live: Collection[str]) -> int:
        """Delete what ``live`` does not name, and return the bytes that are free now. The caller is :meth:`alone`.

        A pack of which less than half is named is written anew. Cut off anywhere, whatever is named is there.
        """
        freed = 0
        with files.as_write_error("collect", self.directory), self.adding(alone=True) as adding:
            adding.begin()
            partly: dict[str, list[str]] = {}
            for name, digests in list(self._files.items()):
                if not digests:  # damaged: nobody knows what it held
                    continue
                here = [digest for digest in self.held_in(name) if digest in live]
                size = (self.directory / name).lstat().st_size
                used = sum(self._places[digest].size for digest in here)
                if not here:  # first: a disk that is full has no room to write others anew
                    (self.directory / name).unlink()
                elif 2 * used < size:
                    partly[name] = here
                else:
                    continue
                freed += size
            for name, here in partly.items():
                adding.leave(name, here)
            return freed - adding.finish()


class Adding:
    """Adds contents: nothing is there before :meth:`finish`, which makes all of it durable.

    From :meth:`begin` until the ``with`` statement ends nobody collects, so that what :meth:`holds` said stays true until the
    snapshot that relies on it has its name.
    """

    def __init__(self, objects: Objects, *, alone: bool = False) -> None:
        self._objects, self._directory = objects, objects.directory
        self._stack = contextlib.ExitStack()
        self._locked = alone
        self._pack: _Pack | None = None
        self._made: dict[Path, str] = {}  # where it lies, and how it shall be called
        self._contents: dict[str, list[tuple[str, Place]]] = {}
        self._left: list[Path] = []
        self._new: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pack is not None:
            self._pack.abandon()
            self._made[self._pack.path] = ""
        for path in self._made:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        self._stack.close()

    def begin(self) -> None:
        """Lock, and look at what is there. Errors: :class:`StoreWriteError` where somebody collects for minutes."""
        if not self._locked:
            own_directory(self._directory)
            leftovers.sweep_once(self._directory)
            if not self._stack.enter_context(_locked(self._directory, fcntl.LOCK_SH, _PATIENCE)):
                raise StoreWriteError(f"{escape(os.fspath(self._directory))} is locked by another jumar; run the command again")
            self._locked = True
        self._objects.refresh()

    def holds(self, digest: str | None, size: int) -> bool:
        """Return whether a content is there, and what its hash says: whatever lay there before may be anybody's."""
        if digest is None or digest in self._new:
            return digest is not None
        return self._objects.holds(digest, size) and self._objects.is_sound(digest)

    def add(self, digest: str, data: bytes) -> None:
        """Add a small content, unless it is there."""
        if not self.holds(digest, len(data)):
            self._put(digest, data)

    def _put(self, digest: str, data: bytes) -> None:
        if self._pack is None:
            self._pack = _Pack(self._directory / leftovers.temporary_name())
        self._pack.add(digest, data)
        self._new.add(digest)
        if self._pack.size > _PACK:
            self._close_pack()

    def temporary(self) -> Path:
        """Return a place for a large content, which :meth:`add_file` takes from there."""
        path = self._directory / leftovers.temporary_name()
        self._made[path] = ""
        return path

    def add_file(self, digest: str, size: int, made: Path) -> None:
        """Add a content that lies at ``made``, a :meth:`temporary` place."""
        if not self.holds(digest, size):
            self._made[made] = digest
            self._contents[digest] = [(digest, Place(digest, 0, size))]
            self._new.add(digest)

    def leave(self, name: str, staying: Iterable[str]) -> None:
        """Add what is ``staying`` of the contents of a file, and sound, once more, and delete it when that is durable."""
        path = self._directory / name
        found = dict(_read_index(path))
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for digest in staying:
                data = b"".join(_part(fd, found[digest]))
                if files.sha256_bytes(data) == digest:
                    self._put(digest, data)
        finally:
            os.close(fd)
        self._left.append(path)

    def finish(self) -> int:
        """Give everything its name, durable; return how many bytes that are. Errors: :class:`StoreWriteError`."""
        with files.as_write_error("write", self._directory):
            for name in self._objects.altered:
                with contextlib.suppress(FileNotFoundError):  # another jumar was faster
                    self.leave(name, self._objects.held_in(name))
            self._close_pack()
            named = {path: name for path, name in self._made.items() if name}
            size = sum(path.lstat().st_size for path in named)
            if named:
                files.sync_paths(self._directory, named)
                for path, name in named.items():
                    if files.is_directory(self._directory / name):  # nothing that jumar made
                        move_aside(self._directory.parent, self._directory / name)
                    os.replace(path, self._directory / name)
                    del self._made[path]
                files.fsync_directory(self._directory)
            for path in self._left:
                if path.name not in named.values():
                    path.unlink(missing_ok=True)  # another jumar was faster
        for name, contents in self._contents.items():
            self._objects.wrote(name, contents)
        self._contents.clear()
        self._new.clear()
        return size

    def _close_pack(self) -> None:
        if self._pack is None:
            return
        name, contents = self._pack.close()
        self._made[self._pack.path] = name
        self._contents[name] = contents
        self._pack = None


class _Pack:
    """A pack that is being written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._waiting = bytearray()
        self.size = 0
        self._contents: list[tuple[str, int, int]] = []

    def add(self, digest: str, data: bytes) -> None:
        self._contents.append((digest, self.size, len(data)))
        self._write(data)
        self.size += len(data)

    def _write(self, data: bytes, room: int = _CHUNK) -> None:
        self._waiting += data
        if len(self._waiting) > room:
            files.write_all(self._fd, self._waiting)
            self._waiting = bytearray()

    def abandon(self) -> None:
        """Close what is only half written."""
        os.close(self._fd)

    def close(self) -> tuple[str, list[tuple[str, Place]]]:
        """Write the index; return the name that the pack should have, and where its contents lie."""
        index = b"".join(_ENTRY.pack(bytes.fromhex(digest), size) for digest, _, size in self._contents)
        self._write(index + _TAIL.pack(len(self._contents), _MAGIC), 0)
        os.fchmod(self._fd, _MODE)
        os.close(self._fd)
        name = hashlib.sha256(index).hexdigest() + _SUFFIX
        return name, [(digest, Place(name, offset, size)) for digest, offset, size in self._contents]


def _read_index(path: Path) -> list[tuple[str, Place]]:
    """Return what the file at ``path`` holds; nothing where its end is not what its name says."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            return []
        if not path.name.endswith(_SUFFIX):
            return [(path.name, Place(path.name, 0, size))]
        if size < _TAIL.size:
            return []
        number, magic = _TAIL.unpack(os.pread(fd, _TAIL.size, size - _TAIL.size))
        length = number * _ENTRY.size
        start = size - _TAIL.size - length
        if magic != _MAGIC or start < 0:
            return []
        index = b"".join(_part(fd, Place(path.name, start, length)))
    finally:
        os.close(fd)
    if hashlib.sha256(index).hexdigest() + _SUFFIX != path.name:
        return []
    offset, found = 0, list[tuple[str, Place]]()
    for digest, each in _ENTRY.iter_unpack(index):
        found.append((digest.hex(), Place(path.name, offset, each)))
        offset += each
    return found if offset == start and all(place.size <= SMALL for _, place in found) else []


def _part(fd: int, place: Place) -> Iterator[bytes]:
    offset, left = place.offset, place.size
    while left > 0 and (chunk := os.pread(fd, min(left, _CHUNK), offset)):
        offset, left = offset + len(chunk), left - len(chunk)
        yield chunk


@contextlib.contextmanager
def _locked(directory: Path, how: int, patience: float) -> Generator[bool]:
    """Hold the lock; yields False where others kept it for ``patience`` seconds. Who removes its file takes it from nobody."""
    path = directory / _LOCK
    fd, held = -1, True
    while held and not _is_at(fd, path):
        if fd >= 0:
            os.close(fd)
        with files.as_write_error("lock", directory):
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            except OSError as error:
                if error.errno not in _NO_LOCK:
                    raise
                set_aside(path)  # a program put it in the place of the lock, or closed that
                fd = -1
                continue
            held = files.wait_for_lock(fd, patience, how)
    try:
        yield held
    finally:
        os.close(fd)


def _is_at(fd: int, path: Path) -> bool:
    try:
        return fd >= 0 and os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False
