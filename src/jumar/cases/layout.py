"""Names: where everything of a run of cases lies (seed 3's layout; ``docs/design/cases.md``)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from jumar.core.codec import Fields, decode, encode
from jumar.core.files import is_directory, read_store_file
from jumar.core.leftovers import folders_of, give_rights, is_of_the_machine
from jumar.core.marks import origin
from jumar.core.text import check_id
from jumar.errors import ForgedError, FormatTooNewError, StoreDamagedError

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


def open_runs(output_root: Path) -> None:
    """Give the owner the rights back that a step took away from the directories of runs, and from what says what they are."""
    for run in filter(is_directory, output_root.glob(f"{_RUN}*")):
        give_rights(run)
        give_rights(run / "run.json", write=False)
        for directory, folders, _ in folders_of(run):
            for name in folders:
                give_rights(f"{directory}/{name}")


class RunPaths:
    """The names in one run, whose ``directory`` is absolute."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.run_json = directory / "run.json"
        self.inputs = directory / "inputs"
        self.lock = directory.parent / _LOCKS / directory.name

    @classmethod
    def of(cls, output_root: Path, run_id: str) -> RunPaths:
        """Return the paths of a run by its id. Errors: :class:`jumar.errors.UsageError`."""
        return cls(Path(os.path.abspath(output_root)) / f"{_RUN}{check_run_id(run_id)}")

    def case(self, number: int) -> CasePaths:
        return CasePaths(self.directory, number)

    def case_inputs(self, number: int) -> Path:
        return self.case(number).inputs

    def case_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the cases that have a directory, ascending."""
        numbers = (case_number(name) for name in os.listdir(self.directory))
        return tuple(sorted(number for number in numbers if number is not None))


class CasePaths:
    """The names in one case of the run in ``run``."""

    def __init__(self, run: Path, number: int) -> None:
        self.run, self.number = run, number
        self.directory = run / case_name(number)
        self.iterations = self.directory / "iterations"
        self.pending = self.directory / "pending"
        self.scratch = self.directory / "scratch"
        self.best = self.directory / "best"
        self.best_json = self.best / "best.json"
        self.end = self.directory / "case.json"
        self.inputs = run / "inputs" / f"inputs_{case_name(number)}.json"
        self.lock = run.parent / _LOCKS / f"{run.name}.{case_name(number)}"

    def iteration(self, number: int) -> Path:
        return self.iterations / iter_name(number)

    def pending_iteration(self, number: int) -> Path:
        return self.pending / iter_name(number)


_WAY: Final = "`jumar cases run --resume` sets it aside and says so"
_WITHOUT: Final = "restore it from a backup, or start another run"


class RunTrust:
    """Reads and encodes the records of the run in ``directory``. ``fields`` are those of its ``run.json``, ``data`` its content.

    ``ours``: the run was begun by this user's jumar on this machine, and what has no mark of it is not taken. Another run is
    taken as it was found. Errors: :class:`StoreDamagedError`.
    """

    def __init__(self, directory: Path) -> None:
        self._above = f"{os.fspath(directory)}/"
        self.path = directory / "run.json"
        self.data = read_store_file(self.path)
        try:
            self.fields = decode(self.data, os.fspath(self.path))
        except FormatTooNewError:
            raise
        except StoreDamagedError as error:
            raise StoreDamagedError(f"{error}; {_WITHOUT}") from error
        self.nonce = str(self.fields.data.get("nonce", ""))
        found = origin(self.data, self.place(self.path))
        if found == "forged":
            raise ForgedError(self.path, _WITHOUT)
        self.ours = found == "ours"

    def place(self, path: Path) -> str:
        """Return what a mark says of a record: an iteration has the same place while it is made and after it was acknowledged."""
        relative = os.fspath(path).removeprefix(self._above)
        return f"{self.nonce}/{relative.replace('/pending/', '/iterations/', 1)}"

    def encode(self, document: Mapping[str, Any], path: Path) -> bytes:
        """Return the record for ``path``, with its seal and mark."""
        return encode(document, sealed=True, place=self.place(path))

    def takes(self, path: Path, data: bytes) -> bool:
        """Return whether ``data``, which lies at ``path``, may be believed to be a jumar's."""
        return not self.ours or origin(data, self.place(path)) == "ours"

    def read(self, path: Path) -> Fields:
        """Return a record that has to be there.

        Errors: :class:`StoreDamagedError`; in a run of ours :class:`ForgedError` for whatever is not a record of ours, but for
        what the machine refuses to read.
        """
        try:
            data = read_store_file(path)
            if self.takes(path, data):
                return decode(data, os.fspath(path))
        except StoreDamagedError as error:
            if not self.ours or is_of_the_machine(error) or isinstance(error, FormatTooNewError):
                raise type(error)(str(error).replace("`jumar verify`", "`jumar cases verify RUN`")) from error
        raise ForgedError(path, _WAY)
