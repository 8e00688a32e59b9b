"""Bringing a working directory back to a snapshot: always copies, real modes, and never through a link."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumar.core import files, leftovers
from jumar.core.file_cache import times_tell
from jumar.core.text import escape
from jumar.errors import ArtifactError, ConflictError
from jumar.loop.snapshots.content import Content, lay_out
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.scan import RESTORE_PREFIX, OpenFolders, parents_of
from jumar.loop.snapshots.snapshot import StatCache
from jumar.model.records import ArtifactDetail

_LINKS_FOLLOWED: Final = 40
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """What has to change for ``target`` to equal a snapshot.

    ``write`` is what is new there or has another content or mode. ``delete`` also holds links and files that stand where a
    directory is needed.
    """

    target: Path
    content: Content
    write: tuple[ArtifactDetail, ...]
    delete: tuple[str, ...]
    unchanged: tuple[str, ...]


def plan_restore(
    manifest: Manifest, content: Content, target: Path, present: Iterable[str], *, cache: StatCache | None = None
) -> RestorePlan:
    """Compare ``target`` with a snapshot; nothing is changed.

    ``present`` are the relative paths of ``target`` that the snapshot speaks for: those of them that it does not hold are
    deleted. What is recorded as skipped (a FIFO, a device) is neither written nor deleted. Errors: :class:`ConflictError` when
    a directory with other files in it stands where a file belongs.
    """
    looked = _Target(target, cache)
    write: list[ArtifactDetail] = []
    unchanged: list[str] = []
    blockers: set[str] = set()
    reachable: list[ArtifactDetail] = []  # behind a link stands nothing of the tree's
    for path, detail in manifest.entries.items():
        if detail.kind == "special" or looked.holds(detail):
            unchanged.append(path)
        else:
            write.append(detail)
            blocker = looked.blocker(path)
            if blocker is None:
                reachable.append(detail)
            else:
                blockers.add(blocker)
    delete = sorted(blockers | {path for path in present if path not in manifest.entries})
    _refuse_occupied(target, reachable, frozenset(delete))
    return RestorePlan(target=target, content=content, write=tuple(write), delete=tuple(delete), unchanged=tuple(unchanged))


class _Target:
    """What stands in the working directory, seen without following a link."""

    def __init__(self, root: Path, cache: StatCache | None) -> None:
        self._root = os.fspath(root)
        self._cache = cache or StatCache()
        times_tell(root)
        self._blockers: dict[str, str | None] = {"": None}

    def blocker(self, path: str) -> str | None:
        """Return the first parent of ``path`` that exists and is not a directory, or None."""
        parent = path.rpartition("/")[0]
        if parent not in self._blockers:
            found = self.blocker(parent)
            if found is None:
                try:
                    found = None if stat.S_ISDIR(os.lstat(f"{self._root}/{parent}").st_mode) else parent
                except FileNotFoundError:
                    found = None
            self._blockers[parent] = found
        return self._blockers[parent]

    def holds(self, detail: ArtifactDetail) -> bool:
        if self.blocker(detail.path) is not None:
            return False
        path = f"{self._root}/{detail.path}"
        try:
            status = os.lstat(path)
            if detail.kind == "symlink":
                return stat.S_ISLNK(status.st_mode) and os.readlink(path) == detail.target
            if not stat.S_ISREG(status.st_mode) or status.st_size != detail.size:
                return False
            return stat.S_IMODE(status.st_mode) == detail.mode and self._hash(detail.path, path, status) == detail.content_hash
        except OSError:
            return False

    def _hash(self, relative: str, path: str, status: os.stat_result) -> str | None:
        known = self._cache.get(relative, status)
        if known is not None:
            return known.content_hash
        looked_at = time.time_ns()
        digest = files.sha256_file(Path(path))
        found = ArtifactDetail(path=relative, content_hash=digest, mode=stat.S_IMODE(status.st_mode), size=status.st_size)
        self._cache.put(relative, status, looked_at, found)
        return digest


def _refuse_occupied(target: Path, write: Iterable[ArtifactDetail], delete: frozenset[str]) -> None:
    for detail in write:
        place = target / detail.path
        if files.is_directory(place):
            staying = [f"{detail.path}/{path}" for path, _ in files.walk(place)]
            staying = [path for path in staying if path not in delete]
            if staying:
                shown = ", ".join(escape(path) for path in staying[:_SHOWN])
                raise ConflictError(
                    f"'{escape(detail.path)}' is a directory now and has to become a file, but holds what the loop does not keep "
                    f"({shown}): move that elsewhere and run again"
                )


def refuse_leading_out(plan: RestorePlan, target: Path) -> None:
    """Refuse to write symbolic links that would lead out of ``target``. Errors: :class:`ArtifactError` that names them."""
    links = {detail.path: detail.target or "" for detail in plan.write if detail.kind == "symlink"}
    going = set(plan.delete)
    out = [path for path in links if _leads_out(path, links, going, target)]
    if out:
        shown = ", ".join(f"'{escape(path)}' → '{escape(links[path])}'" for path in out[:_SHOWN])
        raise ArtifactError(f"{len(out)} of the snapshot's symbolic links lead out of {target}: {shown}; nothing was changed")


def _leads_out(path: str, links: Mapping[str, str], going: set[str], target: Path) -> bool:
    """Follow a link as the system will once the plan is carried out; a circle or an endless chain leads nowhere."""
    root = os.path.realpath(target)
    here: list[str] = []
    todo = path.split("/")[::-1]
    followed = 0
    while todo:
        part = todo.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            if not here:
                return True
            here.pop()
            continue
        here.append(part)
        link = _link_at("/".join(here), links, going, root)
        if link is None:
            continue
        followed += 1
        if followed > _LINKS_FOLLOWED:
            return False
        here.pop()
        if link.startswith("/"):
            inside = link == root or link.startswith(root + "/")
            if not inside:
                return True
            here, link = [], link[len(root) :]
        todo += link.split("/")[::-1]
    return False


def _link_at(path: str, links: Mapping[str, str], going: set[str], root: str) -> str | None:
    if path in links:
        return links[path]
    if path in going:
        return None
    try:
        return os.readlink(f"{root}/{path}")
    except OSError:
        return None


def restore(plan: RestorePlan) -> None:
    """Carry out a plan; durable when this returns, and repeatable when it was interrupted.

    Each file is written elsewhere and renamed to its place. Directories that became empty are removed. Errors:
    :class:`jumar.errors.StoreWriteError`; :class:`jumar.errors.StoreDamagedError` when the snapshot lacks a file, or one
    of its files was altered; that file is then not written.
    """
    target = os.fspath(plan.target)
    with files.as_write_error("restore", plan.target):
        for name in os.listdir(target):
            if name.startswith(RESTORE_PREFIX):  # an interrupted restore left it
                leftovers.remove_any(plan.target / name)
        _delete(target, plan.delete)
        if plan.write:
            aside = f"{target}/{RESTORE_PREFIX}{secrets.token_hex(6)}"
            os.mkdir(aside, 0o700)
            try:
                made: set[str] = {""}
                for detail in plan.write:
                    _make_directories(target, detail.path.rpartition("/")[0], made)
                    _write(plan.content, detail, aside, target)
                files.sync_paths(plan.target, [plan.target / detail.path for detail in plan.write])
            finally:
                with contextlib.suppress(OSError):
                    leftovers.remove_tree(Path(aside))


def _delete(target: str, paths: Iterable[str]) -> None:
    emptied: set[str] = set()
    with OpenFolders(Path(target)) as folders:
        for path in paths:
            folder, _, name = path.rpartition("/")
            # What is gone already, or cannot be reached without following a link, is not there to be deleted.
            with contextlib.suppress(FileNotFoundError, ArtifactError):
                os.unlink(name, dir_fd=folders.open(folder))
            emptied.add(folder)
    for directory in sorted(emptied, key=lambda name: name.count("/"), reverse=True):
        with contextlib.suppress(OSError):
            for folder in reversed([*parents_of(directory), directory] if directory else []):
                os.rmdir(f"{target}/{folder}")


def _make_directories(target: str, folder: str, made: set[str]) -> None:
    if folder in made:
        return
    _make_directories(target, folder.rpartition("/")[0], made)
    place = f"{target}/{folder}"
    if os.path.islink(place):
        os.unlink(place)
    with contextlib.suppress(FileExistsError):
        os.mkdir(place)
    made.add(folder)


def _write(content: Content, detail: ArtifactDetail, aside: str, target: str) -> None:
    temporary = f"{aside}/file"
    place = f"{target}/{detail.path}"
    if detail.kind == "symlink":
        os.symlink(detail.target or "", temporary)
    else:
        lay_out(content, detail, temporary, detail.mode)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            files.outdate(temporary, os.lstat(place).st_mtime)
    if os.path.isdir(place) and not os.path.islink(place):
        for inner in reversed([folder for folder, _, _ in leftovers.folders_of(place)]):
            os.rmdir(inner)
    os.replace(temporary, place)
