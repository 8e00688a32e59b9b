"""The work tree of a loop: where it is, what of it is kept, and how it is brought back to an iteration."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from jumar.errors import ArtifactError, UsageError
from jumar.files import TEMPORARY, as_write_error, make_directory, remove_tree, rename_new
from jumar.loop.settings import LoopSettings
from jumar.model.records import ArtifactDetail
from jumar.store.loop_store import LoopStore, Pending
from jumar.store.manifest import Manifest
from jumar.store.restore import RestorePlan, plan_restore, restore

__all__ = ["Workspace", "changed_paths"]


class Workspace:
    """The directory that the generator changes: the person's own, or a copy of it below the root's ``work/``."""

    def __init__(self, store: LoopStore, settings: LoopSettings) -> None:
        self._store = store
        self._rules = settings.artifacts
        self._origin = settings.workdir
        self._root = store.paths.directory.parent.parent
        self.directory = settings.workdir
        if settings.isolation == "copy":
            self.directory = self._root / "work" / settings.loop_id

    def prepare(self) -> None:
        """Make the work tree exist. A copy is made once, whole, and is the same one after a resume."""
        if not self._origin.is_dir():
            raise UsageError(f"the work directory {self._origin} does not exist")
        if self.directory == self._origin or self.directory.is_dir():
            return
        self._rules.check_quota(self._origin, self._rules.list(self._origin, never=(self._root,)))
        with as_write_error("copy the work directory to", self.directory):
            make_directory(self.directory.parent)
            temporary = self.directory.with_name(TEMPORARY + self.directory.name)
            remove_tree(temporary)
            shutil.copytree(self._origin, temporary, symlinks=True, ignore=self._not_copied)
            rename_new(temporary, self.directory)

    def _not_copied(self, directory: str, names: list[str]) -> set[str]:
        """Leave out the store, and what cannot be copied: FIFOs, devices, sockets."""
        left_out: set[str] = set()
        for name in names:
            path = Path(directory, name)
            mode = os.lstat(path).st_mode
            special = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
            if special or (stat.S_ISDIR(mode) and path.resolve() == self._root.resolve()):
                left_out.add(name)
        return left_out

    def paths(self) -> tuple[str, ...]:
        """Return what the loop keeps of the tree as it is now. The snapshot itself refuses what is over the quota."""
        return self._rules.list(self.directory, never=(self._root,))

    def difference(self, number: int) -> RestorePlan:
        """Return what would have to change for the tree to equal the snapshot of iteration ``number``."""
        if not self._store.has_snapshot(number):
            raise ArtifactError(f"the snapshot of iteration {number} was cleaned up; the loop cannot go on from it")
        return self._plan(self._store.manifest(number), self._store.artifacts(number))

    def _plan(self, manifest: Manifest, artifacts: Path) -> RestorePlan:
        present = self._rules.list(self.directory, never=(self._root,))
        return plan_restore(manifest, artifacts, self.directory, present, cache=self._store.cache)

    def difference_to(self, pending: Pending) -> RestorePlan:
        """Return what would have to change for the tree to equal a snapshot that is not yet acknowledged."""
        return self._plan(pending.manifest, pending.directory / "artifacts")

    def restore(self, number: int, *, set_aside: bool = False) -> Path | None:
        """Make the tree equal to iteration ``number``; see :meth:`carry_out`."""
        return self.carry_out(self.difference(number), set_aside=set_aside)

    def carry_out(self, plan: RestorePlan, *, set_aside: bool = False) -> Path | None:
        """Change the tree as planned; with ``set_aside``, first keep a copy of what is changed or removed.

        Returns the directory of that copy, or None when nothing differed or nothing was kept.
        """
        if not plan.write and not plan.delete:
            return None
        kept = None
        if set_aside:
            present = [path for path in (*plan.delete, *(item.path for item in plan.write)) if _exists(self.directory, path)]
            kept = self._store.set_aside(self.directory, present) if present else None
        restore(plan)
        return kept

    def head(self) -> str | None:
        """Return the commit that HEAD is at, or None outside of a repository."""
        return _git(self.directory, "rev-parse", "--verify", "--quiet", "HEAD")

    def commits_since(self, before: str | None) -> tuple[str, ...]:
        """Return the commits made since ``before``, oldest first. They are reported and left alone."""
        after = self.head()
        if after is None or after == before:
            return ()
        span = after if before is None else f"{before}..{after}"
        listed = _git(self.directory, "rev-list", "--reverse", "--max-count=100", span)
        return tuple(listed.split()) if listed else (after,)


def _exists(root: Path, path: str) -> bool:
    try:
        mode = os.lstat(root / path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not stat.S_ISDIR(mode)


def _git(directory: Path, *arguments: str) -> str | None:
    if not any((parent / ".git").exists() for parent in (directory, *directory.parents)):
        return None
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=directory, env=environment, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def changed_paths(before: Mapping[str, ArtifactDetail], after: Mapping[str, ArtifactDetail]) -> tuple[str, ...]:
    """Return the paths that were added, removed or changed between two manifests, sorted."""
    changed = [path for path, detail in after.items() if before.get(path) != detail]
    changed += [path for path in before if path not in after]
    return tuple(sorted(changed))
