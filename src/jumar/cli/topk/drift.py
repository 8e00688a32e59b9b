"""``jumar topk drift``: whether logged selections changed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jumar.cli.common import json_option, print_json, print_text, quiet_option
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.text import plural

if TYPE_CHECKING:
    from jumar.topk.tuning.drift import Change, Stream

_EPILOG = """\b
Examples:
  jumar topk drift retrieval.log
  jumar topk drift retrieval.log --level 0.001 --json
  jumar topk select today.jsonl --json | jumar topk drift -

LOG has one JSON object a line, oldest first: events jumar.topk_selected as jumar.topk.JsonFormatter writes them, or the
output of `jumar topk select --json`. Other lines are skipped."""


@click.command("drift", epilog=_EPILOG)
@click.argument("log", type=click.Path(path_type=Path, allow_dash=True), metavar="LOG")
@click.option("--level", type=float, default=0.01, show_default=True, help="How often chance alone may raise an alarm.")
@click.option("--effect", type=float, default=0.2, show_default=True, help="How large a change has to be, 0–1.")
@json_option
@quiet_option
def drift_command(log: Path, level: float, effect: float, *, as_json: bool, quiet: bool) -> int:
    """Say whether cutoffs, numbers kept and empty answers changed, and since when.

    Each kind and strategy is a stream of its own; it takes at least 20 selections. It ends with 0 either way.
    """
    from jumar.topk.rankings import read_log
    from jumar.topk.tuning.drift import LEAST, find_drift

    found = read_log(log)
    streams = find_drift(found.readings, level=level, effect=effect)
    if as_json:
        print_json(
            {
                "drifted": any(stream.drifted for stream in streams),
                "selections": len(found.readings),
                "skipped": found.skipped,
                "level": level,
                "effect": effect,
                "streams": [
                    {
                        "stream": stream.name,
                        "selections": stream.selections,
                        "drifted": stream.drifted,
                        "changes": [asdict(change) for change in stream.changes],
                    }
                    for stream in streams
                ],
            }
        )
        return 0
    names = ("stream", "measure", "before", "after", "since", "effect", "p", "")
    columns = [Column(name=name, fold=name in {"stream", "since"}) for name in names]
    print_table(columns, [TableRow(cells=_cells(stream, change)) for stream in streams for change in stream.changes])
    if not quiet:
        for stream in streams:
            if not stream.changes:
                print_text(f"{stream.name}: {plural(stream.selections, 'selection')}, at least {LEAST} are needed")
        beside = f", {plural(found.skipped, 'other line')} skipped" if found.skipped else ""
        print_text(f"{plural(len(found.readings), 'selection')}{beside}")
    return 0


def _cells(stream: Stream, change: Change) -> tuple[str, ...]:
    form = "{:.1%}" if change.measure == "abstained" else "{:.4g}"
    return (
        stream.name,
        change.measure,
        form.format(change.before),
        form.format(change.after),
        "—" if change.since is None else f"{change.since:,}" + (f" ({change.where})" if change.where else ""),
        f"{change.effect:.2f}",
        "<0.0001" if change.p < 0.0001 else f"{change.p:.4f}",
        "DRIFT" if change.drifted else "",
    )
