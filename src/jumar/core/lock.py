"""One writer at a time: a ``flock`` that the kernel drops when its holder dies. Of a loop, or of a file, with the lock beside it.

The content of a loop's lock is rewritten by each holder, and deleted only with its loop. It serves two purposes: the message
that tells the next one who is writing, and the *generation*: a writer that finds its own nonce there knows that nobody wrote
since, and need not list again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import secrets
import stat
import sys
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

from jumar.core import files, leftovers
from jumar.core.files import wait_for_lock
from jumar.core.leftovers import give_rights
from jumar.core.redaction import current
from jumar.core.text import escape, natural
from jumar.errors import JumarError, LockedError, PatternSaveError

QUARANTINE: Final = "quarantine"
_LONGEST: Final = 200  # bytes of a name that a number comes before, so that a name as long as there can be fits


def replaced(directory: Path, places: Iterable[Path], *, around: Iterable[Path] = ()) -> list[str]:
    """Move away what is no directory of ours: what is written or deleted through a link may be a person's; return what to tell.

    Of ``places``, which lie in ``directory``, and of those ``around`` them, what is ours and was closed is opened. The caller
    holds the lock.
    """
    places = tuple(places)
    closed = [place for place in (*around, *places) if files.is_directory(place) and give_rights(place)]
    told = [f"{place.name} was closed to its owner, and is open again" for place in closed]
    for place in (place for place in places if os.path.lexists(place) and not files.is_directory(place)):
        with contextlib.suppress(FileNotFoundError):  # another process, or thread, was faster
            told.append(f"{place.name} was no directory of jumar's: it lies in {move_aside(directory, place)} now")
    return told


def own_directory(path: Path) -> list[str]:
    """Make a directory of jumar's in one that is there, or may be made; what is none makes way as in :func:`replaced`."""
    told = replaced(path.parent, (path,)) if os.path.lexists(path) else []
    files.make_directory(path)
    return told


def next_place(directory: Path, name: str = "") -> Path:
    """Return the next numbered place in a directory where nothing lies yet: ``0003-NAME``, without a name ``0003``."""
    taken = (natural(other.partition("-")[0]) for other in os.listdir(directory))
    first = max((each for each in taken if each is not None), default=0) + 1
    suffix = name and "-" + os.fsdecode(os.fsencode(name)[:_LONGEST])
    places = (directory / f"{number:04d}{suffix}" for number in itertools.count(first))
    return next(place for place in places if not os.path.lexists(place))


def move_aside(directory: Path, path: Path) -> str:
    """Move ``path`` to the ``quarantine/`` of ``directory`` and return where it lies there."""
    quarantine = directory / QUARANTINE
    if os.path.lexists(quarantine) and not files.is_directory(quarantine):
        os.rename(quarantine, directory / leftovers.temporary_name())
    files.make_directory(quarantine)
    place = next_place(quarantine, path.name)
    if files.is_directory(path):  # a closed one cannot be moved
        give_rights(path)
    os.rename(path, place)
    return f"{QUARANTINE}/{place.name}"


_COMMAND_LENGTH: Final = 60
_CONTENT_LENGTH: Final = 4096
_BEGINS: Final = b'{"pid": '
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW


