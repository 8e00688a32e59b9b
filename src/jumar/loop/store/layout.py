"""Names: where everything of a loop lies, and which loop ids are allowed."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import secrets
from pathlib import Path
from typing import Final

from jumar.core import files, leftovers
from jumar.core.files import as_write_error, rename_new
from jumar.core.leftovers import folders_of, give_rights, remove_tree
from jumar.core.lock import own_directory
from jumar.core.lock import replaced as moved_away
from jumar.core.marks import origin
from jumar.core.text import check_id, escape, natural
from jumar.errors import StoreDamagedError, UsageError

ARTIFACTS: Final = "artifacts"
ELSEWHERE: Final = "READ-ME.txt"
"""The one file in ``artifacts/`` where an iteration's files lie among the objects of the root."""

LOGS: Final = "logs"
MANIFEST: Final = "manifest.json"
METRICS: Final = "metrics.json"
STAGE: Final = "stage.json"
RECHECKED: Final = "recheck-"
"""How the directories of ``set-aside/`` begin that hold what a recheck which was killed left: of them there is no manifest."""

BEGUN_INSIDE: Final = "begun_inside"
"""The key of ``loop.json`` with the loop of which a program began this one; a person's has none."""
UNREADABLE: Final = -1
"""The standing of a loop whose ``loop.json`` cannot be read."""

_LOOPS: Final = "loops"
_RUNS: Final = "runs"
_SKIPPED: Final = "node_modules"
"""A folder that every JavaScript runner and tool skips, wherever it lies: else they collect the tests in our snapshots."""

_PACKAGE: Final = "package.json"
_LISTED: Final = 1_000  # directories that are looked into for a package
LOCKS: Final = "locks"
_PREFIX: Final = "iteration-"
_IGNORE: Final = ".gitignore"
IGNORED: Final = b"""\
# What jumar keeps of its loops. `jumar list` shows them; `jumar cleanup` and `jumar rm LOOP` free space.
# All of them share the snapshots' files in objects/: delete nothing there by hand.
*
"""
STOP: Final = "STOP"
"""The name of the file that asks loops to stop: in the root for all of them, in a loop's directory for that one."""

OBJECTS: Final = "objects"
REPLIES: Final = "replies"
WORK: Final = "work"
_OURS: Final = frozenset({_LOOPS, _RUNS, _SKIPPED, LOCKS, WORK, REPLIES, OBJECTS, "quarantine", STOP, _IGNORE})


def check_loop_id(loop_id: str) -> str:
    """Return ``loop_id`` when it may name a loop, else raise :class:`UsageError` that says what is allowed."""
    return check_id(loop_id, "loop id")


def iteration_name(number: int) -> str:
    """Return the directory name of an iteration: ``iteration-007``, ``iteration-1000``."""
    return f"{_PREFIX}{number:03d}"


def iteration_number(name: str) -> int | None:
    """Return the number that :func:`iteration_name` made ``name`` from, or None when it made no such name."""
    number = natural(name.removeprefix(_PREFIX))
    return number if number is not None and iteration_name(number) == name else None


def loops_directory(root: Path) -> Path:
    """Return the directory that holds the loops of ``root``, one subdirectory each: where they are, else where they go.

    A new root in a JavaScript project has them in ``node_modules/loops/``, any other in ``loops/``. Where both are there, it is
    the one with loops or runs of cases that this user began: a program of a loop may have made the other. Errors:
    :class:`jumar.errors.StoreDamagedError` where nobody can tell them apart.
    """
    known = places_of_loops(root)
    _open_again(root, known[1].parent, *known)
    there = [place for place in known if place.is_dir() or place.with_name(_RUNS).is_dir()]
    if len(there) < len(known):
        return there[0] if there else known[is_among_packages(root)]
    worth = [max(map(standing_of, [*_loop_files(place), *_run_files(place)]), default=-2) for place in known]
    if worth[0] == worth[1] >= UNREADABLE:
        raise StoreDamagedError(
            f"there are loops or runs in {escape(os.fspath(known[0].parent))} and in {escape(os.fspath(known[1].parent))}, and"
            " one of the two was put there: move it elsewhere"
        )
    return known[worth.index(max(worth))]


