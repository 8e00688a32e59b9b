"""A loop that has run for real, made once and copied for each test."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path

from loops import jumar, write_loop

SCORES = (0.6, 0.9, 0.7, 0.65)
"""Of passes 1 to 4; the start has 0.5, and the second one is selected."""


@functools.cache
def _made() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="finished-loop-")) / "here"
    atexit.register(_remove, directory.parent, os.getpid())
    # pass 3 fails its check; every iteration adds a file
    write_loop(directory, SCORES, check="! grep -q 'pass 3' text.md", loop='isolation = "copy"')
    agent = directory / "agent.py"
    agent.write_text(agent.read_text() + 'open(f"new-{n}.md", "w").write(f"new {n}\\n")\n')
    config = directory / "jumar.toml"
    config.write_text(config.read_text().replace('"text.md"]', '"*.md"]'))
    jumar(directory, "run", check=0)
    return directory


def _remove(directory: Path, maker: int) -> None:
    if os.getpid() == maker:  # not a fork that ends
        shutil.rmtree(directory, ignore_errors=True)


def finished_loop(place: Path) -> Path:
    """Copy the finished loop ``t`` into ``place``; nothing is applied there yet. Returns ``place``."""
    shutil.copytree(_made(), place, dirs_exist_ok=True, symlinks=True)
    return place


def tree(directory: Path) -> dict[str, str]:
    """Return the kept files of a working directory by name."""
    return {path.name: path.read_text() for path in [*sorted(directory.glob("*.md")), directory / "score.txt"]}


START = {"score.txt": "0.5", "text.md": "pass 0\n"}
BEST = {"new-1.md": "new 1\n", "new-2.md": "new 2\n", "score.txt": "0.9", "text.md": "pass 2\n"}
FOURTH = BEST | {"new-4.md": "new 4\n", "score.txt": "0.65", "text.md": "pass 4\n"}
"""Passes 3 and 4 start from the best, so what the third added is not here."""
