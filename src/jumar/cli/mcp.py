"""``jumar mcp`` and ``jumar hook``: what coding agents call."""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path
from typing import Any, Final, cast

import click

from jumar.cli.common import listening_on, print_text, root_option
from jumar.core.lazy import need_extra
from jumar.errors import UsageError

_HOST: Final = "127.0.0.1"
_EPILOG = """\b
Examples:
  jumar mcp                       what an agent's configuration starts, over stdin and stdout
  claude mcp add jumar -- jumar mcp
  jumar mcp --http --port 8401    over HTTP on this machine; prints address and token

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
    from jumar.mcp.serve import serve_http, serve_stdio

    if not http:
        serve_stdio(Path(), root)
        return 0
    secret = token or secrets.token_urlsafe(24)
    with listening_on(_HOST, port) as listening:
        print_text(f"http://{_HOST}:{listening.getsockname()[1]}/mcp\nAuthorization: Bearer {secret}")
        serve_http(listening, Path(), root, secret)
    return 0


_HOOK_EPILOG = """\b
Examples:
  jumar hook < event.json

The plugin in plugins/claude-code calls it; see docs/how-to/mcp.md."""


@click.command("hook", epilog=_HOOK_EPILOG)
@root_option
def hook_command(root: Path) -> int:
    """Answer a hook of Claude Code, which gives its event on stdin.

    In a session that began with /jumar:loop the work is recorded each time the agent wants to stop, and it is told what fails
    until the loop has ended. In any other session nothing is done.
    """
    from jumar.mcp.hook import heard

    try:
        asked = json.loads(sys.stdin.read())
    except ValueError:
        asked = None
    if not isinstance(asked, dict):
        raise UsageError("what stands on stdin is no JSON object: `jumar hook` reads what Claude Code gives its hooks")
    top = Path(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())
    answer = heard(cast("dict[str, Any]", asked), top, root if root.is_absolute() else top / root)
    if answer is not None:
        print_text(json.dumps(answer))
    return 0
