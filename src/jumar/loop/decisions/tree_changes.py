"""What a working directory has to go through, as a value: for every path what stands there and what shall stand there.

A set of moves is written into a decision before anything is touched. It has an inverse, and it can be carried out again after it
was interrupted: a path that has arrived is left alone, one that stands at its beginning is moved, and one that is neither was
changed by somebody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from jumar.core.codec import Fields
from jumar.core.files import check_names
from jumar.core.record import Record, load, octal, read_octal, stored
from jumar.core.text import escape, plural
from jumar.errors import ConflictError
from jumar.loop.snapshots.tree import Tree, same
from jumar.model.records import ArtifactDetail

_SHOWN = 20


def _modes_to_json(modes: Mapping[str, int | None]) -> list[dict[str, Any]]:
    return [{"path": path, "mode": None if mode is None else octal(mode)} for path, mode in modes.items()]


def _modes_from_json(fields: Fields, key: str) -> Mapping[str, int | None]:
    items = fields.sections(key)
    return MappingProxyType(
        {item.text("path"): None if item.data.get("mode") is None else read_octal(item, "mode") for item in items}
    )


def _no_directories() -> Mapping[str, int | None]:
    return MappingProxyType({})


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
    drop: Mapping[str, int | None] = field(default_factory=_no_directories, metadata=_MODES)
    make: Mapping[str, int | None] = field(default_factory=_no_directories, metadata=_MODES)

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
    above = {parent for path in written for parent in _parents(path)}
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
    losing = {parent for path in removed for parent in _parents(path)} - above - set(replaced)
    for directory in sorted(losing, key=lambda name: name.count("/"), reverse=True):
        mode = tree.directory_mode(directory)
        if mode is not None and not {f"{directory}/{name}" for name in tree.listing(directory)} - removed - set(emptied):
            emptied[directory] = mode
    return Directories(_deepest_first(replaced), _deepest_first(emptied), MappingProxyType(needed), tuple(sorted(obstacles)))


def _deepest_first(modes: Mapping[str, int | None]) -> Mapping[str, int | None]:
    return MappingProxyType(dict(sorted(modes.items(), reverse=True)))


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


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
