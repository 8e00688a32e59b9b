"""``jumar learn status``: where a learning run is."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cli.common import json_option, print_json, print_text, quiet_option
from jumar.core.text import plural

_EPILOG = """\b
Examples:
  jumar learn status outputs/
  jumar learn status outputs/ --json | jq .verdict"""

output_argument = click.argument("output", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")


@click.command("status", epilog=_EPILOG)
@output_argument
@json_option
@quiet_option
def status_command(output: Path, *, as_json: bool, quiet: bool) -> int:
    """Say where a learning run is, and what it found so far.

    DIR is the --output of `jumar learn`.
    """
    from jumar.cli.learn.shown import show_summary
    from jumar.learning.report.view import render_progress
    from jumar.learning.run.read import read_report, read_run

    found = read_run(output)
    if as_json:
        print_json(found.document())
        return 0
    print_text(f"run       {found.state}; {plural(len(found.iterations), 'iteration')}")
    if found.iterations and not quiet:
        before = found.iterations[-2] if len(found.iterations) > 1 else None
        print_text(render_progress(found.iterations[-1:], before).rstrip("\n"))
    if found.summary is not None:
        show_summary(read_report(output))
    return 0
