"""One run of cases: how it comes to be, what each case starts from, and reading it back."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from jumar.cases.case_store import CaseReader, CaseStore
from jumar.cases.given import Given, stand_ins
from jumar.cases.layout import RunPaths, RunTrust, case_name
from jumar.cases.records import CarriedFrom, CaseInputs, JudgeFile, RoleFile
from jumar.cases.role_files import is_as_recorded, role_file
from jumar.core import copying, files, leftovers
from jumar.core.codec import FORMAT, encode
from jumar.core.kept import Kept
from jumar.core.lock import LoopLock
from jumar.core.marks import MARK
from jumar.core.text import escape
from jumar.errors import ExistsError, NotFoundError, StoreDamagedError
from jumar.model.pipeline import GIVEN, Role, RunPlan

_STEMS: Final[Mapping[str, str]] = MappingProxyType({"report": "human_report", "prompt": "prompt"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSource:
    """One case as it goes into a run: its texts, and the file that they came from."""

    number: int
    case_id: str
    report: str
    prompt: str
    source: str


def contents_of(
    cases: tuple[CaseSource, ...], base: Mapping[str, bytes | Path], roles: Mapping[str, Role]
) -> dict[str, bytes | Path]:
    """Return what a run gives to its cases, by its path there: contents, or the files that have them.

    ``base`` has, for each carried role that there is, the file that it starts from, or its content.
    """
    texts = {f"inputs/human_report_{case_name(case.number)}.txt": case.report.encode() for case in cases}
    texts |= {f"inputs/prompt_{case_name(case.number)}.txt": case.prompt.encode() for case in cases}
    texts["inputs/data_source.txt"] = "".join(f"{case.source}\n" for case in cases).encode(errors="surrogateescape")
    return {**texts, **{f"inputs/{roles[name].snapshot_name(None)}": content for name, content in base.items()}}


def create_run(
    paths: RunPaths,
    *,
    run_id: str,
    config: Mapping[str, Any],
    cases: tuple[CaseSource, ...],
    base: Mapping[str, bytes | Path],
    plan: RunPlan,
    created_at: str,
    workdir: Path = Path(),
    judge: Sequence[str] = (),
    absent: Sequence[str] = (),
) -> RunStore:
    """Make a run with its inputs; it appears by one rename, or not at all.

    ``base`` is as in :func:`contents_of`; ``judge`` are the judge's own files, relative to ``workdir`` or absolute, of which it
    gets copies, and ``absent`` as in :class:`Given`. Errors: :class:`jumar.errors.ExistsError` when the run's directory exists,
    :class:`jumar.errors.StoreWriteError`.
    """
    directory = paths.directory
    taken = ExistsError(f"{directory} exists already; nothing in it was touched. Resume it (--resume), or choose another run id")
    if os.path.lexists(directory):
        raise taken
    nonce = secrets.token_hex(8)
    temporary = RunPaths(directory.with_name(leftovers.temporary_name()))
    try:
        with files.as_write_error("create", directory):
            files.make_directory(directory.parent)
            contents = contents_of(cases, base, plan.roles)
            copies = {f"judge/{index:02d}-{Path(path).name}": workdir / path for index, path in enumerate(judge, 1)}
            given = {name: _write(temporary.directory, name, content) for name, content in (contents | copies).items()}
            programs = [
                JudgeFile(path=path, mode=stat.S_IMODE(os.stat(workdir / path).st_mode), copy=given[name])
                for path, name in zip(judge, copies, strict=True)
            ]
            document = {
                "format": FORMAT,
                "kind": "cases",
                "run_id": run_id,
                "created_at": created_at,
                "nonce": nonce,
                "cases": [{"case": case.number, "case_id": case.case_id, "source": case.source} for case in cases],
                "plan": plan.to_json(),
                "config": dict(config),
                "inputs": [file.to_json() for file in given.values()],
                "judge": [program.to_json() for program in programs],
                "absent": list(absent),
                "beside": sorted(stand_ins(workdir, judge)),
            }
            files.replace_file(temporary.run_json, encode(document, sealed=True, place=f"{nonce}/{paths.run_json.name}"))
            files.sync_tree(temporary.directory)
            if not os.path.lexists(directory):
                files.rename_new(temporary.directory, directory)
                return RunStore(directory, contents, workdir)
        raise taken
    finally:
        with contextlib.suppress(OSError):
            leftovers.remove_tree(temporary.directory)


def _write(run: Path, name: str, content: bytes | Path) -> RoleFile:
    target = run / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        target.write_bytes(content)
    else:
        copying.copy_file(Path(os.path.realpath(content)), target)
    written = role_file(target, name)
    if written is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target))
    return written


class RunReader:
    """A run that is only read. ``plan`` is how it ranks, ``config`` what a resume must not change.

    ``paid`` is what :class:`jumar.cases.accounting.CaseAccounting` has read of it, by case and iteration.

    Errors: :class:`NotFoundError` when there is none, :class:`StoreDamagedError`.
    """

    def __init__(self, directory: Path) -> None:
        self.paths = RunPaths(Path(os.path.abspath(directory)))
        if not self.paths.run_json.exists():
            raise NotFoundError(f"{escape(os.fspath(directory))} is no run of cases: it has no run.json")
        self.trust = RunTrust(self.paths.directory)
        fields = self.trust.fields
        self.paid: dict[tuple[int, int], list[Any]] = {}
        self.run_id = fields.text("run_id")
        self.created_at = fields.text("created_at")
        self.config: Mapping[str, Any] = MappingProxyType(dict(fields.section("config").data))
        self.plan = RunPlan.from_json(fields.section("plan"))
        listed = fields.sections("cases")
        self.case_ids: Mapping[int, str] = MappingProxyType({case.integer("case"): case.text("case_id") for case in listed})

    def case(self, number: int) -> CaseReader:
        """Return one case, begun or not."""
        return CaseReader(self.paths.directory, number, self.trust)

    def seconds(self) -> float:
        """Return what all recorded steps of the run took. Reads every record of the run."""
        return sum(self.case(number).seconds() for number in self.case_ids)

    def choices(self, before: int) -> Iterator[CarriedFrom]:
        """Yield what case ``before`` may start from: the choices of the cases before it that are carried, the nearest first."""
        for number in sorted((each for each in self.case_ids if each < before), reverse=True):
            best = self.case(number).best()
            if best is not None and best.not_carried is None:
                yield CarriedFrom(case=number, iteration=best.best_iter, selected_by=best.selected_by)

    def was_cut_off(self) -> bool:
        """Whether a step began and never ended, as far as jumar wrote that: what it had changed by then was nobody's wish."""
        for number in self.case_ids:
            for steps in self.case(number).paths.pending.glob("*/steps"):
                ours = (path for path in steps.glob("*.end.json") if self._is_ours(path))
                starts, ends = {path.name[:4] for path in steps.glob("*.start.json")}, {path.name[:4] for path in ours}
                if starts - ends or not starts:
                    return True
        return False

    def _is_ours(self, path: Path) -> bool:
        data = files.content_of(path)
        return data is not None and self.trust.takes(path, data)

    def with_content(self, file: RoleFile) -> Iterator[Path]:
        """Yield the files of the run that had the content of ``file`` when they were recorded."""
        for number in self.case_ids:
            case = self.case(number)
            with contextlib.suppress(StoreDamagedError):
                for record in filter(None, (case.best(), case.inputs())):
                    yield from _same(record.files, self.paths.directory, file)
                for iteration in case.iterations():
                    yield from _same(iteration.outputs, case.paths.iteration(iteration.number), file)