def _open_again(*places: Path) -> None:
    """Let the owner list and enter directories that a program of a loop has closed."""
    for place in places:
        if not os.access(place, os.R_OK | os.X_OK):
            give_rights(place)


def _loop_files(loops: Path) -> list[Path]:
    return [path for path in loops.glob("*/loop.json") if path.is_file()]


def _run_files(loops: Path) -> list[Path]:
    return [path for path in loops.with_name(_RUNS).glob("*/run.json") if path.is_file()]


def standing_of(path: Path) -> int:
    """Return how much a loop is meant where nobody names one, by its ``loop.json``; a run of cases, by its ``run.json``.

    2: this user began it here, under this name. 1: it was copied, or a program made it look so. 0: a program of another loop
    began it. :data:`UNREADABLE`: nobody knows.
    """
    data = files.content_of(path) or b""
    try:
        document = json.loads(data)
        if BEGUN_INSIDE in document:
            return 0
        named = document.get("loop_id", path.parent.name) == path.parent.name
        return 2 if named and origin(data, f"{document.get('nonce')}/{path.name}") == "ours" else 1
    except (ValueError, AttributeError, TypeError, RecursionError):
        return UNREADABLE


def loops_beside(paths: LoopPaths) -> Path | None:
    """Return the other directory of the root in which loops may lie, where it holds some; None where it does not."""
    places = () if paths.root == paths.directory else places_of_loops(paths.root)
    return next((place for place in places if place != paths.directory.parent and _loop_files(place)), None)


def places_of_loops(root: Path) -> tuple[Path, Path]:
    """Return the two directories in which loops of ``root`` may lie, whether or not they are there."""
    return root / _LOOPS, root / _SKIPPED / _LOOPS


def runs_directory(root: Path) -> Path:
    """Return the directory that holds the runs of cases of ``root``: beside its loops."""
    return loops_directory(root).with_name(_RUNS)


def root_of(directory: Path) -> Path:
    """Return the root that the loop in ``directory`` belongs to; ``directory`` itself where a loop stands alone."""
    if directory.parent.name != _LOOPS:
        return directory
    above = directory.parent.parent
    return above.parent if above.name == _SKIPPED else above


def is_among_packages(root: Path) -> bool:
    """Whether a ``package.json`` lies beside ``root``, above it in its repository, or one or two levels below its parent.

    A root that is a package itself is none: ``npm ci`` empties its ``node_modules``. A folder that may not be entered has none.
    """
    here = Path(os.path.abspath(root)).parent
    above = (here, *here.parents)
    top = next((place for place in above if os.path.exists(place / ".git")), here)
    if os.path.exists(root / _PACKAGE):
        return False
    if any(os.path.isfile(place / _PACKAGE) for place in above[: above.index(top) + 1]):
        return True
    below = itertools.chain.from_iterable((place, *_folders(place)) for place in _folders(here))
    return any(os.path.isfile(place / _PACKAGE) for place in itertools.islice(below, _LISTED))


