"""Names: where everything of a loop lies, and which loop ids are allowed."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumar import files
from jumar.errors import UsageError
from jumar.text import escape

__all__ = [
    "LOOPS",
    "STOP",
    "LoopPaths",
    "check_id",
    "check_loop_id",
    "iteration_name",
    "iteration_number",
    "list_loops",
    "loops_directory",
    "prepare_root",
]

LOOPS: Final = "loops"
_LOCKS: Final = "locks"
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_PREFIX: Final = "iteration-"
_IGNORE: Final = ".gitignore"
STOP: Final = "STOP"
"""The name of the file that asks loops to stop: in the root for all of them, in a loop's directory for that one."""

_OURS: Final = frozenset({LOOPS, _LOCKS, "runs", "work", "replies", STOP, _IGNORE})


def check_loop_id(loop_id: str) -> str:
    """Return ``loop_id`` when it may name a loop, else raise :class:`UsageError` that says what is allowed."""
    return check_id(loop_id, "loop id")


def check_id(name: str, what: str) -> str:
    """Return ``name`` when it may name a directory of ours, else raise :class:`UsageError` that calls it ``what``."""
    if not _ID.fullmatch(name):
        raise UsageError(
            f"'{escape(name)[:120]}' cannot be a {what}: use 1 to 100 of A-Z a-z 0-9 . _ -, not starting with a dot or dash"
        )
    return name


def iteration_name(number: int) -> str:
    """Return the directory name of an iteration: ``iteration-007``, ``iteration-1000``."""
    return f"{_PREFIX}{number:03d}"


def iteration_number(name: str) -> int | None:
    """Return the number that :func:`iteration_name` made ``name`` from, or None when it made no such name."""
    digits = name.removeprefix(_PREFIX)
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(digits)
    return number if iteration_name(number) == name else None


def loops_directory(root: Path) -> Path:
    """Return the directory that holds the loops of ``root``, one subdirectory each."""
    return root / LOOPS


def prepare_root(root: Path) -> None:
    """Create ``root`` with ``loops/``, ``locks/`` and a ``.gitignore`` of ``*``. What exists stays as it is.

    A directory that also holds somebody else's files, such as a project with a ``loops/`` of its own, is not ignored as a
    whole: the ``.gitignore`` then goes into ``loops/`` and ``locks/``.
    """
    with files.as_write_error("create", root):
        for directory in (root, root / LOOPS, root / _LOCKS):
            files.make_directory(directory)
        shared = any(name not in _OURS and not name.startswith(files.TEMPORARY) for name in os.listdir(root))
        for directory in (root / LOOPS, root / _LOCKS) if shared else (root,):
            if not (directory / _IGNORE).exists():
                with contextlib.suppress(FileExistsError):
                    files.write_once(directory / _IGNORE, b"*\n")


def list_loops(root: Path) -> tuple[str, ...]:
    """Return the names of the loops below ``root``, sorted; empty when there are none."""
    try:
        with os.scandir(loops_directory(root)) as listing:
            names = [entry.name for entry in listing if not entry.name.startswith(".") and entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(sorted(name for name in names if loops_directory(root).joinpath(name, "loop.json").is_file()))


@dataclass(frozen=True, slots=True)
class LoopPaths:
    """The paths of one loop. ``directory`` is absolute, so that a later ``chdir`` changes nothing."""

    directory: Path

    @property
    def loop_json(self) -> Path:
        return self.directory / "loop.json"

    @property
    def attempts(self) -> Path:
        return self.directory / "attempts"

    @property
    def scratch(self) -> Path:
        return self.directory / "scratch"

    @property
    def pending(self) -> Path:
        return self.directory / "pending"

    @property
    def iterations(self) -> Path:
        return self.directory / "iterations"

    @property
    def readings(self) -> Path:
        return self.directory / "readings"

    @property
    def decisions(self) -> Path:
        return self.directory / "decisions"

    @property
    def undo(self) -> Path:
        return self.directory / "undo"

    @property
    def set_aside(self) -> Path:
        return self.directory / "set-aside"

    @property
    def checks(self) -> Path:
        """Copies of what decides about candidates, as it was at the start: ``checks/0001``, and one for each accepted change."""
        return self.directory / "checks"

    @property
    def final_output(self) -> Path:
        return self.directory / "final-output"

    @property
    def events(self) -> Path:
        """A convenience for watchers, never a source of truth; its older part is ``events.1.jsonl``."""
        return self.directory / "events.jsonl"

    def stop_files(self) -> tuple[Path, ...]:
        """The files that ask this loop to stop, whether or not they exist: the root's, then its own."""
        own = self.directory / STOP
        real = Path(os.path.realpath(self.directory))
        return (real.parent.parent / STOP, own) if real.parent.name == LOOPS else (own,)

    @property
    def tracking_view(self) -> Path:
        return self.directory / "best-output-tracking.json"

    @property
    def best_view(self) -> Path:
        return self.directory / "best-tracker.json"

    @property
    def report_view(self) -> Path:
        return self.directory / "selection-report.md"

    @property
    def lock(self) -> Path:
        """A function of the directory's real path alone, so that every process finds the same lock."""
        real = Path(os.path.realpath(self.directory))
        if real.parent.name == LOOPS:
            return real.parent.parent / _LOCKS / real.name
        return real / ".lock"

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
