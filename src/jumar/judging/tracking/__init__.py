"""Does the cheap judge track the expensive one? Item by item, with intervals, against what needs no judge at all. Pure."""

from __future__ import annotations

from jumar.core.extras import need_extra

__all__ = ["require_statistics"]


def require_statistics() -> None:
    """Return where these statistics can be computed. Errors: :class:`jumar.errors.MissingExtraError`."""
    need_extra("judge", "holding both judges against each other", "numpy", "scipy")
