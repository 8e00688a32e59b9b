"""Numbers as the report's readers see them. Unknown is always ``—``, never zero."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jumar.core.given import Given
from jumar.core.text import human_size, percent, points

UNKNOWN = "—"


def dollars(value: float | None, *, places: int = 4) -> str:
    """Return ``$0.0500``; ``—`` when the cost is unknown."""
    return UNKNOWN if value is None else f"${value:,.{places}f}"


def count(value: int | None) -> str:
    """Return ``16,500``; ``—`` when unknown."""
    return UNKNOWN if value is None else f"{value:,}"


def duration(seconds: float | None) -> str:
    """Return ``0.4s``, ``31s``, ``1m 31s`` or ``2h 05m``; ``—`` when unknown."""
    if seconds is None:
        return UNKNOWN
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"


def moment(at: str) -> str:
    """Return a recorded time to the second, as people write it: ``2026-11-27 09:13:15``. It is UTC, as all of them are."""
    return at[:19].replace("T", " ")


size = human_size
"""A number of bytes, ``4.2 kB``."""


def delta_percent(delta: float | None) -> str:
    """Return ``+13.0%``, ``-2.0%``, ``0.0%``; ``—`` where there is nothing to compare with."""
    if delta is None:
        return UNKNOWN
    if isinstance(delta, Given):
        return delta.text(sign=True)
    shown = f"{delta:+.1f}%"
    return "0.0%" if shown in {"+0.0%", "-0.0%"} else shown


def point_text(value: float) -> str:
    """Return ``1 point`` or ``2.5 points``, without a sign."""
    shown = points(abs(value))
    if isinstance(value, Given):
        return shown
    return f"{shown} point" if shown == "1" else f"{shown} points"


def in_points(reason: str) -> str:
    """Return why something was selected with its scores in points, as they are everywhere on the terminal: ``85`` for ``85%``."""
    return re.sub(r"(?<=\d)%", "", reason)


def relaxed_text(fallback: str) -> str:
    """Return which rules of the selection nobody met, from its names of them (``threshold, verification``)."""
    names = {"threshold": "the threshold", "verification": "the checks"}
    told = " and ".join(names.get(name, name) for name in fallback.split(", "))
    return f"no iteration meets every rule, so {told} {'was' if fallback == 'threshold' else 'were'} set aside"


def share(value: float | None) -> str:
    """Return a dimension of 0–1 with two decimals; ``—`` when unknown."""
    return UNKNOWN if value is None else f"{value:.2f}"


def iteration_label(number: int) -> str:
    """Return ``3``, and ``0 (start)`` for the state before the first iteration."""
    return "0 (start)" if number == 0 else str(number)


def listing(numbers: Sequence[int], *, limit: int = 6) -> str:
    """Return ``iteration 3``, ``iterations 3, 4 and 7`` or ``iterations 3, 4, 5, 6, 7, 8 and 12 more``."""
    noun = "iteration" if len(numbers) == 1 else "iterations"
    shown = [str(number) for number in numbers[:limit]]
    rest = len(numbers) - limit
    if rest > 0:
        return f"{noun} {', '.join(shown)} and {rest:,} more"
    if len(shown) < 2:
        return f"{noun} {''.join(shown)}"
    return f"{noun} {', '.join(shown[:-1])} and {shown[-1]}"


def missed_percent(score: float, threshold: float) -> str:
    """Return ``score`` as a percentage, with more decimals where rounding would make a missed threshold look reached."""
    return f"{score:.4f}%" if score < threshold and percent(score) == percent(threshold) else percent(score)
