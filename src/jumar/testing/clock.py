"""A clock that stands still until it is told to go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["ManualClock"]

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """Implements :class:`jumar.model.Clock`. ``tick`` seconds pass with every look at the monotonic time."""

    def __init__(self, *, tick: float = 0.0) -> None:
        self._elapsed = 0.0
        self._tick = tick

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass. Errors: ``ValueError`` for a negative number, because monotonic time never goes back."""
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} s")
        self._elapsed += seconds

    def now(self) -> str:
        """Return the time as ISO 8601 in UTC; it began at 2026-01-01."""
        return (_EPOCH + timedelta(seconds=self._elapsed)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def monotonic(self) -> float:
        """Return the seconds that have passed."""
        self._elapsed += self._tick
        return self._elapsed
