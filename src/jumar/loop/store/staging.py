"""Building an iteration's directory before anyone can see it, and reading one that waits to be scored."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from jumar.core import files, leftovers
from jumar.core.codec import FORMAT, decode, encode, seal_of
from jumar.core.redaction import NOTHING, current
from jumar.core.text import escape, human_size
from jumar.errors import StoreDamagedError
from jumar.loop.snapshots.content import Content, PlainFiles
from jumar.loop.snapshots.manifest import Manifest, ManifestFile
from jumar.loop.snapshots.objects import Adding, Objects
from jumar.loop.snapshots.snapshot import StatCache, take_snapshot
from jumar.loop.store.layout import (
    ARTIFACTS,
    ELSEWHERE,
    LOGS,
    MANIFEST,
    METRICS,
    STAGE,
    LoopPaths,
    iteration_name,
    iteration_number,
)
from jumar.loop.store.reading import Read, read_record
from jumar.loop.store.trust import place_of
from jumar.model.decisions import Decision
from jumar.model.records import IterationRecord

_CHUNK: Final = 1 << 20
_CLEANED_TO: Final = 64 << 20  # bytes of a log: what jumar writes itself is capped far below
_KEPT_BYTES: Final = 64 << 20  # of all that a program left beside the logs of one iteration
_KEPT_FILES: Final = 1000
_LEFT_OUT: Final = "left-out.txt"
_UNREADABLE: Final = frozenset({errno.EACCES, errno.ENAMETOOLONG, errno.ENOENT, errno.ELOOP, errno.ENXIO})
_ELSEWHERE: Final = """\
The files of this iteration are kept by their content, once for all iterations that hold them, in objects/ of the root.
`jumar files LOOP {number} -o DIRECTORY` writes them where you can look at them.
"""
_COMPACT_FROM: Final = 64  # entries from which indented JSON costs more than reading it is worth


@dataclass(frozen=True, slots=True)
class Base:
    """The iteration that the manifest of a new one may be the difference to."""

    number: int
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A snapshot that is on disk and not yet acknowledged.

    ``stage`` is what the caller wanted kept with it; ``record`` is set when it was scored and only its last rename is missing;
    ``file`` is ``manifest.json``, all or the difference to the iteration that it names. ``content`` is where its files lie.
    """

    number: int
    directory: Path
    stage: Mapping[str, Any]
    manifest: Manifest
    nonce: str
    attempt: int | None
    record: IterationRecord | None = None
    file: ManifestFile
    content: Content

    @property
    def logs(self) -> Path:
        return self.directory / LOGS

    @property
    def artifacts(self) -> Path:
        return self.directory / ARTIFACTS

    @property
    def whole(self) -> bool:
        """Whether every file lies there, in its size. What they hold is compared wherever they are used."""
        return self.artifacts.is_dir() and next(self.content.lacking(self.manifest.entries.values()), None) is None


@contextlib.contextmanager
def whole_or_gone(directory: Path) -> Generator[None]:
    """Remove what the body makes at ``directory`` when the body fails: half of it is of no use, and the disk may be full."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            leftovers.remove_tree(directory)
        raise


def build(
    temporary: Path,
    *,
    number: int,
    source: Path,
    paths: Iterable[str],
    nonce: str,
    attempt: int | None,
    stage: Mapping[str, Any],
    loop: str,
    base: Base | None,
    cache: StatCache,
    adding: Adding | None = None,
    logs: Path | None = None,
    never: tuple[Path, ...] = (),
    allow: Callable[[Mapping[str, int]], None] | None = None,
) -> tuple[Manifest, ManifestFile]:
    """Fill the new directory ``temporary`` with snapshot, manifest, stage and logs. Nothing of it is synced, what is added is.

    For the arguments see :meth:`jumar.loop.store.loop_store.LoopStore.stage`; ``loop`` is the loop's nonce. Errors:
    :class:`jumar.errors.ArtifactError`, :class:`jumar.errors.StoreWriteError`; the directory is then the caller's to remove.
    """
    with files.as_write_error("create", temporary):
        os.mkdir(temporary)
        os.mkdir(temporary / ARTIFACTS)
    taken = take_snapshot(
        source,
        paths,
        temporary / ARTIFACTS,
        previous=base.manifest if base else None,
        adding=adding,
        cache=cache,
        never=never,
        allow=allow,
    )
    manifest, file = taken.against(base.number, base.manifest) if base else taken.whole()
    staged = {"format": FORMAT, "number": number, "nonce": nonce, "attempt": attempt, "stage": dict(stage)}
    place = place_of(loop, f"/{iteration_name(number)}/")
    with files.as_write_error("write", temporary):
        if manifest.by_hash and adding is not None:
            adding.finish()
            write_plain(temporary / ARTIFACTS / ELSEWHERE, _ELSEWHERE.format(number=number).encode())
        listed = file.encode(place + MANIFEST)
        write_plain(temporary / MANIFEST, listed)
        write_plain(temporary / STAGE, encode(staged, sealed=True, place=place + STAGE))
        _copy_logs(logs, temporary / LOGS)
    return manifest, replace(file, seal=seal_of(listed))


def write_plain(path: Path, data: bytes) -> None:
    """Create a file in a directory that is still being built. Nothing is synced."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        files.write_all(fd, data)
    finally:
        os.close(fd)


