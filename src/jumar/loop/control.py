"""How a running loop is asked to end: after this step, or now."""

from __future__ import annotations

import threading
from typing import Literal

__all__ = ["StopSwitch"]


class StopSwitch:
    """Two requests, safe to make from a signal handler or another thread.

    ``finish`` ends the loop once the running step is recorded. ``now`` also ends the running programs; what they did so far
    stays in the work tree and the attempt is recorded as interrupted. ``reason`` is the stop reason that the outcome shows.
    """

    def __init__(self) -> None:
        self._finish = threading.Event()
        self.immediate = threading.Event()
        self.reason: Literal["interrupted", "terminated"] = "interrupted"

    @property
    def requested(self) -> bool:
        """Whether the loop shall end, now or after this step."""
        return self._finish.is_set()

    def finish(self) -> None:
        """Ask the loop to end after the running step."""
        self._finish.set()

    def now(self, reason: Literal["interrupted", "terminated"] = "interrupted") -> None:
        """Ask the loop to end at once."""
        self.reason = reason
        self._finish.set()
        self.immediate.set()
