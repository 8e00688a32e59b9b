"""The two transports: standard input and output, or HTTP on this machine for whoever knows the token."""

from __future__ import annotations

import contextlib
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp.server.transport_security import TransportSecuritySettings

from jumar.core.text import escape
from jumar.errors import UsageError
from jumar.mcp.server import create_server

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_HOST: Final = "127.0.0.1"
_REFUSED: Final = b"A token is needed: the second line that `jumar mcp --http` printed.\n"


def serve_stdio(top: Path, root: Path) -> None:
    """Serve one client over stdin and stdout, until it closes them."""
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        create_server(top, root).run()


def listen(port: int, token: str | None) -> tuple[socket.socket, str, str]:
    """Return a socket on the loopback interface, its address, and the token. Errors: :class:`UsageError`."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_HOST, port))
    except OSError as error:
        listening.close()
        raise UsageError(f"cannot listen on port {port}: {escape(str(error.strerror))}; --port takes another one") from None
    listening.listen()
    return listening, f"http://{_HOST}:{listening.getsockname()[1]}/mcp", token or secrets.token_urlsafe(24)


def serve_http(listening: socket.socket, top: Path, root: Path, token: str) -> None:
    """Serve clients that send ``token`` until Ctrl-C. Requests under another host's name, or from a page, are refused."""
    import uvicorn

    port = listening.getsockname()[1]
    hosts = [f"{name}:{port}" for name in (_HOST, "localhost")]
    app = create_server(top, root).streamable_http_app(
        host=_HOST, transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[])
    )
    config = uvicorn.Config(
        _WithToken(app, token), log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=1
    )
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])


class _WithToken:
    """Lets requests through that carry the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] != "http" or secrets.compare_digest(given, self._token):
            await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": _REFUSED})
