"""``jumar cleanup``: delete snapshots that nobody needs any more."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cli.common import (
    command_for,
    json_option,
    loop_argument,
    open_loop,
    print_json,
    print_text,
    quiet_option,
    root_option,
)
from jumar.text import escape, plural

__all__ = ["cleanup_command"]

_EPILOG = """\b
Examples:
  jumar cleanup --dry-run         what would go, and why
  jumar cleanup                   of the loop that runs, else of the newest
  jumar cleanup readme-polish --keep 0
  jumar cleanup --trees           and its copy or git worktree below .jumar/work"""


_KEEP = "How many of the best snapshots to keep: with three, there are two others to compare with or to choose instead."


@click.command("cleanup", epilog=_EPILOG)
@loop_argument
@click.option("--keep", type=click.IntRange(min=0), default=3, show_default=True, metavar="N", help=_KEEP)
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("--trees", is_flag=True, help="Also remove the copies and git worktrees that it worked in.")
@root_option
@json_option
@quiet_option
def cleanup_command(loop: str | None, keep: int, root: Path, *, dry_run: bool, trees: bool, as_json: bool, quiet: bool) -> int:
    """Delete the snapshots of all iterations but the N best ones. Records, scores and logs always stay.

    Always kept besides: the selected one, the best before a degradation, the last, the start, and what an undo needs.
    """
    from jumar.decide.cleanup import cleanup, plan_cleanup
    from jumar.loop.callers import refuse_program
    from jumar.loop.clock import SystemClock
    from jumar.loop.identity import current_user
    from jumar.loop.workspace import discard_trees
    from jumar.report.views import refresh_views

    store = open_loop(root, loop, tell=not (quiet or as_json))
    removed: tuple[Path, tuple[str, ...]] | None = None
    if dry_run:
        result = plan_cleanup(store, keep=keep)
    else:
        refuse_program(store.loop_id, "cleanup")
        clock = SystemClock()
        with store.lock():
            removed = discard_trees(store) if trees else None
            result = cleanup(store, keep=keep, by=current_user(), at=clock.now())
            refresh_views(store, at=clock.now())
    if as_json:
        tree, refs = (None, ()) if removed is None else (str(removed[0]), removed[1])
        print_json({"loop_id": store.loop_id, "dry_run": dry_run, **result.to_json(), "tree": tree, "refs": list(refs)})
        return 0
    if quiet:
        return 0
    would = "would be deleted" if dry_run else "deleted"
    numbers = f" ({', '.join(map(str, result.removed))})" if result.removed else ""
    freed = "" if dry_run else f", {_size(result.freed)} freed"
    print_text(f"{plural(len(result.removed), 'snapshot')} {would}{numbers}{freed}")
    if removed is not None:
        print_text(f"{escape(str(removed[0]))} removed")
        for ref in removed[1]:
            print_text(f"  what was committed there stays reachable as {ref}")
    for number, why in result.kept.items():
        print_text(f"  kept {number}: {escape(why)}")
    if dry_run and result.removed:
        print_text(f"{command_for('cleanup', store.paths.directory, f'--keep {keep}')} deletes them; nothing was changed")
    return 0


def _size(count: int) -> str:
    from jumar.report.figures import size

    return size(count)
