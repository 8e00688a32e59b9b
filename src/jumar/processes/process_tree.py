"""Finding and ending every process that a step started, wherever it went.

A process group is not enough: ``setsid`` leaves it, and a double fork leaves the parent too. So each step's environment
carries :data:`MARKER` with a nonce, which children inherit, and all processes are looked through for it: one iteration over
``/proc`` (about 6 µs a process), or psutil where there is none. Members of a step are those in its group or session, those
that carry the marker, and the descendants of all of them.

Not found: a process that left group, session and parent *and* wiped its environment (or overwrote it for its title, as some
database servers do), and one that changed its user. ``docs/design/steps.md`` says what to do about those.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MARKER = "JUMAR_STEP"
_CHUNK = 1 << 17
_LOOK_AGAIN = (0.001, 0.004, 0.016)  # seconds; a program takes its place in a process within these
_KERNEL = 2  # the parent of all threads of Linux itself, which have no environment


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    pid: int
    parent: int
    group: int
    session: int
    started: float  # clock ticks since boot from /proc, seconds since 1970 from psutil; only compared with its own kind


class Family:
    """The processes of one step. ``leader`` started them and must not be reaped while this is used: its number is its group's.

    ``nonce`` is looked for in the marker variable. Where a step runs jumar itself that variable holds several, with colons
    between them: who ends the outer step ends the inner ones too. Without a leader (a step of a run that was killed) only the
    marker counts.
    """

    def __init__(self, nonce: str, leader: int | None = None) -> None:
        self._nonce = os.fsencode(nonce)
        self._leader = leader
        has_proc = Path("/proc/self/stat").exists()
        self._processes = _from_proc if has_proc else _from_psutil
        self._environment = _environment_from_proc if has_proc else _environment_from_psutil
        started = _started_from_proc if has_proc else _started_from_psutil
        self._since = started(leader) if leader is not None else None
        self._bare: set[int] = set()

    def living(self) -> tuple[int, ...]:
        """Return the numbers of the members that run, sorted; zombies don't, and this process is never one."""
        candidates: list[_Process] = []
        members: set[int] = set()
        unclear: list[int] = []
        for process in self._processes():
            # what is older than the leader cannot descend from it, and reading its environment could only block
            if self._since is not None and process.started < self._since:
                continue
            candidates.append(process)
            carries = self._carries(process.pid)
            if self._leader in {process.group, process.session} or carries:
                members.add(process.pid)
            elif carries is None and _KERNEL not in {process.pid, process.parent}:
                unclear.append(process.pid)
        members.update(self._looked_at_again(unclear))
        found = 0
        while len(members) != found:
            found = len(members)
            members |= {process.pid for process in candidates if process.parent in members}
        return tuple(sorted(members - {os.getpid()}))

    def _looked_at_again(self, unclear: list[int]) -> Iterator[int]:
        """Yield those that carry the nonce after all: while a process becomes another program, its environment looks empty."""
        unclear = [pid for pid in unclear if pid not in self._bare]
        for pause in _LOOK_AGAIN:
            if not unclear:
                return
            time.sleep(pause)
            now = [(pid, self._carries(pid)) for pid in unclear]
            yield from (pid for pid, carries in now if carries)
            unclear = [pid for pid, carries in now if carries is None]
        self._bare.update(unclear)  # it wiped its environment, and stays so

    def _carries(self, pid: int) -> bool | None:
        """Return whether the environment that ``pid`` was started with has the nonce in the marker variable; None if empty."""
        environment = self._environment(pid)
        if environment == [b""]:
            return None
        name = MARKER.encode() + b"="
        marks = (entry.removeprefix(name) for entry in environment if entry.startswith(name))
        return any(self._nonce in mark.split(b":") for mark in marks)

    def signal(self, number: int, members: tuple[int, ...]) -> None:
        """Send ``number`` once to each of ``members``; to the leader's group in one call, so that nothing in it forks past it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._leader is not None:
                os.killpg(self._leader, number)
        for pid in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                # a second SIGTERM means "at once" to many programs
                if self._leader is None or os.getpgid(pid) != self._leader:
                    os.kill(pid, number)

    def end(self, *, grace: float, wait: Callable[[float], None] = time.sleep) -> tuple[frozenset[int], tuple[int, ...]]:
        """SIGTERM, ``grace`` seconds, SIGKILL. Return the members that were seen, and those that even SIGKILL did not end.

        ``wait`` passes the time between two looks; a caller that has pipes to read reads them there.
        """
        members = self.living()
        seen = set(members)
        for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 2.0)):
            deadline = time.monotonic() + patience
            pause = 0.001
            told: set[int] = set()
            while members:
                fresh = tuple(pid for pid in members if pid not in told)
                # SIGTERM is said once: what appears after it is somebody cleaning up, and gets the rest of the grace
                if fresh and (number == signal.SIGKILL or not told):
                    self.signal(number, fresh)
                    told.update(fresh)
                if time.monotonic() >= deadline:
                    break
                wait(pause)
                pause = min(pause * 2, 0.05)
                members = self.living()
                seen.update(members)
        return frozenset(seen), members


def end_strays(nonce: str, *, grace: float = 2.0) -> int:
    """End the processes that a killed run left behind, known by the nonce of its step. Return how many there were."""
    return len(Family(nonce).end(grace=grace)[0]) if nonce else 0


def within(nonce: str) -> str:
    """Return the marker of programs that belong to ``nonce``, a loop's or a run's, and to whatever this process is a step of."""
    return ":".join(filter(None, (os.environ.get(MARKER), nonce)))


def programs_above(pid: int | None = None) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield loop, iteration and the nonces in the marker of the programs of loops that a process is, or was started by.

    The nearest first. None is this process, whose environment may have been changed since it was started. Those of the
    person's own commands around the steps, which may run what a candidate holds, have no iteration.
    """
    start = os.getpid() if pid is None else pid
    above = ({name: value for name, _, value in (entry.partition(b"=") for entry in each)} for each in _environments_above(start))
    for environment in itertools.chain(() if pid is not None else (os.environb,), above):
        found = [os.fsdecode(environment.get(name, b"")) for name in (b"JUMAR_LOOP_ID", b"JUMAR_ITERATION")]
        if any(found):
            nonces = os.fsdecode(environment.get(MARKER.encode(), b"")).split(":")
            yield found[0], found[1], frozenset(nonces) - {""}


