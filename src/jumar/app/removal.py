"""What a loop consists of, wherever it lies, and its removal."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jumar.core.copying import copy_file
from jumar.core.files import as_write_error, is_inside, make_directory, rename_new, sha256_file, sync_tree, walk
from jumar.core.leftovers import folders_of
from jumar.core.lock import QUARANTINE, LoopLock, next_place
from jumar.core.text import escape
from jumar.errors import JumarError, NotFoundError, UsageError
from jumar.loop.decisions.plan import plan_apply
from jumar.loop.store.collect import alone_in, collect
from jumar.loop.store.creation import is_foreign
from jumar.loop.store.in_force import artifact_rules, config_now, criteria_of, last_applied, standing
from jumar.loop.store.layout import ARTIFACTS, LoopPaths, iteration_number, take_away, tidy_removed
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.workspace.trees import remove_trees, trees_of
from jumar.processes.git import find_repository


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRemains:
    """What goes with a loop. ``size`` is in bytes, each file counted once; ``trees`` are the copies and worktrees made for it.

    ``workdir`` is None where it cannot be read. ``applied`` is the iteration whose apply can be undone until then, ``ended``
    whether the loop has ended; ``refs`` stay in the person's repository and keep what was committed in its worktrees.
    ``unapplied`` is the selected iteration where the working directory does not hold it. ``only_here`` are files that were set
    aside or replaced, and that are in no iteration and not in the working directory: a person's, as far as anybody knows.
    ``kept`` is where the removal has put a copy of them, None where it has not.
    """

    directory: Path
    iterations: int
    size: int
    trees: tuple[Path, ...]
    workdir: Path | None = None
    applied: int | None = None
    ended: bool = True
    refs: tuple[str, ...] = ()
    unapplied: int | None = None
    only_here: tuple[Path, ...] = ()
    kept: Path | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "loop_id": self.directory.name,
            "directory": str(self.directory),
            "iterations": self.iterations,
            "bytes": self.size,
            "trees": [str(tree) for tree in self.trees],
            "refs": list(self.refs),
            "unapplied": self.unapplied,
            "only_here": [str(path) for path in self.only_here],
            "kept": None if self.kept is None else str(self.kept),
        }


def look_at(directory: Path) -> LoopRemains:
    """Return what :func:`remove_loop` would remove; a loop that is damaged can be removed too.

    Errors: :class:`NotFoundError` when there is no loop, :class:`UsageError` for one that is no directory below a root's
    ``loops/``, :class:`jumar.errors.LockedError` while somebody writes it.
    """
    directory = directory.parent.resolve() / directory.name
    paths = LoopPaths(directory)
    _refuse(paths)
    with LoopLock(paths.lock):
        pass
    trees = trees_of(paths.root, directory.name)
    numbers = [iteration_number(entry.name) for entry in paths.iterations.iterdir()] if paths.iterations.is_dir() else []
    found = LoopRemains(
        directory=directory,
        iterations=sum(number is not None and number > 0 for number in numbers),
        size=_bytes((directory, *trees)) + alone_in(directory),
        trees=trees,
    )
    try:
        reader = LoopStore.open(directory)
        applied = last_applied(reader)
        tracked = "run" not in reader.config
        ended = tracked or reader.end() is not None or not (numbers or reader.attempts())
    except (JumarError, OSError):
        return found
    return replace(
        found,
        workdir=reader.workdir,
        applied=applied and applied.best_iteration,
        ended=ended,
        refs=_refs(reader.workdir, directory.name),
        unapplied=_unapplied(reader),
        only_here=_only_here(reader),
    )


def remove_loop(found: LoopRemains, *, keep: bool = False) -> LoopRemains:
    """Remove the loop and its trees; return what was removed, with all refs that stay.

    ``keep`` first copies the files that are only there to ``quarantine/`` beside the loops.

    Errors: as of :func:`look_at`, and :class:`jumar.errors.StoreWriteError`.
    """
    paths = LoopPaths(found.directory)
    root = paths.root
    with LoopLock(paths.lock):
        _refuse(paths)
        kept = _keep(paths, found.only_here) if keep and found.only_here else None
        # first: a new loop of the name must not find them
        refs = remove_trees(root, found.directory.name, found.workdir or root.parent)
        take_away(paths)
    tidy_removed(root)
    collect(root)
    return replace(found, refs=tuple(sorted({*found.refs, *refs})), kept=kept)


def set_loop_aside(directory: Path) -> Path:
    """Move a loop that cannot be read, with the trees made for it, to ``quarantine/`` beside the loops; return where it lies.

    A new loop of the name finds nothing of it. Errors: as of :func:`remove_loop`.
    """
    paths = LoopPaths(directory.parent.resolve() / directory.name)
    _refuse(paths)
    with LoopLock(paths.lock), as_write_error("move", paths.directory):
        place = _place_beside(paths)
        for tree in trees_of(paths.root, directory.name):  # before the loop: a new one must not find them
            rename_new(tree, place.with_name(f"{place.name}.{tree.name}"))
        rename_new(paths.directory, place)
        return place


def _refuse(paths: LoopPaths) -> None:
    directory = paths.directory
    shown = escape(str(directory))
    if directory.is_symlink():
        raise UsageError(f"{shown} is a link: remove the link yourself, or name the loop that it leads to")
    if not (paths.loop_json.exists() or paths.iterations.is_dir() or is_foreign(directory)):
        raise NotFoundError(f"there is no loop in {shown}")
    if directory == paths.root:
        raise UsageError(f"{shown} lies in no loops/ of jumar and may hold files of yours: delete that directory yourself")
    here = Path.cwd()
    if here == directory or is_inside(here, directory):
        raise UsageError(f"you are in {shown}: change to another directory first")


def _place_beside(paths: LoopPaths) -> Path:
    make_directory(beside := paths.directory.parent.with_name(QUARANTINE))
    return next_place(beside, paths.directory.name)


def _keep(paths: LoopPaths, only_here: Iterable[Path]) -> Path:
    with as_write_error("keep what no iteration has of", paths.directory):
        place = _place_beside(paths)
        for path in only_here:
            target = place / path.relative_to(paths.directory)
            make_directory(target.parent)
            copy_file(path, target)
        sync_tree(place)
    return place


def _unapplied(store: LoopStore) -> int | None:
    """Return the number of the selected iteration where an apply would change the working directory; None where nobody knows."""
    with contextlib.suppress(JumarError, OSError):
        number = standing(store, criteria_of(config_now(store))).iteration
        if number is not None and store.workdir is not None:
            return None if plan_apply(store, number, store.workdir, artifact_rules(store)).empty else number
    return None


def _only_here(store: LoopStore) -> tuple[Path, ...]:
    """Return the files that an apply replaced or that were set aside, whose content is nowhere else; none that is empty."""
    found: dict[Path, tuple[str, str]] = {}
    units = (unit for place in (store.paths.undo, store.paths.set_aside) if place.is_dir() for unit in sorted(place.iterdir()))
    for unit in units:
        for relative, entry in walk(unit / ARTIFACTS if (unit / ARTIFACTS).is_dir() else unit, lenient=True):
            with contextlib.suppress(OSError):
                if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_size:
                    found[Path(entry.path)] = (relative, sha256_file(Path(entry.path)))
    unknown, listed = {digest for _, digest in found.values()}, store.listed()
    while unknown and (known := next(listed, None)) is not None:
        unknown.difference_update(digest for digest in known.values() if digest is not None)
    return tuple(path for path, (relative, digest) in found.items() if digest in unknown and not _lies(store, relative, digest))


def _lies(store: LoopStore, relative: str, digest: str) -> bool:
    place = None if store.workdir is None else store.workdir / relative
    try:
        return place is not None and place.is_file() and sha256_file(place) == digest
    except OSError:
        return False


def _refs(workdir: Path | None, name: str) -> tuple[str, ...]:
    try:
        repository = find_repository(workdir) if workdir is not None and workdir.is_dir() and shutil.which("git") else None
    except UsageError:
        repository = None
    if repository is None:
        return ()
    listed = repository.attempt("for-each-ref", "--format=%(refname)", f"refs/jumar/{name}/").stdout
    return tuple(os.fsdecode(line) for line in listed.splitlines())


def _bytes(places: Iterable[Path]) -> int:
    seen: dict[tuple[int, int], int] = {}
    for place in places:
        for directory, _, names in folders_of(place):
            for name in names:
                try:
                    status = os.lstat(f"{directory}/{name}")
                except OSError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    seen[status.st_dev, status.st_ino] = status.st_size
    return sum(seen.values())
