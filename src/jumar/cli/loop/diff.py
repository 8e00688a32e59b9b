"""``jumar diff``: what changed from one iteration to another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from jumar.cli.common import (
    chosen_iteration,
    colour_wanted,
    loop_argument,
    loop_or_iteration,
    open_loop,
    print_json,
    print_line,
    print_text,
    standard_options,
    writable,
)
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.redaction import current, redacted_json
from jumar.core.text import escape, escape_block, plural
from jumar.errors import NotFoundError, UsageError
from jumar.loop.report.diff import PathChange, SnapshotDiff, diff_snapshots, render_diff
from jumar.loop.store.loop_store import LoopStore

_EPILOG = """\b
Examples:
  jumar diff                      what the loop achieved
  jumar diff 2 3                  of the loop that runs, else of the newest
  jumar diff 3                    from the start to this one
  jumar diff readme-polish 2 3
  jumar diff readme-polish --stat"""

_COLOURS = (("+++", "1"), ("---", "1"), ("@@", "36"), ("+", "32"), ("-", "31"))


@click.command("diff", epilog=_EPILOG)
@loop_argument
@click.argument("a", required=False)
@click.argument("b", required=False)
@click.option("--best", is_flag=True, help="The start (else the first one kept) against the selected one; the default.")
@click.option("--stat", is_flag=True, help="Only how many lines changed in which files.")
@standard_options
def diff_command(
    loop: str | None, a: str | None, b: str | None, root: Path, *, best: bool, stat: bool, as_json: bool, quiet: bool
) -> int:
    """Compare the artifacts of two iterations as a unified diff: A is the old side, B the new one.

    Without A and B: what the loop achieved, from the start to the iteration that is selected.
    """
    loop, pair = _meant(loop, a, b)
    single = None
    if pair is None:
        loop, single = loop_or_iteration(root, loop, None, None)
    if best and (pair is not None or single is not None):
        raise UsageError("iterations and --best are two different comparisons; give one of them")
    store = open_loop(root, loop)
    one, other = _best_pair(store, single) if pair is None else pair
    diff = diff_snapshots(store, one, other)
    if as_json:
        document = diff.to_json() | {"stat": [_counted(change) for change in _changes(diff)]}
        if stat:
            document |= {side: [_without_text(item) for item in document[side]] for side in ("added", "removed", "changed")}
        print_json(redacted_json(document, current().redact, keep=frozenset({"text"})))
    elif stat:
        _print_stat(diff)
    else:
        text = render_diff(diff)
        _print_diff(text[text.find("\n--- ") + 1 :] if quiet and "\n--- " in text else text)
    return 0


def _meant(*words: str | None) -> tuple[str | None, tuple[int, int] | None]:
    """Return the loop and the iterations that up to three words name: two are always iterations, a single one is a loop."""
    given = [word for word in words if word is not None]
    if len(given) < 2:
        return (given[0] if given else None), None
    *loop, a, b = given
    if not (a.isdecimal() and b.isdecimal()):
        wrong = b if a.isdecimal() else a
        raise UsageError(
            f"'{escape(wrong)}' is no iteration: give two numbers, `jumar diff 2 3` or `jumar diff LOOP 2 3`, or none"
        )
    return (loop[0] if loop else None), (int(a), int(b))


def _best_pair(store: LoopStore, other: int | None) -> tuple[int, int]:
    chosen = chosen_iteration(store) if other is None else other
    kept = [number for number in store.iteration_numbers() if store.has_snapshot(number)]
    if not kept:
        raise NotFoundError(f"loop '{store.loop_id}' has no snapshot left to compare with")
    return kept[0], chosen


def _changes(diff: SnapshotDiff) -> list[PathChange]:
    return sorted([*diff.added, *diff.removed, *diff.changed], key=lambda change: change.path)


def _counted(change: PathChange) -> dict[str, Any]:
    lines = (change.text or "").split("\n")  # at nothing else: other breaks are part of a line
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
    print_line("compared", f"iteration {diff.a} → {diff.b}")
    rows = [
        TableRow(
            cells=(
                marks[item["path"]],
                current().redact(item["path"]),
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
    print_line("files", f"{files}; {plural(added, 'line')} added, {removed:,} removed")


def _print_diff(text: str) -> None:
    if not colour_wanted():
        print_text(text.removesuffix("\n"))
        return
    for line in escape_block(text).removesuffix("\n").split("\n"):
        colour = next((colour for start, colour in _COLOURS if line.startswith(start)), None)
        shown = writable(line, sys.stdout.encoding)
        sys.stdout.write(f"\x1b[{colour}m{shown}\x1b[0m\n" if colour else f"{shown}\n")
