"""Who signs decisions."""

from __future__ import annotations

import getpass

__all__ = ["current_user"]


def current_user() -> str:
    """Return the login name of the person, or ``unknown`` where the system does not tell."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
