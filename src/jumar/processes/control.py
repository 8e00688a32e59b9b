"""How a running loop is asked to end: after this step, or now; by a signal, or by a file called ``STOP``."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from jumar.core.text import escape
from jumar.errors import UsageError
from jumar.model import StopDecision


class StopSwitch:
    """Two requests, safe to make from a signal handler or another thread.

    ``finish`` ends the loop once the running step is recorded. ``now`` also ends the running programs; what they did so far
    stays in the working directory and the attempt is recorded as interrupted. ``reason`` says which signal asked, ``found`` which
    file did, if one did.
    """

    def __init__(self) -> None:
        self._finish = threading.Event()
        self._files: tuple[Path, ...] = ()
        self.immediate = threading.Event()
        self.reason: Literal["interrupted", "terminated"] = "interrupted"
        self.found: Path | None = None

    @property
    def requested(self) -> bool:
        """Whether the loop shall end, now or after this step. Looks for the files that are watched, one ``lstat`` each."""
        if self._finish.is_set():
            return True
        self.found = stop_file(self._files)
        if self.found is None:
            return False
        self._finish.set()
        return True

    def decision(self) -> StopDecision:
        """Return why the loop ends, once that is :attr:`requested`."""
        if self.found is None:
            return StopDecision(reason=self.reason, detail="on request; run the same command again to resume")
        shown = escape(str(self.found))
        return StopDecision(
            reason="stop_file", detail=f"the file {shown} asks to stop; remove it and run the same command again to resume"
        )

    def watch(self, files: Iterable[Path]) -> None:
        """End the loop after the running step once one of ``files`` exists, whatever it holds."""
        self._files = tuple(files)

    def finish(self) -> None:
        """Ask the loop to end after the running step."""
        self._finish.set()

    def now(self, reason: Literal["interrupted", "terminated"] = "interrupted") -> None:
        """Ask the loop to end at once."""
        self.reason = reason
        self.found = None
        self._finish.set()
        self.immediate.set()


def stop_file(files: Iterable[Path]) -> Path | None:
    """Return the first of ``files`` that exists, None when there is none. A link that leads nowhere counts as well."""
    return next((path for path in files if os.path.lexists(path)), None)


def refuse_stop_file(files: Iterable[Path]) -> None:
    """Refuse to start while one of ``files`` exists. Errors: :class:`UsageError` that names it."""
    found = stop_file(files)
    if found is not None:
        raise UsageError(f"the file {escape(str(found))} asks loops to stop: remove it to resume (`jumar stop --undo` does)")