class LoopLock:
    """The lock of one loop. Re-entrant within one object; two objects exclude each other, in one process too.

    ``patience`` is how many seconds :meth:`acquire` tries before it raises: other commands hold the lock for milliseconds while
    they refresh a view, and a run should not fail for that. ``what`` is what the message calls the locked thing, by default the
    loop by its name. ``unchanged_since_mine`` is True when the last holder was this
    object.
    """

    def __init__(self, path: Path, *, patience: float = 0.25, what: str | None = None) -> None:
        self.path = path
        self.what = what
        self.patience = patience
        self.unchanged_since_mine = False
        self._nonce = secrets.token_hex(8)
        self._mark = self._nonce.encode("ascii")
        self._fd: int | None = None
        self._depth = 0
        self._pid = os.getpid()

    @property
    def held(self) -> bool:
        """Whether this process holds the lock through this object. A forked child does not."""
        return self._depth > 0 and self._pid == os.getpid()

    def acquire(self) -> None:
        """Take the lock, or raise :class:`LockedError` that names the holder.

        :class:`jumar.errors.StoreWriteError` when the lock file cannot be written: then this process could not write the loop
        either.
        """
        self._forget_after_fork()
        if self._depth == 0:
            with files.as_write_error("lock", self.path):
                self._fd = self._take()
        self._depth += 1

    def release(self) -> None:
        """Give the lock back once every :meth:`acquire` has its release."""
        self._forget_after_fork()
        if self._depth == 0:
            return
        self._depth -= 1
        if self._depth == 0 and self._fd is not None:
            fd, self._fd = self._fd, None
            try:
                # Closing is not enough: a forked child that still has the descriptor would keep the lock.
                fcntl.flock(fd, fcntl.LOCK_UN)
            finally:
                os.close(fd)

    def regain(self) -> bool:
        """Return whether the file was deleted or replaced while this object holds its lock; the new one is locked then.

        Errors: :class:`LockedError` when another process has it by now, :class:`jumar.errors.StoreWriteError`.
        """
        give_rights(self.path.parent)
        if not self.held or self._fd is None or _is_at(self._fd, self.path):
            return False
        with files.as_write_error("lock", self.path):
            lost, self._fd = self._fd, self._take()
        os.close(lost)
        return True

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def last_holder_was_me(self) -> bool:
        """Return whether nobody else has taken the lock since this object did. Reads the file without locking it."""
        if self._pid != os.getpid():
            return False
        try:
            fd = os.open(self.path, _READ)
        except OSError:
            return False
        try:
            return self._mark in os.pread(fd, _CONTENT_LENGTH, 0)
        except OSError:
            return False
        finally:
            os.close(fd)

    def _forget_after_fork(self) -> None:
        if self._pid == os.getpid():
            return
        self._pid, self._depth, self._nonce = os.getpid(), 0, secrets.token_hex(8)
        self._mark = self._nonce.encode("ascii")
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _take(self) -> int:
        fd = self._open()
        try:
            self._wait_for(fd)
            valid = _is_at(fd, self.path)
            if valid and not _is_lock(fd):
                valid = False
                set_aside(self.path)
            if valid:
                self.unchanged_since_mine = _content(fd).get("nonce") == self._nonce
                _write(fd, self._nonce)
        except BaseException:
            os.close(fd)
            raise
        if not valid:  # also deleted with its loop while this process waited; a new loop of the name has a file of its own
            os.close(fd)
            return self._take()
        return fd

    def _open(self) -> int:
        """Open the lock, or make it. A link or a directory in its place, or what is none in that of its directory, makes way."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        if files.is_directory(self.path.parent):
            with contextlib.suppress(OSError):
                return os.open(self.path, flags, 0o644)
        own_directory(self.path.parent)
        give_rights(self.path)
        if os.path.lexists(self.path) and not stat.S_ISREG(os.lstat(self.path).st_mode):
            set_aside(self.path)
        return os.open(self.path, flags, 0o644)

    def _wait_for(self, fd: int) -> None:
        if not files.wait_for_lock(fd, self.patience):
            raise LockedError(_held_message(self.what or _loop(self.path), _content(fd)))


def who_holds(path: Path) -> dict[str, Any] | None:
    """Return what the holder of the lock at ``path`` wrote of itself (``pid``, ``command``, ``since``), or None when it is free.

    Writes nothing, and keeps the lock for no longer than the question takes. A lock file that does not exist or cannot be read
    is free.
    """
    try:
        fd = os.open(path, _READ)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return _content(fd) if error.errno in {errno.EWOULDBLOCK, errno.EACCES} else None
    else:
        fcntl.flock(fd, fcntl.LOCK_UN)
        return None
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The last process that took a lock, as it wrote of itself.

    ``held`` is whether the lock is held now; ``alive`` whether that very process, told by its number and its start time, still
    runs. Held and not alive: a child that it left behind has inherited the lock.
    """

    pid: int | None
    command: str
    since: str
    held: bool
    alive: bool


