"""``jumar doctor``: what would go wrong tonight, found now."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path

import click

from jumar.cli.common import DecimalRange, colour_wanted, json_option, print_json, print_text, quiet_option, writable
from jumar.core.text import escape_block

_EPILOG = """\b
Examples:
  jumar doctor
  jumar doctor --no-run           without running the generator: costs nothing
  jumar doctor nightly.toml --timeout 120 --json

Exit code: 0 when no row says FAIL, else 1. What each row means: docs/how-to/doctor.md."""

_WORDS = {"green": ("ok  ", "32"), "yellow": ("warn", "33"), "red": ("FAIL", "1;31")}
_NAME_WIDTH = 14


@click.command("doctor", epilog=_EPILOG)
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--no-run", is_flag=True, help="Don't run the generator.")
@click.option(
    "--timeout",
    type=DecimalRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the generator may take for its one-word prompt.",
)
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="JUMAR_ROOT",
    help="Folder that holds the loops (default: .jumar beside the configuration).",
)
@json_option
@quiet_option
def doctor_command(config: Path | None, root: Path | None, *, no_run: bool, timeout: float, as_json: bool, quiet: bool) -> int:
    """Check this machine and the configuration before a run; every row that says FAIL names its fix.

    Checks, scorers and the generator are tried in a throw-away copy of the working directory. The generator gets a one-word
    prompt and no terminal, so that an agent that waits for a permission is found now.
    """
    from jumar.app.doctor import Examination, examine
    from jumar.app.machine import Row

    examination = Examination(config=config, root=root, run=not no_run, timeout=timeout, encoding=sys.stdout.encoding)
    rows: list[Row] = []
    for row in examine(examination):
        rows.append(row)
        if not as_json and (not quiet or row.state == "red"):
            _print(row.name, row.state, row.detail, row.fix)
    red = sum(row.state == "red" for row in rows)
    if as_json:
        print_json({"ok": red == 0, "rows": [row.to_json() for row in rows]})
    elif not quiet:
        yellow = sum(row.state == "yellow" for row in rows)
        print_text(f"{len(rows)} checks: {red} FAIL, {yellow} warn")
    return 1 if red else 0


def _print(name: str, state: str, detail: str, fix: str) -> None:
    word, colour = _WORDS[state]
    shown = f"\x1b[{colour}m{word}\x1b[0m" if colour_wanted() else word
    kind, _, which = name.partition(": ")
    first, *more = escape_block(f"{which}: {detail}" if which else detail).split("\n")
    lines = _wrapped(first)
    for line in more:
        lines += _wrapped(line)
    if fix and state != "green":
        lines += [part for line in f"fix: {escape_block(fix)}".split("\n") for part in _wrapped(line)]
    for number, line in enumerate(lines):
        head = f"{shown}  {escape_block(kind):<{_NAME_WIDTH}}" if number == 0 else " " * (_NAME_WIDTH + 6)
        sys.stdout.write(writable(f"{head}  {line}".rstrip(), sys.stdout.encoding) + "\n")
    sys.stdout.flush()


def _wrapped(text: str) -> list[str]:
    """Break a line to the window's width, so that it stays in its column; elsewhere than on a terminal it stays whole."""
    if not sys.stdout.isatty():
        return [text]
    room = max(30, shutil.get_terminal_size().columns - _NAME_WIDTH - 8)
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
