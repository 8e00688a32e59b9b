"""Start-up: ``jumar --help`` against an empty Python, and what ``import jumar`` pulls in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from timing import Row, medians, milliseconds


def measure(_directory: Path) -> Iterator[Row]:
    program = str(Path(sys.executable).with_name("jumar"))
    empty, help_text, imported = medians(
        [
            lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
            lambda: subprocess.run([program, "--help"], check=True, stdout=subprocess.DEVNULL),
            lambda: subprocess.run([sys.executable, "-c", "import jumar"], check=True),
        ],
        rounds=21,
    )
    yield "`jumar --help`", milliseconds(help_text), f"`python -c pass` {milliseconds(empty)}: {help_text / empty:.2f}×", "≤ 3×"
    yield "`import jumar`", milliseconds(imported), f"`python -c pass` {milliseconds(empty)}: {imported / empty:.2f}×", "—"
