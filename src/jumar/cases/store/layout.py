"""Names: where everything of a run of cases lies (seed 3's layout; ``docs/design/cases.md``)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumar.core.text import check_id

_RUN: Final = "run_"
_LOCKS: Final = ".locks"
_CASE: Final = re.compile(r"case_(\d{2,})")
_ITER: Final = re.compile(r"iter_(\d{4,})")


def check_run_id(run_id: str) -> str:
    """Return ``run_id`` when it may name a run. Errors: :class:`jumar.errors.UsageError` that says what is allowed."""
    return check_id(run_id, "run id")


def case_name(number: int) -> str:
    """Return the directory name of a case: ``case_01``."""
    return f"case_{number:02d}"


def case_number(name: str) -> int | None:
    """Return the number that :func:`case_name` made ``name`` from, else None."""
    return _number(_CASE, name, case_name)


def iter_name(number: int) -> str:
    """Return the directory name of an iteration: ``iter_0001``."""
    return f"iter_{number:04d}"


def iter_number(name: str) -> int | None:
    """Return the number that :func:`iter_name` made ``name`` from, else None."""
    return _number(_ITER, name, iter_name)


def _number(pattern: re.Pattern[str], name: str, name_of: Callable[[int], str]) -> int | None:
    match = pattern.fullmatch(name)
    return int(match[1]) if match and name_of(int(match[1])) == name else None


def list_runs(output_root: Path) -> tuple[str, ...]:
    """Return the ids of the runs in a directory, sorted; empty when it does not exist."""
    try:
        names = os.listdir(output_root)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(sorted(n[len(_RUN) :] for n in names if n.startswith(_RUN) and (output_root / n / "run.json").exists()))


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The names in one run. ``directory`` is absolute."""

    directory: Path

    @classmethod
    def of(cls, output_root: Path, run_id: str) -> RunPaths:
        """Return the paths of a run by its id. Errors: :class:`jumar.errors.UsageError`."""
        return cls(Path(os.path.abspath(output_root)) / f"{_RUN}{check_run_id(run_id)}")

    @property
    def run_json(self) -> Path:
        return self.directory / "run.json"

    @property
    def inputs(self) -> Path:
        return self.directory / "inputs"

    @property
    def lock(self) -> Path:
        return self.directory.parent / _LOCKS / self.directory.name

    def case_inputs(self, number: int) -> Path:
        return self.inputs / f"inputs_{case_name(number)}.json"

    def case(self, number: int) -> CasePaths:
        return CasePaths(self.directory, number)

    def case_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the cases that have a directory, ascending."""
        numbers = (case_number(name) for name in os.listdir(self.directory))
        return tuple(sorted(number for number in numbers if number is not None))


@dataclass(frozen=True, slots=True)
class CasePaths:
    """The names in one case of the run in ``run``."""

    run: Path
    number: int

    @property
    def directory(self) -> Path:
        return self.run / case_name(self.number)

    @property
    def iterations(self) -> Path:
        return self.directory / "iterations"

    @property
    def pending(self) -> Path:
        return self.directory / "pending"

    @property
    def scratch(self) -> Path:
        return self.directory / "scratch"

    @property
    def best(self) -> Path:
        return self.directory / "best"

    @property
    def best_json(self) -> Path:
        return self.best / "best.json"

    @property
    def end(self) -> Path:
        return self.directory / "case.json"

    @property
    def lock(self) -> Path:
        return self.run.parent / _LOCKS / f"{self.run.name}.{case_name(self.number)}"

    def iteration(self, number: int) -> Path:
        return self.iterations / iter_name(number)

    def pending_iteration(self, number: int) -> Path:
        return self.pending / iter_name(number)
