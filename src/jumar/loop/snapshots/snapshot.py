"""Taking a snapshot: copy and hash what changed, link what did not.

A regular file is copied while it is hashed, its stat compared before and after; a file that changes meanwhile is read again,
three times at most. Where path, hash and mode equal the previous snapshot's, a hard link to that one is made instead; wherever
a link is refused (too many, another file system, a missing or altered predecessor) the file is copied.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jumar.core import files
from jumar.core.file_cache import FileCache, file_identity, times_tell
from jumar.core.redaction import Redactor, current
from jumar.core.text import escape
from jumar.errors import ArtifactError, StoreDamagedError
from jumar.loop.snapshots.content import Content
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.scan import Folder, OpenFolders, survey
from jumar.model.records import ArtifactDetail

STORED_MODE: Final = 0o444
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
    previous_artifacts: Path | None = None,
    previous_checked: bool = False,
    cache: StatCache | None = None,
    never: Iterable[Path] = (),
    allow: Callable[[Mapping[str, int]], None] | None = None,
) -> Manifest:
    """Store everything that ``paths`` name below ``target_artifacts``, an existing empty directory, and return what it was.

    Nothing is written before every path was looked at, and ``allow``, which gets their sizes in bytes, did not raise. Nothing is
    synced. ``previous_checked`` says that the previous snapshot's files were made by this process; otherwise their sizes are
    compared with its manifest before they are linked to. Errors: :class:`ArtifactError` for a path that is missing, unreadable,
    leads outside or keeps changing; :class:`jumar.errors.StoreWriteError` when the disk refuses.
    """
    times_tell(source_root)
    found = survey(source_root, paths, never)
    if allow is not None:
        allow({f"{folder.path}/{name}".lstrip("/"): status.st_size for folder in found for name, status in folder.entries})
    before = _Before(previous.entries if previous else {}, previous_artifacts, previous_checked)
    with OpenFolders(source_root) as sources:
        snapshot = _Snapshot(sources, target_artifacts, before, cache or StatCache())
        for folder in found:
            snapshot.store(folder)
    entries = snapshot.entries
    ordered = entries if len(found) < 2 else dict(sorted(entries.items()))
    return Manifest(MappingProxyType(ordered))


@dataclass(frozen=True, slots=True)
class _Before:
    """The snapshot that is linked to; without artifacts nothing is."""

    entries: Mapping[str, ArtifactDetail]
    artifacts: Path | None
    checked: bool

    def open(self, folder: str) -> int | None:
        if self.artifacts is None or not self.entries:
            return None
        try:
            return os.open(_joined(os.fspath(self.artifacts), folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None


class _Snapshot:
    """One snapshot being taken."""

    def __init__(self, sources: OpenFolders, target: Path, before: _Before, cache: StatCache) -> None:
        self.entries: dict[str, ArtifactDetail] = {}
        self._sources = sources
        self._target = os.fspath(target)
        self._before = before
        self._cache = cache
        self._made: set[str] = {""}

    def store(self, folder: Folder) -> None:
        """Store one folder's entries."""
        with files.as_write_error("write the snapshot", Path(self._target)):
            self._make(folder.path)
            target_fd = os.open(_joined(self._target, folder.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            before_fd = self._before.open(folder.path)
            try:
                self._store_entries(folder, target_fd, before_fd)
            finally:
                os.close(target_fd)
                if before_fd is not None:
                    os.close(before_fd)

    def _make(self, folder: str) -> None:
        if folder in self._made:
            return
        self._make(folder.rpartition("/")[0])
        os.mkdir(_joined(self._target, folder))
        self._made.add(folder)

    def _store_entries(self, folder: Folder, target_fd: int, before_fd: int | None) -> None:
        """Link what is known to be unchanged, then see to the rest."""
        prefix = f"{folder.path}/" if folder.path else ""
        earlier, known, entries, link = self._before.entries, self._cache.get, self.entries, self._link
        rest: list[tuple[str, str, os.stat_result]] = []
        for name, status in folder.entries:
            path = prefix + name
            before = earlier.get(path)
            if before is not None and before_fd is not None:
                now = known(path, status)
                if now is not None and _alike(now, before) and link(name, before, before_fd, target_fd):
                    entries[path] = before
                    continue
            rest.append((path, name, status))
        if rest:
            fds = (self._sources.open(folder.path), target_fd, before_fd)
            for path, name, status in rest:
                self.entries[path] = self._store_one(path, name, status, fds)

    def _link(self, name: str, before: ArtifactDetail, before_fd: int, target_fd: int) -> bool:
        """Link to the previous snapshot's file; False when that is not what its manifest says, or a link cannot be made."""
        try:
            if not self._before.checked and os.stat(name, dir_fd=before_fd, follow_symlinks=False).st_size != before.size:
                return False
            os.link(name, name, src_dir_fd=before_fd, dst_dir_fd=target_fd, follow_symlinks=False)
        except OSError:
            # Whatever forbids the link (EMLINK, EXDEV, EPERM, a missing file) does not forbid a copy; a disk that is full or
            # broken says so again there. A link that was made although its call failed is taken away, so that the copy finds
            # its name free.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=target_fd)
            return False
        return True

    def _store_one(self, path: str, name: str, status: os.stat_result, fds: tuple[int, int, int | None]) -> ArtifactDetail:
        source_fd, target_fd, before_fd = fds
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFLNK:
            return _store_link(path, name, source_fd, target_fd)
        if kind != stat.S_IFREG:
            mode = stat.S_IMODE(status.st_mode)
            return ArtifactDetail(path=path, kind="special", mode=mode, skipped=_KINDS.get(kind, "special"))
        before = self._before.entries.get(path)
        if before is not None and before_fd is not None and before.kind == "file" and before.size == status.st_size:
            detail = self._read(path, name, source_fd, None)
            if _alike(detail, before) and self._link(name, before, before_fd, target_fd):
                return before
        return self._read(path, name, source_fd, target_fd)

    def _read(self, path: str, name: str, source_fd: int, target_fd: int | None) -> ArtifactDetail:
        """Hash a file, and copy it where ``target_fd`` is given; believed only when its stat stayed the same."""
        for _ in range(_TRIES):
            looked_at = time.time_ns()
            fd = _open_source(path, name, source_fd)
            try:
                before = os.fstat(fd)
                if not stat.S_ISREG(before.st_mode):
                    raise ArtifactError(f"'{escape(path)}' was replaced while it was read: end what writes it, or exclude it")
                digest, size = (
                    _copy(path, fd, before.st_size, name, target_fd) if target_fd is not None else _hash(path, fd, before.st_size)
                )
                after = os.fstat(fd)
            finally:
                os.close(fd)
            if file_identity(before) == file_identity(after) and size == after.st_size:
                detail = ArtifactDetail(path=path, content_hash=digest, mode=stat.S_IMODE(after.st_mode), size=size)
                self._cache.put(path, after, looked_at, detail)
                return detail
            if target_fd is not None:
                os.unlink(name, dir_fd=target_fd)
        raise ArtifactError(f"'{escape(path)}' keeps changing while it is read: end what writes it, or exclude it")


_KINDS: Final = {stat.S_IFIFO: "FIFO", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


def _alike(now: ArtifactDetail, before: ArtifactDetail) -> bool:
    """Return whether a regular file may be linked to the previous snapshot's: same content, same mode."""
    return now.content_hash == before.content_hash and now.mode == before.mode and before.kind == "file"


def _joined(root: str, folder: str) -> str:
    return f"{root}/{folder}" if folder else root


def _store_link(path: str, name: str, source_fd: int, target_fd: int) -> ArtifactDetail:
    try:
        target = os.readlink(name, dir_fd=source_fd)
    except OSError as error:
        raise ArtifactError(f"the link '{escape(path)}' changed while it was read: run again") from error
    os.symlink(target, name, dir_fd=target_fd)
    raw = os.fsencode(target)
    digest = files.sha256_bytes(raw)
    return ArtifactDetail(path=path, kind="symlink", content_hash=digest, mode=0o777, size=len(raw), target=target)


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


def _hash(path: str, fd: int, expected: int) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for chunk in _chunks(path, fd, expected):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def _copy(path: str, source: int, expected: int, name: str, target_fd: int) -> tuple[str, int]:
    digest = hashlib.sha256()
    target = os.open(name, _CREATE, STORED_MODE, dir_fd=target_fd)
    try:
        files.write_like(target, source, _chunks(path, source, expected), digest.update)
        size = os.fstat(target).st_size
        os.fchmod(target, STORED_MODE)
    finally:
        os.close(target)
    return digest.hexdigest(), size


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
