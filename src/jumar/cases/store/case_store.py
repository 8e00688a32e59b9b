"""One case of a run: read without a lock or a write, and written step by step, each durable when its method returns."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from jumar.cases.records import CaseBest, CaseEnd, CaseInputs, CaseIteration, RoleFile, StepRecord, StepStart
from jumar.cases.store.layout import CasePaths, RunPaths, case_name, iter_name, iter_number
from jumar.core import files
from jumar.core.codec import FORMAT, Fields, broken_seal, decode, encode
from jumar.core.files import read_store_file
from jumar.core.lock import LoopLock
from jumar.core.text import escape
from jumar.errors import ExistsError, StoreDamagedError
from jumar.model.pipeline import Role

__all__ = ["ITERATION", "STEPS", "CaseReader", "CaseStore", "decoded", "role_file"]

ITERATION: Final = "iteration.json"
STEPS: Final = "steps"
_START: Final = re.compile(r"(\d{4})-([a-z0-9_-]+)\.start\.json")


class CaseReader:
    """One case of a run."""

    def __init__(self, run: Path, number: int) -> None:
        self.paths = CasePaths(Path(os.path.abspath(run)), number)
        self.number = number
        self._read_before: dict[int, CaseIteration] = {}

    def iterations(self) -> tuple[CaseIteration, ...]:
        """Return the acknowledged iterations by number. Errors: :class:`StoreDamagedError` that names the file."""
        numbers = self._numbers(self.paths.iterations)
        for number in numbers:
            if number not in self._read_before:
                self._read_before[number] = self._read(number)
        return tuple(self._read_before[number] for number in numbers)

    def _read(self, number: int) -> CaseIteration:
        path = self.paths.iteration(number) / ITERATION
        record = CaseIteration.from_json(decoded(path))
        if (record.case, record.number) != (self.number, number):
            raise StoreDamagedError(f"{path}: holds iteration {record.number} of case {record.case}; was it renamed by hand?")
        return record

    def pending(self) -> int | None:
        """Return the number of the iteration that is being made, None when there is none."""
        return min(self._numbers(self.paths.pending), default=None)

    def inputs(self) -> CaseInputs | None:
        """Return what the case started from; None before it began."""
        path = RunPaths(self.paths.run).case_inputs(self.number)
        return CaseInputs.from_json(decoded(path)) if path.exists() else None

    def best(self) -> CaseBest | None:
        """Return ``best.json``; None before the case's end, and for a case without a valid iteration."""
        return CaseBest.from_json(decoded(self.paths.best_json)) if self.paths.best_json.exists() else None

    def end(self) -> CaseEnd | None:
        """Return how the case ended; None while it goes on."""
        return CaseEnd.from_json(decoded(self.paths.end)) if self.paths.end.exists() else None

    def steps(self, directory: Path) -> tuple[tuple[StepStart, StepRecord | None], ...]:
        """Return every run of a step in an iteration's directory, in the order in which they began; no end is None."""
        folder = directory / STEPS
        try:
            names = sorted(name for name in os.listdir(folder) if _START.fullmatch(name))
        except FileNotFoundError:
            return ()
        runs: list[tuple[StepStart, StepRecord | None]] = []
        for name in names:
            end = folder / name.replace(".start.", ".end.")
            record = StepRecord.from_json(decoded(end)) if end.exists() else None
            runs.append((StepStart.from_json(decoded(folder / name)), record))
        return tuple(runs)

    @staticmethod
    def last_step(directory: Path) -> int:
        """Return the number of the last run of a step in an iteration's directory, 0 when there is none. Reads names only."""
        return max((int(match[1]) for match in map(_START.fullmatch, os.listdir(directory / STEPS)) if match), default=0)

    @staticmethod
    def _numbers(directory: Path) -> list[int]:
        try:
            names = os.listdir(directory)
        except FileNotFoundError:
            return []
        return sorted(number for name in names if (number := iter_number(name)) is not None)


