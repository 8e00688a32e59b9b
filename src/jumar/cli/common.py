"""What the commands share: options, finding a loop, and the two ways of answering (text or one JSON document)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from jumar.errors import NotFoundError
from jumar.store.layout import list_loops, loops_directory
from jumar.store.loop_store import LoopStore
from jumar.text import escape, escape_block, nearest

__all__ = [
    "DEFAULT_ROOT",
    "colour_wanted",
    "json_option",
    "loop_argument",
    "open_loop",
    "print_json",
    "print_text",
    "quiet_option",
    "root_option",
]

DEFAULT_ROOT = ".jumar"


def root_option[F: Callable[..., Any]](function: F) -> F:
    """Add ``--root``: the folder that holds ``loops/``."""
    option = click.option(
        "--root",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="JUMAR_ROOT",
        default=DEFAULT_ROOT,
        show_default=True,
        help="Folder that holds the loops.",
    )
    return option(function)


def json_option[F: Callable[..., Any]](function: F) -> F:
    """Add ``--json``: stdout is one JSON document."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")(function)


def quiet_option[F: Callable[..., Any]](function: F) -> F:
    """Add ``--quiet``: nothing but errors and results that were asked for."""
    return click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")(function)


def loop_argument[F: Callable[..., Any]](function: F) -> F:
    """Add the ``LOOP`` argument, completed from the loops that exist."""
    return click.argument("loop", shell_complete=_complete_loop)(function)


def _complete_loop(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    root = Path(os.environ.get("JUMAR_ROOT", DEFAULT_ROOT))
    return [name for name in list_loops(root) if name.startswith(incomplete)]


def open_loop(root: Path, loop: str) -> LoopStore:
    """Open the loop called ``loop`` below ``root``; a path to a loop's own directory is taken too.

    Errors: :class:`NotFoundError` that lists what there is.
    """
    directory = loops_directory(root) / loop
    if "/" in loop:
        directory = Path(loop)
    elif loop in {"", ".", ".."} or not directory.is_dir():
        known = list_loops(root)
        shown = f"there are: {', '.join(map(escape, known[:10]))}" if known else f"{root} holds no loops yet; `jumar run` makes one"
        raise NotFoundError(f"no loop called '{escape(loop)}' in {root}{nearest(loop, known)}; {shown}")
    return LoopStore.open(directory)


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document on stdout. Numbers are finite, undecodable names are escaped."""
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")


def print_text(text: str, *, err: bool = False) -> None:
    """Print text of ours that may hold names or output of others: control characters are shown, not obeyed."""
    stream = sys.stderr if err else sys.stdout
    safe = escape_block(text)
    encoding = stream.encoding or "utf-8"
    stream.write(safe.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def colour_wanted() -> bool:
    """Whether stdout is a terminal and the person did not ask for no colour (NO_COLOR)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