def _copy_logs(source: Path | None, target: Path) -> None:
    """Copy regular files and directories only: what else a generator left there, or what cannot be read, is not a log.

    What is more than a log can be is named in ``left-out.txt`` instead.
    """
    os.mkdir(target)
    if source is None or not files.is_directory(source):
        return
    room, most = _KEPT_BYTES, _KEPT_FILES
    left_out: list[str] = []
    for relative, entry in files.walk(source, lenient=True):
        try:
            status = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                continue
            if status.st_size > room or not most or relative == _LEFT_OUT:
                left_out.append(f"{escape(relative)}: {human_size(status.st_size)}\n")
                continue
            room, most = room - status.st_size, most - 1
            copy = target / relative
            copy.parent.mkdir(parents=True, exist_ok=True)
            _copy_log(Path(entry.path), copy, status.st_size)
        except OSError as error:
            if error.errno not in _UNREADABLE:
                raise
    if left_out:
        head = f"Not kept, as logs hold {human_size(_KEPT_BYTES)} and {_KEPT_FILES:,} files of what a program leaves there:\n"
        more = [] if len(left_out) <= _KEPT_FILES else [f"and {len(left_out) - _KEPT_FILES:,} more\n"]
        write_plain(target / _LEFT_OUT, "".join([head, *left_out[:_KEPT_FILES], *more]).encode())


def _copy_log(source: Path, target: Path, size: int) -> None:
    """Copy the first ``size`` bytes of a file that a program may have written itself, and may go on writing, without secrets."""
    stream = current().stream()
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            while size and (chunk := os.read(reading, min(size, _CHUNK))):
                files.write_all(writing, stream.feed(chunk))
                size -= len(chunk)
            files.write_all(writing, stream.finish())
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def clean_logs(logs: Path) -> None:
    """Take the secrets out of what checks and scorers left beside the logs. Nothing is synced."""
    redactor = current()
    if redactor is NOTHING or not logs.is_dir():
        return
    for _, entry in files.walk(logs):
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(status.st_mode) and 0 < status.st_size <= _CLEANED_TO:
            path = Path(entry.path)
            data = files.read_bytes(path)
            clean = redactor.redact_bytes(data)
            if clean is not data:
                files.replace_file(path, clean)


def metrics_bytes(record: IterationRecord, manifest: Manifest, file: ManifestFile, loop: str) -> bytes:
    """Return ``metrics.json`` of the loop with this nonce, paths relative to it.

    For a manifest with a base, only what differs from it is listed; where the files lie by their hashes, nothing: the iteration
    is its own base then, and its manifest says it all.
    """
    details = () if manifest.by_hash else file.changed
    relative = f"iterations/{iteration_name(record.iteration_number)}"
    data = record.to_json()
    data["snapshot_path"] = f"{relative}/{ARTIFACTS}"
    data["artifacts"] = [f"{relative}/{ARTIFACTS}/{detail.path}" for detail in details if detail.kind != "special"]
    data["artifacts_detail"] = [detail.to_json() for detail in details]
    base = record.iteration_number if manifest.by_hash else manifest.base
    if base is not None:
        data["artifacts_base"] = base
    data["artifacts_seal"] = file.seal
    return encode(data, compact=len(details) > _COMPACT_FROM, sealed=True, place=place_of(loop, f"{relative}/{METRICS}"))


def decision_bytes(decision: Decision, place: str | None = None) -> bytes:
    """Return a decision's file; the plan of an apply, or a cleanup, that lists many things is compact."""
    data = decision.data
    lists = [*data.values(), *data["moves"].values()] if "moves" in data else data.values()
    entries = max((len(cast("list[object]", each)) for each in lists if isinstance(each, list)), default=0)
    return encode(decision.to_json(), compact=entries > _COMPACT_FROM, sealed=True, place=place)


def read_pending(
    paths: LoopPaths, name: str, read: Read, compose: Callable[[ManifestFile], Manifest], objects: Objects
) -> Pending:
    """Read one directory of ``pending/``. Errors: :class:`StoreDamagedError`; ``FileNotFoundError`` when it is gone."""
    directory = paths.pending / name
    number = iteration_number(name)
    if not os.path.lexists(directory):
        raise FileNotFoundError(directory)
    if not files.is_directory(directory):
        if not os.path.lexists(directory):  # it was there a moment ago
            raise FileNotFoundError(directory)
        raise StoreDamagedError(f"{directory}: is no directory")
    try:
        stage = decode(read(directory / STAGE), os.fspath(directory / STAGE))
        listed = ManifestFile.from_json(decode(read(directory / MANIFEST), os.fspath(directory / MANIFEST)))
        record = read_record(directory / METRICS, read)[0] if (directory / METRICS).exists() else None
    except StoreDamagedError:
        if not directory.is_dir():
            raise FileNotFoundError(directory) from None
        raise
    if stage.integer("number") != number:
        raise StoreDamagedError(f"{directory}: holds iteration {stage.integer('number')}; was it renamed by hand?")
    return Pending(
        number=stage.integer("number"),
        directory=directory,
        stage=MappingProxyType(dict(stage.section("stage").data)),
        manifest=compose(listed),
        file=listed,
        nonce=stage.text("nonce"),
        attempt=stage.integer_or_none("attempt"),
        record=record,
        content=objects if listed.by_hash else PlainFiles(directory / ARTIFACTS),
    )
