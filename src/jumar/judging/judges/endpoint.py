"""What every judge behind HTTP has in common: how its failures are called, and how long it asks to wait."""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping
from datetime import UTC
from typing import Final

from jumar.model.judges import FailureKind

__all__ = ["kind_of_status", "retry_after_seconds"]

_KINDS: Final[dict[int, FailureKind]] = {
    401: "rejected",  # the key
    402: "rejected",  # the account
    403: "rejected",  # the key's rights
    404: "rejected",  # the model, or the address
    408: "timed_out",
    409: "unavailable",
    425: "unavailable",
    429: "rate_limited",
    529: "rate_limited",  # "overloaded", as one provider says it
}


def kind_of_status(status: int) -> FailureKind:
    """Return what an HTTP status means for the question; another 4xx is about this one item (too long, not allowed)."""
    if status in _KINDS:
        return _KINDS[status]
    return "refused" if 400 <= status < 500 else "unavailable"


def retry_after_seconds(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return how many seconds the headers ask to wait; None when they don't, or say nonsense.

    RFC 9110, 10.2.3: seconds, or a date. ``now`` is seconds since 1970, by default the clock's. A date in the past is 0.
    """
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            seconds = _until(value, time.time() if now is None else now)
        if seconds is not None and math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _until(date: str, now: float) -> float | None:
    try:
        when = email.utils.parsedate_to_datetime(date)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now
