"""Taking things out of a working directory for a while, so that they come back whatever happens.

What is taken, and from which tree, is written down before anything is moved, in the loop's ``recheck/``; each thing is then
renamed to ``recheck/aside/``, in directories of the same names. The way back is a rename too. Whoever is killed in between leaves
the rest to the next command.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Final

from jumar.core import files, leftovers
from jumar.core.codec import FORMAT, decode, encode
from jumar.core.text import escape
from jumar.errors import ForgedError, JumarError, LockedError
from jumar.loop.settings import LoopSettings
from jumar.loop.snapshots.scan import parents_of
from jumar.loop.store.in_force import config_now
from jumar.loop.store.layout import RECHECKED, LoopPaths, list_loops, loops_directory
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.running import locked_tree
from jumar.loop.store.trust import place_of
from jumar.loop.workspace.clearing import open_folders
from jumar.loop.workspace.workspace import Workspace
from jumar.processes.process_tree import end_strays

_PLAN: Final = "plan.json"
_ASIDE: Final = "aside"


class Aside:
    """What is out of the working directory of ``workspace`` while the body of :meth:`away` runs. The loop's lock is held."""

    def __init__(self, store: LoopStore, workspace: Workspace) -> None:
        paths = store.paths
        self._place = place_of(store.nonce, paths.recheck / _PLAN)
        self._plan = paths.recheck / _PLAN
        self._aside = paths.recheck / _ASIDE
        self._kept = paths.set_aside
        self._workspace, self._tree = workspace, workspace.directory
        self._slot = workspace.slot

    @contextlib.contextmanager
    def away(self, moves: Iterable[str], nonce: str) -> Generator[None]:
        """Take the relative paths ``moves`` away, and bring them back in the place of whatever stands there after the body.

        ``nonce`` is that of the processes that the body starts, which are ended where this process is killed. Errors:
        :class:`jumar.errors.StoreWriteError`, with everything back.
        """
        listed = [path.rstrip("/") for path in moves]
        plan = {"format": FORMAT, "slot": self._slot, "nonce": nonce, "moves": listed}
        with files.as_write_error("write", self._plan):
            files.make_directory(self._plan.parent)
            if self._left():  # by whoever changed the plan of a recheck that was killed: nobody knows where it belongs
                files.make_directory(self._kept)
                self._aside.rename(self._kept / f"{RECHECKED}{nonce}")
            if files.is_directory(self._plan):
                leftovers.remove_tree(self._plan)
            files.replace_file(self._plan, encode(plan, exact=True, place=self._place))
        try:
            with files.as_write_error("set aside what lies in", self._tree):
                for path in listed:
                    (self._aside / path).parent.mkdir(parents=True, exist_ok=True)
                    open_folders(self._tree, [*parents_of(path), path])  # closed, none of it can be moved
                    with contextlib.suppress(FileNotFoundError):
                        (self._tree / path).rename(self._aside / path)
            yield
        finally:
            self.back(listed, leftovers.remove_any)

    def back(self, moves: Sequence[str], clear: Callable[[Path], None]) -> int:
        """Bring back what is away, and return how much that was. ``clear`` makes the place of one free."""
        brought = 0
        with files.as_write_error("bring back what was set aside to", self._tree):
            for path in moves:
                if self._workspace.is_ours and self._holds(path):
                    self._make_way(path, clear)
                    (self._aside / path).rename(self._tree / path)
                    brought += 1
            files.sync_paths(self._tree, [self._tree / path for path in moves if os.path.lexists(self._tree / path)])
            self._left()
            self._plan.unlink(missing_ok=True)
            files.fsync_directory(self._plan.parent)
        return brought

    def _holds(self, path: str) -> bool:
        """Whether ``path`` is aside. What lies behind a link there is not what was taken away."""
        folders = (self._aside, *(self._aside / folder for folder in parents_of(path)))
        return all(map(files.is_directory, folders)) and os.path.lexists(self._aside / path)

    def _left(self) -> bool:
        """Remove what is empty of the place where things are aside; return whether anything is left there."""
        for directory in reversed([directory for directory, _, _ in leftovers.folders_of(self._aside)]):
            with contextlib.suppress(OSError):
                Path(directory).rmdir()
        return os.path.lexists(self._aside)

    def _make_way(self, path: str, clear: Callable[[Path], None]) -> None:
        """Make the directories around ``path``, none of them a link, and nothing at it."""
        here = self._tree
        for part in path.split("/")[:-1]:
            here = here / part
            if os.path.lexists(here) and not stat.S_ISDIR(os.lstat(here).st_mode):
                clear(here)
            here.mkdir(exist_ok=True)
        if os.path.lexists(self._tree / path):
            clear(self._tree / path)

    def kept_aside(self, place: Path) -> Callable[[Path], None]:
        """Return what moves a thing of the tree to the same path below ``place``, where nobody can say whose it is."""

        def move(path: Path) -> None:
            target = place / path.relative_to(self._tree)
            files.make_directory(target.parent)
            path.rename(target)

        return move


def complete(root: Path) -> tuple[str, ...]:
    """Bring back what rechecks that were killed left aside in the loops of ``root``; return what to tell a person.

    A loop that is at work, here or elsewhere, is passed over, and so is one that cannot be read.
    """
    told: list[str] = []
    for name in list_loops(root):
        directory = loops_directory(root) / name
        if (LoopPaths(directory).recheck / _PLAN).is_file():
            try:
                told += _completed(LoopStore.open(directory))
            except LockedError:
                continue
            except (JumarError, OSError) as error:
                told.append(
                    f"what a recheck of loop '{escape(name)}' had set aside is still in {escape(str(directory))}: {error}"
                )
    return tuple(told)


def _completed(store: LoopStore) -> tuple[str, ...]:
    paths = store.paths
    with contextlib.ExitStack() as stack:
        stack.enter_context(store.lock())
        try:
            plan = decode(store.trust.read(paths.recheck / _PLAN), os.fspath(paths.recheck / _PLAN))
        except ForgedError:  # it would put what a program chose into the working directory
            place = store.quarantine(paths.recheck / _PLAN)
            return (f"recheck/{_PLAN} was not written by jumar, or was changed since: it lies in {place} now",)
        slot, moves, nonce = plan.integer_or_none("slot"), plan.texts("moves"), plan.text("nonce")
        files.check_names(moves)
        isolation = config_now(store).get("isolation")
        settings = LoopSettings(loop_id=store.loop_id, workdir=store.workdir or Path(), isolation=isolation)  # type: ignore[arg-type]
        workspace = Workspace(store, settings, slot)
        if settings.in_place and slot is None:
            stack.enter_context(locked_tree(store, settings.workdir))
        end_strays(nonce)
        aside, place = Aside(store, workspace), paths.set_aside / f"{RECHECKED}{nonce}"
        brought = aside.back(moves, aside.kept_aside(place))
    kept = f"; what stood in its place is in {escape(str(place))}" if place.exists() else ""
    what = f"{brought} of the files and directories" if brought > 1 else "what"
    message = f"a recheck of loop '{escape(store.loop_id)}' was interrupted: {what} that it had set aside came back{kept}"
    return (message,) if brought else ()
