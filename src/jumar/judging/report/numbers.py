"""Scores and sentences as people read them."""

from __future__ import annotations

__all__ = ["number", "shortened", "signed"]


def number(value: float | None) -> str:
    """Return two decimals, a dash for what does not exist; never a minus before a zero."""
    return "—" if value is None else f"{round(value, 2) + 0.0:.2f}"


def signed(value: float | None) -> str:
    """Return two decimals with their sign; a zero has a plus."""
    return "—" if value is None else f"{round(value, 2) + 0.0:+.2f}"


def shortened(text: str, most: int = 160) -> str:
    """Return ``text`` in at most ``most`` characters, cut at a word, with an ellipsis where it was cut."""
    if len(text) <= most:
        return text
    return text[: most - 1].rsplit(" ", 1)[0].rstrip(",;:") + "…"
