"""Serving: one process, one socket that is open already, an end within a second."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

import uvicorn

from jumar.core.redaction import install
from jumar.dashboard.app import create_app
from jumar.dashboard.guard import Access, local_hosts
from jumar.dashboard.library import Library


def serve(
    listening: socket.socket, roots: list[Path], top: Path, *, port: int, any_host: bool, token: str | None, read_only: bool
) -> None:
    """Serve the runs of ``roots`` and of every store below the directory of ``top`` until Ctrl-C; streams end with it."""
    install(None)
    access = Access(hosts=None if any_host else local_hosts(port), token=token, read_only=read_only)
    library = Library(roots, top.parent if top.name == ".jumar" else top)
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(library, access, is_ending=lambda: server.should_exit),
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=1,
            lifespan="off",
        )
    )
    with contextlib.suppress(KeyboardInterrupt):  # raised once more when all is closed: that is how a server ends
        server.run(sockets=[listening])
