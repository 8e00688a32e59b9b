"""``jumar mcp``: the server that agents call."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cli.common import print_text, root_option
from jumar.core.lazy import need_extra

_EPILOG = """\b
Examples:
  jumar mcp                                    what an agent's configuration starts, over stdin and stdout
  claude mcp add jumar -- jumar mcp
  jumar mcp --http --port 8401                 over HTTP on this machine; prints address and token

It serves the current directory: no path that a client names leaves it, or the roots that the client gave."""


@click.command("mcp", epilog=_EPILOG)
@click.option("--http", is_flag=True, help="Serve HTTP on 127.0.0.1 instead; clients send the token that is printed.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="P", help="Where to listen.  [default: a free one]")
@click.option("--token", metavar="T", help="What clients have to send.  [default: a new one]")
@root_option
def mcp_command(root: Path, port: int, *, http: bool, token: str | None) -> int:
    """Let a coding agent record its iterations, choose the best, or hand a loop over: an MCP server.

    Tools: start_loop, record_iteration, best, status, diff, select, apply, undo, stop, evaluate_items, choose_k.
    """
    need_extra("mcp", "the MCP server", "mcp")
    from jumar.mcp.serve import listen, serve_http, serve_stdio

    if not http:
        serve_stdio(Path(), root)
        return 0
    listening, address, secret = listen(port, token)
    print_text(f"{address}\nAuthorization: Bearer {secret}")
    with listening:
        serve_http(listening, Path(), root, secret)
    return 0
