"""``jumar rm``: a loop and all that belongs to it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jumar.cli.common import (
    command_for,
    complete_loop,
    find_loop,
    print_json,
    print_line,
    print_text,
    shown_path,
    standard_options,
)
from jumar.core.redaction import current
from jumar.core.rendering.figures import size
from jumar.core.text import escape, named, plural
from jumar.errors import NotFoundError, UsageError
from jumar.loop.decisions.select import refuse_program

if TYPE_CHECKING:
    from jumar.app.removal import LoopRemains

_EPILOG = """\b
Examples:
  jumar rm calc-3                 says what goes, and asks
  jumar rm calc-3 -y

To keep the records and scores and delete only snapshots: jumar cleanup."""


@click.command("rm", epilog=_EPILOG)
@click.argument("loop", shell_complete=complete_loop)
@click.option("-y", "--yes", is_flag=True, help="Don't ask; a copy of your files that only the loop still has is kept.")
@standard_options
def rm_command(loop: str, root: Path, *, yes: bool, as_json: bool, quiet: bool) -> int:
    """Remove a whole loop: records, snapshots, logs, and the copies and git worktrees that were made for it.

    Your working directory, your branches, and replies that judges of several loops share stay as they are. It can't be undone.
    """
    from jumar.app.removal import look_at, remove_loop

    directory = find_loop(root, loop)
    refuse_program(directory.name, "rm")
    if "/" not in loop and directory.name != loop:
        raise NotFoundError(
            f"no loop called '{escape(loop)}'; did you mean '{escape(directory.name)}'? rm takes whole names only"
        )
    found = look_at(directory)
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise UsageError(f"{_what(found)} would go for good: --yes removes it without asking")
        _tell(found)
        if not click.confirm("remove it? This can't be undone"):
            print_text("nothing was removed")
            return 0
    removed = remove_loop(found, keep=yes)
    if as_json:
        print_json(removed.to_json())
    elif not quiet:
        print_text(f"removed   {_what(removed)}")
        if removed.kept is not None:
            print_line("kept", f"{shown_path(removed.kept)} has {_only_here(found)}")
        if yes:
            _tell_unapplied(found, "was")
        for ref in removed.refs:
            print_text(f"commits   made in its worktree stay as {escape(ref)}; git update-ref -d REF lets them go")
    return 0


def _what(found: LoopRemains) -> str:
    trees = f", with {plural(len(found.trees), 'tree')} that it worked in" if found.trees else ""
    return f"loop {escape(found.directory.name)}: {plural(found.iterations, 'iteration')}, {size(found.size)}{trees}"


def _only_here(found: LoopRemains) -> str:
    paths = [path.relative_to(found.directory).as_posix() for path in found.only_here]
    return f"what no iteration has, and your directory has no more: {current().redact(named(paths))}"


def _tell_unapplied(found: LoopRemains, verb: str) -> None:
    if found.unapplied is None or found.workdir is None:
        return
    what = f"iteration {found.unapplied}, which is selected," if found.unapplied else "the start, which is selected,"
    first = f": {way} first" if verb == "is" and (way := command_for("apply", found.directory)) else ""
    print_line("note", f"{what} {verb} not in {shown_path(found.workdir)}{first}")


def _tell(found: LoopRemains) -> None:
    print_text(_what(found))
    for place in (found.directory, *found.trees):
        print_text(f"  {shown_path(place)}")
    if not found.ended:
        print_line("note", "it has not ended: what its last step left and no iteration holds goes too")
    _tell_unapplied(found, "is")
    if found.only_here:
        print_line("note", f"{_only_here(found)} goes too")
    if found.applied is not None and found.workdir is not None:
        where = shown_path(found.workdir)
        print_line("note", f"iteration {found.applied} is applied in {where}; after this nothing can undo that")
