"""What lies in a working directory beside the files of its snapshots, as it was when the loop began: told by names and stat.

``node_modules``, build folders, whatever git ignores: checks may read it, no snapshot holds it. So nothing of it can be put
back, but what is new or changed can be told. Each tree is walked before the first check and after it: what the start's own
checks changed (caches, test databases) is theirs. A walk reads no file. The time of a status change cannot be set, so that a file
that was written and given its old time is found too; files with several names, as package managers make them, go without it,
because it changes when another project comes or goes.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from jumar.core import files
from jumar.core.leftovers import is_of_the_machine
from jumar.loop.snapshots.scan import ALWAYS_OUT, parents_of
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.reading import TreeStart
from jumar.loop.workspace.workspace import Workspace
from jumar.model.attempts import Attempt
from jumar.processes.bytecode import CACHE, installed, is_bytecode

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_OUT: Final = tuple(f"/{name}/" for name in ALWAYS_OUT)
_UNKNOWN: Final = "?"
_TOP: Final = "/"
_NO_VERDICT: Final = ".pytest_cache/"  # holds which tests failed last and nothing that decides whether they do now
_NO_VERDICTS: Final = tuple(
    _NO_VERDICT + name
    for name in (
        ".gitignore",
        "CACHEDIR.TAG",
        "README.md",
        *(f"v/cache/{each}" for each in ("lastfailed", "nodeids", "stepwise")),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What is not as it was when the loop began: sorted relative paths. ``stays`` are the directories that hold anything else."""

    new: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    stays: frozenset[str]

    @property
    def nothing(self) -> bool:
        return not (self.new or self.changed or self.gone)

    def roots(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the topmost directories in which nothing stays, and the files of others, that hold all of ``paths``; sorted."""
        return tuple(sorted({next(_tops(path, self.stays), path) for path in paths}))


class Surroundings:
    """Keeps it for the trees of one loop, in its store and in memory: what a program changes on disk is not read again.

    ``own`` are patterns of jumar's own files in a tree, in gitignore syntax. ``theirs`` are files of snapshots that checks and
    scorers of this run changed while nothing else ran. ``alone`` is the iteration whose checks saw nothing but its snapshot and
    what was there at the start, the last one of which that is known.
    """

    def __init__(self, store: LoopStore, own: tuple[str, ...] = ()) -> None:
        self._store = store
        self._own = own
        self._trees = store.tree_starts
        self._made: dict[str, int] = {}
        self.theirs: set[str] = set()
        self.alone: int | None = None

    def begin(self, workspace: Workspace) -> None:
        """Look at a tree before the first program of the loop runs in it, or remember what was seen then.

        A tree that was moved or copied since is taken as it lies, but for one that was replaced while programs of the loop ran:
        what lay there at the start is known by name, and none of it is as it was.
        """
        status = workspace.directory.stat()
        root, made = (status.st_dev, status.st_ino), workspace.made
        tree = self._trees.get(workspace.name)
        if tree is not None and tree.root == root:
            return
        replaced = made == self._made.get(workspace.name, 0) if tree is not None else not made and self._cut_off(workspace)
        self._made[workspace.name] = made
        tree = tree or TreeStart.read(self._store.paths, self._store.trust, workspace.name)
        if tree is None and self._worked_in(workspace):
            tree = TreeStart(root, {}, lost=True)
        if tree is not None and tree.root != root and replaced:
            tree = replace(tree, root=root)
            self._write(workspace, tree)
        elif tree is None or tree.root != root:
            entries = _Look(workspace, frozenset(workspace.paths())).stamps
            tree = TreeStart(root, entries, None if tree is None else tree.touched)
            self._write(workspace, tree)
        self._trees[workspace.name] = tree

    def note_checks(self, workspace: Workspace) -> None:
        """Remember what the start's own checks changed, when they have run and no agent has."""
        tree = self._trees.get(workspace.name)
        if tree is None or tree.touched is not None or not self._store.has_snapshot(0) or self._worked_in(workspace):
            return
        there = frozenset(self._store.manifest(0).entries)
        now = _Look(workspace, there).stamps
        folders = {folder for path in (*tree.entries, *there) for folder in parents_of(path)}
        differ = [path for path in now.keys() | tree.entries.keys() if now.get(path) != tree.entries.get(path)]
        tree.touched = frozenset(next(_tops(path, folders), path) for path in differ)
        self._write(workspace, tree)

    def had(self, workspace: Workspace, path: str, status: os.stat_result | None = None) -> bool:
        """Return whether ``path`` was there, in no snapshot, when the loop began; with ``status`` only as it is now.

        Where that is lost the answer is yes: nobody's file is taken for an agent's.
        """
        tree = self._trees.get(workspace.name) or self._trees.get("main")
        if tree is None or path not in tree.entries:
            return tree is not None and tree.lost
        return status is None or tree.entries[path] == _stamp(status)

    def made_at_start(self, workspace: Workspace, path: str) -> bool:
        """Return whether ``path`` is what the start's own checks made or changed: the output of a build."""
        trees = (self._trees.get(name) for name in (workspace.name, "main"))
        return any(tree is not None and _Free(tree.touched or frozenset(), ()).holds(path) for tree in trees)

    def differences(self, workspace: Workspace, kept: Iterable[str]) -> Differences | None:
        """Compare a tree, which holds the snapshot with the paths ``kept``, with what it was when the loop began.

        None where that is lost.
        """
        self.begin(workspace)
        tree, there = self._trees[workspace.name], frozenset(kept)
        if tree.lost:
            return None
        main = self._trees.get("main")
        free = _Free((tree if tree.touched is not None or main is None else main).touched or frozenset(), self._own)
        look = _Look(workspace, there)
        now = look.stamps
        if _TOP not in tree.entries:  # noted by an older jumar, which looked at no directories
            now = {path: stamp for path, stamp in now.items() if not path.endswith("/")}
        differ = {path for path in now.keys() | tree.entries.keys() if now.get(path) != tree.entries.get(path)}
        differ = {path for path in differ if (path not in there or path in now) and not free.holds(path)}
        staying = (*there, *(path for path in now if path not in differ), *look.never)
        return Differences(
            new=tuple(sorted(path for path in differ if path not in tree.entries)),
            changed=tuple(sorted(path for path in differ if path in tree.entries and path in now)),
            gone=tuple(sorted(path for path in differ if path not in now)),
            stays=frozenset(folder for path in staying for folder in parents_of(path)),
        )

    def note_before(self, number: int, workspace: Workspace, kept: Iterable[str]) -> None:
        """Look right before the checks of iteration ``number``: what the candidate's code removes in them is not there later."""
        found = self.differences(workspace, kept)
        self.alone = number if found is not None and found.nothing else None

    def _worked_in(self, workspace: Workspace) -> bool:
        return next(self._attempts(workspace), None) is not None

    def _cut_off(self, workspace: Workspace) -> bool:
        """Whether jumar was killed while an agent worked in a tree, the last one there."""
        ends = (attempt.end for attempt in self._attempts(workspace))
        return any(end is None or end.outcome == "lost" for end in itertools.islice(ends, 1))

    def _attempts(self, workspace: Workspace) -> Iterator[Attempt]:
        """Yield the runs of the generator in a tree, the last one first."""
        attempts = reversed(self._store.attempts())
        return (each for each in attempts if each.start.purpose == "generate" and each.start.candidate == workspace.slot)

    def _write(self, workspace: Workspace, tree: TreeStart) -> None:
        tree.write(self._store.paths, self._store.trust, workspace.name)


class _Free:
    """What may differ: what the start's checks changed, and jumar's own files."""

    def __init__(self, touched: frozenset[str], own: tuple[str, ...]) -> None:
        self._touched = touched
        self._spec: GitIgnoreSpec | None = None
        if own:
            from pathspec import GitIgnoreSpec

            self._spec = GitIgnoreSpec.from_lines(own)

    def holds(self, path: str) -> bool:
        if path in self._touched or any(f"{folder}/" in self._touched for folder in parents_of(path)):
            return True
        return self._spec is not None and self._spec.match_file(path)


class _Look:
    """One walk through a tree: the stamp of everything that no snapshot with the paths ``kept`` holds, by path.

    That are links, special files and, a slash behind them, directories with nothing in them, too. ``never`` are the directories
    that are not looked into: repositories and the store.
    """

    def __init__(self, workspace: Workspace, kept: frozenset[str]) -> None:
        self.never: list[str] = []
        self.stamps: dict[str, str] = {_TOP: ""}
        self._folders: list[str] = []
        self._store = os.path.realpath(workspace.root)
        self._top = os.fspath(workspace.directory)
        self._packages: tuple[str, ...] = ()
        self._holds_packages = installed(workspace.directory, sorted(kept))
        holding: set[str] = set()
        for path, entry in files.walk(workspace.directory, prune=self._prune, lenient=True):
            holding.add(path.rpartition("/")[0])
            special = not (entry.is_file(follow_symlinks=False) or entry.is_symlink())
            if (path in kept and not special) or (CACHE in path and is_bytecode(path) and not path.startswith(self._packages)):
                continue
            if entry.name in ALWAYS_OUT or entry.path == os.fspath(workspace.root):  # a link to one
                self.never.append(path)
                continue
            if _NO_VERDICT in path and path.endswith(_NO_VERDICTS):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
                self.stamps[path] = f"{status.st_mode:o}" if special else _stamp(status)
            except FileNotFoundError:
                continue
            except OSError as error:  # its path is too long, or its directory somebody else's
                if is_of_the_machine(error):
                    raise
                self.stamps[path] = _UNKNOWN
        self._note_bare({*holding, *(path.rstrip("/").rpartition("/")[0] for path in self.never)})

    def _note_bare(self, holding: set[str]) -> None:
        """Note the directories that hold nothing, but caches and packages; ``holding`` are those around something."""
        for path in sorted(self._folders, key=len, reverse=True):  # what holds a directory comes after it
            folder = path[:-1]
            if folder not in holding and CACHE not in path and _NO_VERDICT not in path and not path.startswith(self._packages):
                self.stamps[path] = ""
            holding.add(folder.rpartition("/")[0])

    def _prune(self, path: str) -> bool:
        if self._packages and path.startswith(self._packages) and not path.endswith(_OUT):
            return False
        name = path[path.rfind("/", 0, -1) + 1 : -1]
        if name in ALWAYS_OUT or f"{self._top}/{path[:-1]}" == self._store:
            self.never.append(path)
            return True
        if self._holds_packages(path):
            self._packages = (*self._packages, path)
        self._folders.append(path)
        return False


def _stamp(status: os.stat_result) -> str:
    changed = status.st_ctime_ns if status.st_nlink == 1 else 0
    return f"{status.st_mode:o} {status.st_size} {status.st_mtime_ns} {changed}"


def _tops(path: str, known: Iterable[str]) -> Iterator[str]:
    return (f"{folder}/" for folder in parents_of(path) if folder not in known)
