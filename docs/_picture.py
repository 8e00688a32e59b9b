"""Draws the README's pictures from real runs: ``jumar demo``, and ``jumar watch`` on the night of ``examples/overnight``.

    python docs/_picture.py            # make pictures
    python docs/_picture.py --check    # which of them show something else than a run does today

What a run takes is never the same twice, so every time in a picture is one of this page. All else is as the run shows it.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jumar.cli.loop.watch import rendered
from jumar.loop.report.observer import LoopObserver

COLUMNS = 100
DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
PROGRAM = str(Path(sys.executable).with_name("jumar"))

STEP, RUN = 0.4, 4.0  # seconds of an iteration, and of all of them
NIGHT = {"generate": 11.0, "verify": 6.0, "score": 9.0, "wait": 3.0}

# what is drawn below the lines while something runs, and taken away again: see jumar.cli.terminal.screen
STATUS = re.compile(r"\r[^\r\n]*(?:\x1b\[K\r*\n[^\r\n]*)*\x1b\[J(?:\x1b\[\d+A)?\r|\r\x1b\[J")


def terminal_of(command: list[str], directory: str) -> str:
    """Run ``command`` on a pseudo-terminal and return the lines that it left there, with their colours."""
    leader, follower = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JUMAR_") and name != "NO_COLOR"}
    environment |= {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": "40"}
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
    return STATUS.sub("", written.decode("utf-8")).replace("\r", "")


def demo(directory: str) -> tuple[str, Text]:
    """Return the command of the first picture and what stands on the screen at its end."""
    shown = terminal_of([PROGRAM, "demo"], directory)
    shown = re.sub(r"(?m)(?<=  )( *)\d+(?:\.\d)?s(?=  |$)", lambda match: f"{STEP}s".rjust(len(match[0])), shown)
    return "jumar demo", Text.from_ansi(re.sub(r"(?<=· )\d+(?:\.\d)?s", f"{RUN}s", shown))


def watch(directory: str) -> tuple[str, Text]:
    """Return the command of the second picture and its frame, after a night has gone by."""
    place = shutil.copytree(EXAMPLES / "overnight", Path(directory) / "overnight")
    subprocess.run([PROGRAM, "run", "--quiet", "--no-input"], cwd=place, check=True)
    view = LoopObserver(place / ".jumar" / "loops" / "overnight").look()
    rows = tuple(replace(row, execution_time_ms=1000 * STEP * 3) for row in view.rows)
    spend = replace(view.spend, seconds=sum(NIGHT.values()))
    return "jumar watch", rendered(replace(view, rows=rows, spend=spend, phase_seconds=NIGHT, log=()), COLUMNS, None)


def picture_of(name: str, make: Callable[[str], tuple[str, Text]]) -> str:
    """Return a picture as SVG: the command, and what it shows."""
    with tempfile.TemporaryDirectory() as directory:
        command, shown = make(directory)
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, highlight=False)
    console.print(Text.assemble(f"$ {command}\n", shown))
    svg = console.export_svg(title=command, unique_id=name)
    return re.sub(r"@font-face\s*\{[^}]*\}", "", svg)  # nothing is fetched when a page is read


def text_of(svg: str) -> list[str]:
    """Return what stands in a picture, line by line, without its colours."""
    lines: dict[str, list[tuple[float, str]]] = {}
    for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):  # noqa: S314 - a picture of ours
        lines.setdefault(element.get("y", ""), []).append((float(element.get("x", 0)), element.text or ""))
    return [
        "".join(text for _, text in sorted(line)).replace("\xa0", " ").rstrip() for _, line in sorted(lines.items(), key=_height)
    ]


def _height(line: tuple[str, object]) -> float:
    return float(line[0] or 0)


def main() -> int:
    """Make the pictures, or say which of them are stale; return the exit code."""
    stale = []
    for name, make in (("demo", demo), ("watch", watch)):
        path, svg = DOCS / f"{name}.svg", picture_of(name, make)
        if "--check" not in sys.argv:
            path.write_text(svg, encoding="utf-8")
        elif text_of(path.read_text(encoding="utf-8")) != text_of(svg):
            stale.append(str(path.relative_to(DOCS.parent)))
    if stale:
        sys.stdout.write(f"{' and '.join(stale)}: not what a run shows today; `make pictures` draws them again\n")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