def _same(recorded: Mapping[str, RoleFile], directory: Path, file: RoleFile) -> Iterator[Path]:
    return (directory / each.path for each in recorded.values() if each.sha256 == file.sha256)


class RunStore(RunReader):
    """A run that is read and written.

    ``contents`` are those of :func:`contents_of`, as far as they are known, and ``config`` is as in :class:`Given`.
    """

    def __init__(
        self,
        directory: Path,
        contents: Mapping[str, bytes | Path] | None = None,
        workdir: Path = Path(),
        config: tuple[Kept, ...] = (),
    ) -> None:
        super().__init__(directory)
        self._stores: dict[int, CaseStore] = {}
        self._lock = LoopLock(self.paths.lock, what=f"run '{escape(self.run_id)}'")
        self.given = Given(
            run=self.paths.directory,
            workdir=workdir,
            files=tuple(map(RoleFile.from_json, self.trust.fields.sections("inputs"))),
            judge=tuple(map(JudgeFile.from_json, self.trust.fields.sections("judge"))),
            absent=self.trust.fields.texts("absent"),
            beside=self.trust.fields.texts("beside"),
            config=config,
            contents=tuple((contents or {}).values()),
            elsewhere=self.with_content,
        )

    @contextlib.contextmanager
    def lock(self) -> Generator[None]:
        """Hold the run's lock: one process leads it. Errors: :class:`jumar.errors.LockedError` that names the holder."""
        with self._lock:
            yield

    def share(self) -> None:
        """Let workers on other machines write: their marks cannot be told from forged ones, so that all is taken as it is found.

        Errors: :class:`jumar.errors.StoreWriteError`.
        """
        if self.trust.ours:
            document = {name: value for name, value in self.trust.fields.data.items() if name not in {MARK, "seal"}}
            with files.as_write_error("write", self.paths.run_json):
                files.replace_file(self.paths.run_json, encode(document, sealed=True))
            self.trust = RunTrust(self.paths.directory)

    def put_back(self) -> str | None:
        """Write ``run.json`` as it was when this object read it, where somebody changed it since; return what to tell."""
        path = self.paths.run_json
        if files.holds(path, self.trust.data):
            return None
        with files.as_write_error("write", path):
            leftovers.remove_any(path)
            files.replace_file(path, self.trust.data)
        return f"{path.name} was changed or deleted, and is again what it was"

    def store(self, number: int) -> CaseStore:
        """Return one case to write: always the same object, which knows what it read, whatever becomes of the files."""
        if number not in self._stores:
            self._stores[number] = CaseStore(self.paths.directory, number, self.trust, self.given)
        return self._stores[number]

    def begin_case(self, number: int, roles: Mapping[str, Role], *, carry: bool) -> CaseInputs:
        """Bring what the case starts from into ``inputs/``, byte for byte, with hashes; doing it again changes nothing.

        ``carry`` is False for a case that starts from what the run started from. The caller holds the case's lock. Errors:
        :class:`jumar.errors.StoreWriteError`, :class:`StoreDamagedError` when a bundle is not what its record says.
        """
        reader = self.case(number)
        begun = reader.inputs()
        if begun is not None:
            return begun
        given = {name: self._original(f"inputs/{_STEMS[name]}_{case_name(number)}.txt") for name in GIVEN}
        carried, files_of_roles = self._start(number, [role for role in roles.values() if role.carry], carry=carry)
        inputs = CaseInputs(
            case=number,
            case_id=self.case_ids[number],
            files=MappingProxyType({name: file for name, file in given.items() if file} | files_of_roles),
            carried_from=carried,
        )
        path = self.paths.case_inputs(number)
        with files.as_write_error("write", path):
            scratch = self._scratch(number)
            files.write_once(path, self.trust.encode(inputs.to_json(), path), temporary_in=scratch)
        return inputs

    def _scratch(self, number: int) -> Path:
        """Return where a case's temporaries lie: ``inputs/`` belongs to all cases, so that none of them could clear it."""
        scratch = self.case(number).paths.scratch
        files.make_directory(scratch)
        return scratch

    def _original(self, path: str, *, optional: bool = False) -> RoleFile | None:
        """Return a file that the run started with; None for one that is ``optional``, where there is none."""
        if self.given.files:
            file = next((each for each in self.given.files if each.path == path), None)
        else:  # a run of an older jumar
            file = role_file(self.paths.directory / path, path)
        if file is None and optional:
            return None
        if file is None or not is_as_recorded(self.paths.directory, file):
            gone = f"{self.paths.directory / path} is missing, or not what it was"
            raise StoreDamagedError(f"{gone}; restore it from a backup, or start another run")
        return file

    def _start(self, number: int, roles: Sequence[Role], *, carry: bool) -> tuple[CarriedFrom | None, dict[str, RoleFile]]:
        """Return what a case starts from: the nearest choice that is still to be found whole, else the base."""
        for choice in self.choices(number) if carry else ():
            copies = self._carry(choice, roles, number)
            if copies is not None:
                return choice, copies
            self.store(number).told.append(
                f"what case {choice.case} selected is nowhere to be found as it was: case {number} does without it"
            )
        base = ((role.name, self._original(f"inputs/{role.snapshot_name(None)}", optional=True)) for role in roles)
        return None, {name: file for name, file in base if file is not None}

    def _carry(self, carried: CarriedFrom, roles: Sequence[Role], number: int) -> dict[str, RoleFile] | None:
        """Copy what was selected, else return None. A role that it did not write stays what that case had started from."""
        case = self.case(carried.case)
        recorded = {name: file for record in (case.inputs(), case.best()) if record for name, file in record.files.items()}
        copies: dict[str, RoleFile] = {}
        for role in roles:
            source = recorded.get(role.name)
            if source is None:
                continue
            copy = replace(source, path=f"inputs/{role.snapshot_name(number)}")
            target, first = self.paths.directory / copy.path, self.paths.directory / source.path
            with files.as_write_error("write", target):
                if not self.given.write(copy, target, scratch=self._scratch(number), first=first):
                    return None
            copies[role.name] = copy
        return copies
