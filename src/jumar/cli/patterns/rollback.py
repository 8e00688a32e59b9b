"""``jumar patterns rollback``: a patterns file as it was."""

from __future__ import annotations

from pathlib import Path

import click

from jumar.cli.common import json_option, print_json, print_text, quiet_option
from jumar.cli.patterns.common import file_argument
from jumar.core.text import escape, plural

_EPILOG = """\b
Examples:
  jumar patterns rollback patterns.json 1275882d"""


@click.command("rollback", epilog=_EPILOG)
@file_argument
@click.argument("version", metavar="HASH")
@json_option
@quiet_option
def rollback_command(file: Path, version: str, *, as_json: bool, quiet: bool) -> int:
    """Save a recorded version again: the beginning of its hash is enough, and what the file holds now stays in the log.

    --json has the hash of what was written, which is another one when the version was found in the file in another shape.
    """
    from jumar.judging.patterns.versions import PatternStore

    store = PatternStore(file)
    whole = store.rollback(version)
    found = store.log()[-1]
    if as_json:
        print_json({"version": whole, "patterns": found.patterns, "number": found.number})
    elif not quiet:
        again = f"version {found.short} again"
        if not whole.startswith(version.lower()):
            again = f"version {escape(version)} again, in the shape of today: {found.short}"
        print_text(f"{escape(str(file))} is {again}, with {plural(found.patterns, 'pattern')}; it is save {found.number}")
    return 0