def _environments_above(start: int) -> Iterator[list[bytes]]:
    """Yield the environments that a process and those above it were started with, the nearest first."""
    if Path("/proc/self/stat").exists():
        parents, environment = {one.pid: one.parent for one in _from_proc()}, _environment_from_proc
    else:
        parents, environment = {one.pid: one.parent for one in _from_psutil()}, _environment_from_psutil
    pid, seen = start, set[int]()
    while pid > 1 and pid not in seen:
        seen.add(pid)
        yield environment(pid)
        pid = parents.get(pid, 0)


def _from_proc() -> Iterator[_Process]:
    with os.scandir("/proc") as listing:
        for entry in listing:
            if entry.name.isdecimal():
                fields = _stat_fields(int(entry.name))
                if fields is not None and fields[0] not in {b"Z", b"X", b"x"}:
                    yield _Process(
                        pid=int(entry.name),
                        parent=int(fields[1]),
                        group=int(fields[2]),
                        session=int(fields[3]),
                        started=float(fields[19]),
                    )


def _stat_fields(pid: int) -> list[bytes] | None:
    """Return what follows the name in ``/proc/PID/stat`` (proc(5), field 3 first); None for a process that is gone."""
    try:
        content = _read(f"/proc/{pid}/stat")
    except OSError:
        return None
    # the name stands in parentheses and may hold both parentheses and spaces, so that the last one counts
    return content[content.rindex(b")") + 2 :].split()


def _started_from_proc(pid: int) -> float | None:
    fields = _stat_fields(pid)
    return None if fields is None else float(fields[19])


def _environment_from_proc(pid: int) -> list[bytes]:
    try:
        return _read(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return []


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts: list[bytes] = []
        while part := os.read(fd, _CHUNK):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def _from_psutil() -> Iterator[_Process]:
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() != psutil.STATUS_ZOMBIE:
                yield _Process(
                    pid=process.pid,
                    parent=process.ppid(),
                    group=os.getpgid(process.pid),
                    session=os.getsid(process.pid),
                    started=process.create_time(),
                )


def _started_from_psutil(pid: int) -> float | None:
    import psutil

    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def _environment_from_psutil(pid: int) -> list[bytes]:
    import psutil

    try:
        environment = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return []
    return [os.fsencode(f"{name}={value}") for name, value in environment.items()]
