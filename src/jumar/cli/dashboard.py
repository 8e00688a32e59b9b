"""``jumar dashboard``: the runs as a local page."""

from __future__ import annotations

import contextlib
import webbrowser
from pathlib import Path
from urllib.parse import urlencode

import click

from jumar.cli.common import listening_on, places, print_json, print_text, standard_options
from jumar.core.lazy import need_extra
from jumar.errors import UsageError

_EPILOG = """\b
Examples:
  jumar dashboard                 the loops here and below, in the browser
  jumar dashboard --no-open --port 8400
  jumar dashboard --read-only --host 0.0.0.0 --token "$(openssl rand -hex 16)"

The first line on stdout is the address. Ctrl-C ends it."""
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@click.command("dashboard", epilog=_EPILOG)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; anything but this machine needs --token.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="P", help="Where to listen.  [default: a free one]")
@click.option("--no-open", is_flag=True, help="Open no browser.")
@click.option("--token", metavar="T", help="What every visitor has to know; it is part of the address that is printed.")
@click.option("--read-only", is_flag=True, help="Nothing can be selected, applied or undone.")
@standard_options
def dashboard_command(
    root: Path, host: str, port: int, *, no_open: bool, token: str | None, read_only: bool, as_json: bool, quiet: bool
) -> int:
    """Look at all runs below a directory: scores, differences, checks, costs; choose, apply and undo.

    Nothing leaves this machine and nothing is fetched from elsewhere.
    """
    del quiet  # the address is what was asked for
    need_extra("dashboard", "the dashboard", "starlette", "uvicorn")
    if host not in _LOOPBACK and not token:
        raise UsageError(f"--host {host} lets other machines in: give --token T, which they have to know")
    from jumar.dashboard.serve import serve

    roots = places(root)
    with listening_on(host, port) as listening:
        number: int = listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{number}/" + (f"?{urlencode({'token': token})}" if token else "")
        if as_json:
            print_json({"address": address, "read_only": read_only})
        else:
            print_text(address)
        if not no_open:
            with contextlib.suppress(webbrowser.Error):
                webbrowser.open(address)
        serve(listening, roots, root, port=number, any_host=host not in _LOOPBACK, token=token, read_only=read_only)
    return 0
