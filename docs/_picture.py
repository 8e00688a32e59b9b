"""Draws the README's picture: the terminal of a real ``jumar demo``, as it stood when the run had ended.

python docs/_picture.py docs/demo.svg
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, LINES = 118, 40


def terminal_of(command: list[str], directory: str) -> str:
    """Run ``command`` on a pseudo-terminal and return what it wrote."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(LINES)}
    with subprocess.Popen(command, cwd=directory, stdin=follower, stdout=follower, stderr=follower, env=environment):
        os.close(follower)
        written = b""
        while True:
            try:
                chunk = os.read(leader, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            written += chunk
    os.close(leader)
    return written.decode("utf-8")


def last_frame(written: str) -> str:
    """Return what a live display left on the screen: everything after it last went back up to its first line."""
    frames = re.split(r"(?:\x1b\[1A\x1b\[2K|\x1b\[2K|\x1b\[1A|\r)+(?=\x1b\[1mjumar run|jumar run)", written)
    return re.sub(r"\x1b\[\?25[hl]|\r", "", frames[-1])


def main() -> None:
    """Run the demo and write the picture to the path given."""
    program = str(Path(sys.executable).with_name("jumar"))
    with tempfile.TemporaryDirectory() as directory:
        shown = last_frame(terminal_of([program, "demo"], directory)).replace(directory, "~")
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, highlight=False)
    console.print(Text.from_ansi("$ jumar demo\n" + shown.rstrip()))
    svg = console.export_svg(title="jumar demo")
    svg = re.sub(r"@font-face\s*\{[^}]*\}", "", svg)  # nothing is fetched when a page is read
    Path(sys.argv[1]).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
