"""``jumar list``: the loops below a root."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.app.machine import likely_check
from jumar.cli.common import listed_root, print_json, print_text, standard_options
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.rendering.figures import UNKNOWN
from jumar.core.text import escape, points
from jumar.loop.report.observer import LoopSummary, list_summaries
from jumar.loop.store.layout import runs_directory

_EPILOG = """\b
Examples:
  jumar list
  jumar list --quiet              only the names, one a line
  jumar list --json --root /srv/loops"""

_COLUMNS = (
    Column(name="loop"),
    Column(name="iterations", right=True),
    Column(name="best", right=True),
    Column(name="selected", right=True),
    Column(name="state", fold=True),
    Column(name="age", right=True),
)
_STYLES = {"running": "cyan", "finished": "green", "interrupted": "yellow", "damaged": "bold red"}


@click.command("list", epilog=_EPILOG)
@standard_options
def list_command(root: Path, *, as_json: bool, quiet: bool) -> int:
    """List the loops, each with its best score and how it ended.

    A loop that cannot be read is listed as damaged.
    """
    root = listed_root(root)
    loops = list_summaries(root)
    if as_json:
        print_json({"root": str(root.absolute()), "loops": [loop.to_json() for loop in loops]})
    elif quiet:
        for loop in loops:
            print_text(escape(loop.directory.name))
    elif not loops:
        if runs_directory(root).is_dir():
            print_text("there are runs of cases here: jumar cases list")
        print_text(f"no loops in {escape(str(root))} yet; these make one:")
        line = f"jumar run --agent claude -p 'make the tests pass' --check {likely_check(Path())}"
        print_text(f"  {'jumar demo':<{len(line)}}  watch one, offline")
        print_text(f"  {'jumar init --template document && jumar run':<{len(line)}}  one with a configuration")
        print_text(f"  {line}  one without")
    else:
        print_table(_COLUMNS, [_row(loop) for loop in loops])
        for loop in loops:
            if loop.problem is not None:
                print_text(f"damaged: {escape(loop.problem)}")
    return 0


def _row(loop: LoopSummary) -> TableRow:
    cells = (
        loop.directory.name,  # what the other commands find it by, also when it was copied under another name
        UNKNOWN if loop.state.name in {"damaged", "foreign"} else str(loop.iterations),
        UNKNOWN if loop.best_score is None else f"{points(loop.best_score)} (it {loop.best_iteration})",
        UNKNOWN if loop.chosen is None else str(loop.chosen),
        loop.state.text,
        age_text(loop.age_seconds),
    )
    return TableRow(cells=cells, style=_STYLES.get(loop.state.name, ""))


def age_text(seconds: float | None) -> str:
    """Return ``<1m``, ``5m``, ``3h``, ``12d``; ``—`` when unknown."""
    if seconds is None:
        return UNKNOWN
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "<1m"
