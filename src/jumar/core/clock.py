"""The real clock, and the name of who signs a decision. Tests and resumes pass their own clock."""

from __future__ import annotations

import getpass
import time
from datetime import UTC, datetime


class SystemClock:
    """UTC for people, monotonic seconds for limits."""

    def now(self) -> str:
        """Return the time as ISO 8601 in UTC with milliseconds, ``2026-01-28T10:00:00.000Z``."""
        return stamp(datetime.now(UTC))

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment; never goes back."""
        return time.monotonic()


def stamp(moment: datetime) -> str:
    """Return a time in UTC as records have it."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def current_user() -> str:
    """Return the login name of the person, or ``unknown`` where the system does not tell."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
