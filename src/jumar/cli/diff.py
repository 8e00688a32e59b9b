"""``jumar diff``: what changed from one iteration to another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumar.cli.common import (
    colour_wanted,
    json_option,
    loop_argument,
    open_loop,
    print_json,
    print_text,
    quiet_option,
    root_option,
    writable,
)
from jumar.cli.state import report_of
from jumar.cli.tabular import Column, Row, print_table
from jumar.errors import NotFoundError, NothingEvaluatedError, UsageError
from jumar.text import escape_block, plural

if TYPE_CHECKING:
    from jumar.report.diff import PathChange, SnapshotDiff
    from jumar.store.loop_store import LoopStore

__all__ = ["diff_command"]

_EPILOG = """\b
Examples:
  jumar diff readme-polish 2 3
  jumar diff readme-polish --best       what the loop achieved
  jumar diff readme-polish --best --stat"""

_COLOURS = (("+++", "1"), ("---", "1"), ("@@", "36"), ("+", "32"), ("-", "31"))


@click.command("diff", epilog=_EPILOG)
@loop_argument
@click.argument("a", required=False, type=click.IntRange(min=0))
@click.argument("b", required=False, type=click.IntRange(min=0))
@click.option("--best", is_flag=True, help="The start (else the first one kept) against the chosen one.")
@click.option("--stat", is_flag=True, help="Only how many lines changed in which files.")
@root_option
@json_option
@quiet_option
def diff_command(
    loop: str, a: int | None, b: int | None, root: Path, *, best: bool, stat: bool, as_json: bool, quiet: bool
) -> int:
    """Compare the artifacts of two iterations as a unified diff: A is the old side, B the new one."""
    from jumar.report.diff import diff_snapshots, render_diff

    if best == (a is not None) or (a is None) != (b is None):
        raise UsageError("give two iterations to compare, `jumar diff LOOP 2 3`, or --best")
    store = open_loop(root, loop)
    one, other = _best_pair(store) if a is None or b is None else (a, b)
    diff = diff_snapshots(store, one, other)
    if as_json:
        document = diff.to_json() | {"stat": [_counted(change) for change in _changes(diff)]}
        if stat:
            document |= {side: [_without_text(item) for item in document[side]] for side in ("added", "removed", "changed")}
        print_json(document)
    elif stat:
        _print_stat(diff)
    else:
        text = render_diff(diff)
        _print_diff(text[text.find("\n--- ") + 1 :] if quiet and "\n--- " in text else text)
    return 0


def _best_pair(store: LoopStore) -> tuple[int, int]:
    report = report_of(store)
    if report.chosen is None:
        raise NothingEvaluatedError(f"loop '{store.loop_id}' has nothing chosen: no iteration has a valid score")
    kept = [number for number in store.iteration_numbers() if store.has_snapshot(number)]
    if not kept:
        raise NotFoundError(f"loop '{store.loop_id}' has no snapshot left to compare with")
    return kept[0], report.chosen


def _changes(diff: SnapshotDiff) -> list[PathChange]:
    return sorted([*diff.added, *diff.removed, *diff.changed], key=lambda change: change.path)


def _counted(change: PathChange) -> dict[str, Any]:
    lines = (change.text or "").splitlines()
    return {
        "path": change.path,
        "added_lines": None if change.text is None else sum(line.startswith("+") for line in lines),
        "removed_lines": None if change.text is None else sum(line.startswith("-") for line in lines),
        "note": change.note,
    }


def _without_text(change: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in change.items() if key != "text"}


def _print_stat(diff: SnapshotDiff) -> None:
    counted = [_counted(change) for change in _changes(diff)]
    marks = {change.path: mark for mark, side in (("A", diff.added), ("D", diff.removed), ("M", diff.changed)) for change in side}
    rows = [
        Row(
            cells=(
                marks[item["path"]],
                item["path"],
                "" if item["added_lines"] is None else f"+{item['added_lines']:,}",
                "" if item["removed_lines"] is None else f"-{item['removed_lines']:,}",
                item["note"],
            )
        )
        for item in counted
    ]
    if rows:
        headings = ("", "path", "added", "removed", "")
        columns = [Column(name=name, right=name in {"added", "removed"}, fold=name == "path") for name in headings]
        print_table(columns, rows)
    added, removed = (sum(item[side] or 0 for item in counted) for side in ("added_lines", "removed_lines"))
    files = f"{plural(len(counted), 'file')} changed, {diff.unchanged:,} unchanged"
    print_text(f"iteration {diff.a} → {diff.b}: {files}; {plural(added, 'line')} added, {removed:,} removed")


def _print_diff(text: str) -> None:
    if not colour_wanted():
        print_text(text.removesuffix("\n"))
        return
    for line in escape_block(text).removesuffix("\n").split("\n"):
        colour = next((colour for start, colour in _COLOURS if line.startswith(start)), None)
        shown = writable(line, sys.stdout.encoding)
        sys.stdout.write(f"\x1b[{colour}m{shown}\x1b[0m\n" if colour else f"{shown}\n")
