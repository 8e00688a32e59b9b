"""Telling a person that a snapshot holds a secret: path and name, never the value."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jumar.loop.events import Listener, Notice, deliver
from jumar.redaction import current
from jumar.store.planted import planted_secrets
from jumar.text import escape

__all__ = ["tell_planted"]

_SHOWN: Final = 5


def tell_planted(loop_id: str, artifacts: Path, paths: Iterable[str], listener: Listener | None) -> None:
    """Tell of each of ``paths`` below ``artifacts`` that holds the value of a known variable; of the first five."""
    redactor = current()
    for number, (path, names) in enumerate(planted_secrets(artifacts, paths, redactor)):
        if number == _SHOWN:
            deliver(Notice(message="more files of the snapshot hold secrets; `jumar verify` names them all"), listener)
            return
        shown = redactor.redact(escape(path))
        way = f"exclude it, or take the value out of the history with `jumar redact {loop_id} --value-of {names[0]}`"
        deliver(Notice(message=f"the snapshot holds a secret: {shown} has the value of {', '.join(names)}; {way}"), listener)
