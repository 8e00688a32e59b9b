"""The two transports: standard input and output, or HTTP on this machine for whoever knows the token."""

from __future__ import annotations

import contextlib
import secrets
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anyio import to_thread
from mcp.server.transport_security import TransportSecuritySettings

from jumar.mcp.server import create_server
from jumar.processes.asking import asking_program

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp, Receive, Scope, Send

_REFUSED: Final = b"A token is needed: the second line that `jumar mcp --http` printed.\n"


def serve_stdio(top: Path, root: Path) -> None:
    """Serve one client over stdin and stdout, until it closes them; Ctrl-C ends it at once, what it runs ends in its own time."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # else it waits for the thread that waits for stdin
    with contextlib.suppress(BrokenPipeError):
        create_server(top, root).run()


def serve_http(listening: socket.socket, top: Path, root: Path, token: str) -> None:
    """Serve clients that send ``token`` until Ctrl-C. Requests under another host's name, or from a page, are refused."""
    import uvicorn

    host, port = listening.getsockname()
    hosts = [f"{name}:{port}" for name in (host, "localhost")]
    app = create_server(top, root).streamable_http_app(
        host=host, transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[])
    )
    config = uvicorn.Config(
        _WithToken(app, token), log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=1
    )
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])


class _WithToken:
    """Lets requests through that carry the token, unless a program of a loop sent them: it would decide as a person does."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif not secrets.compare_digest(given, self._token):
            await _refuse(send, 401, _REFUSED, (b"www-authenticate", b"Bearer"))
        elif (program := await to_thread.run_sync(asking_program, scope.get("client"), scope.get("server"))) is not None:
            await _refuse(send, 403, f"{program} asked for this; the server is a person's.\n".encode())
        else:
            await self._app(scope, receive, send)


async def _refuse(send: Send, status: int, why: bytes, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain"), *headers]})
    await send({"type": "http.response.body", "body": why})
