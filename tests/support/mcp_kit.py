"""A real client of a real `jumar mcp`, over either transport, with the answers as documents."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ListRootsResult, Root, TextContent, TextResourceContents
from pydantic import FileUrl

from mcp import ClientSession, StdioServerParameters

JUMAR = [sys.executable, "-m", "jumar.cli.entry"]
BEGIN: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "0"},
}
LIMIT = 2_048  # bytes of an answer without detail


class ToolFailedError(Exception):
    """What a tool answered as an error."""


class Client:
    """Calls tools, and holds every answer without ``detail`` to its size."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.session.call_tool(tool, arguments)
        (content,) = result.content
        assert isinstance(content, TextContent)
        if result.is_error:
            raise ToolFailedError(content.text)
        assert json.loads(content.text) == result.structured_content
        if not arguments.get("detail"):
            assert len(content.text.encode()) <= LIMIT, content.text
        return result.structured_content or {}

    async def until(self, tool: str, arrived: Callable[[dict[str, Any]], bool], seconds: float = 60) -> dict[str, Any]:
        """Call a tool again and again until its answer is one that ``arrived`` takes, or for so long."""
        answer: dict[str, Any] = {}
        for _ in range(int(seconds / 0.2)):
            answer = await self.call(tool)
            if arrived(answer):
                return answer
            await asyncio.sleep(0.2)
        raise AssertionError(answer)

    async def read(self, uri: str) -> str:
        """Return a resource that is text."""
        (content,) = (await self.session.read_resource(uri)).contents
        assert isinstance(content, TextResourceContents)
        return content.text

    async def refused(self, tool: str, **arguments: Any) -> str:
        with pytest.raises(ToolFailedError) as caught:
            await self.call(tool, **arguments)
        assert "Traceback" not in str(caught.value)
        return str(caught.value)


@contextlib.asynccontextmanager
async def over_stdio(
    place: Path, *, roots: Sequence[Path] | None = None, errors: Any = None, env: dict[str, str] | None = None
) -> AsyncIterator[Client]:
    """Give a client of a server that serves ``place``; ``roots`` are what the client says of itself."""

    async def listed(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(path.as_uri())) for path in roots or ()])

    parameters = StdioServerParameters(command=JUMAR[0], args=[*JUMAR[1:], "mcp"], cwd=place, env=env)
    async with (
        stdio_client(parameters, errlog=errors or sys.stderr) as streams,
        ClientSession(*streams, list_roots_callback=None if roots is None else listed) as session,
    ):
        await session.initialize()
        yield Client(session)


class Served(NamedTuple):
    """A server over HTTP."""

    address: str
    token: str


@contextlib.contextmanager
def serving_http(place: Path) -> Iterator[Served]:
    """Start ``jumar mcp --http`` and end it with Ctrl-C, which has to take less than two seconds."""
    with subprocess.Popen([*JUMAR, "mcp", "--http"], cwd=place, stdout=subprocess.PIPE, text=True) as process:
        try:
            printed = process.stdout or io.StringIO()
            address, bearer = printed.readline().strip(), printed.readline().strip()
            found = re.fullmatch(r"Authorization: Bearer (\S+)", bearer)
            assert found is not None, bearer
            yield Served(address, found[1])
        finally:
            process.send_signal(2)
            process.wait(10)


@contextlib.asynccontextmanager
async def over_http(served: Served) -> AsyncIterator[Client]:
    """Give a client of a server over HTTP."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {served.token}"}, timeout=60) as http,
        streamable_http_client(served.address, http_client=http) as streams,
        ClientSession(*streams[:2]) as session,
    ):
        await session.initialize()
        yield Client(session)


def running(work: Callable[[], Awaitable[None]], limit: float = 90) -> None:
    """Do ``work`` within ``limit`` seconds."""

    async def bounded() -> None:
        async with asyncio.timeout(limit):
            await work()

    asyncio.run(bounded())
