"""Making the disk fail: one chosen system call of a real ``jumar`` command, refused once, refused for good, or its last.

``strace`` attaches to a stopped child of the fork server and injects the fault; nothing in jumar knows of it.
"""

from __future__ import annotations

import functools
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from forks import ForkServer

CHANGING = [
    "openat",
    "mkdir",
    "mkdirat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "rmdir",
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "syncfs",
    "ftruncate",
    "chmod",
    "fchmod",
    "fchmodat",
    "utimensat",
    "copy_file_range",
    "sendfile",
]
"""System calls that change the disk; ``openat`` only where it creates or writes."""


KINDS = ("EIO", "ENOSPC", "for-good", "kill")


@dataclass(frozen=True)
class Fault:
    """``call`` number ``when`` (from 1) of the main process fails with ``kind``: EIO, ENOSPC, ``for-good`` or ``kill``."""

    call: str
    when: int
    kind: str
    target: str = ""

    @property
    def injection(self) -> str:
        if self.kind == "kill":
            return f"{self.call}:signal=SIGKILL:when={self.when}"
        if self.kind == "for-good":
            return f"{self.call}:error=EIO:when={self.when}+"
        return f"{self.call}:error={self.kind}:when={self.when}"

    def __str__(self) -> str:
        return f"{self.kind} at {self.call} #{self.when} ({self.target})"


def chosen(places: list[Fault], kind: str, sample: int) -> list[Fault]:
    """All places, or an even sample with a fixed seed; a fault for good at a later place is one at all that follow."""
    wanted = [replace(place, kind=kind) for place in places]
    if os.environ.get("JUMAR_SWEEP") == "full" or len(wanted) <= sample:
        return wanted
    return sorted(random.Random(kind).sample(wanted, sample), key=lambda fault: (fault.call, fault.when))


@functools.cache
def can_trace() -> bool:
    """Whether this process may attach a tracer at all (containers often forbid it)."""
    sleeper = subprocess.Popen(["sleep", "5"])
    try:
        done = subprocess.run(
            ["timeout", "-s", "INT", "1", "strace", "-q", "-o", "/dev/null", "-p", str(sleeper.pid)],
            capture_output=True,
            check=False,
        )
        return b"ptrace" not in done.stderr
    finally:
        sleeper.kill()
        sleeper.wait()


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code (negative for a signal), what it printed, and whether the fault fired."""

    code: int
    out: str
    err: str
    fired: bool


class Runner:
    """Starts commands in forks, traced or not."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._server = ForkServer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.close()

    def run(self, cwd: Path, *argv: str, fault: Fault | None = None) -> Ended:
        """Run ``jumar ARGV`` in ``cwd``."""
        if fault is None:
            return self._run(cwd, argv, None, None)
        return self._run(cwd, argv, ["-e", f"trace={fault.call}", "-e", f"inject={fault.injection}"], fault)

    def trace(self, cwd: Path, *argv: str) -> list[Fault]:
        """Run undisturbed and return every place where the disk was changed below ``cwd``, as faults without a kind."""
        log = self._scratch / "strace.log"
        ended = self._run(cwd, argv, ["-y", "-e", f"trace={','.join(CHANGING)}"], None)
        assert ended.code in {0, 10}, ended
        counts: dict[str, int] = {}
        places: list[Fault] = []
        for line in log.read_text(errors="replace").splitlines():
            match = re.match(r"(\w+)\((.*)", line)
            if match is None:
                continue
            call, rest = match.groups()
            counts[call] = counts.get(call, 0) + 1
            creates = call != "openat" or "O_CREAT" in rest or "O_WRONLY" in rest or "O_RDWR" in rest
            if creates and (str(cwd) in rest or call == "syncfs"):
                target = next((part for part in re.findall(r'"([^"]+)"|<([^>]+)>', rest) if any(part)), ("", ""))
                places.append(Fault(call, counts[call], "", "".join(target).replace(str(cwd), "")))
        return places

    def _run(self, cwd: Path, argv: Sequence[str], tracing: list[str] | None, fault: Fault | None) -> Ended:
        out, err, log = (self._scratch / name for name in ("out", "err", "strace.log"))
        request = {"cwd": str(cwd), "argv": list(argv), "out": str(out), "err": str(err), "stop": tracing is not None}
        pid = self._server.start(request)
        tracer = None
        if tracing is not None:
            wait_until_stopped(pid)
            log.write_text("")
            tracer = subprocess.Popen(
                ["strace", "-q", "-o", str(log), *tracing, "-p", str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            wait_until_traced(pid)
            os.kill(pid, signal.SIGCONT)
        status = self._server.wait()
        assert status is not None
        if tracer is not None:
            tracer.wait(timeout=30)
        code = os.waitstatus_to_exitcode(status)
        fired = fault is not None and (
            code == -signal.SIGKILL if fault.kind == "kill" else "INJECTED" in log.read_text(errors="replace")
        )
        return Ended(code, out.read_text(errors="replace"), err.read_text(errors="replace"), fired)


def wait_until_stopped(pid: int) -> None:
    """Wait until the process has stopped itself."""
    for _ in patience():
        if status_of(pid).get("State", "").startswith("T"):
            return


def wait_until_traced(pid: int) -> None:
    """Wait until a tracer is attached."""
    for _ in patience():
        if status_of(pid).get("TracerPid", "0") != "0":
            return


def patience() -> Iterator[None]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        yield
        time.sleep(0.001)
    raise TimeoutError("the traced process did not get ready")


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
