"""Importing the directory of seed 2's original tool, which keeps everything in one ``best-output-tracking.json``."""

from __future__ import annotations

from pathlib import Path

from jumar.store.layout import LoopPaths

__all__ = ["import_foreign", "is_foreign"]


def is_foreign(directory: Path) -> bool:
    """Return whether ``directory`` holds a foreign tracking file and no loop."""
    paths = LoopPaths(directory)
    return paths.tracking_view.is_file() and not paths.loop_json.exists()


def import_foreign(paths: LoopPaths) -> None:
    raise NotImplementedError
