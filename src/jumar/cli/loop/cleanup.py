"""``jumar cleanup``: delete snapshots that nobody needs any more."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cli.common import command_for, loop_argument, open_loop, print_json, print_text, standard_options
from jumar.core.clock import SystemClock, current_user
from jumar.core.rendering.figures import size
from jumar.core.text import escape, plural
from jumar.loop.decisions.cleanup import CleanupResult, cleanup, plan_cleanup
from jumar.loop.decisions.select import refuse_program
from jumar.loop.report.views import refresh_views
from jumar.loop.workspace.trees import discard_trees, trees_of

_EPILOG = """\b
Examples:
  jumar cleanup --dry-run         what would go, and why
  jumar cleanup                   of the loop that runs, else of the newest
  jumar cleanup readme-polish --keep 0
  jumar cleanup --trees           its copy or git worktree below .jumar/work, and no snapshot
  jumar cleanup --trees --keep 3  both"""


_KEPT = 3
_KEEP = f"How many of the best snapshots to keep (by default {_KEPT}; with --trees alone, all)."


@click.command("cleanup", epilog=_EPILOG)
@loop_argument
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help=_KEEP)
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option(
    "--trees", is_flag=True, help="Remove the copies and git worktrees that it worked in; snapshots stay without --keep."
)
@standard_options
def cleanup_command(
    loop: str | None, keep: int | None, root: Path, *, dry_run: bool, trees: bool, as_json: bool, quiet: bool
) -> int:
    """Delete the snapshots of all iterations but the N best ones. Records, scores and logs always stay.

    Always kept besides: the selected one, the best before a degradation, the last, the start, and what an undo needs.
    """
    store = open_loop(root, loop, tell=not (quiet or as_json))
    removed: tuple[Path, tuple[str, ...]] | None = None
    snapshots, keep = keep is not None or not trees, _KEPT if keep is None else keep
    result = CleanupResult(removed=(), kept={})
    if dry_run:
        removed = next(((tree, ()) for tree in trees_of(store.paths.root, store.loop_id)), None) if trees else None
        result = plan_cleanup(store, keep=keep) if snapshots else result
    else:
        refuse_program(store.loop_id, "cleanup", store.nonce)
        clock = SystemClock()
        with store.lock():
            removed = discard_trees(store) if trees else None
            if snapshots:
                result = cleanup(store, keep=keep, by=current_user(), at=clock.now())
                refresh_views(store, at=clock.now())
    if as_json:
        tree, refs = (None, ()) if removed is None else (str(removed[0]), removed[1])
        print_json({"loop_id": store.loop_id, "dry_run": dry_run, **result.to_json(), "tree": tree, "refs": list(refs)})
        return 0
    if quiet:
        return 0
    if snapshots:
        would = "would be deleted" if dry_run else "deleted"
        numbers = f" ({', '.join(map(str, result.removed))})" if result.removed else ""
        freed = "" if dry_run else f", {size(result.freed)} freed"
        print_text(f"{plural(len(result.removed), 'snapshot')} {would}{numbers}{freed}")
    if trees and removed is None:
        print_text("there is no copy or git worktree of it")
    if removed is not None:
        print_text(f"{escape(str(removed[0]))} {'would be removed' if dry_run else 'removed'}")
        for ref in removed[1]:
            print_text(f"  what was committed there stays reachable as {ref}")
    for number, why in result.kept.items():
        print_text(f"  kept {number}: {escape(why)}")
    if dry_run and result.removed:
        print_text(f"{command_for('cleanup', store.paths.directory, f'--keep {keep}')} deletes them; nothing was changed")
    return 0
