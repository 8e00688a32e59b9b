"""The other side of ``forkserver.py``: ``jumar`` as a process of its own, without the half second that importing takes."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_AT_START = ("PYTHON", "LC_", "LANG", "COVERAGE_", "LD_")
"""What the interpreter reads when it starts: a command that is told otherwise is started from the ground up."""


class ForkServer:
    """Forks one command at a time; :meth:`start` returns its pid, :meth:`wait` its wait status."""

    def __init__(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
        environment["OPENBLAS_NUM_THREADS"] = "1"  # numpy's threads do not live through a fork
        self._server = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("forkserver.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what is in a buffer, select doesn't see
            env=environment,
        )

    def start(self, request: Mapping[str, object]) -> int:
        self._pipe(self._server.stdin).write(json.dumps(request).encode() + b"\n")
        return int(self._pipe(self._server.stdout).readline())

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the wait status of the command that runs; None when it has not ended in time."""
        source = self._pipe(self._server.stdout)
        return int(source.readline()) if select.select([source], [], [], timeout)[0] else None

    def close(self) -> None:
        self._pipe(self._server.stdin).close()
        self._server.wait(timeout=30)
        self._pipe(self._server.stdout).close()

    @staticmethod
    def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
        assert stream is not None
        return stream


@functools.cache
def _server() -> ForkServer:
    server = ForkServer()
    atexit.register(server.close)
    return server


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_AT_START)}


def run_forked(
    arguments: Sequence[str], directory: Path, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run ``jumar ARGUMENTS`` without standard input. Errors: :class:`subprocess.TimeoutExpired`, after it was killed."""
    if _at_start(environment) != _at_start(os.environ):
        command = [sys.executable, "-m", "jumar.cli.entry", *arguments]
        return subprocess.run(
            command,
            cwd=directory,
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    with tempfile.TemporaryDirectory() as place:
        out, err = Path(place, "out"), Path(place, "err")
        request = {"cwd": str(directory), "argv": [*arguments], "out": str(out), "err": str(err), "env": dict(environment)}
        pid = _server().start(request)
        status = _server().wait(timeout)
        if status is None:
            os.kill(pid, signal.SIGKILL)
            _server().wait()
            raise subprocess.TimeoutExpired(["jumar", *arguments], timeout, out.read_bytes(), err.read_bytes())
        code = os.waitstatus_to_exitcode(status)
        return subprocess.CompletedProcess(["jumar", *arguments], code, out.read_text(), err.read_text())