def decoded(path: Path) -> Fields:
    """Read one JSON file of a run. Errors: :class:`StoreDamagedError` and its kinds, which name the command for runs of cases."""
    try:
        return decode(read_store_file(path), os.fspath(path))
    except StoreDamagedError as error:
        raise type(error)(str(error).replace("`jumar verify`", "`jumar cases verify RUN`")) from error


def role_file(path: Path, shown: str) -> RoleFile | None:
    """Return what is in ``path``, recorded as ``shown``; None when it is no regular file. A link is not followed."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return RoleFile(path=shown, sha256=files.sha256_file(path), size=status.st_size)


class CaseStore(CaseReader):
    """One case of a run, read and written. Hold :meth:`lock` around everything that writes.

    Errors of every writing method: :class:`jumar.errors.StoreWriteError`; what was acknowledged before stays.
    """

    def __init__(self, run: Path, number: int) -> None:
        super().__init__(run, number)
        run_id = self.paths.run.name.removeprefix("run_")
        self._lock = LoopLock(self.paths.lock, what=f"case {number} of run '{escape(run_id)}'")

    @contextlib.contextmanager
    def lock(self) -> Generator[Self]:
        """Hold the case's lock. Errors: :class:`jumar.errors.LockedError` that names the holder."""
        with self._lock:
            with files.as_write_error("create", self.paths.directory):
                for directory in (self.paths.directory, self.paths.iterations, self.paths.pending, self.paths.scratch):
                    files.make_directory(directory)
            yield self

    def begin_iteration(self, number: int) -> Path:
        """Make the directory of an iteration that is being made; an existing one is gone on with."""
        directory = self.paths.pending_iteration(number)
        with files.as_write_error("create", directory):
            for folder in (directory, directory / STEPS, directory / "logs"):
                files.make_directory(folder)
        return directory

    def begin_step(self, directory: Path, step: str, at: str) -> tuple[int, str]:
        """Reserve a run of ``step`` and return its number and nonce: durable, so that it may be paid for."""
        attempt = self.last_step(directory) + 1
        start = StepStart(attempt=attempt, step=step, nonce=secrets.token_hex(8), started_at=at, pid=os.getpid())
        path = directory / STEPS / f"{attempt:04d}-{step}.start.json"
        with files.as_write_error("write", path):
            files.write_once(path, encode(start.to_json(), sealed=True), temporary_in=self.paths.scratch)
        return attempt, start.nonce

    def end_step(self, directory: Path, record: StepRecord) -> None:
        """Write how a step ended, once; what it wrote is durable before that."""
        path = directory / STEPS / f"{record.attempt:04d}-{record.step}.end.json"
        with files.as_write_error("write", path):
            files.sync_paths(directory, [directory / file.path for file in record.outputs.values()])
            document = {"format": FORMAT, **record.to_json()}
            files.write_once(path, encode(document, sealed=True), temporary_in=self.paths.scratch)

    def commit(self, record: CaseIteration) -> CaseIteration:
        """Acknowledge a pending iteration and return its record: from the moment this returns it exists, whole.

        One that had its record already, and only lacked the rename, keeps it.
        """
        source, target = self.paths.pending_iteration(record.number), self.paths.iteration(record.number)
        with files.as_write_error("record", target):
            if not self._has_record(source, record.number):
                files.remove_any(source / ITERATION)
                data = encode(record.to_json(), sealed=True)
                files.write_once(source / ITERATION, data, temporary_in=self.paths.scratch)
            files.sync_tree(source)
            files.rename_new(source, target)
        return self._read(record.number)

    def _has_record(self, directory: Path, number: int) -> bool:
        """Whether an interrupted commit left its record. What a step wrote under that name is none."""
        try:
            fields = decoded(directory / ITERATION)
            record = CaseIteration.from_json(fields)
        except StoreDamagedError:
            return False
        return broken_seal(fields.data) is None and (record.case, record.number) == (self.number, number)

    def write_best(self, best: CaseBest, roles: Mapping[str, Role]) -> CaseBest:
        """Copy the selected iteration's files into ``best/`` and return it with the copies' paths and hashes.

        A carried role that the iteration did not write is there as the case was given it: the bundle is the whole state. Errors:
        :class:`jumar.errors.ExistsError` when there is a ``best/`` already, :class:`StoreDamagedError` when a copy is not what
        the record says.
        """
        self._refuse_best()
        temporary = self.paths.scratch / files.temporary_name()
        try:
            with files.as_write_error("write", self.paths.best):
                copies = self._copy(best, roles, temporary)
                paths = {name: copies[name].path if name in copies else None for name in (*roles, *copies)}
                whole = replace(best, files=MappingProxyType(copies), paths=MappingProxyType(paths))
                files.replace_file(temporary / "best.json", encode(whole.to_json(), sealed=True))
                files.sync_tree(temporary)
                files.rename_new(temporary, self.paths.best)
        except BaseException:
            with contextlib.suppress(OSError):
                files.remove_tree(temporary)
            raise
        return whole

    def refuse_foreign_best(self) -> None:
        """Raise :class:`jumar.errors.ExistsError` when ``best/`` is there and is no bundle: what is chosen could not go there."""
        if not self.paths.best_json.exists():
            self._refuse_best()

    def _refuse_best(self) -> None:
        if os.path.lexists(self.paths.best):
            raise ExistsError(
                f"{self.paths.best} exists already; a best bundle is written once, and this one was left alone. "
                "Move it elsewhere, then resume with --resume"
            )

    def _copy(self, best: CaseBest, roles: Mapping[str, Role], temporary: Path) -> dict[str, RoleFile]:
        source = self.paths.iteration(best.best_iter)
        inside = f"{case_name(self.number)}/best/{iter_name(best.best_iter)}"
        copies: dict[str, RoleFile] = {}
        inputs = self.inputs()
        given: Mapping[str, RoleFile] = {} if inputs is None else inputs.files
        sources = {name: self.paths.run / file.path for name, file in given.items() if name in roles and roles[name].carry}
        sources |= {name: source / file.path for name, file in best.files.items()}
        for name, path in sources.items():
            role, recorded = roles[name], best.files.get(name) or given[name]
            target = temporary / iter_name(best.best_iter) / role.folder / role.best
            target.parent.mkdir(parents=True, exist_ok=True)
            files.copy_file(path, target)
            copy = role_file(target, f"{inside}/{role.folder}/{role.best}")
            if copy is None or copy.sha256 != recorded.sha256:
                raise StoreDamagedError(
                    f"{path} was changed since it was recorded; `jumar cases verify RUN` lists what is damaged"
                )
            copies[name] = copy
        return copies

    def write_end(self, end: CaseEnd) -> None:
        """Write how the case ended, once; what pending and scratch still hold is removed."""
        with files.as_write_error("write", self.paths.end):
            files.write_once(self.paths.end, encode(end.to_json(), sealed=True), temporary_in=self.paths.scratch)
        self.remove_leftovers()

    @property
    def tidy(self) -> bool:
        """Whether the case has ended and nothing of its making is left. Needs no lock: neither changes any more."""
        return self.end() is not None and not self.paths.pending.exists() and not self.paths.scratch.exists()

    def remove_leftovers(self) -> None:
        """Remove what only a case that goes on needs."""
        for directory in (self.paths.pending, self.paths.scratch):
            with files.as_write_error("remove", directory):
                files.remove_tree(directory)

    def clear_scratch(self, names: Iterable[str] | None = None) -> None:
        """Remove what steps and interrupted writes left in the scratch directory."""
        with files.as_write_error("remove leftovers from", self.paths.scratch):
            for name in os.listdir(self.paths.scratch) if names is None else names:
                files.remove_any(self.paths.scratch / name)
