"""Who is at the other end of a connection to a server of ours: a person's program, or one of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psutil

from jumar.processes.process_tree import programs_above


def asking_program(client: Sequence[Any] | None, server: Sequence[Any] | None) -> str | None:
    """Return what to call the program of a loop that sent a request, None for a person's, and for whoever is on another machine.

    ``client`` and ``server`` are the two ends of its connection, address and port first.

    Who is gone already is taken for a program: a person's browser waits for the answer. Of a process of another user, such as the
    one that forwards a port of ssh, only the open connection can be seen, which is enough.
    """
    if client is None or server is None:
        return None
    ends = _address(client), _address(server)
    try:
        found = [
            connection
            for connection in psutil.net_connections("tcp")
            if connection.laddr and connection.raddr and (_address(connection.laddr), _address(connection.raddr)) == ends
        ]
        if not any(connection.pid or connection.status == psutil.CONN_ESTABLISHED for connection in found):
            return "A program that did not wait for the answer" if _is_here(ends[0][0]) else None
    except (psutil.Error, OSError):
        return None
    programs = (program for connection in found if connection.pid for program in programs_above(connection.pid))
    return next((f"A program of loop {loop or 'one without a name'}" for loop, *_ in programs), None)


def _address(end: Sequence[Any]) -> tuple[str, int]:
    return str(end[0]).removeprefix("::ffff:"), int(end[1])


def _is_here(host: str) -> bool:
    """Whether an address is one of this machine's."""
    own = (address.address.partition("%")[0] for each in psutil.net_if_addrs().values() for address in each)
    return host.startswith("127.") or host in own
