"""One case of a run: read without a lock or a write, and written step by step, each durable when its method returns."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self, TypeVar

from jumar.cases.given import Given
from jumar.cases.layout import CasePaths, RunTrust, case_name, iter_name, iter_number
from jumar.cases.records import SPENT, CaseBest, CaseEnd, CaseInputs, CaseIteration, RoleFile, StepRecord, StepStart
from jumar.cases.role_files import is_as_recorded
from jumar.core import files, leftovers
from jumar.core.codec import FORMAT, broken_seal
from jumar.core.lock import LoopLock, move_aside, replaced
from jumar.core.text import escape
from jumar.errors import ForgedError, StoreDamagedError
from jumar.model.budget.pricing import Reservation
from jumar.model.pipeline import Role

ITERATION: Final = "iteration.json"
STEPS: Final = "steps"
LOGS: Final = "logs"
_NOTHING: Final = Reservation()
_T = TypeVar("_T")
_START: Final = re.compile(r"(\d{4})-([a-z0-9_-]+)\.start\.json")


class CaseReader:
    """One case of a run."""

    def __init__(self, run: Path, number: int, trust: RunTrust | None = None) -> None:
        self.paths = CasePaths(Path(os.path.abspath(run)), number)
        self.number = number
        self.trust = trust or RunTrust(self.paths.run)
        self._read_before: dict[int, CaseIteration] = {}

    def iterations(self) -> tuple[CaseIteration, ...]:
        """Return the acknowledged iterations by number. Errors: :class:`StoreDamagedError` that names the file."""
        numbers = self._numbers(self.paths.iterations)
        for number in numbers:
            if number not in self._read_before:
                self._read_before[number] = self._read(number)
        return tuple(self._read_before[number] for number in numbers)

    def records(self) -> list[CaseIteration]:
        """Return the acknowledged iterations by number; what is not jumar's is passed over."""
        for number in self._numbers(self.paths.iterations):
            with contextlib.suppress(ForgedError):
                if number not in self._read_before:
                    self._read_before[number] = self._read(number)
        return [self._read_before[number] for number in sorted(self._read_before)]

    def seconds(self) -> float:
        """Return what the steps of :meth:`records` took, of those that were lost up to their last heartbeat."""
        return sum(step.seconds or 0.0 for record in self.records() for step in record.steps)

    def _read(self, number: int) -> CaseIteration:
        path = self.paths.iteration(number) / ITERATION
        record = CaseIteration.from_json(self.trust.read(path))
        if (record.case, record.number) != (self.number, number):
            raise StoreDamagedError(f"{path}: holds iteration {record.number} of case {record.case}; was it renamed by hand?")
        return record

    def begun(self) -> Iterator[tuple[int, list[tuple[StepStart, StepRecord | None]]]]:
        """Yield the runs of steps of every iteration that is being made, by its number; what is not jumar's is passed over."""
        for number in self._numbers(self.paths.pending):
            folder = self.paths.pending_iteration(number) / STEPS
            starts = (self._taken(functools.partial(self._start_in, folder, name)) for name in self._starts(folder))
            with contextlib.suppress(StoreDamagedError, OSError):
                yield number, [(start, self._taken(functools.partial(self._end_of, folder, start))) for start in starts if start]

    def pending(self) -> int | None:
        """Return the number of the iteration that is being made, None when there is none."""
        return min(self._numbers(self.paths.pending), default=None)

    def inputs(self) -> CaseInputs | None:
        """Return what the case started from; None before it began."""
        return CaseInputs.from_json(self.trust.read(self.paths.inputs)) if os.path.lexists(self.paths.inputs) else None

    def best(self) -> CaseBest | None:
        """Return ``best.json``; None before the case's end, and for a case without a valid iteration."""
        return CaseBest.from_json(self.trust.read(self.paths.best_json)) if os.path.lexists(self.paths.best_json) else None

    def end(self) -> CaseEnd | None:
        """Return how the case ended; None while it goes on."""
        return CaseEnd.from_json(self.trust.read(self.paths.end)) if os.path.lexists(self.paths.end) else None

    @property
    def ended(self) -> bool:
        """Whether the case has ended; what is no record of jumar's says nothing."""
        try:
            return self.end() is not None
        except ForgedError:
            return False

    @property
    def may_go_on(self) -> bool:
        """Whether the case has not ended, or by a limit that a resume may raise."""
        if not self.ended:
            return True
        end = self.end()
        return end is not None and end.stopped_by in SPENT

    def steps(self, directory: Path) -> tuple[tuple[StepStart, StepRecord | None], ...]:
        """Return every run of a step in an iteration's directory, in the order in which they began; no end is None."""
        folder = directory / STEPS
        starts = [self._start_in(folder, name) for name in self._starts(folder)]
        return tuple((start, self._end_of(folder, start)) for start in starts)

    @staticmethod
    def _starts(folder: Path) -> list[str]:
        try:
            return sorted(name for name in os.listdir(folder) if _START.fullmatch(name))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _start_in(self, folder: Path, name: str) -> StepStart:
        return StepStart.from_json(self.trust.read(folder / name))

    def _end_of(self, folder: Path, start: StepStart) -> StepRecord | None:
        end = folder / f"{start.attempt:04d}-{start.step}.end.json"
        return StepRecord.from_json(self.trust.read(end)) if os.path.lexists(end) else None

    @staticmethod
    def _taken(read: Callable[[], _T]) -> _T | None:
        """Return what ``read`` reads; None where that is not jumar's."""
        try:
            return read()
        except ForgedError:
            return None

    @staticmethod
    def last_step(directory: Path) -> int:
        """Return the number of the last run of a step in an iteration's directory, 0 when there is none. Reads names only."""
        return max((int(match[1]) for match in map(_START.fullmatch, os.listdir(directory / STEPS)) if match), default=0)

    @staticmethod
    def _numbers(directory: Path) -> list[int]:
        try:
            names = os.listdir(directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(number for name in names if (number := iter_number(name)) is not None)


class CaseStore(CaseReader):
    """One case of a run, read and written. Hold :meth:`lock` around everything that writes.

    ``given`` is what its run gives to all cases; ``told`` what was set aside or put back, for a person. Errors of every writing
    method: :class:`jumar.errors.StoreWriteError`; what was acknowledged before stays.
    """

    def __init__(self, run: Path, number: int, trust: RunTrust, given: Given) -> None:
        super().__init__(run, number, trust)
        self.given = given
        self._gone: set[str] = set()
        run_id = self.paths.run.name.removeprefix("run_")
        self._lock = LoopLock(self.paths.lock, what=f"case {number} of run '{escape(run_id)}'")
        self._making: Path | None = None
        self._kept: dict[Path, bytes] = {}
        self.told: list[str] = []

    @contextlib.contextmanager
    def lock(self) -> Generator[Self]:
        """Hold the case's lock; what is not jumar's is set aside. Errors: :class:`jumar.errors.LockedError` names the holder."""
        with self._lock:
            self.tidy_up()
            yield self

    def tidy_up(self) -> None:
        """Set aside what lies in the case and is not jumar's, and put back records that this object knows.

        Nothing but this object writes there while it holds the lock. An iteration that is lost counts as one that failed.
        """
        try:
            self._tidy(self.paths)
        except OSError as error:
            with files.as_write_error("read or write", Path(error.filename or self.paths.directory)):
                raise

    def _tidy(self, paths: CasePaths) -> None:
        making = () if self._making is None else (self._making, self._making / STEPS, self._making / LOGS)
        self.told += replaced(
            paths.run, (paths.inputs.parent, paths.run / "judge", paths.directory), around=(paths.run.parent, paths.run)
        )
        files.make_directory(paths.directory)
        self._make(paths.iterations, paths.pending, paths.scratch, *making)
        self._tidy_iterations()
        if self._making is not None:
            self._tidy_making(self._making)
        for path, data in self._kept.items():
            if not files.holds(path, data):
                leftovers.remove_any(path)
                files.make_directory(path.parent)
                files.replace_file(path, data)
                self.told.append(f"{self._shown(path)} was changed or deleted, and is again what it was")
        self._tidy_records()
        self._tidy_given()

    def _make(self, *folders: Path) -> None:
        self.told += replaced(self.paths.directory, folders)
        for folder in folders:
            files.make_directory(folder)

    def _tidy_records(self) -> None:
        best, end = self._taken(self.best), self._taken(self.end)
        if os.path.lexists(self.paths.best) and (best is None or not self._is_whole(best) or self._went_on_after(best)):
            self._aside(self.paths.best)
        if os.path.lexists(self.paths.end) and (end is None or self._went_on_after(end)):
            self._aside(self.paths.end)
        if os.path.lexists(self.paths.inputs) and self._taken(self.inputs) is None:
            self._aside(self.paths.inputs)
        if os.path.lexists(self.paths.inputs):
            self._kept[self.paths.inputs] = files.read_store_file(self.paths.inputs)

    def _went_on_after(self, record: CaseBest | CaseEnd) -> bool:
        """Whether iterations followed: a resume that opened a case again has removed what was written at its end before."""
        if isinstance(record, CaseEnd):
            return record.iterations < max(self._read_before, default=0)
        return any(each.complete and each.number > record.last_iter for each in self._read_before.values())

    def _is_whole(self, record: CaseBest | CaseInputs | None) -> bool:
        """Whether a record is there, and its files are what it says."""
        return record is not None and all(is_as_recorded(self.paths.run, file) for file in record.files.values())

    def _tidy_given(self) -> None:
        """Write again what the run gives to this case and to later ones, and what the judge runs."""
        inputs = self.inputs()
        for file in dict.fromkeys((*self.given.files, *(() if inputs is None else inputs.files.values()))):
            path = self.paths.run / file.path
            if file.path not in self._gone and not is_as_recorded(self.paths.run, file):
                where = self._clear(path)
                files.make_directory(path.parent)
                self._tell_again(file.path, where, again=self.given.write(file, path, scratch=self.paths.scratch))
        for path in self.given.intruders():
            where = self._clear(self.given.workdir / path)
            self.told.append(f"{escape(path)} would run instead of a module of the judge's, and was taken out{where}")
        for kept in self.given.config:
            if kept.differs():
                where = self._clear(kept.path)
                kept.restore()
                self._tell_again(kept.path.name, where, again=not kept.differs())
        for program in self.given.judge_changed():
            if program.path not in self._gone:
                where = self._clear(self.given.workdir / program.path)
                self._tell_again(program.path, where, again=self.given.put_judge_back(program))

    def _clear(self, path: Path) -> str:
        """Move away what lies at a path, and return what to tell of it."""
        if not os.path.lexists(path):
            return ""
        try:
            return f"; what lay there is in {move_aside(self.paths.directory, path)}"
        except OSError:  # on another disk, or gone by now
            leftovers.remove_any(path)
            return ""

    def _tell_again(self, shown: str, where: str, *, again: bool) -> None:
        if not again:
            self._gone.add(shown)
        now = "is again what it was" if again else "what it was is nowhere to be found"
        self.told.append(f"{escape(shown)} was changed or deleted, and {now}{where}")

    def _tidy_iterations(self) -> None:
        paths = self.paths
        for name in self._names(paths.iterations):
            number = iter_number(name)
            self._open(paths.iterations / name, paths.iterations / name / ITERATION)
            if number in self._read_before and files.is_directory(paths.iterations / name):
                continue
            if number is None or self._taken(functools.partial(self._read, number)) is None:
                self._aside(paths.iterations / name)
            else:
                path = paths.iteration(number) / ITERATION
                self._kept[path] = files.read_store_file(path)
        for number in self._read_before.keys() - set(self._numbers(paths.iterations)):
            self._lost(number, "was deleted or moved away")
        super().iterations()
        waiting = iter_name(self.next_number())
        for name in () if self.ended else self._names(paths.pending):
            if name != waiting:
                self._aside(paths.pending / name)

    def _open(self, *paths: Path) -> None:
        """Open what was closed to its owner."""
        closed = [path for path in paths if leftovers.give_rights(path, write=False)]
        self.told += [f"{self._shown(path)} was closed to its owner, and is open again" for path in closed]

    def _tidy_making(self, directory: Path) -> None:
        self.told += replaced(self.paths.directory, [directory / name for name in self._names(directory) if name != ITERATION])
        for name in self._names(directory / STEPS):
            if directory / STEPS / name not in self._kept:
                self._aside(directory / STEPS / name)

    @staticmethod
    def _names(directory: Path) -> list[str]:
        return sorted(name for name in files.names_in(directory) if not name.startswith(leftovers.TEMPORARY))

    def _aside(self, path: Path) -> None:
        where = move_aside(self.paths.directory, path)
        self.told.append(f"{self._shown(path)} was not written by jumar, or was changed since: it lies in {where} now")

    def _shown(self, path: Path) -> str:
        return escape(os.path.relpath(path, self.paths.run))

    def _lost(self, number: int, why: str) -> None:
        """Count an iteration as one that failed, with the time that it took: limits do not depend on what lies about."""
        record = self._read_before[number]
        self._kept.pop(self.paths.iteration(number) / ITERATION, None)
        if record.outputs or record.complete:
            self.told.append(f"iteration {number} {why}: it counts as failed")
            self._read_before[number] = replace(record, status="step_failed", reason=why, outputs=MappingProxyType({}))

    def iterations(self) -> tuple[CaseIteration, ...]:
        """Return the acknowledged iterations by number, with those that this object knows and that are lost."""
        super().iterations()
        return tuple(self._read_before[number] for number in sorted(self._read_before))

    def next_number(self) -> int:
        """Return the number of the iteration that is made next, or is being made."""
        return max(self._read_before, default=0) + 1

    def sound(self, record: CaseIteration) -> bool:
        """Return whether the files of an iteration are what it recorded; one whose files are not is set aside."""
        directory = self.paths.iteration(record.number)
        for file in record.outputs.values():
            self._open((directory / file.path).parent, directory / file.path)
        if all(is_as_recorded(directory, file) for file in record.outputs.values()):
            return True
        with files.as_write_error("move out of the way", directory):
            if os.path.lexists(directory):
                self._aside(directory)
        self._lost(record.number, "has other files than it recorded")
        return False

    def begin_iteration(self, number: int) -> Path:
        """Make the directory of an iteration that is being made; one that is there is gone on with, as far as it is ours."""
        self._making = directory = self.paths.pending_iteration(number)
        steps = directory / STEPS
        with files.as_write_error("create", directory):
            self._make(directory, steps, directory / LOGS)
            for path in [steps / name for name in self._names(steps)]:
                start = path.with_name(path.name.replace(".end.", ".start."))
                reads = [functools.partial(self.trust.read, each) for each in (start, path)]
                if os.path.lexists(start) and all(map(self._taken, reads)):
                    self._kept[path] = files.read_store_file(path)
            self._tidy_making(directory)
        return directory

    def begin_step(self, directory: Path, step: str, at: str, aside: Reservation = _NOTHING) -> StepStart:
        """Reserve a run of ``step``, with what is set ``aside`` for it, and return that: durable, so that it may be paid for."""
        attempt = self.last_step(directory) + 1
        start = StepStart(
            attempt=attempt,
            step=step,
            nonce=secrets.token_hex(8),
            started_at=at,
            pid=os.getpid(),
            reserve_cost_usd=aside.cost_usd,
            reserve_tokens=aside.tokens,
        )
        self._write_step(directory / STEPS / f"{attempt:04d}-{step}.start.json", start.to_json())
        return start

    def end_step(self, directory: Path, record: StepRecord) -> None:
        """Write how a step ended, once; what it wrote is durable before that."""
        path = directory / STEPS / f"{record.attempt:04d}-{record.step}.end.json"
        with files.as_write_error("write", path):
            files.sync_paths(directory, [directory / file.path for file in record.outputs.values()])
        self._write_step(path, {"format": FORMAT, **record.to_json()})

    def _write_step(self, path: Path, document: Mapping[str, Any]) -> None:
        data = self.trust.encode(document, path)
        with files.as_write_error("write", path):
            files.write_once(path, data, temporary_in=self.paths.scratch)
        self._kept[path] = data

    def commit(self, record: CaseIteration) -> CaseIteration:
        """Acknowledge a pending iteration and return its record: from the moment this returns it exists, whole.

        One that had its record already, and only lacked the rename, keeps it.
        """
        source, target = self.paths.pending_iteration(record.number), self.paths.iteration(record.number)
        with files.as_write_error("record", target):
            path = source / ITERATION
            if not self._has_record(source, record.number):
                leftovers.remove_any(path)
                files.write_once(path, self.trust.encode(record.to_json(), path), temporary_in=self.paths.scratch)
            names = (
                *(f"{STEPS}/{name}" for name in self._names(source / STEPS)),
                *(file.path for file in record.outputs.values()),
            )
            files.sync_paths(source, [path, *(source / name for name in names)])  # what steps left beside it may lie too deep
            files.rename_new(source, target)
        self._making = None
        self._kept = {path: data for path, data in self._kept.items() if source not in path.parents}
        self._kept[target / ITERATION] = files.read_store_file(target / ITERATION)
        self._read_before[record.number] = self._read(record.number)
        return self._read_before[record.number]

    def _has_record(self, directory: Path, number: int) -> bool:
        """Whether an interrupted commit left its record. What a step wrote under that name is none."""
        try:
            fields = self.trust.read(directory / ITERATION)
            record = CaseIteration.from_json(fields)
        except StoreDamagedError:
            return False
        return broken_seal(fields.data) is None and (record.case, record.number) == (self.number, number)

    def write_best(self, best: CaseBest, roles: Mapping[str, Role]) -> CaseBest:
        """Copy the selected iteration's files into ``best/`` and return it with the copies' paths and hashes.

        A carried role that the iteration did not write is there as the case was given it: the bundle is the whole state. What the
        case was given and is nowhere any more is left out. Errors: :class:`StoreDamagedError` for what the iteration wrote.
        """
        temporary = self.paths.scratch / leftovers.temporary_name()
        try:
            with files.as_write_error("write", self.paths.best):
                copies = self._copy(best, roles, temporary)
                paths = {name: copies[name].path if name in copies else None for name in (*roles, *copies)}
                whole = replace(best, files=MappingProxyType(copies), paths=MappingProxyType(paths))
                files.replace_file(temporary / "best.json", self.trust.encode(whole.to_json(), self.paths.best_json))
                files.sync_tree(temporary)
                files.rename_new(temporary, self.paths.best)
        except BaseException:
            with contextlib.suppress(OSError):
                leftovers.remove_tree(temporary)
            raise
        return whole

    def _copy(self, best: CaseBest, roles: Mapping[str, Role], temporary: Path) -> dict[str, RoleFile]:
        source = self.paths.iteration(best.best_iter)
        inside = f"{case_name(self.number)}/best/{iter_name(best.best_iter)}"
        copies: dict[str, RoleFile] = {}
        inputs = self.inputs()
        given: Mapping[str, RoleFile] = {} if inputs is None else inputs.files
        recorded = {name: file for name, file in given.items() if name in roles and roles[name].carry} | dict(best.files)
        for name, file in recorded.items():
            path = f"{roles[name].folder}/{roles[name].best}"
            target = temporary / iter_name(best.best_iter) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            first = source / file.path if name in best.files else None
            if self.given.copy(file, target, first=first):
                copies[name] = replace(file, path=f"{inside}/{path}")
            elif name in best.files:
                raise StoreDamagedError(
                    f"{first} was changed since it was recorded; `jumar cases verify RUN` lists what is damaged"
                )
        return copies

    def write_end(self, end: CaseEnd) -> None:
        """Write how the case ended, once; what pending and scratch still hold is removed."""
        with files.as_write_error("write", self.paths.end):
            files.write_once(self.paths.end, self.trust.encode(end.to_json(), self.paths.end), temporary_in=self.paths.scratch)
        self.remove_leftovers()

    @property
    def tidy(self) -> bool:
        """Whether the case has ended, nothing of its making is left, and its records are jumar's. Needs no lock: it is done."""
        try:
            end, best, inputs = self.end(), self.best(), self.inputs()
            if end is None or not self._is_whole(inputs) or (best is None) != (end.best_iter is None):
                return False
            self.iterations()
            if self._went_on_after(end) or (best is not None and (not self._is_whole(best) or self._went_on_after(best))):
                return False
        except ForgedError:
            return False
        if not all(files.holds(path, data) for path, data in self._kept.items()):
            return False
        return not self.paths.pending.exists() and not self.paths.scratch.exists()

    def remove_leftovers(self) -> None:
        """Remove what only a case that goes on needs."""
        for directory in (self.paths.pending, self.paths.scratch):
            with files.as_write_error("remove", directory):
                leftovers.remove_tree(directory)

    def clear_scratch(self, names: Iterable[str] | None = None) -> None:
        """Remove what steps and interrupted writes left in the scratch directory."""
        with files.as_write_error("remove leftovers from", self.paths.scratch):
            for name in os.listdir(self.paths.scratch) if names is None else names:
                leftovers.remove_any(self.paths.scratch / name)
