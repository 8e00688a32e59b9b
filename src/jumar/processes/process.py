"""Running one command of a step: bounded in time, memory and output, and with nothing left running afterwards.

The command gets a session of its own, so that a Ctrl-C in the terminal does not reach it: who runs it decides what ends it. Its
output is read as it comes, so that it never blocks, however much it prints, and a descendant that keeps the pipe open delays
nothing: what counts is the end of the command itself.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import secrets
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from jumar.errors import ConfigError
from jumar.processes.captured_output import DEFAULT_OUTPUT_CAP, READ, TAIL, CapturedOutput
from jumar.processes.process_tree import MARKER, Family

_GRACE: Final = 2.0  # seconds between SIGTERM and SIGKILL
_LOOK: Final = 0.05  # seconds between two looks at the stop event while output is awaited
_DRAIN: Final = 0.2  # seconds to wait for the end of a pipe that somebody unknown still holds


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    r"""How a command ended.

    ``exit_code`` is negative for a signal, and None when the command could not be started (``error`` says why) or could not be
    ended. ``stdout`` and ``stderr`` are whole up to the cap; above it the middle is left out, with a line that says so, and
    ``truncated`` is True. Bytes that are not UTF-8 are shown as ``\xff``. ``output_tail`` is the end of both in the order of
    their arrival. ``failure`` is None for exit code 0, else a sentence. ``strays`` counts the processes that the command left
    running and that were ended. ``log_error`` says why the log is incomplete, if it is.
    """

    exit_code: int | None
    seconds: float
    stdout: str = ""
    stderr: str = ""
    output_tail: str = ""
    output_bytes: int = 0
    truncated: bool = False
    timed_out: bool = False
    interrupted: bool = False
    error: str | None = None
    failure: str | None = None
    strays: int = 0
    log_error: str | None = None

    @property
    def stderr_tail(self) -> str:
        return tail(self.stderr)


def check_command(command: str | Sequence[str], *, where: str) -> str | tuple[str, ...]:
    """Return ``command`` as it is kept. Errors: :class:`jumar.errors.ConfigError` for an empty one."""
    empty = not command.strip() if isinstance(command, str) else not command or not command[0]
    if empty:
        raise ConfigError(f"{where}: the command is empty; write a string for the shell, or a list such as ['make', 'test']")
    return command if isinstance(command, str) else tuple(command)


def check_timeout(timeout: float | None, *, where: str) -> float | None:
    """Return ``timeout`` in seconds. Errors: :class:`jumar.errors.ConfigError` unless it is positive and finite, or None."""
    if timeout is not None and not (timeout > 0 and math.isfinite(timeout)):
        raise ConfigError(f"{where}: timeout = {timeout} should be a positive number of seconds")
    return timeout


def run_command(
    command: str | Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float | None,
    log: Path | None,
    output_cap: int = DEFAULT_OUTPUT_CAP,
    kept: int = 0,
    stdin: bytes | None = None,
    stop: threading.Event | None = None,
    marker: str | None = None,
    leave: bool = False,
) -> ProcessResult:
    """Run ``command`` and return when it, and everything that it started, has ended.

    A string goes to ``/bin/sh -c``; a list is an argv and sees no shell. ``timeout`` is in seconds, None for none; when it is
    over, or when ``stop`` is set, the command's processes get SIGTERM and two seconds later SIGKILL. ``stdin`` None means
    /dev/null. ``marker`` is the nonce that the processes carry, by default a random one. ``log`` receives both outputs as they
    arrive: the beginning as it comes, and the end when it is there, together at most ``output_cap`` bytes. The result holds as
    much of each of the two, or ``kept`` bytes where that is more.

    With ``leave`` what the command started in the background goes on when it has ended by itself; whoever asks for that ends it,
    by its marker.

    A command that is not found is a result, not an exception. Errors: :class:`jumar.errors.StoreWriteError` when the log cannot
    be created; then nothing was started.
    """
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    nonce = marker or secrets.token_hex(8)
    outer = env.get(MARKER) or os.environ.get(MARKER)
    environment = {**env, MARKER: f"{outer}:{nonce}" if outer else nonce}
    started = time.monotonic()
    with contextlib.closing(CapturedOutput(log, output_cap, max(output_cap, kept))) as output:
        try:
            process = subprocess.Popen(
                argv,
                bufsize=0,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError, IndexError) as error:
            sentence = _not_started(argv, cwd, error)
            output.finish(sentence)
            return ProcessResult(exit_code=None, seconds=time.monotonic() - started, error=sentence, failure=sentence)
        with process:
            run = _Run(process, output, stdin, Family(nonce, process.pid))
            ended_by = "error"
            try:
                ended_by = run.wait(None if timeout is None else started + timeout, stop)
            finally:
                run.end(leave=leave and ended_by == "exit")
        return run.result(ended_by, time.monotonic() - started, timeout)


class _Run:
    """One running command and its pipes."""

    def __init__(self, process: subprocess.Popen[bytes], output: CapturedOutput, stdin: bytes | None, family: Family) -> None:
        self._process = process
        self._output = output
        self._family = family
        self._unsent = memoryview(stdin or b"")
        self._strays: frozenset[int] = frozenset()
        self._survivors: tuple[int, ...] = ()
        self._exit_lost = False
        self._selector = selectors.DefaultSelector()
        self._pipes: dict[int, IO[bytes]] = {}
        self._register(process.stdout, selectors.EVENT_READ, output.stdout)
        self._register(process.stderr, selectors.EVENT_READ, output.stderr)
        self._register(process.stdin, selectors.EVENT_WRITE, None)

    def _register(self, pipe: IO[bytes] | None, event: int, action: Callable[[bytes], None] | None) -> None:
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)
            self._pipes[pipe.fileno()] = pipe
            self._selector.register(pipe.fileno(), event, action)

    def _close(self, fd: int) -> None:
        self._selector.unregister(fd)
        self._pipes.pop(fd).close()

    def wait(self, deadline: float | None, stop: threading.Event | None) -> str:
        """Read until the command has ended; return ``exit``, ``timeout`` or ``stop``: what ended the waiting."""
        pause = 0.0005
        while not self._has_exited():
            if stop is not None and stop.is_set():
                return "stop"
            left = _LOOK if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return "timeout"
            if self._pipes:
                self.pump(min(left, _LOOK))
            else:  # it closed its output, mostly because it is ending right now
                time.sleep(min(left, pause))
                pause = min(pause * 2, _LOOK)
        return "exit"

    def _has_exited(self) -> bool:
        """Look without reaping where the system can: a zombie keeps its group's number from being given to somebody else."""
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # the program that uses us ignores SIGCHLD, or waits for children that are not its own
            self._exit_lost = True
            return True

    def pump(self, seconds: float) -> None:
        """Wait up to ``seconds`` for one round of input and output, and do it."""
        if not self._pipes:
            time.sleep(seconds)
            return
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                self._send(key.fd)
                continue
            with contextlib.suppress(BlockingIOError):
                if chunk := os.read(key.fd, READ):
                    key.data(chunk)
                else:
                    self._close(key.fd)

    def _send(self, fd: int) -> None:
        try:
            self._unsent = self._unsent[os.write(fd, self._unsent[:READ]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # the command does not want to read it all
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._close(fd)

    def end(self, *, leave: bool) -> None:
        """End what is left of the command, unless it is to ``leave`` that; then read what is left in the pipes."""
        if not leave:
            told, self._survivors = self._family.end(grace=_GRACE, wait=self.pump)
            self._strays = told - {self._process.pid}
        deadline = time.monotonic() + _DRAIN
        while self._pipes and (left := deadline - time.monotonic()) > 0:
            self.pump(left)
        for fd in list(self._pipes):
            self._close(fd)
        self._selector.close()
        if self._process.pid in self._survivors:
            self._process.returncode = -signal.SIGKILL  # it hangs in the kernel, and nobody may wait for it

    def result(self, ended_by: str, seconds: float, timeout: float | None) -> ProcessResult:
        code = None if self._exit_lost or self._process.pid in self._survivors else self._process.returncode
        failure = describe_exit(code)
        if ended_by == "timeout":
            failure = f"timed out after {timeout:g} s"
        elif ended_by == "stop":
            failure = "interrupted"
        if self._survivors:
            failure = f"{failure or 'ended'}, but process {self._survivors[0]} could not be killed: it hangs in the kernel"
        output = self._output
        output.finish(failure)
        return ProcessResult(
            exit_code=code,
            seconds=seconds,
            stdout=output.out.text(),
            stderr=output.err.text(),
            output_tail=output.merged.tail_text(),
            output_bytes=output.merged.total,
            truncated=bool(output.out.dropped or output.err.dropped),
            timed_out=ended_by == "timeout",
            interrupted=ended_by == "stop",
            failure=failure,
            strays=len(self._strays),
            log_error=output.log_error,
        )


def tail(text: str, limit: int = TAIL) -> str:
    """Return the last ``limit`` characters of ``text``, from the start of a line where one starts there."""
    if len(text) <= limit:
        return text
    end = text[-limit:]
    newline = end.find("\n")
    return end[newline + 1 :] if 0 <= newline < limit // 2 else end


def describe_exit(code: int | None) -> str | None:
    """Return what an exit code means as a sentence, ``killed by SIGSEGV`` for -11; None for 0, which is success."""
    if code == 0:
        return None
    if code is None:
        return "its exit code is unknown"
    if code < 0:
        return f"killed by {_signal_name(-code)}"
    if code > 128 and (name := _signal_name(code - 128)).startswith("SIG"):
        return f"exit code {code} (128 + {name})"
    return f"exit code {code}"


def broken_reason(result: ProcessResult) -> str | None:
    """Return why the way a check ended says nothing about what it checked; None when it does.

    It did not run (not found, not executable: the shell's 127 and 126), was cut short, or its exit code is unknown.
    """
    if result.error is not None or result.timed_out or result.interrupted or result.exit_code is None:
        return result.failure
    not_run = {126: "is not executable", 127: "was not found"}.get(result.exit_code)
    return None if not_run is None else f"exit code {result.exit_code}: a command in it {not_run}"


def _not_found(name: str, cwd: Path) -> str:
    if "/" not in name:
        return f"the command {name!r} was not found: check its spelling and the PATH that jumar sees"
    if (cwd / name).exists():
        return f"the command {name!r} cannot be run: the program that its first line (#!) names was not found"
    # in a copy or a worktree a path that leaves the working directory leads elsewhere, which only the place shows
    where = "" if Path(name).is_absolute() else f", seen from {str(cwd)!r} where it runs"
    return f"the command {name!r} was not found{where}: check its spelling{', or give its absolute path' if where else ''}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _not_started(argv: Sequence[str], cwd: Path, error: Exception) -> str:
    """Say why a command could not be started, and what to do about it."""
    name = argv[0] if argv else ""
    if not isinstance(error, OSError):
        reason = "it holds a NUL byte" if argv else "it is empty"
        return f"the command {name!r} cannot be run: {reason}"
    if not cwd.is_dir():
        return f"the working directory {str(cwd)!r} does not exist"
    reasons = {
        errno.ENOENT: _not_found(name, cwd),
        errno.EACCES: f"the command {name!r} is not executable: `chmod +x` it, or name its interpreter",
        errno.ENOEXEC: f"the command {name!r} is not executable: it needs a first line such as #!/bin/sh",
        errno.E2BIG: f"the command line of {name!r} is too long: pass {{prompt_file}} or stdin instead of {{prompt}}",
    }
    return reasons.get(error.errno or 0, f"the command {name!r} could not be started: {os.strerror(error.errno or 0)}")
