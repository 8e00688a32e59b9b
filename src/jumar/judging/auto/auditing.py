"""Which items are audited: a random share, the same ones whenever the same items are evaluated with the same seed."""

from __future__ import annotations

import hashlib
from typing import Final

__all__ = ["is_audited"]

_WHOLE: Final = float(2**64)


def is_audited(item_id: str, *, share: float, seed: int) -> bool:
    """Return whether an item is among the ``share`` (0 to 1) that is audited.

    Each item is drawn by itself, by a hash of seed and id: neither their order nor the others matter.
    """
    digest = hashlib.sha256(f"{seed}\0{item_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / _WHOLE < share
