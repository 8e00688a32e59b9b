"""``jumar patterns log``: every save of a patterns file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from jumar.cli.patterns.common import file_argument

from jumar.cli.common import json_option, print_json, print_text, quiet_option
from jumar.cli.terminal.output import Column, TableRow, print_table
from jumar.core.text import escape

_EPILOG = """\b
Examples:
  jumar patterns log patterns.json"""


@click.command("log", epilog=_EPILOG)
@file_argument
@json_option
@quiet_option
def log_command(file: Path, *, as_json: bool, quiet: bool) -> int:
    """List every recorded save of a patterns file, the last one first."""
    from jumar.judging.patterns.versions import PatternStore

    from jumar.judging.patterns.storage import load_pattern_set

    store = PatternStore(file)
    found = store.log()[::-1]
    if not found:
        load_pattern_set(file)  # a file that is not there has no log for another reason
    if as_json:
        print_json({"versions": [asdict(one) for one in found]})
    elif not found:
        if quiet:
            return 0
        print_text(f"{escape(str(file))} was never saved by jumar: there is no version of it yet")
    else:
        columns = (Column(name="version"), Column(name="saved"), Column(name="patterns", right=True), Column(name="", fold=True))
        print_table(columns, [TableRow(cells=(one.short, one.at, f"{one.patterns:,}", one.message)) for one in found])
    return 0
