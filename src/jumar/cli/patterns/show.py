"""``jumar patterns show``: everything about one pattern."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import click

from jumar.cli.common import json_option, print_json, print_text, quiet_option, warned
from jumar.cli.patterns.common import file_argument
from jumar.core.text import escape, nearest
from jumar.errors import NotFoundError

_EPILOG = """\b
Examples:
  jumar patterns show patterns.json p_017"""


@click.command("show", epilog=_EPILOG)
@file_argument
@click.argument("pattern_id", metavar="ID")
@json_option
@quiet_option
def show_command(file: Path, pattern_id: str, *, as_json: bool, quiet: bool) -> int:
    """Show everything about one pattern."""
    from jumar.judging.patterns.storage import load_patterns_safely

    with warned():
        found = {one.id: one for one in load_patterns_safely(file)}
    if pattern_id not in found:
        close = nearest(pattern_id, list(found))
        raise NotFoundError(f"{escape(str(file))} has no pattern '{escape(pattern_id)}'{close}; `jumar patterns list` lists them")
    document = found[pattern_id].model_dump(mode="json")
    if as_json:
        print_json(document)
        return 0
    width = max(map(len, document))
    for name, value in document.items():
        if quiet and value in (None, "", []):
            continue
        shown = ", ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else value
        print_text(f"{escape(name):<{width}}  {'—' if shown is None or shown == '' else escape(str(shown))}")
    return 0
