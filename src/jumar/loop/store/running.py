"""Which loop runs and which worked last, and the lock of the directory that loops work in.

Times come from the records, because a copy changes those of the files. A clock that jumped makes another loop the newest, but the
same one every time: equal times are decided by the name, in which ``calc-10`` follows ``calc-9``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Generator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from jumar.core.files import read_bytes, sha256_bytes
from jumar.core.lock import LoopLock, holder_of, who_holds
from jumar.core.text import escape
from jumar.errors import LockedError
from jumar.loop.store.layout import (
    UNREADABLE,
    LoopPaths,
    iteration_name,
    iteration_number,
    list_loops,
    loops_directory,
    natural_order,
    standing_of,
)
from jumar.loop.store.loop_store import LoopStore

_SHORT_COMMANDS = re.compile(r"(?:jumar|__main__\.py|entry\.py) (?!run\b|demo\b)[a-z]")
_ATTEMPT = re.compile(r"(\d+)\.start\.json")
_UNKNOWN = float("-inf")
_STANDINGS = (0, UNREADABLE, 1, 2)  # what is meant last comes first

Order = tuple[float, tuple[tuple[int, str], ...]]


def by_creation(root: Path) -> tuple[str, ...]:
    """Return the names of the loops below ``root``, oldest first; a loop whose beginning cannot be read comes first."""

    def order(name: str) -> Order:
        return _time(LoopPaths(loops_directory(root) / name).loop_json, "created_at"), natural_order(name)

    return tuple(sorted(list_loops(root), key=order))


def running_loops(root: Path, *, by_others: bool = False) -> tuple[str, ...]:
    """Return the names of the loops below ``root`` that a living process runs, sorted; ``by_others``: not this one.

    A command that only shows or changes a loop also holds its lock for a moment: such a loop does not run.
    """
    return tuple(name for name in list_loops(root) if _runs(LoopPaths(loops_directory(root) / name), by_others=by_others))


def newest_loop(roots: Sequence[Path], *, ending: bool = False) -> Path | None:
    """Return the directory of the loop that runs, else of the one that worked last; None when there is none.

    The loops of an earlier root come before those of a later one; of several that run, and of those that don't, the one counts
    whose last paid step ended last (of a tracker's, whose last iteration is the newest); one in which nothing ever began, because
    its start could not be judged, comes after those. ``ending`` looks ahead: what this process runs has ended by then. After
    those that this user began come copied ones, and at last what a program of another loop began: nobody meant it who names none.
    """
    alike: dict[tuple[int, bool, int], list[Path]] = {}
    for place, root in enumerate(roots):
        loops, running = loops_directory(root), running_loops(root, by_others=ending)
        for name in list_loops(root):
            standing = _STANDINGS.index(standing_of(LoopPaths(loops / name).loop_json))
            alike.setdefault((standing, name in running, -place), []).append(loops / name)
    best = alike[max(alike)] if alike else ()
    return max(best, key=lambda directory: (*_last_work(directory), natural_order(directory.name)), default=None)


def _runs(paths: LoopPaths, *, by_others: bool) -> bool:
    holder = holder_of(paths.lock)
    if holder is None or not (holder.held and holder.alive) or (by_others and holder.pid == os.getpid()):
        return False
    return _SHORT_COMMANDS.match(holder.command) is None


def _last_work(directory: Path) -> tuple[bool, float]:
    """Return whether anything began in a loop, and when it last worked, or was made."""
    paths = LoopPaths(directory)
    attempts = [int(match[1]) for name in _names(paths.attempts) if (match := _ATTEMPT.fullmatch(name))]
    iterations = [number for name in _names(paths.iterations) if (number := iteration_number(name)) is not None]
    if attempts:
        newest = max(attempts)
        end = _document(paths.attempt_end(newest))
        found = _moment(end, "ended_at")
        worked = found if found != _UNKNOWN else _time(paths.attempt_start(newest), "started_at")
        return bool(iterations) or end.get("outcome") != "broken", worked
    if iterations:
        return True, _time(paths.iterations / iteration_name(max(iterations)) / "metrics.json", "timestamp")
    return False, _time(paths.loop_json, "created_at")


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _document(path: Path) -> dict[str, Any]:
    """Return what ``path`` holds; nothing when it cannot be read."""
    try:
        document: Any = json.loads(read_bytes(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


def _time(path: Path, key: str) -> float:
    return _moment(_document(path), key)


def _moment(document: dict[str, Any], key: str) -> float:
    """Return the seconds of the time that ``document`` has under ``key``; before all times when there is none."""
    text = document.get(key)
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return _UNKNOWN
    if moment is None:
        return _UNKNOWN
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


@contextlib.contextmanager
def locked_tree(store: LoopStore, workdir: Path) -> Generator[None]:
    """Hold the lock of ``workdir`` among the loops of the store's root. A loop that stands alone has no root and no such lock.

    Errors: :class:`LockedError` naming who works there.
    """
    if store.paths.root == store.paths.directory:
        yield
        return
    path = store.paths.lock.with_name(_name(workdir))
    lock = LoopLock(path)
    try:
        lock.acquire()
    except LockedError as error:
        raise _busy(workdir, who_holds(path) or {}) from error
    try:
        yield
    finally:
        lock.release()


def refuse_busy_tree(root: Path, workdir: Path) -> None:
    """Raise :class:`LockedError` when a loop of ``root`` changes ``workdir`` right now; for those who have no loop yet."""
    holder = who_holds(root / "locks" / _name(workdir))
    if holder is not None:
        raise _busy(workdir, holder)


def _name(workdir: Path) -> str:
    return "workdir-" + sha256_bytes(str(workdir.resolve()).encode("utf-8", "surrogateescape"))[:16]


def _busy(workdir: Path, holder: Mapping[str, Any]) -> LockedError:
    who = f"process {holder['pid']} ({escape(str(holder.get('command')))})" if "pid" in holder else "another process"
    return LockedError(
        f"{who} works in {escape(str(workdir))}; wait for it to end, stop it, or work beside it with --isolation copy or worktree"
    )
