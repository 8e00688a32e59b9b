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
import math
import os
import signal
from collections.abc import Sequence
from typing import Any, Final, cast

from jumar.errors import ConfigError
from jumar.judging.expensive.parse import MAX_REPLY
from jumar.model.judges import FailureKind, JudgeFailure, JudgeReply, JudgeRequest
from jumar.model.records import Usage
from jumar.text import escape, last_line

__all__ = ["EXIT_KINDS", "FORMAT", "CommandJudge"]

FORMAT: Final = 1
EXIT_KINDS: Final[dict[int, FailureKind]] = {
    65: "refused",
    75: "rate_limited",
    77: "rejected",
    78: "rejected",
    126: "rejected",
    127: "rejected",
}
_DRAIN: Final = 0.2  # seconds to wait for the end of a pipe that somebody else still holds


class CommandJudge:
    """Runs ``argv`` once a question, without a shell, in a process group of its own that is ended with it.

    Errors: :class:`jumar.errors.ConfigError` for an empty command.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        if not argv or not argv[0]:
            raise ConfigError("command: names no program; write command:PROGRAM with its arguments")
        self._argv = tuple(argv)
        # arguments may hold what nobody else should read, so that only their hash is on record
        digest = hashlib.sha256("\0".join(self._argv).encode(errors="surrogateescape")).hexdigest()
        self.identity = f"command:{os.path.basename(self._argv[0])}@{digest[:12]}"  # noqa: PTH119 - a name to show, not a path

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it holds a NUL byte"
            raise JudgeFailure("rejected", f"the command {self._shown()} cannot be run: {reason}") from None
        try:
            out, err = await _talk(process, _request(request))
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        return self._reply(process.returncode or 0, out, err)

    def _reply(self, code: int, out: bytes, err: bytes) -> JudgeReply:
        text = out.decode("utf-8", errors="backslashreplace")
        found = _object(text)
        if code == 0:
            return JudgeReply(text=text, usage=_usage(found.get("usage")))
        said = escape(last_line(err.decode("utf-8", errors="backslashreplace")))[:200]
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        raise JudgeFailure(
            EXIT_KINDS.get(code, "unavailable"),
            f"the command {self._shown()} ended with {how}{': ' if said else ''}{said}",
            retry_after=_amount(found.get("retry_after")),
            usage=_usage(found["usage"]) if "usage" in found else None,
        )

    def _shown(self) -> str:
        return f"'{escape(self._argv[0])}'"

    async def aclose(self) -> None:
        """Nothing is open between two questions."""


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


async def _talk(process: asyncio.subprocess.Process, data: bytes) -> tuple[bytes, bytes]:
    """Send ``data``, and return what the program printed until it ended; what is longer than an answer is dropped."""
    assert process.stdin is not None  # noqa: S101 - for the type checker: they are pipes
    assert process.stdout is not None  # noqa: S101
    assert process.stderr is not None  # noqa: S101
    out, err = bytearray(), bytearray()
    readers = [
        asyncio.create_task(_keep(process.stdout, out, MAX_REPLY)),
        asyncio.create_task(_keep(process.stderr, err, MAX_REPLY)),
    ]
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not read everything
            process.stdin.write(data)
            await process.stdin.drain()
            process.stdin.close()
        await process.wait()
        await asyncio.wait(readers, timeout=_DRAIN)
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    return bytes(out), bytes(err)


async def _keep(stream: asyncio.StreamReader, kept: bytearray, most: int) -> None:
    while chunk := await stream.read(1 << 16):
        kept += chunk[: most - len(kept)]


def _object(text: str) -> dict[str, Any]:
    try:
        found: object = json.loads(text)
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
        input_tokens=_count(given.get("input_tokens")),
        output_tokens=_count(given.get("output_tokens")),
        token_cost_usd=_amount(given.get("cost_usd")),
        model=model if isinstance(model, str) else None,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _amount(value: object) -> float | None:
    """Return a number from 0 up; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        return None
    try:
        return float(value)
    except OverflowError:
        return None
