"""How a directory becomes a loop: built aside and renamed, or, when it exists already, by the link of its ``loop.json``.

The directory of seed 2's original tool, which keeps everything in one ``best-output-tracking.json``, is imported: its
``iterations/`` becomes ``foreign-iterations/`` and stays as it was, the tracking file is kept beside it; the loop is built aside
and becomes one with the link of its ``loop.json``. Before that link every step can be done again from the beginning.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from jumar.core import files, leftovers
from jumar.core.codec import FORMAT, Fields, decode, encode
from jumar.core.lock import LoopLock
from jumar.errors import StoreDamagedError, UsageError
from jumar.loop.snapshots.snapshot import StatCache
from jumar.loop.store.layout import (
    ARTIFACTS,
    BEGUN_INSIDE,
    METRICS,
    LoopPaths,
    check_loop_id,
    iteration_name,
    prepare_root,
    root_of,
)
from jumar.loop.store.reading import CLEANED
from jumar.loop.store.staging import Base, build, decision_bytes, metrics_bytes, whole_or_gone, write_plain
from jumar.loop.store.trust import place_of
from jumar.model.decisions import Decision
from jumar.model.records import VERIFICATIONS, IterationRecord, Usage, Verification
from jumar.processes.process_tree import programs_above


def create_loop(directory: Path, loop_id: str, config: Mapping[str, Any], *, workdir: Path | None, created_at: str) -> None:
    """Make ``directory`` a loop. Its parents are created; a parent called ``loops`` becomes part of a whole root.

    Errors: :class:`UsageError` when it is a loop already or ``loop_id`` is not allowed, :class:`jumar.errors.StoreWriteError`,
    :class:`jumar.errors.LockedError`.
    """
    check_loop_id(loop_id)
    paths = LoopPaths(Path(os.path.abspath(directory)))
    data = loop_json(paths.directory, loop_id, config, workdir=workdir, created_at=created_at)
    with files.as_write_error("create", paths.directory):
        if paths.root != paths.directory:
            prepare_root(paths.root, paths.directory.parent)
        else:
            files.make_directory(paths.directory.parent)
    _refuse_loop(paths)  # before its lock, which whoever works in it has
    with LoopLock(paths.lock) if paths.directory.is_dir() else contextlib.nullcontext():
        _refuse_loop(paths)
        with files.as_write_error("create", paths.directory):
            if paths.directory.is_dir():
                _become(paths, data)
            else:
                _build(paths, data)


def _refuse_loop(paths: LoopPaths, cause: OSError | None = None) -> None:
    if paths.loop_json.exists():
        raise UsageError(f"{paths.directory} is a loop already; open it, or choose another id") from cause


def _become(paths: LoopPaths, data: bytes) -> None:
    """Turn a directory that exists into a loop; it is none until the last step."""
    for directory in paths.subdirectories:
        directory.mkdir(exist_ok=True)
    files.write_once(paths.loop_json, data)


def _build(paths: LoopPaths, data: bytes, fill: Callable[[LoopPaths], object] = id) -> None:
    temporary = LoopPaths(paths.directory.with_name(leftovers.temporary_name()))
    try:
        with whole_or_gone(temporary.directory):
            temporary.directory.mkdir()
            for directory in temporary.subdirectories:
                directory.mkdir()
            fill(temporary)
            files.write_once(temporary.loop_json, data)
            files.fsync_directory(temporary.directory)
            files.rename_new(temporary.directory, paths.directory)
    except OSError as error:
        _refuse_loop(paths, error)  # somebody else was faster
        raise


def loop_json(
    directory: Path,
    loop_id: str,
    config: Mapping[str, Any],
    *,
    workdir: Path | None,
    created_at: str,
    nonce: str | None = None,
) -> bytes:
    """Return the bytes of ``loop.json``, with a new nonce where none is given.

    Errors: ``TypeError`` and ``ValueError`` for a configuration that is not JSON.
    """
    nonce = nonce or secrets.token_hex(8)
    outer = next((loop for loop, iteration, _ in programs_above() if iteration), None)
    return encode(
        {
            "format": FORMAT,
            "loop_id": loop_id,
            **({} if outer is None else {BEGUN_INSIDE: outer}),
            "created_at": created_at,
            "nonce": nonce,
            "workdir": None if workdir is None else _movable(directory, workdir),
            "config": dict(config),
        },
        sealed=True,
        place=place_of(nonce, directory / "loop.json"),
    )


def _movable(directory: Path, workdir: Path) -> str:
    """Return ``workdir`` relative to the loop when both move together: one lies in the other's project, and no link between."""
    loop, work = os.path.realpath(directory), os.path.realpath(workdir)
    root = root_of(Path(loop))
    inside = root.parents[root == Path(loop)] if len(Path(loop).parts) > 3 else Path(loop)
    together = Path(work).is_relative_to(inside) or Path(loop).is_relative_to(work)
    found = os.path.relpath(work, loop)
    return found if together and os.path.realpath(os.path.abspath(directory / found)) == work else work


