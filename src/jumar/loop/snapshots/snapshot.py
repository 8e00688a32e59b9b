"""Taking a snapshot: what changed is read and hashed, what did not is known by its stat.

A regular file is hashed while it is copied, its stat compared before and after; one that changes meanwhile is read again, three
times at most. Few files lie in ``artifacts/`` for people to look at; many, or large ones, are kept once by their content.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, Self

from jumar.core import copying, files
from jumar.core.file_cache import FileCache, Identity, times_tell
from jumar.core.lock import own_directory
from jumar.core.redaction import Redactor, current
from jumar.core.text import escape
from jumar.errors import ArtifactError, StoreDamagedError, StoreWriteError
from jumar.loop.snapshots.content import Content
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.objects import SMALL, Adding, Objects
from jumar.loop.snapshots.scan import Folder, OpenFolders, survey
from jumar.model.records import ArtifactDetail

STORED_MODE: Final = 0o444
PLAIN_FILES: Final = 200
"""Files up to which they lie in ``artifacts/`` by their names, if they have no more than :data:`PLAIN_BYTES` in all."""

PLAIN_BYTES: Final = 16 << 20
_PATIENCE: Final = 10.0  # seconds that a snapshot of another loop is waited for
_TRIES: Final = 3
_CHUNK: Final = 1 << 20
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO that took the file's place must not block
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

StatCache = FileCache[ArtifactDetail]
"""Hashes of files that were looked at before."""


def take_snapshot(
    source_root: Path,
    paths: Iterable[str],
    target_artifacts: Path,
    *,
    previous: Manifest | None = None,
    adding: Adding | None = None,
    cache: StatCache | None = None,
    never: Iterable[Path] = (),
    allow: Callable[[Mapping[str, int]], None] | None = None,
) -> Manifest:
    """Store everything that ``paths`` name, and return what it was.

    It lies below ``target_artifacts`` afterwards, an existing empty directory; with ``adding``, where it is too much for that,
    among the objects of the root. Nothing is written before every path was looked at, and ``allow``, which gets their sizes in
    bytes, did not raise. Nothing is synced. Entries that are equal in ``previous`` are its very objects. Errors:
    :class:`ArtifactError` for a path that is missing, unreadable, leads outside or keeps changing;
    :class:`jumar.errors.StoreWriteError` when the disk refuses.
    """
    times_tell(source_root)
    found = survey(source_root, paths, never)
    if allow is not None:
        allow({f"{folder.path}/{name}".lstrip("/"): status.st_size for folder in found for name, status in folder.entries})
    by_hash = adding is not None and _is_large(found)
    with (
        files.as_write_error("write the snapshot", target_artifacts),
        OpenFolders(source_root) as sources,
        _ByHash(adding) if adding is not None and by_hash else _Plain(target_artifacts) as keeping,
    ):
        snapshot = _Snapshot(sources, keeping, previous.entries if previous else {}, cache or StatCache())
        found.reverse()
        while found:  # what was seen of a folder goes with it: of a large tree that is most of what is in memory
            snapshot.store(found.pop())
    return Manifest(MappingProxyType(dict(sorted(snapshot.entries.items()))), by_hash=by_hash)


def store_again(objects: Objects, source: Path, details: Iterable[ArtifactDetail]) -> None:
    """Store contents that are missing or altered anew, from the files of the same paths below ``source``.

    What lies in one file with them is written once more. Errors: :class:`ArtifactError`, :class:`jumar.errors.StoreWriteError`.
    """
    wanted = {detail.path: detail.content_hash or "" for detail in details}
    with files.as_write_error("create", objects.directory):
        own_directory(objects.directory)
    with objects.alone(_PATIENCE) as held, objects.adding(alone=True) as adding, _ByHash(adding) as keeping:
        if not held:
            raise StoreWriteError(f"{escape(os.fspath(objects.directory))} is in use by another jumar; run the command again")
        with files.as_write_error("write", objects.directory), OpenFolders(source) as sources:
            for name, staying in objects.forget(wanted.values()).items():
                adding.leave(name, staying)
            snapshot = _Snapshot(sources, keeping, {}, StatCache())
            for folder in survey(source, wanted):
                snapshot.store(folder)
            adding.finish()


def _is_large(found: Iterable[Folder]) -> bool:
    statuses = [status for folder in found for _, status in folder.entries]
    return len(statuses) > PLAIN_FILES or sum(each.st_size for each in statuses if stat.S_ISREG(each.st_mode)) > PLAIN_BYTES


class _Keeping(Protocol):
    """What becomes of the files of a snapshot: of each folder, :meth:`enter`, then its entries."""

    def enter(self, folder: str) -> None: ...

    def holds(self, detail: ArtifactDetail) -> bool:
        """Return whether there is nothing to do for a file with this content."""
        ...

    def link(self, name: str, target: str) -> None: ...

    def take(self, name: str, fd: int, status: os.stat_result, chunks: Callable[[], Iterator[bytes]]) -> tuple[str, int]:
        """Read a file, and return its hash and how many bytes that were. :meth:`keep` or :meth:`drop` follows."""
        ...

    def keep(self) -> None: ...

    def drop(self) -> None: ...


class _Plain:
    """Copies below a directory."""

    def __init__(self, target: Path) -> None:
        self._target = os.fspath(target)
        self._made: set[str] = {""}
        self._fd = -1
        self._last = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def enter(self, folder: str) -> None:
        self._make(folder)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = os.open(self._joined(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _make(self, folder: str) -> None:
        if folder not in self._made:
            self._make(folder.rpartition("/")[0])
            os.mkdir(self._joined(folder))
            self._made.add(folder)

    def _joined(self, folder: str) -> str:
        return f"{self._target}/{folder}" if folder else self._target

    def holds(self, detail: ArtifactDetail) -> bool:
        del detail
        return False

    def link(self, name: str, target: str) -> None:
        os.symlink(target, name, dir_fd=self._fd)

    def take(self, name: str, fd: int, status: os.stat_result, chunks: Callable[[], Iterator[bytes]]) -> tuple[str, int]:
        del status
        self._last = name
        return _stored(name, fd, chunks(), dir_fd=self._fd)

    def keep(self) -> None:
        pass

    def drop(self) -> None:
        os.unlink(self._last, dir_fd=self._fd)


class _ByHash:
    """Contents among the objects of the root, those that are new there. A large one is hashed first, and copied if it is new."""

    def __init__(self, adding: Adding) -> None:
        self._adding = adding
        self._taken: tuple[str, int, bytes | Path | None] = ("", 0, None)

    def __enter__(self) -> Self:
        self._adding.begin()
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def enter(self, folder: str) -> None:
        pass

    def holds(self, detail: ArtifactDetail) -> bool:
        return self._adding.holds(detail.content_hash, detail.size)

    def link(self, name: str, target: str) -> None:
        pass

    def take(self, name: str, fd: int, status: os.stat_result, chunks: Callable[[], Iterator[bytes]]) -> tuple[str, int]:
        del name
        if status.st_size <= SMALL and not copying.is_sparse(status):
            data = b"".join(chunks())
            digest, size = files.sha256_bytes(data), len(data)
            self._taken = digest, size, data
            return digest, size
        digest, size = files.sha256_chunks(chunks())
        place = None if self._adding.holds(digest, size) else self._adding.temporary()
        self._taken = digest, size, place
        if place is not None:
            os.lseek(fd, 0, os.SEEK_SET)
            if _stored(place, fd, chunks())[0] != digest:
                return "", -1
        return digest, size

    def keep(self) -> None:
        digest, size, taken = self._taken
        if isinstance(taken, bytes):
            self._adding.add(digest, taken)
        elif taken is not None:
            self._adding.add_file(digest, size, taken)

    def drop(self) -> None:
        pass  # a temporary place is given up with the rest


def _stored(target: str | Path, source: int, chunks: Iterator[bytes], *, dir_fd: int | None = None) -> tuple[str, int]:
    """Write ``chunks``, the content of the file ``source``, to a new file; return their hash and how many bytes it has."""
    digest = hashlib.sha256()
    writing = os.open(target, _CREATE, STORED_MODE, dir_fd=dir_fd)
    try:
        copying.write_like(writing, source, chunks, digest.update)
        size = os.fstat(writing).st_size
        os.fchmod(writing, STORED_MODE)
    finally:
        os.close(writing)
    return digest.hexdigest(), size


class _Snapshot:
    """One snapshot being taken."""

    def __init__(self, sources: OpenFolders, keeping: _Keeping, before: Mapping[str, ArtifactDetail], cache: StatCache) -> None:
        self.entries: dict[str, ArtifactDetail] = {}
        self._sources = sources
        self._keeping = keeping
        self._before = before
        self._cache = cache

    def store(self, folder: Folder) -> None:
        """Store one folder's entries: what is known to be there already, then the rest."""
        self._keeping.enter(folder.path)
        prefix = f"{folder.path}/" if folder.path else ""
        earlier, known, entries, holds = self._before, self._cache.get, self.entries, self._keeping.holds
        rest: list[tuple[str, str, Identity]] = []
        for name, status in folder.entries:
            path = prefix + name
            now = known(path, status)
            if now is not None and holds(now):
                before = earlier.get(path)
                entries[path] = before if before is not None and before == now else now
            else:
                rest.append((path, name, status))
        if rest:
            fd = self._sources.open(folder.path)
            for path, name, status in rest:
                now, before = self._store_one(path, name, status, fd), earlier.get(path)
                entries[path] = before if before is not None and before == now else now

    def _store_one(self, path: str, name: str, status: Identity, source_fd: int) -> ArtifactDetail:
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFLNK:
            return self._store_link(path, name, source_fd)
        if kind != stat.S_IFREG:
            mode = stat.S_IMODE(status.st_mode)
            return ArtifactDetail(path=path, kind="special", mode=mode, skipped=_KINDS.get(kind, "special"))
        return self._read(path, name, source_fd)

    def _store_link(self, path: str, name: str, source_fd: int) -> ArtifactDetail:
        try:
            target = os.readlink(name, dir_fd=source_fd)
        except OSError as error:
            raise ArtifactError(f"the link '{escape(path)}' changed while it was read: run again") from error
        self._keeping.link(name, target)
        raw = os.fsencode(target)
        digest = files.sha256_bytes(raw)
        return ArtifactDetail(path=path, kind="symlink", content_hash=digest, mode=0o777, size=len(raw), target=target)

    def _read(self, path: str, name: str, source_fd: int) -> ArtifactDetail:
        """Take a file; believed only when its stat stayed the same."""
        for _ in range(_TRIES):
            looked_at = time.time_ns()
            fd = _open_source(path, name, source_fd)
            try:
                before = os.fstat(fd)
                if not stat.S_ISREG(before.st_mode):
                    raise ArtifactError(f"'{escape(path)}' was replaced while it was read: end what writes it, or exclude it")
                digest, size = self._keeping.take(name, fd, before, partial(_chunks, path, fd, before.st_size))
                after = os.fstat(fd)
            finally:
                os.close(fd)
            if Identity.of(before) == Identity.of(after) and size == after.st_size:
                self._keeping.keep()
                detail = ArtifactDetail(path=path, content_hash=digest, mode=stat.S_IMODE(after.st_mode), size=size)
                self._cache.put(path, after, looked_at, detail)
                return detail
            self._keeping.drop()
        raise ArtifactError(f"'{escape(path)}' keeps changing while it is read: end what writes it, or exclude it")


