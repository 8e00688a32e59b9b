"""``jumar patterns list``: the patterns of a file, one a line."""

from __future__ import annotations

from pathlib import Path

import click
from jumar.cli.patterns.common import file_argument

from jumar.cli.common import json_option, print_json, print_text, quiet_option, warned
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.text import plural

_STATUSES = ("active", "provisional", "rejected", "pruned")


_EPILOG = """\b
Examples:
  jumar patterns list patterns.json --type bad --status active"""


@click.command("list", epilog=_EPILOG)
@file_argument
@click.option("--type", "kind", type=click.Choice(["good", "bad"]), help="Only these.")
@click.option("--status", type=click.Choice(_STATUSES), help="Only these.")
@json_option
@quiet_option
def list_command(file: Path, kind: str | None, status: str | None, *, as_json: bool, quiet: bool) -> int:
    """List the patterns of a file."""
    from jumar.judging.patterns.storage import load_patterns_safely

    with warned():
        found = load_patterns_safely(file)
    chosen = [one for one in found if kind in {None, one.type} and status in {None, one.status}]
    if as_json:
        print_json({"patterns": [one.model_dump(mode="json") for one in chosen]})
        return 0
    columns = (Column(name="id"), Column(name="type"), Column(name="status"), Column(name="weight", right=True))
    print_table(
        (*columns, Column(name="fired", right=True), Column(name="description", fold=True)),
        [
            TableRow(cells=(one.id, one.type, one.status, f"{one.weight:g}", f"{one.times_fired:,}", one.description))
            for one in chosen
        ],
    )
    if not quiet:
        print_text(f"{len(chosen):,} of {plural(len(found), 'pattern')}")
    return 0
