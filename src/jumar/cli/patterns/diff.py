"""``jumar patterns diff``: what differs between two versions of a patterns file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from jumar.cli.common import json_option, print_json, print_text, quiet_option, warned
from jumar.cli.patterns.common import file_argument
from jumar.core.text import escape

_EPILOG = """\b
Examples:
  jumar patterns diff patterns.json 1275882d
  jumar patterns diff patterns.json 1275882d 90ab"""


@click.command("diff", epilog=_EPILOG)
@file_argument
@click.argument("before", metavar="BEFORE")
@click.argument("after", required=False, metavar="[AFTER]")
@json_option
@quiet_option
def diff_command(file: Path, before: str, after: str | None, *, as_json: bool, quiet: bool) -> int:
    """Say what differs from one version to another, by default to the file as it is.

    Versions are those of `jumar patterns log`.
    """
    from jumar.judging.patterns.versions import PatternStore

    with warned():
        found = PatternStore(file).diff(before, after)
    if as_json:
        changed = [{"id": one.id, "fields": {name: list(pair) for name, pair in one.fields.items()}} for one in found.changed]
        added, removed = ([one.model_dump(mode="json") for one in some] for some in (found.added, found.removed))
        print_json({"added": added, "removed": removed, "changed": changed, "sections": list(found.sections)})
        return 0
    lines = [f"- {escape(one.id)}  {escape(one.description)}" for one in found.removed]
    lines += [f"+ {escape(one.id)}  {escape(one.description)}" for one in found.added]
    for one in found.changed:
        lines += [f"~ {escape(one.id)}  {escape(name)}: {_shown(old)} → {_shown(new)}" for name, (old, new) in one.fields.items()]
    lines += [f"~ section {escape(name)}" for name in found.sections]
    if lines or not quiet:
        print_text("\n".join(lines) or "no difference")
    return 0


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return escape(text if len(text) <= 60 else text[:59] + "…")