def holder_of(path: Path) -> Holder | None:
    """Return who holds the lock at ``path``, or held it last; None when nobody ever did. Writes nothing, waits for nothing."""
    content = who_holds(path)
    held = content is not None
    if content is None:
        try:
            fd = os.open(path, _READ)
        except OSError:
            return None
        try:
            content = _content(fd)
        finally:
            os.close(fd)
    if not content and not held:
        return None
    pid = content.get("pid")
    number = pid if isinstance(pid, int) else None
    return Holder(
        pid=number,
        command=str(content.get("command", "")),
        since=str(content.get("since", "")),
        held=held,
        alive=number is not None and _is_running(number, content.get("process_start")),
    )


def _is_running(pid: int, started: object) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it runs, under another user
    return started is None or started == _process_start(pid)


def _is_at(fd: int, path: Path) -> bool:
    try:
        there = os.lstat(path)
    except OSError:
        return False
    return os.path.samestat(os.fstat(fd), there)


def _is_lock(fd: int) -> bool:
    """Return whether a file may be written as a lock: it has no other name, and is empty or was written as one before."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        return False
    return status.st_size == 0 or os.pread(fd, len(_BEGINS), 0) == _BEGINS


def set_aside(path: Path) -> None:
    """Give what stands in the place of a lock, and may be a person's, another name beside it."""
    path.rename(path.with_name(f"{path.name}.set-aside-{secrets.token_hex(4)}"))


def _loop(path: Path) -> str:
    return f"loop '{escape(path.parent.name if path.name == '.lock' else path.name)}'"


def _held_message(what: str, holder: dict[str, Any]) -> str:
    pid = holder.get("pid")
    if not isinstance(pid, int):
        return f"{what} is being written by another process; wait for it to end, or stop it"
    since = escape(str(holder.get("since", "an unknown time")))
    command = escape(str(holder.get("command", "unknown command")))
    if pid == os.getpid():
        return f"{what} is being written by this process through another object, since {since}; close that first"
    if holder.get("process_start") != _process_start(pid):
        return (
            f"{what} is locked by a process that was started by process {pid} ({command}), which has ended; "
            "wait for it to end, or stop it"
        )
    return f"{what} is being written by process {pid} ({command}) since {since}; wait for it to end, or stop it"


def _content(fd: int) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError, OSError):
        found: object = json.loads(os.pread(fd, _CONTENT_LENGTH, 0))
        if isinstance(found, dict):
            return cast("dict[str, Any]", found)
    return {}


def _write(fd: int, nonce: str) -> None:
    holder = {
        "pid": os.getpid(),
        "process_start": _process_start(os.getpid()),
        "command": _command(),
        "since": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "nonce": nonce,
    }
    data = json.dumps(holder).encode("ascii")
    os.pwrite(fd, data, 0)
    os.truncate(fd, len(data))


def _command() -> str:
    words = [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv else []
    command = current().redact(" ".join(words)) or "python"
    return command if len(command) <= _COMMAND_LENGTH else command[: _COMMAND_LENGTH - 1] + "…"


def _process_start(pid: int) -> int | None:
    """Return when ``pid`` started, in clock ticks since boot; None where /proc does not say. Tells a reused number apart."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as status:
            fields = status.read().rpartition(b")")[2].split()
        return int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


_PATIENCE: Final = 10.0  # seconds; whoever holds it writes one file


@contextlib.contextmanager
def writing(path: Path, *, patience: float = _PATIENCE, error: type[JumarError] = PatternSaveError) -> Generator[None]:
    """Hold the lock of the file ``path``: ``path`` with ``.lock`` added, which stays there.

    Errors: :class:`LockedError` when another process or object still holds it after ``patience`` seconds; ``error`` when the lock
    cannot be written, because the file could not be either.
    """
    lock = path.with_name(path.name + ".lock")
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as problem:
        raise error(f"{escape(str(path))} was not written: {problem.strerror}: {escape(str(lock))}") from problem
    try:
        if not wait_for_lock(fd, patience):
            raise LockedError(f"{escape(str(path))} is being written by another process; try again when it is done")
        yield
    finally:
        os.close(fd)
