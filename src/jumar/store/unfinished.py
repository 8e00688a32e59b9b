"""A redaction that was cut off: while there is one, nothing else is written."""

from __future__ import annotations

import os
from typing import Final

from jumar.store.layout import LoopPaths

__all__ = ["PLAN", "REDACTION", "has_redaction"]

REDACTION: Final = ".redact"
PLAN: Final = "plan.json"


def has_redaction(paths: LoopPaths) -> bool:
    """Return whether a redaction of the loop began and has not ended."""
    return os.path.lexists(paths.directory / REDACTION)
