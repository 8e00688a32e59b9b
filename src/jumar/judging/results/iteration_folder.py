"""``iteration_N``: a new folder that appears whole, below the one that ``-o`` names."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

from jumar.core.files import as_write_error, make_directory, remove_tree, sha256_file, sweep, temporary_name
from jumar.core.text import escape
from jumar.errors import UsageError

__all__ = ["new_iteration", "refuse_learning", "sources_of"]

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
    return [{"path": str(one), "sha256": sha256_file(one.resolve()), "bytes": one.stat().st_size} for one in files]
