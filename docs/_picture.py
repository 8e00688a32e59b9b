"""Draws the README's pictures from real runs: ``jumar demo``, and ``jumar watch`` on the night of ``examples/overnight``.

python docs/_picture.py docs/demo.svg
python docs/_picture.py docs/watch.svg
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, LINES = 118, 40
PROGRAM = str(Path(sys.executable).with_name("jumar"))
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


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


def demo(directory: str) -> tuple[str, str]:
    """Return the command of the first picture and what it showed at its end."""
    return "jumar demo", last_frame(terminal_of([PROGRAM, "demo"], directory))


def watch(directory: str) -> tuple[str, str]:
    """Return the command of the second picture and its frame, after a night has gone by."""
    place = shutil.copytree(EXAMPLES / "overnight", Path(directory) / "overnight")
    subprocess.run([PROGRAM, "run", "--quiet", "--no-input"], cwd=place, check=True)
    return "jumar watch", terminal_of([PROGRAM, "watch", "--once"], str(place)).replace("\r", "")


def main() -> None:
    """Make the run and write the picture to the path given; its name says which."""
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        command, shown = {"demo": demo, "watch": watch}[target.stem](directory)
        shown = shown.replace(directory, "~")
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, highlight=False)
    console.print(Text.from_ansi(f"$ {command}\n" + shown.rstrip()))
    svg = console.export_svg(title=command)
    svg = re.sub(r"@font-face\s*\{[^}]*\}", "", svg)  # nothing is fetched when a page is read
    target.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
