"""Keys never reach a log, a file or a message: what could hold one goes through :func:`scrub`."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable
from typing import Final

__all__ = ["HIDDEN", "known_keys", "scrub"]

HIDDEN: Final = "***"
_NAMES: Final = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_SHORTEST: Final = 10  # below this a value is more likely a word of the text than a key


def known_keys(extra: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the values of environment variables whose names say that they are secret, and ``extra``; longest first."""
    values = {value for name, value in os.environ.items() if _NAMES.search(name)} | set(extra)
    return tuple(sorted((value for value in values if len(value) >= _SHORTEST), key=lambda value: (-len(value), value)))


def scrub(text: str, keys: Iterable[str]) -> str:
    """Return ``text`` with every one of ``keys`` replaced by ``***``, also where JSON wrote its characters as escapes."""
    for key in keys:
        text = text.replace(key, HIDDEN)
        if "\\" in text:
            text = _escaped(key).sub(HIDDEN, text)
    return text


@functools.lru_cache(maxsize=64)
def _escaped(key: str) -> re.Pattern[str]:
    """Return what finds ``key`` however JSON escapes its characters."""
    return re.compile("".join(rf"(?:\\?{re.escape(one)}|\\u(?i:{ord(one):04x}))" for one in key))
