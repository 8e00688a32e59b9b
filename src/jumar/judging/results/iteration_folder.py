"""``iteration_N``: a new folder that appears whole, below the one that ``-o`` names.

And whether its items are among those that the patterns were learned from, as far as their proof tells: figures flatter there.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from jumar.core.files import as_write_error, make_directory, sha256_file
from jumar.core.leftovers import remove_tree, sweep, temporary_name
from jumar.core.text import escape, plural
from jumar.errors import JumarError, UsageError
from jumar.judging.digests import item_digest, patterns_digest
from jumar.judging.items.item import Item
from jumar.judging.patterns.models import PatternSet
from jumar.judging.proofs import Proof, read_proof

_OF_LEARNING: Final = ("request.json", "split.json")
_ITERATION: Final = re.compile(r"iteration_(\d+)")


def refuse_learning(output: Path) -> None:
    """Refuse the folder of a learning run: its iterations are of other items, and would be compared with these.

    Errors: :class:`jumar.errors.UsageError`.
    """
    if any((output / name).is_file() for name in _OF_LEARNING):
        raise UsageError(
            f"-o {escape(str(output))}: is the folder of `jumar learn`, whose iterations are its own; name another one"
        )


@contextlib.contextmanager
def new_iteration(output: Path) -> Generator[tuple[int, Path, Path]]:
    """Give the number of a new iteration, a temporary folder for its files, and the name that the folder is to get.

    The number is one more than the highest below ``output``, which is made when it is missing. A folder that was not renamed is
    removed.
    Errors: :class:`jumar.errors.StoreWriteError`.
    """
    with as_write_error("write into", output):
        make_directory(output)
        sweep(output)
        known = (int(found[1]) for one in output.iterdir() if (found := _ITERATION.fullmatch(one.name)))
        number = max(known, default=0) + 1
        temporary = output / temporary_name()
        temporary.mkdir()
    try:
        yield number, temporary, output / f"iteration_{number}"
    finally:
        if temporary.exists():
            remove_tree(temporary)


def sources_of(path: Path | None) -> list[dict[str, Any]]:
    """Return the files behind ``path`` with their hashes; a pipe or stdin cannot be read again and has none."""
    if path is None or str(path) == "-":
        return []
    if not path.is_file() and not path.is_dir():
        return [{"path": str(path), "sha256": None, "bytes": None}]
    files = sorted(one for one in path.iterdir() if one.suffix.lower() == ".txt") if path.is_dir() else [path]
    return [{"path": str(file), "sha256": sha256_file(file.resolve()), "bytes": file.stat().st_size} for file in files]


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