FOREIGN_ITERATIONS: Final = "foreign-iterations"
FOREIGN_TRACKING: Final = "foreign-best-output-tracking.json"
_BUILD: Final = f"{leftovers.TEMPORARY}import"
_BEST_SCORE: Final = 100
_HIGHEST: Final = 999_999_999


def is_foreign(directory: Path) -> bool:
    """Return whether ``directory`` holds a foreign tracking file, or an import of one that was interrupted, and no loop.

    A loop of ours that lost its ``loop.json`` is not foreign, although its tracking file looks the same.
    """
    paths = LoopPaths(directory)
    if not paths.tracking_view.is_file() or paths.loop_json.exists():
        return False
    return (directory / FOREIGN_ITERATIONS).is_dir() or not any(paths.iterations.glob(f"*/{METRICS}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a loop already was: ``records`` by number, ``directories`` the names that their snapshots may have."""

    loop_id: str
    config: Mapping[str, object]
    last_updated: str
    records: tuple[IterationRecord, ...]
    directories: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])


def create_from(directory: Path, past: Past, *, workdir: Path | None, created_at: str) -> None:
    """Make a new directory a loop that has iterations already, whole or not at all; their snapshots are not there.

    Errors: as of :func:`create_loop`.
    """
    check_loop_id(past.loop_id)
    paths = LoopPaths(Path(os.path.abspath(directory)))
    nonce = secrets.token_hex(8)
    data = loop_json(paths.directory, past.loop_id, past.config, workdir=workdir, created_at=created_at, nonce=nonce)
    with files.as_write_error("create", paths.directory):
        prepare_root(paths.root, paths.directory.parent)
        _refuse_loop(paths)
        _build(paths, data, partial(_build_iterations, past=past, nonce=nonce, source=None))


def import_foreign(paths: LoopPaths) -> None:
    """Turn the foreign directory into a loop. Scores stay as they were written, integers included.

    Errors: :class:`StoreDamagedError` for a tracking file that cannot be read, with nothing changed;
    :class:`jumar.errors.StoreWriteError`, :class:`jumar.errors.LockedError`.
    """
    with LoopLock(paths.lock):
        if paths.loop_json.exists():  # somebody else was faster
            return
        found = read_tracking(paths.tracking_view)
        with files.as_write_error("import", paths.directory):
            leftovers.remove_tree(paths.directory / _BUILD)
            nonce = secrets.token_hex(8)
            new = LoopPaths(paths.directory / _BUILD)
            new.directory.mkdir()
            new.iterations.mkdir()
            new.decisions.mkdir()
            kept = paths.directory / FOREIGN_ITERATIONS
            _build_iterations(new, found, nonce, source=kept if kept.is_dir() else paths.iterations)
            _put_in_place(paths)
            with contextlib.suppress(FileExistsError):
                files.write_once(paths.directory / FOREIGN_TRACKING, files.read_bytes(paths.tracking_view))
            created_at = found.records[0].timestamp if found.records else found.last_updated
            data = loop_json(paths.directory, found.loop_id, found.config, workdir=None, created_at=created_at, nonce=nonce)
            files.write_once(paths.loop_json, data)


def read_tracking(path: Path, way: str = "mend it, or move it away to begin a new loop here") -> Past:
    """Read the tracking file of the original tool. Errors: :class:`StoreDamagedError` that says the way out."""
    try:
        fields = decode(files.read_bytes(path), os.fspath(path), versioned=False)
        listed = list(fields.sections("iterations"))
        baseline = fields.section_or_none("baseline")
        records = [_record(item) for item in ([baseline] if baseline else []) + listed]
        _check_numbers(path, [record.iteration_number for record in records])
        section = fields.section_or_none("config")
        return Past(
            loop_id=fields.text("loop_id"),
            config=MappingProxyType(dict(section.data) if section else {}),
            last_updated=fields.text_or_none("last_updated") or "",
            records=tuple(sorted(records, key=lambda record: record.iteration_number)),
            directories={record.iteration_number: _directories(record) for record in records},
        )
    except StoreDamagedError as error:
        raise StoreDamagedError(f"{error}. The tracking file cannot be imported as it is: {way}") from error


def _check_numbers(path: Path, numbers: list[int]) -> None:
    if len(set(numbers)) != len(numbers) or min(numbers, default=0) < 0 or max(numbers, default=0) > _HIGHEST:
        raise StoreDamagedError(
            f"{path}: iteration numbers have to be different and not negative, found {numbers!s:.200}; at most {_HIGHEST}"
        )


