"""Checking a run of cases against what was recorded: every file is read, every hash computed again, every seal tried."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

from jumar.cases.case_store import ITERATION, STEPS
from jumar.cases.layout import CasePaths, RunPaths, RunTrust, case_name, case_number, iter_name, iter_number
from jumar.cases.records import CaseBest, CaseEnd, CaseInputs, CaseIteration, RoleFile, StepRecord
from jumar.core import files, leftovers
from jumar.core.codec import Fields, broken_seal, decode
from jumar.core.files import read_store_file
from jumar.core.findings import Findings, VerifyReport
from jumar.core.lock import QUARANTINE
from jumar.core.text import escape
from jumar.errors import FormatTooNewError, JumarError, NotFoundError, StoreDamagedError
from jumar.model.pipeline import DEFAULT_ROLES, GIVEN

_T = TypeVar("_T")
_STEP: Final = re.compile(r"(\d{4})-[a-z0-9_-]+\.(start|end)\.json")
_NEWER: Final = "upgrade jumar: this was written by a newer version"
_BACKUP: Final = "restore it from a backup; where there is none, run the case again in another run"
_BY_HAND: Final = "nothing that jumar wrote: move it elsewhere"
_IN_CASE: Final = frozenset({"iterations", "pending", "scratch", "best", "case.json", QUARANTINE})


def verify_run(directory: Path) -> VerifyReport:
    """Check the whole run; damage is reported, never raised. Takes no lock: what a writer does meanwhile is not damage.

    Errors: :class:`NotFoundError` when ``directory`` holds neither a ``run.json`` nor an ``inputs/``.
    """
    paths = RunPaths(Path(os.path.abspath(directory)))
    if not paths.run_json.exists() and not paths.inputs.is_dir():
        raise NotFoundError(f"{escape(os.fspath(directory))} is no run of cases: it has no run.json")
    check = _Check(paths.directory)
    with contextlib.suppress(StoreDamagedError):  # of run.json, which is reported below
        check.trust = RunTrust(paths.directory)
    _check_run(check, paths)
    return check.report()


class _Check(Findings):
    """The checks of a run that need to know nothing but a path."""

    trust: RunTrust | None = None

    def problem(self, path: Path, what: str, fix: str = _BACKUP) -> None:
        super().problem(path, what, fix)

    def note(self, path: Path, what: str) -> None:
        self.notes.append(f"{self.shown(path)}: {what}")

    def names(self, directory: Path) -> Iterator[str]:
        """Yield the names in a directory, sorted; what an interrupted write left becomes a note."""
        try:
            names = sorted(os.listdir(directory))
        except FileNotFoundError:
            return
        except NotADirectoryError:
            self.problem(directory, "should be a directory")
            return
        for name in names:
            if name.startswith(leftovers.TEMPORARY):
                self.note(directory / name, "left by an interrupted command, the next run removes it")
            else:
                yield name

    def record(self, path: Path, read: Callable[[Fields], _T]) -> _T | None:
        """Return what ``read`` makes of a sealed file; None and a problem when it cannot be read. A broken seal is one too."""
        try:
            data = read_store_file(path)
            fields = decode(data, os.fspath(path))
            broken = broken_seal(fields.data)
            if broken is None and self.trust is not None and not self.trust.takes(path, data):
                broken = "was not written by jumar"
            if broken is not None:
                self.problem(path, broken)
            return read(fields)
        except FormatTooNewError as error:
            self.problem(path, escape(str(error)), _NEWER)
        except JumarError as error:
            self.problem(path, escape(str(error)))
        return None

    def content(self, path: Path, recorded: RoleFile, *, by: str) -> None:
        """Compare a file with what ``by`` recorded of it."""
        try:
            status = os.lstat(path)
            if not stat.S_ISREG(status.st_mode):
                self.problem(path, "should be a regular file")
                return
            self.files += 1
            self.bytes += status.st_size
            if status.st_size != recorded.size:
                self.problem(path, f"has {status.st_size:,} bytes, {by} recorded {recorded.size:,}")
            elif files.sha256_file(path) != recorded.sha256:
                self.problem(path, f"has another content than {by} recorded")
        except FileNotFoundError:
            self.problem(path, f"is missing; {by} recorded it")
        except OSError as error:
            self.problem(path, f"cannot be read: {os.strerror(error.errno or 0)}")

    def gaps(self, numbers: Collection[int], path: Callable[[int], Path], what: str) -> None:
        for number in sorted(set(range(1, max(numbers, default=0))) - set(numbers)):
            self.problem(path(number), f"is missing: {what} are numbered without gaps")


def _check_run(check: _Check, paths: RunPaths) -> None:
    listed = check.record(paths.run_json, _listed)
    numbers, originals = (paths.case_numbers(), {}) if listed is None else listed
    for name in check.names(paths.directory):
        number = case_number(name)
        if number is not None and number not in numbers:
            check.problem(paths.directory / name, "is a case that run.json does not list", _BY_HAND)
        elif number is None and name not in {"run.json", "inputs", "judge", QUARANTINE}:
            check.note(paths.directory / name, "nothing that jumar wrote; it is left alone")
    inputs = {number: _inputs(check, paths, number, originals) for number in numbers}
    recorded = {file.path for each in inputs.values() if each is not None for file in each.files.values()}
    for name in sorted(originals.keys() - recorded):
        check.content(paths.directory / name, originals[name], by=paths.run_json.name)
    _leftover_inputs(check, paths, inputs)
    cases = {number: _Case(check, paths.case(number), inputs[number]) for number in numbers}
    for number, case in cases.items():
        case.check(begun=inputs[number] is not None or paths.case_inputs(number).exists())
    bests = {number: case.best for number, case in cases.items()}
    for given in inputs.values():
        if given is not None:
            _carried(check, paths, given, bests, inputs)


def _listed(fields: Fields) -> tuple[tuple[int, ...], dict[str, RoleFile]]:
    """Return the numbers of the cases, and by its path what the run started with."""
    fields.text("run_id")
    fields.section("config")
    originals = map(RoleFile.from_json, fields.sections("inputs"))
    return tuple(case.integer("case") for case in fields.sections("cases")), {file.path: file for file in originals}


# ----------------------------------------------------------------------------------------------------------- inputs


def _inputs(check: _Check, paths: RunPaths, number: int, listed: Collection[str]) -> CaseInputs | None:
    """Check what a case was given against its record; before it has begun, that the texts that are not ``listed`` are there."""
    path = paths.case_inputs(number)
    if not path.exists():
        for stem in ("human_report", "prompt"):
            text = paths.inputs / f"{stem}_{case_name(number)}.txt"
            if f"inputs/{text.name}" not in listed and not text.is_file():
                check.problem(text, "is missing")
        return None
    inputs = check.record(path, CaseInputs.from_json)
    if inputs is None:
        return None
    if inputs.case != number:
        check.problem(path, f"is about case {inputs.case}: was it renamed by hand?")
    for file in inputs.files.values():
        check.content(paths.directory / file.path, file, by=path.name)
    return inputs


def _leftover_inputs(check: _Check, paths: RunPaths, inputs: Mapping[int, CaseInputs | None]) -> None:
    expected = {"data_source.txt"}
    for number, given in inputs.items():
        expected |= {f"{stem}_{case_name(number)}.txt" for stem in ("human_report", "prompt")}
        expected |= {paths.case_inputs(number).name} | {role.snapshot_name(None) for role in DEFAULT_ROLES.values() if role.carry}
        expected |= set() if given is None else {Path(file.path).name for file in given.files.values()}
    waiting = [case_name(number) for number in inputs if not paths.case_inputs(number).exists()]
    for name in check.names(paths.inputs):
        if name in expected:
            continue
        # the snapshots of roles that are not the seed's are known by their records only, which come after them
        if len(waiting) == len(inputs) or any(f"_{case}" in name for case in waiting):
            check.note(paths.inputs / name, "not recorded yet: its case has not begun")
        else:
            check.problem(paths.inputs / name, "is nothing that a case was given", _BY_HAND)


def _carried(
    check: _Check,
    paths: RunPaths,
    inputs: CaseInputs,
    bests: Mapping[int, CaseBest | None],
    before: Mapping[int, CaseInputs | None],
) -> None:
    """Compare what a case started from with the bundle that it is said to come from."""
    carried, path = inputs.carried_from, paths.case_inputs(inputs.case)
    if carried is None:
        return
    best = bests.get(carried.case)
    if best is None:
        check.problem(path, f"says that it was carried from case {carried.case}, which has no readable best bundle")
        return
    if (best.best_iter, best.selected_by) != (carried.iteration, carried.selected_by):
        check.problem(
            path,
            f"says that iteration {carried.iteration} of case {carried.case} was carried as its {carried.selected_by}, "
            f"its best.json has iteration {best.best_iter} as its {best.selected_by}",
        )
    end = paths.case(carried.case).end
    if not end.exists():
        check.problem(end, f"is missing: case {inputs.case} was carried from there, so the case had ended")
    start = before.get(carried.case)
    for role, file in inputs.files.items():
        if role in GIVEN:
            continue
        source = best.files.get(role) or (None if start is None else start.files.get(role))
        if source is None:
            check.problem(paths.directory / file.path, f"was carried from case {carried.case}, which has no {escape(role)}")
        elif source.sha256 != file.sha256:
            check.problem(paths.directory / file.path, f"is not what it was carried from, {escape(source.path)}")


# ------------------------------------------------------------------------------------------------------------ a case


class _Case:
    """The checks of one case's directory. ``best`` is its best.json, once checked and readable."""

    def __init__(self, check: _Check, paths: CasePaths, inputs: CaseInputs | None) -> None:
        self._check = check
        self._given: Mapping[str, RoleFile] = {} if inputs is None else inputs.files
        self._paths = paths
        self._records: dict[int, CaseIteration] = {}
        self._there: list[int] = []
        self._aside: set[int] = set()
        self.best: CaseBest | None = None

    def check(self, *, begun: bool) -> None:
        check, paths = self._check, self._paths
        for name in check.names(paths.directory):
            if name not in _IN_CASE:
                check.problem(paths.directory / name, "is nothing that a case holds", _BY_HAND)
        for name in check.names(paths.iterations):
            number = iter_number(name)
            if number is None:
                check.problem(paths.iterations / name, "is not an iteration's name", _BY_HAND)
                continue
            self._there.append(number)
            check.iterations += 1
            self._iteration(number)
        there = max(self._there, default=0)
        aside = (iter_number(name.partition("-")[2]) for name in check.names(paths.directory / QUARANTINE))
        self._aside = {number for number in aside if number is not None}
        check.gaps([*self._there, *(number for number in self._aside if number < there)], paths.iteration, "iterations")
        if self._there and not begun:
            check.problem(paths.inputs, "is missing: the case has begun")
        self._unfinished()
        self._bundle()
        self._end()

    def _iteration(self, number: int) -> None:
        check, directory = self._check, self._paths.iteration(number)
        record = check.record(directory / ITERATION, CaseIteration.from_json)
        steps = self._steps(directory)
        if record is None:
            return
        self._records[number] = record
        if (record.case, record.number) != (self._paths.number, number):
            what = f"holds iteration {record.number} of case {record.case}: was it renamed by hand?"
            check.problem(directory / ITERATION, what)
        if steps is not None and steps != record.steps:
            check.problem(directory / ITERATION, "does not list the runs of steps that steps/ has")
        for file in record.outputs.values():
            check.content(directory / file.path, file, by=ITERATION)
        recorded = {file.path for each in (record, *record.steps) for file in each.outputs.values()}
        folders = {STEPS, "logs", *(Path(path).parts[0] for path in recorded)}
        for name in check.names(directory):
            is_folder = (directory / name).is_dir()
            if name == ITERATION or (is_folder and name in folders):
                continue
            if is_folder and not record.complete:
                check.note(directory / name, "not recorded; the step that failed may have left it")
            else:
                check.problem(directory / name, "is nothing that an iteration holds", _BY_HAND)
        for folder in sorted(folders - {STEPS, "logs"}):
            for name in check.names(directory / folder):
                if f"{folder}/{name}" not in recorded:
                    check.note(directory / folder / name, "not recorded; a step may have left it beside its output")

    def _steps(self, directory: Path) -> tuple[StepRecord, ...] | None:
        """Check the reservations and ends of an iteration's steps; return the ends, None when one cannot be read."""
        check, folder = self._check, directory / STEPS
        starts: dict[int, str] = {}
        ends: dict[int, str] = {}
        for name in check.names(folder):
            match = _STEP.fullmatch(name)
            if match is None:
                check.problem(folder / name, "is not the name of a step's record", _BY_HAND)
                continue
            (starts if match[2] == "start" else ends)[int(match[1])] = name
        check.gaps(starts, lambda number: folder / f"{number:04d}-*.start.json", "runs of steps")
        for number in sorted(starts.keys() ^ ends.keys()):
            name = starts.get(number) or ends[number]
            missing = name.replace(".start.", ".end.") if number in starts else name.replace(".end.", ".start.")
            check.problem(folder / missing, f"is missing: {name} is there")
        for name in starts.values():
            check.record(folder / name, lambda fields: fields.text("nonce"))
        read = [check.record(folder / ends[number], StepRecord.from_json) for number in sorted(ends)]
        whole = tuple(record for record in read if record is not None)
        return whole if len(whole) == len(read) and starts.keys() == ends.keys() else None

    def _unfinished(self) -> None:
        for name in self._check.names(self._paths.pending):
            directory, number = self._paths.pending / name, iter_number(name)
            if number is None:
                self._check.problem(directory, "is not an iteration's name", _BY_HAND)
            elif number in self._there:
                self._check.problem(directory, f"iteration {number} is recorded already", "remove this directory")
            else:
                self._check.note(directory, "an iteration that is being made; if nothing runs, --resume resumes it")
        for name in self._check.names(self._paths.scratch):
            self._check.note(self._paths.scratch / name, "scratch of a step, the next run removes it")

    # ------------------------------------------------------------------------------------------------------- the best

    def _bundle(self) -> None:
        check, paths = self._check, self._paths
        if not os.path.lexists(paths.best):
            return
        self.best = best = check.record(paths.best_json, CaseBest.from_json)
        expected = {"best.json"} if best is None else {"best.json", iter_name(best.best_iter)}
        for name in check.names(paths.best):
            if name not in expected and best is not None:
                check.problem(paths.best / name, "is nothing that a best bundle holds", _BY_HAND)
        if best is None:
            return
        for file in best.files.values():
            check.content(paths.run / file.path, file, by="best.json")
        inside = {os.path.relpath(paths.run / file.path, paths.best) for file in best.files.values()}
        bundle = paths.best / iter_name(best.best_iter)
        for path, _ in files.walk(bundle) if bundle.is_dir() else ():
            if f"{iter_name(best.best_iter)}/{path}" not in inside:
                check.problem(bundle / path, "is not in best.json", _BY_HAND)
        for what in self._contradictions(best):
            check.problem(paths.best_json, what)

    def _contradictions(self, best: CaseBest) -> Iterator[str]:
        """Compare the bundle with the iterations that it was selected from."""
        if best.case != self._paths.number:
            yield f"is about case {best.case}: was it renamed by hand?"
        if best.best_iter not in self._there:
            yield f"names iteration {best.best_iter}, which is not there"
        record = self._records.get(best.best_iter)
        if record is None:
            return
        for role in sorted(record.outputs.keys() | best.files.keys()):
            written, bundled = record.outputs.get(role) or self._given.get(role), best.files.get(role)
            if written is None or bundled is None or written.sha256 != bundled.sha256:
                yield f"{escape(role)} is not what iteration {best.best_iter} wrote"
        if dict(record.values) != dict(best.values):
            yield f"has other scores than iteration {best.best_iter}"
        last = max((number for number, iteration in self._records.items() if iteration.complete), default=None)
        if len(self._records) == len(self._there) and last != best.last_iter:
            yield f"says that iteration {best.last_iter} is the last one, it is {last}"
        if best.selected_by == "best" and record.status != "ok":
            yield f"chose iteration {best.best_iter}, which has no usable score"
        if best.selected_by == "last" and best.best_iter != best.last_iter:
            yield f"chose iteration {best.best_iter} as the last one, that is {best.last_iter}"

    def _end(self) -> None:
        check, paths = self._check, self._paths
        if not paths.end.exists():
            if self.best is not None:
                check.note(paths.best, "the case's end is not written yet; --resume writes it")
            return
        end = check.record(paths.end, CaseEnd.from_json)
        if end is None:
            return
        if end.case != paths.number:
            check.problem(paths.end, f"is about case {end.case}: was it renamed by hand?")
        if not len(self._there) <= end.iterations <= len({*self._there, *self._aside}):
            check.problem(paths.iterations, f"holds {len(self._there)} iterations, case.json recorded {end.iterations}")
        there = os.path.lexists(paths.best)
        if end.best_iter is not None and not there:
            check.problem(paths.best, f"is missing: case.json names iteration {end.best_iter} as the best")
        elif end.best_iter is None and there:
            check.problem(paths.best, "is there, but case.json says that no iteration was selected", _BY_HAND)
        elif self.best is not None and self.best.best_iter != end.best_iter:
            what = f"names iteration {end.best_iter} as the best, best.json names {self.best.best_iter}"
            check.problem(paths.end, what)
