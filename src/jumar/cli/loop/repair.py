"""``jumar repair``: the way out when a loop is damaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from jumar.cli.common import (
    command_for,
    find_loop,
    loop_argument,
    open_loop,
    print_json,
    print_line,
    print_text,
    shown_path,
    standard_options,
)
from jumar.core.clock import SystemClock, current_user
from jumar.core.findings import Problem, told
from jumar.core.text import escape, plural
from jumar.errors import FormatTooNewError, StoreDamagedError
from jumar.loop.decisions.select import refuse_program
from jumar.loop.store.layout import LoopPaths, open_to_owner
from jumar.loop.store.repair import Mending, plan_repair, repair
from jumar.loop.store.verify import verify

_EPILOG = """\b
Examples:
  jumar repair calc-3             says what it would do
  jumar repair calc-3 -y          does it
  jumar repair calc-3 --believe   takes what another machine or user has recorded

Exit code: 0 when the loop is whole, or is now; 14 while something is damaged."""


@click.command("repair", epilog=_EPILOG)
@loop_argument
@click.option("-y", "--yes", is_flag=True, help="Do it.")
@click.option("--believe", is_flag=True, help="Take records that bear the mark of another machine or user as they lie.")
@standard_options
def repair_command(loop: str | None, root: Path, *, yes: bool, believe: bool, as_json: bool, quiet: bool) -> int:
    """Set right what `jumar verify` finds: say what would be done, or do it.

    Nothing is deleted. What is damaged or was not written by jumar is moved to quarantine/; an iteration that lost its
    record is scored again, one whose snapshot is damaged keeps its record. Where no snapshot is left to go on from, all
    records go there too; a loop whose loop.json cannot be read, as a whole. Then the next `jumar run` starts anew.
    """
    directory = find_loop(root, loop)
    if yes or believe:
        refuse_program(directory.name, "repair")
        open_to_owner(LoopPaths(directory.absolute()), snapshots=True)
    try:
        store = open_loop(root, str(directory.absolute()))
    except FormatTooNewError:
        raise
    except StoreDamagedError as error:
        return _whole_loop(directory, error, yes=yes, as_json=as_json, quiet=quiet)

    if yes or believe:
        refuse_program(store.loop_id, "repair", store.nonce)
    if believe:
        with store.lock():
            believed = store.trust.believe(store.paths.directory)
        store = open_loop(root, str(directory.absolute()))
        if not (as_json or quiet):
            print_text(
                f"{plural(believed, 'file')} of another machine or user {'bears' if believed == 1 else 'bear'} your mark now"
            )
    if yes:
        mendings, left = repair(store, by=current_user(), at=SystemClock().now())
    else:
        left = verify(store).problems
        mendings = plan_repair(store, left)
    if as_json:
        repairs = [mending.to_json() for mending in mendings]
        problems = [{"path": problem.path, "what": problem.what, "fix": problem.fix} for problem in left]
        print_json({"loop_id": store.loop_id, "ok": not left, "done": yes, "repairs": repairs, "problems": problems})
    else:
        _tell(store.paths.directory, mendings, left, yes=yes, quiet=quiet)
    return StoreDamagedError.exit_code if left else 0


def _tell(directory: Path, mendings: Sequence[Mending], left: Sequence[Problem], *, yes: bool, quiet: bool) -> None:
    name = escape(directory.name)
    for path, what, does in told((each.path, each.what, each.does) for each in mendings if not quiet):
        print_text(f"{path}: {what}")
        print_text(f"    {does}")
    if yes:
        for path, what, fix in told((each.path, each.what, each.fix) for each in left):
            print_text(f"{path}: {what}\n    {fix}")
        if not quiet and not left:
            print_text(f"{name}: whole" + (f" again, {plural(len(mendings), 'repair')}" if mendings else "; nothing to repair"))
    elif mendings:
        print_line("note", f"nothing was changed; {command_for('repair', directory, '-y')} does it, and what it uncovers")
    elif not quiet:
        print_text("\n".join(f"{problem.path}: {problem.fix}" for problem in left) or f"{name}: whole; nothing to repair")


def _whole_loop(directory: Path, error: StoreDamagedError, *, yes: bool, as_json: bool, quiet: bool) -> int:
    """Move a loop away of which nobody can say what it is."""
    from jumar.app.removal import set_loop_aside

    place = set_loop_aside(directory) if yes else None
    does = "the whole loop is moved to quarantine/ beside the loops, and the next jumar run starts anew"
    if as_json:
        what = [{"path": "loop.json", "what": escape(str(error)), "does": does}]
        print_json({"loop_id": directory.name, "ok": yes, "done": yes, "repairs": what, "problems": []})
    elif not quiet:
        print_text(f"loop.json: {error}")
        print_text(
            f"    {does}" if place is None else f"    the whole loop lies in {shown_path(place)} now; jumar run starts anew"
        )
        if place is None:
            print_line("note", f"nothing was changed; {command_for('repair', directory, '-y', named=True)} does it")
    return 0 if yes else StoreDamagedError.exit_code