def _record(fields: Fields) -> IterationRecord:
    score = fields.number_or_none("quality_score")
    valid = score is not None and 0 <= score <= _BEST_SCORE
    tokens = fields.integer_or_none("tokens_used") or None  # the original has 0 where nothing was reported
    cost = fields.number_or_none("token_cost_usd") or None
    elapsed = fields.number_or_none("execution_time_ms") or None
    verification = "skipped"
    if fields.data.get("verification_status") is not None:
        verification = fields.choice("verification_status", VERIFICATIONS)
    return IterationRecord(
        iteration_number=fields.integer("iteration_number"),
        timestamp=fields.text_or_none("timestamp") or "",
        quality_score=score if valid else None,
        quality_delta=fields.number_or_none("quality_delta"),
        dimensions=MappingProxyType(fields.numbers("dimensions") if fields.data.get("dimensions") is not None else {}),
        tokens_used=tokens,
        token_cost_usd=cost,
        execution_time_ms=elapsed,
        verification_status=cast("Verification", verification),
        snapshot_path=fields.text_or_none("snapshot_path") or "",
        reflections=fields.texts("reflections"),
        status="ok" if valid else "invalid_score",
        status_reason=""
        if valid
        else f"imported without a score between 0 and 100 (found {fields.data.get('quality_score')!r:.40})",
        usage=Usage(tokens_used=tokens, token_cost_usd=cost),
        nonce=secrets.token_hex(8),
    )


def _directories(record: IterationRecord) -> tuple[str, ...]:
    named = record.snapshot_path.rstrip("/").rpartition("/")[2]
    usual = iteration_name(record.iteration_number)
    return (usual,) if named in {"", ".", "..", usual} else (named, usual)


def _build_iterations(new: LoopPaths, past: Past, nonce: str, source: Path | None) -> None:
    """Fill ``iterations/`` and ``decisions/`` of a loop that is built aside, durable; ``source`` holds the snapshots, if any."""
    base: Base | None = None
    gone: list[int] = []
    for record in past.records:
        number = record.iteration_number
        snapshot = None if source is None else snapshot_of(source, past.directories[number])
        if snapshot is None:
            gone.append(number)
        base = build_iteration(new.iteration(number), record, snapshot, base, nonce)
    if gone:
        write_cleaned(new, gone, past, nonce)
    files.sync_tree(new.directory)


def snapshot_of(source: Path, names: tuple[str, ...]) -> Path | None:
    """Return the directory that one of ``names`` has in ``source``, None where none is there."""
    for name in names:
        candidate = source / name
        if candidate.is_dir() and not candidate.is_symlink():
            return candidate
    return None


def build_iteration(
    directory: Path, record: IterationRecord, snapshot: Path | None, base: Base | None, nonce: str
) -> Base | None:
    """Build one iteration; returns what the next one's files are compared with."""
    number = record.iteration_number
    manifest, file = build(
        directory,
        number=number,
        source=snapshot or directory.parent,
        paths=() if snapshot is None else (".",),
        nonce=record.nonce,
        attempt=None,
        stage={"imported": True},
        loop=nonce,
        base=base,
        cache=StatCache(),
    )
    metrics = metrics_bytes(record, manifest, file, nonce)
    write_plain(directory / METRICS, metrics)  # whoever builds syncs all of it at once
    if snapshot is None:
        (directory / ARTIFACTS).rmdir()
        return base
    return Base(number, manifest)


def write_cleaned(paths: LoopPaths, gone: list[int], past: Past, nonce: str, number: int = 1) -> None:
    """Write the decision by which it is known that these iterations never had a snapshot here."""
    decision = Decision(
        number=number,
        kind="cleanup",
        best_iteration=None,
        final_iteration=past.records[-1].iteration_number,
        delta=None,
        decision=None,
        reason="their snapshots were not there when they were imported",
        by="import",
        at=past.last_updated,
        data={CLEANED: gone},
    )
    path = paths.decisions / f"{number:04d}-cleanup.json"
    files.write_once(path, decision_bytes(decision, place_of(nonce, path)))


def _put_in_place(paths: LoopPaths) -> None:
    """Exchange ``iterations/``: the foreign one gets its new name once, what an interrupted import left is removed."""
    new = LoopPaths(paths.directory / _BUILD)
    kept = paths.directory / FOREIGN_ITERATIONS
    if not kept.exists():
        if paths.iterations.is_dir():
            files.rename_new(paths.iterations, kept)
        else:
            files.make_directory(kept)
    for target, built in ((paths.iterations, new.iterations), (paths.decisions, new.decisions)):
        if target.is_dir():
            aside = paths.directory / leftovers.temporary_name()
            files.rename_new(target, aside)
            leftovers.remove_tree(aside)
        files.rename_new(built, target)
    for directory in paths.subdirectories:
        files.make_directory(directory)
    leftovers.remove_tree(new.directory)
