"""The working directory of a loop: where it is, what of it is kept, and how it is brought back to an iteration."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import stat
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from jumar.core.copying import copy_alike
from jumar.core.files import as_write_error, is_directory, make_directory, rename_new
from jumar.core.leftovers import TEMPORARY, remove_tree
from jumar.core.lock import QUARANTINE, own_directory
from jumar.core.text import escape
from jumar.errors import ArtifactError, JumarError, StoreDamagedError, UsageError
from jumar.loop.hooks import port_of
from jumar.loop.settings import LoopSettings
from jumar.loop.snapshots.content import Content
from jumar.loop.snapshots.manifest import Manifest
from jumar.loop.snapshots.restore import RestorePlan, plan_restore, restore
from jumar.loop.snapshots.snapshot import StatCache
from jumar.loop.store.layout import WORK
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.staging import Pending
from jumar.loop.workspace.clearing import move_out, occupied, open_folders, readable, shallow, why_of_the_tree
from jumar.loop.workspace.worktrees import discard_worktree, is_whole, make_worktree, place_in_repository, unlock
from jumar.model.records import ArtifactDetail
from jumar.processes.git import run_git

_GIT: Final = ".git"
_LINKED: Final = "worktrees"  # of a repository: a copy of it must not reach the person's other trees
_IGNORES: Final = ".gitignore"
_TIMEOUT: Final = 30
_MANY: Final = 10_000  # files that are not made in a moment


class Workspace:
    """The directory that the generator changes: the person's own, a copy of it, or a git worktree of its repository.

    ``slot`` None is the loop's own tree: the person's, or ``<root>/work/<loop_id>``. Slot k, from 1 on, is a candidate's:
    ``<root>/work/<loop_id>@cNN``, a worktree where the loop's is one, else a copy (no loop id holds an ``@``). ``origin`` is the
    person's own directory, ``tree`` the top of what was made, ``directory`` the working directory in it. One thread at a time
    uses a workspace, and each slot may have its own; only :meth:`carry_out` with ``set_aside`` writes the store, and belongs to
    the thread that holds its lock. ``cache`` holds the hashes of this tree's files.
    """

    def __init__(
        self, store: LoopStore, settings: LoopSettings, slot: int | None = None, tell: Callable[[str], object] = str
    ) -> None:
        self._store = store
        self._settings = settings
        self._tell = tell
        self._rules = settings.artifacts if slot is None else replace(settings.artifacts)  # it remembers names of one tree
        self.origin = settings.workdir
        self.root = store.paths.root
        self.slot = slot
        self.cache = store.cache if slot is None else StatCache()
        self._kind = _kind(settings, slot)
        self.tree = settings.workdir
        if self._kind != "in place":
            self.tree = self.root / WORK / (settings.loop_id if slot is None else f"{settings.loop_id}@c{slot:02d}")
        self._within = "."
        if self._kind == "worktree":
            self._within = place_in_repository(self.origin)
        self.directory = self.tree / self._within
        self.made = 0
        self._git_waits = False
        self._identity: tuple[int, int] | None = None
        self._place: str | None = None  # where it leads to
        self._kept: Collection[str] | None = None  # what the last snapshot that was taken of the tree, or put into it, holds

    def prepare(self) -> None:
        """Make the working directory exist. It is made once, whole, and is the same one after a resume.

        What a killed run left of one is removed, and so are the locks of a git that was killed in it. Errors:
        :class:`UsageError`, :class:`jumar.errors.ConfigError`, :class:`jumar.errors.ArtifactError` over the quota,
        :class:`jumar.errors.StoreWriteError`.
        """
        if not self.origin.is_dir():
            raise UsageError(f"the working directory {self.origin} does not exist")
        if self._kind != "in place":
            self._make_place()
            if not self._is_whole():
                self._make()
        self.unlock()
        self._identity, self._place = _identity(self.directory), os.path.realpath(self.directory)

    def _is_whole(self) -> bool:
        if not is_directory(self.tree) or self.tree.samefile(self.origin):
            return False
        return self._kind == "copy" or (is_whole(self.tree) and self.directory.is_dir())

    def _make(self) -> None:
        """Make the tree anew. What stands in its place goes; of a link only the link, and so where one leads there."""
        kept = self._rules.list(self.origin, never=(self.root,))
        self._rules.check_quota(self.origin, kept)
        if len(kept) > _MANY:
            self._tell(f"the {self._kind} of {len(kept):,} files that the loop works in is being made")
        self._make_place()
        with as_write_error("create", self.tree):
            if not is_directory(self.tree):
                self.tree.unlink(missing_ok=True)
        self.discard()
        if self._kind == "worktree":
            make_worktree(self.origin, self.tree, kept, never=self.root)
        else:
            self._copy()
        self.made += 1

    def _make_place(self) -> None:
        """Make the directory of the trees, which another slot's thread may be making at this moment."""
        with as_write_error("create", self.tree.parent):
            for said in own_directory(self.tree.parent):
                self._tell(said)

    def gone(self) -> str | None:
        """Return what became of a directory that is not the one which :meth:`prepare` found or made; None while it is.

        In place another directory of that name is the agent's work; one that a new link leads to is not: it is a person's.
        """
        if self._kind == "in place":
            led = self._place not in {None, os.path.realpath(self.directory)}
            what = "replaced by a link" if led else "" if self.directory.is_dir() else "deleted"
            return f"the working directory was {what}" if what else None
        open_folders(self.tree.parent, ("",))
        what = f"the {self._kind} that it worked in"
        if not os.path.lexists(self.directory):
            return f"{what} was deleted"
        if not is_directory(self.directory):  # a new link may have the inode that the directory had
            return f"{what} was replaced by a link or a file"
        return f"{what} was replaced by another directory" if _identity(self.directory) != self._identity else None

    @property
    def is_ours(self) -> bool:
        """Whether no link stands in the place of a directory that jumar made; in place there is none."""
        if self._kind == "in place":
            return True
        return self.directory.resolve() == self.root.resolve() / self.directory.relative_to(self.root)

    def renew(self) -> None:
        """Make a directory that is :meth:`gone` anew, from the person's own; in place it is empty. Errors: as :meth:`prepare`."""
        if self._kind == "in place":
            with as_write_error("create", self.directory):
                if self.directory.is_symlink():
                    self.directory.unlink()
                make_directory(self.directory)
        else:
            self._make()
        self._identity = _identity(self.directory)

    def _copy(self) -> None:
        with as_write_error("copy the working directory to", self.tree):
            temporary = self.tree.with_name(TEMPORARY + self.tree.name)
            remove_tree(temporary)
            shutil.copytree(self.origin, temporary, symlinks=True, ignore=self._not_copied, copy_function=copy_alike)
            rename_new(temporary, self.tree)

    def _not_copied(self, directory: str, names: list[str]) -> set[str]:
        """Leave out the store, what cannot be copied (FIFOs, devices, sockets), and what would tie the copy to its original.

        That is a ``.git`` that only points to a repository elsewhere: a commit in the copy would move the person's branch.
        """
        left_out: set[str] = set()
        at_top = directory == os.fspath(self.origin)
        in_git = directory == os.fspath(self.origin / _GIT)
        for name in names:
            path = Path(directory, name)
            mode = os.lstat(path).st_mode
            special = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
            pointer = at_top and name == _GIT and not stat.S_ISDIR(mode)
            linked = in_git and (name == _LINKED or name.endswith(".lock"))
            if special or pointer or linked or (stat.S_ISDIR(mode) and path.resolve() == self.root.resolve()):
                left_out.add(name)
        return left_out

    def matching(self, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """Return the files of the tree that ``patterns`` (gitignore syntax) name, whether or not the loop keeps them."""
        return replace(self._rules, include=patterns, exclude=()).list(self.directory, never=(self.root,))

    @property
    def name(self) -> str:
        """What this tree is called in logs: ``main``, or ``c01`` for the first slot."""
        return "main" if self.slot is None else f"c{self.slot:02d}"

    def _ref(self) -> str:
        return f"{self._settings.loop_id}/{self.name}"

    def unlock(self) -> None:
        """Remove the locks that a killed git left in a tree of ours; in place there may be others who work, and nothing is done.

        Nothing may run in the tree.
        """
        if self._kind != "in place":
            unlock(self.tree)

    def discard(self) -> str | None:
        """Remove the tree; in place nothing happens.

        Returns the ref under which the commits of a worktree stay reachable, None when there are none.
        """
        if self._kind != "in place" and self.tree.is_symlink():
            self.tree.unlink()  # whoever made it: nothing is removed through it
        if self._kind == "worktree":
            return discard_worktree(self.origin, self.tree, self._ref())
        if self._kind == "copy":
            remove_copy(self.tree)
        return None

    def variables(self) -> dict[str, str]:
        """Return what the steps' environment says of this tree: its slot (0 for the loop's own) and the first of its ten ports.

        git looks for no repository above a tree of ours.
        """
        port = port_of(self._store.paths.directory, self.slot)
        told = {"JUMAR_SLOT": str(self.slot or 0), "JUMAR_PORT": str(port)}
        if self._kind == "in place":
            return told
        return {**told, "GIT_CEILING_DIRECTORIES": os.path.realpath(self.tree.parent)}

    def paths(self) -> tuple[str, ...]:
        """Return what the rules keep of the tree as it is now. The snapshot itself refuses what is over the quota."""
        return self._rules.list(self.directory, never=(self.root,))

    def paths_since(self, parent: int | None) -> tuple[str, ...]:
        """Return what the loop keeps of a tree in which a pass began with iteration ``parent``.

        What that holds and is still there is kept, though the pass may have written an ignore file that names it.
        """
        before = () if parent is None else self._store.manifest(parent).entries
        self._kept = self._rules.list(self.directory, never=(self.root,), kept=before)
        return self._kept

    def _known(self) -> Collection[str]:
        """Return what snapshots hold of the tree; where another process was the last to work in it, what any of them holds."""
        if self._kept is None:
            self._kept = set[str]().union(*self._store.listed())
        return self._kept

    def state(self, but: Collection[str], parent: int | None) -> str | None:
        """Return a digest of the names, modes, sizes and times of :meth:`paths_since` ``parent``, without the paths ``but``.

        It tells whether anybody changed, added or removed a file since, whatever the clocks say; not a change of the same size
        after which the time was set back. None where the tree cannot be read.
        """
        digest = hashlib.sha256()
        try:
            for path in self.paths_since(parent):
                if path not in but:
                    status = os.lstat(f"{self.directory}/{path}")
                    digest.update(
                        f"{path}\0{status.st_mode} {status.st_size} {status.st_mtime_ns}\0".encode(errors="surrogateescape")
                    )
        except (ArtifactError, OSError):
            return None
        return digest.hexdigest()

    def stamps(self, paths: Iterable[str]) -> dict[str, str]:
        """Return which files stand at ``paths`` of the tree, and when each was last changed, which no program can set.

        So too of the directory in which the tree lies, where jumar made it: of one that is moved away and back, it tells.
        """
        place = {} if self._kind == "in place" else {os.path.relpath(self.tree.parent, self.root.parent): self.tree.parent}
        found: dict[str, str] = {}
        for name, path in (*place.items(), *((each, self.directory / each) for each in paths)):
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                found[name] = f"{status.st_ino} {status.st_ctime_ns}"
        return found

    def changed_since(self, before: Mapping[str, str], to: Pending) -> list[str]:
        """Return what is not as in the snapshot, or changed after :meth:`stamps` said ``before``, also where it was put back."""
        plan, now = self.difference(to), self.stamps(before)
        touched = (path for path in before if before[path] != now.get(path))
        return sorted({*(detail.path for detail in plan.write), *plan.delete, *touched})

    def difference(self, to: int | Pending) -> RestorePlan:
        """Return what would have to change for the tree to equal the snapshot of an iteration, or one that waits."""
        if isinstance(to, Pending):
            return self._plan(to.manifest, to.content)
        number = to
        if not self._store.has_snapshot(number):
            raise StoreDamagedError(
                f"the snapshot of iteration {number} of loop '{self._store.loop_id}' is gone: `jumar verify` lists damage, "
                "`jumar repair` goes on without it, `jumar run --new` begins another loop"
            )
        return self._plan(self._store.manifest(number), self._store.content(number))

    def holds(self, number: int | None) -> bool:
        """Return whether the tree equals the snapshot of iteration ``number``; of none, and of one that is gone, it does not."""
        if number is None or not self._store.has_snapshot(number):
            return False
        plan = self.difference(number)
        return not plan.write and not plan.delete

    def _plan(self, manifest: Manifest, content: Content) -> RestorePlan:
        present = set(self._rules.list(self.directory, never=(self.root,), kept=self._known()))
        present -= self._store.not_kept_at_start(self.name, present.difference(manifest.entries))
        return plan_restore(manifest, content, self.directory, present, cache=self.cache)

    def restore(self, number: int) -> None:
        """Make the tree equal to iteration ``number``; see :meth:`carry_out`, and where that cannot be, :meth:`bring_back`."""
        try:
            if self.gone() is None:
                self.unlock()
                plan = self.difference(number)
                self.carry_out(plan)
                if any(path.rpartition("/")[2] == _IGNORES for path in (*(each.path for each in plan.write), *plan.delete)):
                    self.carry_out(self.difference(number))  # what only the other ignore file kept out of sight
                return
        except (JumarError, OSError, RecursionError) as error:
            if why_of_the_tree(error) is None or not self._store.has_snapshot(number):
                raise
        self.bring_back(number)

    def bring_back(self, to: int | Pending) -> None:
        """Make the tree equal to an iteration, whatever a program made of it, and tell where the rest lies.

        That is :mod:`jumar.loop.workspace.clearing`. In a tree of ours, files larger than any that is kept are deleted. The
        loop's lock is held. Errors: :class:`ArtifactError`, :class:`ConflictError`, :class:`jumar.errors.StoreWriteError`
        where there is no way.
        """
        number = to if isinstance(to, int) else to.number
        known = (self._store.manifest(to) if isinstance(to, int) else to.manifest).entries
        gone = self.gone()
        if gone is not None:
            self._tell(f"{gone}: it is made anew")
            self.renew()
            self.carry_out(self.difference(to))
            return
        tree, place = self.directory, self._store.paths.directory / QUARANTINE / f"tree-{secrets.token_hex(4)}"
        largest = None if self._kind == "in place" else self._rules.max_file_bytes
        with as_write_error("clear", tree):
            open_folders(tree, ("",))
            listed = self._rules.list(tree, never=(self.root,), kept=self._known(), mend=readable(tree))
            shallow(tree, (path for path in listed if path not in known))
            moved = move_out(tree, occupied(tree, known), place, largest=None)
            plan = self.difference(to)
            going = [*plan.delete, *(item.path for item in plan.write)]
            open_folders(tree, {path.rpartition("/")[0] for path in going})
            moved |= move_out(tree, [path for path in going if _exists(tree, path)], place, largest=largest)
            self.unlock()
        self.carry_out(plan)
        if moved:
            self._tell(f"the working directory is as in iteration {number} again; what was there is in {escape(str(place))}")

    def carry_out(self, plan: RestorePlan, *, set_aside: bool = False) -> Path | None:
        """Change the tree as planned; with ``set_aside``, first keep a copy of what is changed or removed.

        Returns the directory of that copy, or None when nothing differed or nothing was kept.
        """
        if (gone := self.gone()) is not None:  # what stands there may be a person's
            raise ArtifactError(gone)
        holds = frozenset((*plan.unchanged, *(item.path for item in plan.write)))
        if not plan.write and not plan.delete:
            self._kept = holds
            return None
        kept = None
        if set_aside:
            present = [path for path in (*plan.delete, *(item.path for item in plan.write)) if _exists(self.directory, path)]
            kept = self.set_aside(present) if present else None
        restore(plan)
        self._kept = holds
        return kept

    def set_aside(self, paths: Collection[str]) -> Path:
        """Keep a copy of ``paths`` and return where; more than a snapshot may hold is moved there instead, as in a bring-back."""
        try:
            self._rules.check_quota(self.directory, tuple(paths))
        except ArtifactError:
            place = self._store.paths.directory / QUARANTINE / f"tree-{secrets.token_hex(4)}"
            largest = None if self._kind == "in place" else self._rules.max_file_bytes
            with as_write_error("clear", self.directory):
                move_out(self.directory, paths, place, largest=largest)
            return place
        return self._store.set_aside(self.directory, paths)

    def head(self) -> str | None:
        """Return the commit that HEAD is at, or None outside of a repository."""
        return self._git("rev-parse", "--verify", "--quiet", "HEAD")

    def in_repository(self) -> bool:
        """Whether the tree lies in a git repository."""
        return any(os.path.lexists(parent / _GIT) for parent in (self.directory, *self.directory.parents))

    def rewritten_since(self, before: str | None) -> str | None:
        """Return what to say when the repository's history no longer holds the commit ``before``, or None when it does."""
        after = self.head()
        if before is None or after == before:
            return None
        rescue = f"`git branch rescue {before[:12]}` brings it back"
        if after is None:
            return f"the repository has no commits any more; before the generator ran it was at {before[:12]}: {rescue}"
        if self._git("merge-base", before, after) == before:
            return None
        return f"the repository's history was rewritten: {after[:12]} does not follow {before[:12]}, where it was; {rescue}"

    def commits_since(self, before: str | None) -> tuple[str, ...]:
        """Return the commits made since ``before``, oldest first. They are reported and left alone."""
        after = self.head()
        if after is None or after == before:
            return ()
        span = after if before is None else f"{before}..{after}"
        listed = self._git("rev-list", "--reverse", "--max-count=100", span)
        return tuple(listed.split()) if listed else (after,)

    def _git(self, *arguments: str) -> str | None:
        if self._git_waits or not self.in_repository():
            return None
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | self.variables()
        try:
            done = run_git(["git", *arguments], cwd=self.directory, environment=environment, timeout=_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._tell(f"git did not answer within {_TIMEOUT} s in {escape(str(self.directory))}, and is not asked again")
            self._git_waits = True
            return None
        except OSError:
            return None
        return os.fsdecode(done.stdout).strip() or None if done.returncode == 0 else None


def _identity(path: Path) -> tuple[int, int]:
    status = os.lstat(path)
    return (status.st_dev, status.st_ino)


def _kind(settings: LoopSettings, slot: int | None) -> Literal["in place", "copy", "worktree"]:
    if settings.isolation == "worktree":
        return "worktree"
    return "in place" if settings.in_place and slot is None else "copy"


def remove_copy(tree: Path) -> None:
    """Take the copy its name first, so that half of it is never found under it."""
    with as_write_error("remove", tree):
        aside = tree if tree.name.startswith(TEMPORARY) else tree.with_name(TEMPORARY + tree.name)
        if aside != tree:
            remove_tree(aside)
            if os.path.lexists(tree):
                rename_new(tree, aside)
        remove_tree(aside)


def _exists(root: Path, path: str) -> bool:
    try:
        mode = os.lstat(root / path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not stat.S_ISDIR(mode)


def changed_paths(before: Mapping[str, ArtifactDetail], after: Mapping[str, ArtifactDetail]) -> tuple[str, ...]:
    """Return the paths that were added, removed or changed between two manifests, sorted."""
    changed = [path for path, detail in after.items() if before.get(path) != detail]
    changed += [path for path in before if path not in after]
    return tuple(sorted(changed))
