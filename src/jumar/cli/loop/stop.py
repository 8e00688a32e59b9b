"""``jumar stop``: a running loop is asked to end, through a file."""

from __future__ import annotations

import os
from pathlib import Path

import click

from jumar.app.decide import ask_to_stop
from jumar.cli.common import loop_argument, open_loop, places, print_json, print_text, shown_path, standard_options
from jumar.core.files import as_write_error, is_directory
from jumar.core.lock import move_aside, who_holds
from jumar.core.text import escape
from jumar.errors import NotFoundError, UsageError
from jumar.loop.store.layout import STOP, list_loops, loops_directory
from jumar.loop.store.running import running_loops
from jumar.processes.process_tree import programs_above

_EPILOG = """\b
Examples:
  jumar stop                      the loop that is running, when it is the only one
  jumar stop readme-polish        it ends when its running step is recorded
  jumar stop --all                every loop of the root does
  jumar stop --undo readme-polish so that it may run again"""


@click.command("stop", epilog=_EPILOG)
@loop_argument
@click.option("--all", "every", is_flag=True, help="Stop every loop of the root.")
@click.option("--undo", is_flag=True, help="Take the request back: without that no run begins.")
@standard_options
def stop_command(loop: str | None, root: Path, *, every: bool, undo: bool, as_json: bool, quiet: bool) -> int:
    """Ask a running loop to end after its step, as a first Ctrl-C does.

    It makes a file called STOP in the loop's directory, or in the root with --all; `touch` does the same. No loop starts
    while the file is there.
    """
    if loop is not None and every:
        raise UsageError("name a loop, or --all for every loop of the root")
    running = False
    if undo and any(programs_above()):
        raise UsageError("a program of a loop called `jumar stop --undo`, which is for a person to do; nothing was changed")
    if every:
        if not loops_directory(root).is_dir():
            raise NotFoundError(f"{escape(str(root))} holds no loops")
        path = root / STOP
    else:
        store = open_loop(root, loop or str(_only_one(root, undo=undo).absolute()))
        loop = store.paths.directory.name if loop is None else loop
        path = store.paths.directory / STOP
        running = who_holds(store.paths.lock) is not None
    changed = _remove(path) if undo else ask_to_stop(path)
    if as_json:
        print_json({"loop_id": loop, "file": str(path), "exists": os.path.lexists(path), "changed": changed, "running": running})
    elif not quiet:
        print_text(_said(path, undo=undo, changed=changed, running=running, loop=loop))
    return 0


def _only_one(root: Path, *, undo: bool) -> Path:
    """Return the one loop that runs, or with ``undo`` the one that was asked to stop. Errors: :class:`UsageError` otherwise."""
    found: list[Path] = []
    for place in places(root):
        names = [name for name in list_loops(place) if os.path.lexists(loops_directory(place) / name / STOP)]
        found += [loops_directory(place) / name for name in (names if undo else running_loops(place))]
    if len(found) == 1:
        return found[0]
    what = "asked to stop" if undo else "running"
    state = (
        f"{len(found)} loops are {what} ({escape(', '.join(path.name for path in found[:5]))})" if found else f"no loop is {what}"
    )
    raise UsageError(f"{state}; name a loop, or --all for every loop of the root")


def _remove(path: Path) -> bool:
    with as_write_error("remove", path):
        if is_directory(path):  # it may hold something
            move_aside(path.parent, path)
            return True
        try:
            path.unlink()
        except FileNotFoundError:
            return False
    return True


def _said(path: Path, *, undo: bool, changed: bool, running: bool, loop: str | None) -> str:
    where = shown_path(path)
    if undo:
        return f"removed {where}" if changed else f"there is no {where}; nothing was to be taken back"
    what = f"made {where}" if changed else f"{where} is there already"
    if loop is None:
        return (
            f"{what}; every loop of the root ends after its step, and none starts until it is removed (jumar stop --all --undo)"
        )
    now = "it ends after its step" if running else "it is not running now"
    return f"{what}; {now}, and does not start until it is removed (jumar stop --undo {escape(loop)})"
