"""Any program as a judge (``command:PROGRAM …``): one JSON request on its standard input, one JSON answer on its output.

The request has ``format`` (1), ``id``, ``item``, ``system``, ``user``, ``schema``, ``repeat``, ``temperature`` and ``seed``. The
answer is an object with ``gestalt``, ``reasoning``, ``strengths`` and ``weaknesses``, optionally with ``usage``
(``input_tokens``, ``output_tokens``, ``cost_usd``, ``model``). The exit code says what became of it: 0 for an answer, 65
(EX_DATAERR) for an item that it declines, 75 (EX_TEMPFAIL) for "not now" (an object with ``retry_after`` in seconds may be
printed), 77, 78, 126 and 127 for something that no retry mends; anything else is taken for a passing failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self, cast

from jumar.core.text import escape, last_line, once
from jumar.errors import ConfigError
from jumar.judging.asking.prompt import MAX_REPLY
from jumar.judging.judges import JudgeSpec
from jumar.judging.judges._clients import amount_of, count_of, known_keys, scrub
from jumar.model.protocols import FailureKind, JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage

FORMAT: Final = 1
EXIT_KINDS: Final[dict[int, FailureKind]] = {
    65: "refused",
    75: "rate_limited",
    77: "rejected",
    78: "rejected",
    126: "rejected",
    127: "rejected",
}
_HASHED: Final = 1 << 28  # bytes of a file among the arguments that are read; a model's weights would take a minute
_DRAIN: Final = 0.2  # seconds to wait for the end of a pipe that somebody else still holds


FORM: Final = "command:PROGRAM …"


def judge_of(spec: JudgeSpec) -> CommandJudge:
    """Return the judge that a program is. Errors: :class:`jumar.errors.ConfigError` for one that is not found."""
    try:
        argv = shlex.split(spec.rest)
    except ValueError as error:
        raise ConfigError(f"command: cannot be split into words: {error}; check its quotes") from None
    judge = CommandJudge(argv, directory=spec.base)
    program = argv[0] if spec.base is None or "/" not in argv[0] else str((spec.base / argv[0]).absolute())
    if shutil.which(program) is None:
        raise ConfigError(f"command: the program '{escape(argv[0])}' is not found, or not executable")
    return judge


class CommandJudge:
    """Runs ``argv`` once a question, without a shell, in a process group of its own that is ended with it.

    ``directory`` is where it runs, None the current one. ``identity`` has the program's name and a hash of the arguments, in
    which a file stands by its base name and what is in it: an edited program is another judge, and the same one at another place,
    or by another path, is not.

    Errors: :class:`jumar.errors.ConfigError` for an empty command.
    """

    def __init__(self, argv: Sequence[str], *, directory: Path | None = None) -> None:
        if not argv or not argv[0]:
            raise ConfigError("command: names no program; write command:PROGRAM with its arguments")
        self._argv = tuple(argv)
        self._directory = directory
        # arguments may hold what nobody else should read, so that only their hash is on record
        words = [_word(word, directory or Path(), program=place == 0) for place, word in enumerate(self._argv)]
        digest = hashlib.sha256(json.dumps(words).encode()).hexdigest()
        name = os.path.basename(self._argv[0])  # noqa: PTH119 - a name to show, not a path
        self.identity = f"command:{name}@{digest[:12]}"

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - it takes a millisecond, and its pipes are read below
                self._argv,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                cwd=self._directory,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it holds a NUL byte"
            raise JudgeFailure("rejected", f"the command {self._shown()} cannot be run: {reason}") from None
        with process, _Talk(process, _request(request)) as talk:
            try:
                await talk.until_exit()
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                code = process.wait()
            await talk.rest()
        return self._reply(code, bytes(talk.out), bytes(talk.err))

    def _reply(self, code: int, out: bytes, err: bytes) -> JudgeReply:
        text = out.decode("utf-8", errors="backslashreplace")
        found = _object(text)
        if code == 0:
            return JudgeReply(text=text, usage=_usage(found.get("usage")))
        # before it is cut: half a key is found by nobody
        said = escape(scrub(last_line(err.decode("utf-8", errors="backslashreplace")), known_keys()))[:200]
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        kind = EXIT_KINDS.get(code, "unavailable")
        silent = None if code in EXIT_KINDS else Usage()  # it may have paid somebody before it failed
        raise JudgeFailure(
            kind,
            f"the command {self._shown()} ended with {how}{': ' if said else ''}{said}",
            retry_after=amount_of(found.get("retry_after")),
            usage=_usage(found["usage"]) if "usage" in found else silent,
        )

    def _shown(self) -> str:
        return f"'{escape(self._argv[0])}'"

    async def aclose(self) -> None:
        """Nothing is open between two questions."""


def _word(word: str, directory: Path, *, program: bool) -> list[str]:
    """Return what an argument adds to the identity: itself, or for a file its option, base name and content.

    ``program`` is the first word: without a slash it is found on ``PATH``, an interpreter and not what that runs.
    """
    option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    content = None if program and "/" not in word else _content(directory / value)
    return [word] if content is None else [option + equals, os.path.basename(value), content]  # noqa: PTH119 - as above


def _content(path: Path) -> str | None:
    """Return a hash of a file's content, or its size and time where that is too much to read; None for what is no file."""
    if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for what can be no name
        return None
    try:
        known = path.stat()
        if known.st_size > _HASHED:
            return f"{known.st_size} {known.st_mtime_ns}"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _request(request: JudgeRequest) -> bytes:
    content = {
        "format": FORMAT,
        "id": request.item_id,
        "item": dict(request.item),
        "system": request.system,
        "user": request.user,
        "schema": request.schema,
        "repeat": request.repeat,
        "temperature": request.temperature,
        "seed": request.seed,
    }
    return json.dumps(content, default=str).encode() + b"\n"


