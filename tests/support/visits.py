"""An ASGI application asked without a server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message


def visit(app: ASGIApp, address: str, *, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Return status, headers and body of what ``app`` answers; underscores in the names of headers are hyphens."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    path, _, query = address.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"spec_version": "2.4"},  # who goes away is told by send, and nobody waits for receive
        "method": method,
        "path": unquote(path),
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "scheme": "http",
        "server": ("127.0.0.1", 8400),
    }

    async def ask() -> None:
        await app(scope, receive, send)

    asyncio.run(ask())
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}, body.decode()
