"""Carrying out moves so that they can be stopped at any system call and completed or taken back afterwards.

First everything that is needed is laid out and synced outside of the working directory: the undo copy of what will be replaced,
then the new files. Only then the tree is touched, and from there on only with unlink, mkdir, rmdir and rename.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Generator
from pathlib import Path

from jumar.core.files import as_write_error, make_directory, read_chunks, rename_new, sync_tree, write_like, write_once
from jumar.core.leftovers import TEMPORARY, remove_tree
from jumar.core.text import escape
from jumar.errors import ArtifactError, ConflictError, JumarError, StoreDamagedError
from jumar.loop.decisions.tree_changes import Moves, conflict_message
from jumar.loop.snapshots.scan import RESTORE_PREFIX
from jumar.loop.snapshots.snapshot import take_snapshot
from jumar.loop.snapshots.tree import Tree, same
from jumar.loop.store.layout import LoopPaths
from jumar.loop.store.staging import ARTIFACTS, MANIFEST
from jumar.model.records import ArtifactDetail

_READABLE = 0o400


def keep_copy(paths: LoopPaths, number: int, workdir: Path, moves: Moves) -> Path:
    """Copy everything that the moves replace or remove to ``undo/<number>``, durable when this returns; return its artifacts.

    The copy is compared with what the moves say stands there. A copy that is there already is left as it is. Errors:
    :class:`ConflictError` when a file is not what it was, :class:`jumar.errors.StoreWriteError`.
    """
    target = paths.undo_of(number)
    if target.is_dir():
        return target / ARTIFACTS
    wanted = {change.path: change.before for change in moves.changes if change.before is not None}
    temporary = target.with_name(TEMPORARY + target.name)
    with as_write_error("keep a copy in", target), _removing(temporary):
        make_directory(temporary / ARTIFACTS)
        try:
            manifest = take_snapshot(workdir, wanted, temporary / ARTIFACTS)
        except ArtifactError as error:
            raise ConflictError(f"{error}; nothing was written") from error
        strange = [path for path, detail in wanted.items() if not same(manifest.entries.get(path), detail)]
        if strange:
            raise ConflictError(conflict_message(strange, "changed since the plan was made") + "; nothing was written")
        write_once(temporary / MANIFEST, manifest.whole()[1].encode())
        sync_tree(temporary)
        rename_new(temporary, target)
    return target / ARTIFACTS


def carry_out(paths: LoopPaths, number: int, tree: Tree, moves: Moves, source: Path, *, resumed: bool) -> None:
    """Bring ``tree`` from the beginning of the moves to their end, with new content from ``source``; durable when this returns.

    What has arrived already is left alone, so that this may be called again after it was interrupted. ``number`` is the
    decision's, for the names of temporary files. Errors: :class:`ConflictError` when a path is neither at its beginning nor
    at its end: before anything is touched when that is seen in time, else in the middle, with ``tree.touched`` telling which.
    :class:`StoreDamagedError` when ``source`` is not what the moves say; :class:`jumar.errors.StoreWriteError`.
    """
    fallback = f"{RESTORE_PREFIX}apply-{number:04d}"
    stage = paths.scratch / f"apply-{number:04d}"
    todo = moves.remaining(tree, resumed=resumed)
    writes = [(change.path, change.after) for change in moves.changes if change.path in todo and change.after is not None]
    staged = _lay_out(stage, source, writes)
    tree.sweep(todo, fallback)
    for change in reversed(moves.changes):
        if change.path in todo and change.after is None:
            tree.remove(change.path, todo[change.path])
    for directory in moves.drop:
        tree.drop_directory(directory)
    for directory in moves.make:
        tree.make_directory(directory)
    for path, _ in writes:
        tree.place(path, staged[path], todo[path], fallback)
    for directory, mode in reversed(list(moves.make.items())):
        if mode is not None:
            tree.set_directory_mode(directory, mode)
    tree.sync()
    with as_write_error("remove", stage):
        remove_tree(stage)


@contextlib.contextmanager
def _removing(directory: Path) -> Generator[None]:
    """Begin without ``directory``; when the body fails, don't leave half of it on a disk that may be full."""
    remove_tree(directory)
    try:
        yield
    except (JumarError, OSError):
        with contextlib.suppress(OSError):
            remove_tree(directory)
        raise


def _lay_out(stage: Path, source: Path, writes: list[tuple[str, ArtifactDetail]]) -> dict[str, Path]:
    """Copy the new files to ``stage``, with their real modes, synced, and compared with their hashes."""
    with as_write_error("prepare the files in", stage), _removing(stage):
        make_directory(stage)
        staged: dict[str, Path] = {}
        for index, (path, detail) in enumerate(writes):
            staged[path] = stage / f"{index:06d}"
            if detail.kind == "symlink":
                os.symlink(detail.target or "", staged[path])
            else:
                _copy(source / path, staged[path], detail)
        sync_tree(stage)
        for path, detail in writes:
            if detail.kind == "file" and not detail.mode & _READABLE:  # could not have been opened to be synced
                os.chmod(staged[path], detail.mode)
    return staged


def _copy(source: Path, target: Path, detail: ArtifactDetail) -> None:
    try:
        reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        reason = f"cannot be read ({os.strerror(error.errno or 0)}); `jumar verify` lists what is damaged"
        raise StoreDamagedError(f"{escape(str(source))} {reason}") from error
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            digest = hashlib.sha256()
            write_like(writing, reading, read_chunks(reading), digest.update)
            os.fchmod(writing, detail.mode | _READABLE)
        finally:
            os.close(writing)
    finally:
        os.close(reading)
    if digest.hexdigest() != detail.content_hash:
        raise StoreDamagedError(f"{escape(str(source))} is not what was stored; `jumar verify` lists what is damaged")