class _Talk:
    """The pipes of a program, written and read by the event loop as they are ready; what is longer than an answer is dropped.

    What counts is the end of the program itself: a child of its that keeps a pipe open delays nothing.
    """

    def __init__(self, process: subprocess.Popen[bytes], data: bytes) -> None:
        self._process = process
        self._unsent = memoryview(data)
        self._loop = asyncio.get_running_loop()
        self._writing = False
        self._reading: set[int] = set()
        self.out = bytearray()
        self.err = bytearray()

    def __enter__(self) -> Self:
        for pipe, kept in ((self._process.stdout, self.out), (self._process.stderr, self.err)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._loop.add_reader(pipe.fileno(), self._read, pipe.fileno(), kept)
                self._reading.add(pipe.fileno())
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)
            self._loop.add_writer(self._process.stdin.fileno(), self._write)
            self._writing = True
        return self

    def __exit__(self, *_: object) -> None:
        for fd in list(self._reading):
            self._done(fd)
        self._sent()

    async def until_exit(self) -> None:
        """Wait for the end of the program without reaping it: a zombie keeps its group's number from being given away."""
        pause = 0.001
        while not self._has_exited():
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.02)

    async def rest(self) -> None:
        """Read what is left in the pipes."""
        deadline = self._loop.time() + _DRAIN
        while self._reading and self._loop.time() < deadline:  # noqa: ASYNC110 - as until_exit: the end is the kernel's to tell
            await asyncio.sleep(0.001)

    def _has_exited(self) -> bool:
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # somebody else waits for this program's children
            return True

    def _read(self, fd: int, kept: bytearray) -> None:
        with contextlib.suppress(BlockingIOError):
            chunk = os.read(fd, 1 << 16)
            kept += chunk[: MAX_REPLY - len(kept)]
            if not chunk:
                self._done(fd)

    def _done(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        self._reading.discard(fd)

    def _write(self) -> None:
        assert self._process.stdin is not None  # noqa: S101 - for the type checker: it is a pipe
        try:
            self._unsent = self._unsent[os.write(self._process.stdin.fileno(), self._unsent[: 1 << 16]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it need not read everything
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._sent()

    def _sent(self) -> None:
        if self._writing and self._process.stdin is not None:
            self._writing = False
            self._loop.remove_writer(self._process.stdin.fileno())
            self._process.stdin.close()


def _object(text: str) -> dict[str, Any]:
    try:
        found: object = json.loads(text, object_pairs_hook=once)  # as the answer: a key twice says nothing
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _usage(found: object) -> Usage:
    """Return what the answer says of its cost; what is no number, or below 0, is unknown."""
    if not isinstance(found, dict):
        return Usage()
    given = cast("dict[str, Any]", found)
    model = given.get("model")
    return Usage(
        input_tokens=count_of(given.get("input_tokens")),
        output_tokens=count_of(given.get("output_tokens")),
        token_cost_usd=amount_of(given.get("cost_usd")),
        model=model if isinstance(model, str) else None,
    )
