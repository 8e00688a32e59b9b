"""Telling a person that a snapshot holds a secret: path and name, never the value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from jumar.redaction import current
from jumar.store.planted import planted_secrets
from jumar.text import escape

__all__ = ["tell_planted"]

_SHOWN: Final = 5


def tell_planted(loop_id: str, artifacts: Path, paths: Iterable[str], notice: Callable[[str], None]) -> None:
    """Tell of each of ``paths`` below ``artifacts`` that holds the value of a known variable; of the first five.

    ``notice`` tells a person, without the secrets that a path may be made of.
    """
    for number, (path, names) in enumerate(planted_secrets(artifacts, paths, current())):
        if number == _SHOWN:
            notice("more files of the snapshot hold secrets; `jumar verify` names them all")
            return
        way = f"exclude it, or take the value out of the history with `jumar redact {loop_id} --value-of {names[0]}`"
        notice(f"the snapshot holds a secret: {escape(path)} has the value of {', '.join(names)}; {way}")
