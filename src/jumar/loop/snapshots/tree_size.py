"""How large a directory is that a loop would keep: files, bytes, where most of it lies, and what could be left out."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumar.core.text import escape, human_size, plural
from jumar.errors import ArtifactError

_SHOWN: Final = 5
_WORTH: Final = 0.02  # of the whole: less is not worth a pattern
_FILE: Final = 1_000  # bytes that a file weighs at least: the usual limits are 1 GB and 1,000,000 files
_SECTOR: Final = 512  # bytes of what ``st_blocks`` counts
_MADE: Final = frozenset(
    {
        *("node_modules", "bower_components", "vendor", "Pods", ".venv", "venv", "env", "site-packages", ".tox", ".nox"),
        *("target", "build", "dist", "out", "bin", "obj", "_build", ".next", ".nuxt", ".gradle", ".terraform", ".cache"),
        *(
            "data",
            "datasets",
            "models",
            "checkpoints",
            "weights",
            "runs",
            "wandb",
            "mlruns",
            "logs",
            "tmp",
            "coverage",
            "htmlcov",
        ),
    }
)
"""Folders that a program fills, or that hold what a loop seldom is about."""


@dataclass(slots=True)
class _Part:
    """A part of a tree. Its ``weight`` is what it adds to the limits: its bytes, or its files where those are the more."""

    bytes: int = 0
    files: int = 0

    @property
    def weight(self) -> int:
        return max(self.bytes, self.files * _FILE)

    def add(self, size: int) -> None:
        self.bytes += size
        self.files += 1


@dataclass(frozen=True, slots=True)
class TreeSize:
    """The sizes in bytes of what would be kept, by relative path; ``holes`` are those of them that take no room on the disk."""

    sizes: Mapping[str, int]
    holes: int = 0

    @classmethod
    def of(cls, root: Path, paths: Sequence[str]) -> TreeSize:
        """Measure ``paths`` below ``root``; what is gone meanwhile is left out. Errors: :class:`ArtifactError`."""
        sizes: dict[str, int] = {}
        anchor, holes = os.fspath(root), 0
        for path in paths:
            try:
                status = os.lstat(f"{anchor}/{path}")
            except FileNotFoundError:
                continue
            except OSError as error:
                raise ArtifactError(f"'{escape(path)}' cannot be read: {os.strerror(error.errno or 0)}") from error
            sizes[path] = status.st_size
            holes += max(0, status.st_size - _SECTOR * status.st_blocks)
        return cls(sizes, holes)

    @property
    def files(self) -> int:
        return len(self.sizes)

    @property
    def bytes(self) -> int:
        return sum(self.sizes.values())

    @property
    def room(self) -> int:
        """How many bytes it takes on a disk, and a copy of it where nothing of it is."""
        return self.bytes - self.holes

    @property
    def largest_file(self) -> int:
        """The size of the largest file; 0 where there is none."""
        return max(self.sizes.values(), default=0)

    def over(self, size: int) -> list[str]:
        """Return the files of more than ``size`` bytes, the largest first."""
        return sorted((path for path in self.sizes if self.sizes[path] > size), key=lambda path: (-self.sizes[path], path))

    def shown(self) -> str:
        """Return ``30,000 files, 1.2 GB``."""
        return f"{plural(self.files, 'file')}, {human_size(self.bytes)}"

    def largest(self) -> list[tuple[str, int, int]]:
        """Return the five largest first-level folders (with a slash) and files: name, bytes, number of files."""
        totals: defaultdict[str, _Part] = defaultdict(_Part)
        for path, size in self.sizes.items():
            top, slash, _ = path.partition("/")
            totals[top + slash].add(size)
        ordered = sorted(totals.items(), key=lambda item: (-item[1].weight, -item[1].bytes, item[0]))
        return [(name, part.bytes, part.files) for name, part in ordered[:_SHOWN]]

    def rows(self) -> list[str]:
        """Return a line for each of :meth:`largest`."""
        return [f"  {human_size(size):>9}  {plural(count, 'file'):>13}  {escape(name)}" for name, size, count in self.largest()]

    def exclude(self, largest_file: int) -> tuple[str, ...]:
        """Return patterns that would leave out most of it: folders that programs fill, by name, and files that are too large.

        Those have more than ``largest_file`` bytes. Where there is neither, the two largest entries. Of folders within one
        another the outer one counts.
        """
        parts: defaultdict[str, _Part] = defaultdict(_Part)
        for path, size in self.sizes.items():
            name = next((part for part in path.split("/")[:-1] if part in _MADE), None)
            if name is not None:
                parts[name].add(size)
        least = _WORTH * _Part(self.bytes, self.files).weight
        worth = [name for name in parts if parts[name].weight >= least]
        found = sorted(worth, key=lambda name: (-parts[name].weight, -parts[name].bytes, name))[:_SHOWN]
        files = [path for path in self.over(largest_file) if not any(part in found for part in path.split("/")[:-1])]
        patterns = [*(f"{name}/" for name in found), *(f"/{escape(path)}" for path in files[:_SHOWN])]
        top = [name for name, size, count in self.largest()[:2] if _Part(size, count).weight >= least]
        return tuple(patterns) or tuple(f"/{escape(name)}" for name in top)
