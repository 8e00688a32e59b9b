"""Serving: one process, one socket that is open already, an end within a second."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Final

import uvicorn

from jumar.core.redaction import install
from jumar.dashboard.app import create_app
from jumar.dashboard.guard import Access, local_hosts
from jumar.dashboard.library import Library

_PATIENCE: Final = 0.2  # seconds


def serve(
    listening: socket.socket, roots: list[Path], top: Path, *, port: int, any_host: bool, token: str | None, read_only: bool
) -> None:
    """Serve the runs of ``roots`` and of every store below the directory of ``top`` until Ctrl-C; streams end with it."""
    install(None)
    changing = threading.Lock()
    access = Access(hosts=None if any_host else local_hosts(port), token=token, read_only=read_only)
    library = Library(roots, top.parent if top.name == ".jumar" else top)
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(library, access, is_ending=lambda: server.should_exit, changing=changing),
            ws="none",
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
    with changing:  # a change comes to its end; a page that is still being made is nobody's any more
        _end_without_pages(time.monotonic() + _PATIENCE)


def _end_without_pages(until: float) -> None:
    """End this process where threads that make pages are still busy at ``until``: they cannot be told to stop."""
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.current_thread()]
    for thread in others:
        thread.join(max(0.0, until - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        sys.stdout.flush()
        os._exit(0)
