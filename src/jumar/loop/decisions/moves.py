"""What a working directory has to go through, as a value, and how it is carried out.

For every path a move says what stands there and what shall stand there. A set of moves is written into a decision before
anything is touched. It has an inverse, and it can be carried out again after it was interrupted: a path that has arrived is left
alone, one that stands at its beginning is moved, and one that is neither was changed by somebody else.

First everything that is needed is laid out and synced outside of the working directory: the undo copy of what will be replaced,
then the new files. Only then the tree is touched, and from there on only with unlink, mkdir, rmdir and rename.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from jumar.core.codec import Fields
from jumar.core.files import (
    as_write_error,
    check_names,
    make_directory,
    rename_new,
    sync_tree,
    write_once,
)
from jumar.core.leftovers import TEMPORARY, remove_any, remove_tree
from jumar.core.record import Record, load, octal, read_octal, stored
from jumar.core.text import escape, plural
from jumar.errors import ArtifactError, ConflictError
from jumar.loop.snapshots.content import Content, lay_out
from jumar.loop.snapshots.scan import RESTORE_PREFIX, parents_of
from jumar.loop.snapshots.snapshot import take_snapshot
from jumar.loop.snapshots.tree import Tree, same
from jumar.loop.store.layout import ARTIFACTS, MANIFEST, LoopPaths
from jumar.loop.store.staging import whole_or_gone
from jumar.model.records import ArtifactDetail

_SHOWN = 20


def _modes_to_json(modes: Mapping[str, int | None]) -> list[dict[str, Any]]:
    return [{"path": path, "mode": None if mode is None else octal(mode)} for path, mode in modes.items()]


def _modes_from_json(fields: Fields, key: str) -> Mapping[str, int | None]:
    items = fields.sections(key)
    return MappingProxyType(
        {item.text("path"): None if item.data.get("mode") is None else read_octal(item, "mode") for item in items}
    )


_MODES: Final = stored(write=_modes_to_json, read=_modes_from_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Record):
    """One path. None means that neither a file nor a link stands there; ``before`` and ``after`` differ."""

    path: str
    before: ArtifactDetail | None
    after: ArtifactDetail | None

    @property
    def verb(self) -> str:
        """``add``, ``replace`` or ``remove``."""
        if self.after is None:
            return "remove"
        return "add" if self.before is None else "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves(Record):
    """Changes sorted by path, the directories to remove once they are empty, and those to create.

    The directories' permission bits are kept so that the inverse can give them back; None leaves them to the umask.
    """

    changes: tuple[Change, ...]
    drop: Mapping[str, int | None] = field(default_factory=dict[str, int | None], metadata=_MODES)
    make: Mapping[str, int | None] = field(default_factory=dict[str, int | None], metadata=_MODES)

    @classmethod
    def of(cls, changes: Iterable[Change], *, drop: Mapping[str, int | None], make: Mapping[str, int | None]) -> Moves:
        """Return the moves in the order in which they are carried out: directories drop from the deepest, grow from the root."""
        return cls(
            changes=tuple(sorted(changes, key=lambda change: change.path)),
            drop=_deepest_first(drop),
            make=MappingProxyType(dict(sorted(make.items()))),
        )

    @classmethod
    def from_json(cls, fields: Fields) -> Moves:
        """Return the moves. Errors: :class:`StoreDamagedError`, also for a path that leaves the tree."""
        moves = load(cls, fields)
        check_names([*(change.path for change in moves.changes), *moves.drop, *moves.make])
        return moves

    def remaining(self, tree: Tree, *, resumed: bool) -> dict[str, tuple[int, ...] | None]:
        """Return the paths that are still to be moved, each with the stamp of what stands there.

        Errors: :class:`ConflictError` listing the paths that are not at their beginning; those at their end are fine when
        ``resumed``.
        """
        todo: dict[str, tuple[int, ...] | None] = {}
        strange: list[str] = []
        for change in self.changes:
            look = tree.look(change.path)
            if same(look.detail, change.before):
                todo[change.path] = look.stamp
            elif not (resumed and same(look.detail, change.after)):
                strange.append(change.path)
        if strange:
            raise ConflictError(conflict_message(strange, "changed since the plan was made"))
        obstacles = directories(tree, [change for change in self.changes if change.path in todo]).obstacles
        if obstacles:
            raise ConflictError(conflict_message(obstacles, "appeared in the way since the plan was made"))
        return todo


def listed(paths: Iterable[str]) -> str:
    """Return the paths for a message: escaped, the first twenty, and how many more there are."""
    names = sorted(paths)
    shown = ", ".join(escape(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN:,} more"


def conflict_message(paths: Iterable[str], what: str) -> str:
    """Return ``2 paths <what>: a.txt, b.txt``."""
    names = tuple(paths)
    return f"{plural(len(names), 'path')} {what}: {listed(names)}"


class Directories(NamedTuple):
    """What changes mean for directories; see :func:`directories`."""

    replaced: Mapping[str, int | None]
    emptied: Mapping[str, int | None]
    needed: Mapping[str, int | None]
    obstacles: tuple[str, ...]


def directories(tree: Tree, changes: Iterable[Change]) -> Directories:
    """Work out what has to happen to directories for ``changes`` to be possible. Nothing is written.

    ``replaced`` are those that a file takes the place of, ``emptied`` those that lose the last of what is in them, both with
    their permission bits and the deepest first; ``needed`` are missing ones, the outermost first. ``obstacles`` are paths
    that no change removes and that stand where a file or directory has to be: below a directory that a file replaces, or a
    file or link where a directory is needed. With obstacles the changes cannot be carried out.
    """
    removed = {change.path for change in changes if change.after is None}
    written = {change.path for change in changes if change.after is not None}
    above = {parent for path in written for parent in parents_of(path)}
    replaced: dict[str, int | None] = {}
    obstacles: set[str] = set()
    for path in written:
        _look_below(tree, path, removed, replaced, obstacles)
    needed: dict[str, int | None] = {}
    for parent in sorted(above):
        if tree.directory_mode(parent) is None:
            needed[parent] = None
            if parent not in removed and tree.stamp(parent) is not None:
                obstacles.add(parent)
    emptied: dict[str, int | None] = {}
    losing = {parent for path in removed for parent in parents_of(path)} - above - set(replaced)
    for directory in sorted(losing, key=lambda name: name.count("/"), reverse=True):
        mode = tree.directory_mode(directory)
        if mode is not None and not {f"{directory}/{name}" for name in tree.listing(directory)} - removed - set(emptied):
            emptied[directory] = mode
    return Directories(_deepest_first(replaced), _deepest_first(emptied), MappingProxyType(needed), tuple(sorted(obstacles)))


def _deepest_first(modes: Mapping[str, int | None]) -> Mapping[str, int | None]:
    return MappingProxyType(dict(sorted(modes.items(), reverse=True)))


def _look_below(tree: Tree, path: str, removed: set[str], replaced: dict[str, int | None], obstacles: set[str]) -> None:
    """Note every directory from ``path`` downwards as replaced, and everything else there that stays as an obstacle."""
    pending = [path]
    while pending:
        directory = pending.pop()
        mode = tree.directory_mode(directory)
        if mode is None:
            continue
        replaced[directory] = mode
        for name, is_directory in tree.listing(directory).items():
            below = f"{directory}/{name}"
            if is_directory:
                pending.append(below)
            elif below not in removed:
                obstacles.add(below)


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
    with as_write_error("keep a copy in", target), whole_or_gone(temporary):
        remove_any(temporary)
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


def carry_out(paths: LoopPaths, number: int, tree: Tree, moves: Moves, source: Content, *, resumed: bool) -> None:
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


def _lay_out(stage: Path, source: Content, writes: list[tuple[str, ArtifactDetail]]) -> dict[str, Path]:
    """Copy the new files to ``stage``, with their real modes, synced, and compared with their hashes."""
    with as_write_error("prepare the files in", stage), whole_or_gone(stage):
        remove_any(stage)
        make_directory(stage)
        staged: dict[str, Path] = {}
        for index, (path, detail) in enumerate(writes):
            staged[path] = stage / f"{index:06d}"
            if detail.kind == "symlink":
                os.symlink(detail.target or "", staged[path])
            else:
                lay_out(source, detail, staged[path], detail.mode | _READABLE)
        sync_tree(stage)
        for path, detail in writes:
            if detail.kind == "file" and not detail.mode & _READABLE:  # could not have been opened to be synced
                os.chmod(staged[path], detail.mode)
    return staged
