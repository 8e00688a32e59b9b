"""Whether items are among those that a set of patterns was learned from, as far as its proof tells: figures flatter there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from jumar.core.text import plural
from jumar.errors import JumarError
from jumar.judging.digests import item_digest, patterns_digest
from jumar.judging.items.item import Item
from jumar.judging.patterns.models import PatternSet
from jumar.judging.proofs import Proof, read_proof

__all__ = ["learned_from", "learned_from_words", "proof_beside"]

_PROOF: Final = "proof.json"


def proof_beside(path: Path | None, patterns: PatternSet | None) -> Proof | None:
    """Return the proof of ``patterns`` in the folder of their file; None where none can be read, or it is of another set."""
    if path is None or patterns is None:
        return None
    try:
        found = read_proof(path.with_name(_PROOF))
    except JumarError:  # nobody asked for it
        return None
    return found if found.patterns.hash == patterns_digest(patterns) else None


def learned_from(items: Sequence[Item], proof: Proof | None) -> int | None:
    """Return how many of ``items`` the proven set was learned from or chosen by; None without a proof.

    An item is known by all that judges see of it. Its group may be missing here: then its id finds it.
    """
    if proof is None:
        return None
    opened = {row.id: row for row in proof.opened}
    hashes = {row.hash for row in proof.opened}
    count = 0
    for item in items:
        row = opened.get(item.id)
        known = item_digest(item) in hashes
        count += known or (row is not None and item_digest(replace(item, group=row.group)) == row.hash)
    return count


def learned_from_words(count: int, items: int) -> str:
    """Return what :func:`learned_from` means, for a person."""
    which = "all" if count == items else f"{count:,} of the"
    return (
        f"the set was learned from {which} {plural(items, 'item')}, and follows the judge better on these than on others; what "
        "it does on new ones, its proof and new items say"
    )
