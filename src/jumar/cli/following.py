"""What `watch`, `logs` and `status` share: which loop is meant when none is named."""

from __future__ import annotations

import os
from pathlib import Path

from jumar.cli.common import find_loop
from jumar.errors import NotFoundError
from jumar.store.layout import LoopPaths, list_loops, loops_directory
from jumar.store.lock import holder_of
from jumar.text import escape

__all__ = ["meant_loop"]


def meant_loop(root: Path, loop: str | None) -> Path:
    """Return the directory of ``loop``; without a name, of the loop that runs, else of the one that was written last.

    Opens nothing, so nothing is imported. Errors: :class:`NotFoundError`.
    """
    if loop is not None:
        return find_loop(root, loop)
    names = list_loops(root)
    if not names:
        raise NotFoundError(f"{escape(str(root))} holds no loops; `jumar run` makes one")
    return max((loops_directory(root) / name for name in names), key=_activity)


def _activity(directory: Path) -> tuple[bool, float]:
    paths = LoopPaths(directory)
    holder = holder_of(paths.lock)
    times: list[float] = []
    for path in (paths.events, paths.attempts, paths.iterations, paths.decisions):
        try:
            times.append(os.stat(path).st_mtime)  # noqa: PTH116 - one call, and its error is expected
        except OSError:
            continue
    return holder is not None and holder.held and holder.alive, max(times, default=0.0)