def _folders(directory: Path) -> list[Path]:
    try:
        with os.scandir(directory) as listing:
            found = [entry.path for entry in listing if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [Path(path) for path in sorted(found) if not Path(path).name.startswith((".", _SKIPPED))]


def prepare_root(root: Path, loops: Path | None = None) -> None:
    """Create ``root`` with its ``loops/``, ``locks/`` and a ``.gitignore`` of all. What exists stays as it is.

    ``loops`` is where its loops are to lie, by default :func:`loops_directory`.

    A directory that also holds somebody else's files, such as a project with a ``loops/`` of its own, is not ignored as a
    whole: the ``.gitignore`` then goes into ``loops/`` and ``locks/``. Errors: :class:`jumar.errors.StoreWriteError`.
    """
    with files.as_write_error("create", root):
        loops = loops or loops_directory(root)
        files.make_directory(root)
        own_directory(root / LOCKS)
        files.make_directory(loops)
        for directory in (root, loops, root / LOCKS):
            leftovers.sweep(directory)
        shared = any(name not in _OURS and not name.startswith(leftovers.TEMPORARY) for name in os.listdir(root))
        for directory in (loops, root / LOCKS) if shared else (root,):
            if not (directory / _IGNORE).exists():
                with contextlib.suppress(FileExistsError):
                    files.write_once(directory / _IGNORE, IGNORED)


def list_loops(root: Path) -> tuple[str, ...]:
    """Return the names of the loops below ``root``, sorted; empty when there are none."""
    return tuple(sorted(folder.name for folder in loop_folders(root) if os.path.isfile(folder / "loop.json")))


def loop_folders(root: Path) -> list[Path]:
    """Return the folders in which loops are or were, by name in its natural order; empty when there are none."""
    loops = loops_directory(root)
    if not loops.is_dir():
        return []
    with os.scandir(loops) as listing:
        names = [entry.name for entry in listing if not entry.name.startswith(".") and _leads_to_directory(entry)]
    folders = [loops / name for name in sorted(names, key=natural_order)]
    _open_again(*folders)
    return folders


def natural_order(name: str) -> tuple[tuple[int, str], ...]:
    """Return what sorts ``calc-9`` before ``calc-10``: numbers by value, the rest by its characters."""
    parts = re.split(r"([0-9]+)", name)
    return tuple((int(part), part) if index % 2 else (-1, part) for index, part in enumerate(parts))


def _leads_to_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle
        return False


class LoopPaths:
    """The paths of one loop. ``directory`` is absolute, so that a later ``chdir`` changes nothing.

    ``checks`` holds copies of what decides about candidates, as it was at the start (``checks/0001``), and one for each accepted
    change; ``recheck`` what lay beside the snapshots when the loop began, and what a recheck of the selected iteration has set
    aside. ``events`` is a convenience for watchers, never a source of truth; its older part is ``events.1.jsonl``. ``root`` is
    the root that the loop belongs to, its own directory where it stands alone.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.root = root_of(directory)
        self.objects = self.root / OBJECTS
        self.loop_json = directory / "loop.json"
        self.attempts = directory / "attempts"
        self.scratch = directory / "scratch"
        self.pending = directory / "pending"
        self.iterations = directory / "iterations"
        self.readings = directory / "readings"
        self.decisions = directory / "decisions"
        self.undo = directory / "undo"
        self.set_aside = directory / "set-aside"
        self.checks = directory / "checks"
        self.recheck = directory / "recheck"
        self.recheck_begun = self.recheck / "begun.json"
        self.final_output = directory / "final-output"
        self.events = directory / "events.jsonl"
        self.tracking_view = directory / "best-output-tracking.json"
        self.best_view = directory / "best-tracker.json"
        self.report_view = directory / "selection-report.md"

    def stop_files(self) -> tuple[Path, ...]:
        """The files that ask this loop to stop, whether or not they exist: the root's, then its own."""
        own = self.directory / STOP
        real = Path(os.path.realpath(self.directory))
        root = root_of(real)
        return (own,) if root == real else (root / STOP, own)

    @property
    def lock(self) -> Path:
        """A function of the directory's real path alone, so that every process finds the same lock."""
        real = Path(os.path.realpath(self.directory))
        root = root_of(real)
        return real / ".lock" if root == real else root / LOCKS / real.name

    @property
    def subdirectories(self) -> tuple[Path, ...]:
        """The directories that every loop has from its beginning."""
        return (
            self.attempts,
            self.scratch,
            self.pending,
            self.iterations,
            self.readings,
            self.decisions,
            self.undo,
            self.set_aside,
        )

    def iteration(self, number: int) -> Path:
        return self.iterations / iteration_name(number)

    def pending_iteration(self, number: int) -> Path:
        return self.pending / iteration_name(number)

    def attempt_start(self, number: int) -> Path:
        return self.attempts / f"{number:06d}.start.json"

    def attempt_end(self, number: int) -> Path:
        return self.attempts / f"{number:06d}.end.json"

    def attempt_scratch(self, number: int) -> Path:
        return self.scratch / f"{number:06d}"

    def checks_of(self, number: int) -> Path:
        return self.checks / f"{number:04d}"

    def reading_file(self, number: int, kind: str, iteration: int) -> Path:
        return self.readings / f"{number:04d}-{kind}-{iteration_name(iteration)}.json"

    def heartbeat(self, number: int) -> Path:
        return self.scratch / f"{number:06d}.beat"

    def undo_of(self, decision: int) -> Path:
        return self.undo / f"{decision:04d}"


def replaced(paths: LoopPaths) -> list[str]:
    """Move away what is no directory of ours: what is written or deleted through a link may be a person's; return what to tell.

    Those that are ours and were closed are opened. The caller holds the lock.
    """
    return moved_away(paths.directory, _of_records(paths), around=_around(paths))


def _of_records(paths: LoopPaths) -> tuple[Path, ...]:
    return (*paths.subdirectories, paths.checks, paths.recheck, paths.directory / LOGS)


def tidy_root(root: Path) -> list[str]:
    """Move away what stands where ``root`` has directories, or loops, and is none of them; return what to tell.

    A link that leads to a loop is a person's, and so is a root that is one. Errors: :class:`jumar.errors.UsageError` for a root
    that is no directory, :class:`jumar.errors.StoreWriteError`.
    """
    if not os.path.lexists(root):
        return []
    if not root.is_dir():
        raise UsageError(f"{escape(str(root))} is no directory: remove it, or choose another one with --root")
    loops = loops_directory(root)
    with as_write_error("set something aside in", root):
        _open_again(*(place for folder in loop_folders(root) for place in _of_records(LoopPaths(folder))))
        told = moved_away(root, (root / LOCKS, root / WORK, root / REPLIES, root / OBJECTS), around=(root, loops))
        if not list_loops(root):
            told += moved_away(root, (loops,))
        entries = loops.iterdir() if files.is_directory(loops) else ()  # where a link leads, other things may lie
        strangers = [entry for entry in entries if not (entry.name.startswith(".") or os.path.isfile(entry / "loop.json"))]
        return told + moved_away(root, strangers)


def open_to_owner(paths: LoopPaths, *, snapshots: bool = False, folders_only: bool = False) -> None:
    """Give the owner of a loop the rights back that somebody took away; with ``snapshots`` those to what they hold, too.

    ``folders_only`` looks at no file in them, which costs a large loop little.
    """
    for place in _around(paths):
        give_rights(place)
    if snapshots:
        for path in paths.objects.iterdir() if files.is_directory(paths.objects) else ():
            give_rights(path, write=False)
    for directory, folders, names in folders_of(paths.directory):
        for name in folders:
            give_rights(f"{directory}/{name}")
        if directory.endswith(f"/{ARTIFACTS}") and not snapshots:
            folders.clear()
            continue
        for name in () if folders_only else names:
            give_rights(f"{directory}/{name}", write=f"/{ARTIFACTS}" not in directory)


def _around(paths: LoopPaths) -> tuple[Path, ...]:
    above = () if paths.root == paths.directory else (paths.root, paths.objects, paths.directory.parent)
    return (*above, paths.directory)


_REMOVED: Final = ".removed-"


def take_away(paths: LoopPaths) -> None:
    """Rename the loop out of its root, and delete the file of its lock, which the caller holds. :func:`tidy_removed` deletes it.

    Errors: :class:`jumar.errors.StoreWriteError`; the loop is whole then.
    """
    with as_write_error("remove", paths.directory):
        rename_new(paths.directory, paths.directory.with_name(f"{_REMOVED}{secrets.token_hex(6)}"))
        paths.lock.unlink(missing_ok=True)


def tidy_removed(root: Path) -> None:
    """Delete what is left of removed loops; what cannot be deleted stays, and is in nobody's way."""
    with contextlib.suppress(OSError):
        for entry in loops_directory(root).iterdir():
            if entry.name.startswith(_REMOVED):
                with contextlib.suppress(OSError):
                    remove_tree(entry)
