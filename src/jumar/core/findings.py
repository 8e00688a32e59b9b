"""What a look at everything on disk found: problems with their way out, and notes that are none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jumar.core.record import Record, stored
from jumar.core.text import escape

BACKUP: Final = "restore it from a backup; where there is none, `jumar repair` goes on without it"

_ONE_BY_ONE: Final = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as it was written: where (relative to the loop), what, and what to do about it.

    ``place`` is the path itself, ``missing`` the one that should be there and is not, where that is what is wrong.
    """

    path: str
    what: str
    fix: str
    place: Path
    missing: Path | None = None


@dataclass(frozen=True, slots=True)
class Planted(Record):
    """A file of a snapshot that holds known secrets: its path, and the names of their variables. No damage."""

    path: str
    names: tuple[str, ...] = field(metadata=stored("values_of"))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What was checked and found. ``files`` and ``bytes`` are what was hashed, hard links to one file counted once.

    ``notes`` are no damage: leftovers of an interrupted command, attempts without an end, snapshots that wait to be scored.
    ``planted`` are files that hold secrets, hard links to one file named once.
    """

    problems: tuple[Problem, ...]
    files: int
    bytes: int
    iterations: int
    notes: tuple[str, ...] = ()
    planted: tuple[Planted, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": not self.problems,
            "iterations": self.iterations,
            "files": self.files,
            "bytes": self.bytes,
            "problems": [{"path": item.path, "what": item.what, "fix": item.fix} for item in self.problems],
            "notes": list(self.notes),
            "planted": [item.to_json() for item in self.planted],
        }


def told(found: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield path, what, and the way out of each for people; many files of one snapshot with the same to say are told as one."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for path, what, way in found:
        folder, inside, _ = path.partition("/artifacts/")
        alike.setdefault((f"{folder}{inside}" if inside else path, what, way), []).append(path)
    for (_, what, way), paths in alike.items():
        many = f"{paths[0]} (and {len(paths) - 1} more files there)"
        yield from ((path, what, way) for path in (paths if len(paths) <= _ONE_BY_ONE else [many]))


class Findings:
    """What was found so far below ``directory``; paths are shown relative to it."""

    def __init__(self, directory: Path) -> None:
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.planted: list[Planted] = []
        self.files = 0
        self.bytes = 0
        self.iterations = 0
        self._directory = directory

    def shown(self, path: Path) -> str:
        return escape(os.path.relpath(path, self._directory))

    def problem(self, path: Path, what: str, fix: str) -> None:
        self.problems.append(Problem(self.shown(path), what, fix, path))

    def gone(self, path: Path, what: str, missing: Path | None = None) -> None:
        """Note a problem with ``path`` whose reason is that ``missing``, by default itself, is not there."""
        self.problems.append(Problem(self.shown(path), what, BACKUP, path, missing or path))

    def accept(self, accepted: Mapping[str, int]) -> None:
        """Make notes of what is missing and a repair accepted, by path with the number of its decision."""
        for problem in [problem for problem in self.problems if problem.missing is not None and problem.path in accepted]:
            self.problems.remove(problem)
            self.notes.append(f"{problem.path}: {problem.what}; accepted by the repair of decision {accepted[problem.path]}")

    def report(self) -> VerifyReport:
        return VerifyReport(
            problems=tuple(dict.fromkeys(self.problems)),
            files=self.files,
            bytes=self.bytes,
            iterations=self.iterations,
            notes=tuple(self.notes),
            planted=tuple(self.planted),
        )