_KINDS: Final = {stat.S_IFIFO: "FIFO", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


def _open_source(path: str, name: str, source_fd: int) -> int:
    try:
        return os.open(name, _READ, dir_fd=source_fd)
    except FileNotFoundError as error:
        raise ArtifactError(f"'{escape(path)}' vanished while it was read: end what removes it, or exclude it") from error
    except OSError as error:
        raise ArtifactError(f"'{escape(path)}' cannot be read: {os.strerror(error.errno or 0)}") from error


def _chunks(path: str, fd: int, expected: int) -> Iterator[bytes]:
    """Yield a file's content; of one that grows faster than it is read, no more than shows that it grew."""
    left = expected + 1
    while left > 0 and (chunk := _read_chunk(path, fd, min(left, _CHUNK))):
        left -= len(chunk)
        yield chunk


def _read_chunk(path: str, fd: int, count: int) -> bytes:
    try:
        return os.read(fd, count)
    except OSError as error:
        raise ArtifactError(f"'{escape(path)}' cannot be read: {os.strerror(error.errno or 0)}") from error


_SHOWN: Final = 5


def planted_in(chunks: Iterable[bytes], redactor: Redactor) -> frozenset[str]:
    """Return the names of the known values that stand in a file's content; of what cannot be read, those up to there."""
    found: set[str] = set()
    rest = b""
    with contextlib.suppress(StoreDamagedError, OSError):
        for chunk in chunks:
            data = rest + chunk
            found |= redactor.known_in(data)
            rest = data[-redactor.longest :]
    return frozenset(found)


def tell_planted(loop_id: str, content: Content, details: Iterable[ArtifactDetail], notice: Callable[[str], None]) -> None:
    """Tell of each file of a snapshot that holds the value of a known variable; of the first five.

    ``notice`` tells a person, without the secrets that a path may be made of.
    """
    redactor, told = current(), 0
    for detail in details if redactor.knows_values else ():
        names = planted_in(content.chunks(detail), redactor) if detail.kind == "file" else ()
        if names and told == _SHOWN:
            notice("more files of the snapshot hold secrets; `jumar verify` names them all")
            return
        if names:
            told += 1
            notice(
                f"the snapshot holds a secret: {escape(detail.path)} has the value of {', '.join(sorted(names))}; exclude the"
                f" file under [artifacts], and revoke the secret or delete the snapshot (`jumar cleanup {loop_id}`) or the loop"
                f" (`jumar rm {loop_id}`)"
            )
