"""``jumar watch``: a loop as it runs, seen from another terminal."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jumar.cli.common import (
    DecimalRange,
    colour_wanted,
    find_loop,
    loop_argument,
    observe,
    print_json,
    print_line,
    says_everything,
    standard_options,
)
from jumar.cli.terminal.screen import is_live
from jumar.core.text import escape_block
from jumar.loop.report.frame import frame_lines
from jumar.loop.report.observer import LoopObserver
from jumar.loop.report.status import LoopStatus

if TYPE_CHECKING:
    from rich.text import Text

_EPILOG = """\b
Examples:
  jumar watch                     the loop that runs, or the newest
  jumar watch readme-polish --interval 0.5
  jumar watch --once > frame.txt  one frame, also without a terminal"""

_STYLES = {
    "stair": "green",
    "score": "cyan",
    "score_on": "bold white on green",
    "best": "bold green",
    "bad": "red",
    "dim": "dim",
    "head": "bold",
    "warn": "yellow",
    "good": "green",
}
_NARROWEST = 40


@click.command("watch", epilog=_EPILOG)
@loop_argument
@click.option("--once", is_flag=True, help="Print one frame and end.")
@click.option(
    "--interval", type=DecimalRange(0.1, 60), default=1.0, show_default=True, metavar="SECONDS", help="Between two looks."
)
@standard_options
def watch_command(loop: str | None, root: Path, *, once: bool, interval: float, as_json: bool, quiet: bool) -> int:
    """Show a loop as it runs: scores, best so far, checks, budget, where the time goes.

    It takes no lock and writes nothing, so it can be started and ended at any time; Ctrl-C ends it, not the loop. --json prints
    what `jumar status` does.
    """
    observer = observe(find_loop(root, loop))
    if as_json:
        print_json(observer.look().to_json())
        return 0
    if once or not is_live(sys.stdout):
        _print_frame(observer.look())
        if not once and not quiet:
            print_line("note", "stdout is no terminal to draw on, so this is one frame; jumar logs -f follows a loop", err=True)
        return 0
    view = _follow(observer, interval)
    _print_frame(view)
    return 0


def _follow(observer: LoopObserver, interval: float) -> LoopStatus:
    """Draw on the terminal's other screen until the loop has ended or the person has seen enough; return the last view."""
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False, no_color=not colour_wanted())
    view = observer.look()
    try:
        # what rich would put in the place of stdout has no encoding, so that a frame could not know what it may draw with
        with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
            while True:
                live.update(rendered(view, console.width, console.height - 1), refresh=True)
                if not view.live:
                    break
                time.sleep(interval)
                view = observer.look()
    except KeyboardInterrupt:
        pass
    return view


def _print_frame(view: LoopStatus) -> None:
    from rich.console import Console

    width = max(_NARROWEST, shutil.get_terminal_size((80, 24)).columns)
    console = Console(highlight=False, no_color=not colour_wanted(), width=width)
    console.print(rendered(view, width, None))


def rendered(view: LoopStatus, width: int, height: int | None) -> Text:
    """Return one frame of at most ``width`` columns, in signs that stdout has."""
    from rich.text import Text

    plain = not says_everything(sys.stdout.encoding)
    frame = Text(no_wrap=True, overflow="crop", end="")
    for line in frame_lines(view, width=width, height=height, ascii_only=plain):
        row = Text(no_wrap=True, overflow="crop")
        for text, style in line:
            shown = escape_block(text)
            row.append(shown.encode("ascii", "backslashreplace").decode() if plain else shown, _STYLES.get(style, ""))
        row.truncate(width)
        row.rstrip()
        frame.append_text(row)
        frame.append("\n")
    return frame
