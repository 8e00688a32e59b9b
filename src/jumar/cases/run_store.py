"""One run of cases: how it comes to be, what each case starts from, and reading it back."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jumar.cases.case_store import CaseReader, CaseStore, role_file
from jumar.cases.layout import RunPaths, RunTrust, case_name
from jumar.cases.records import CarriedFrom, CaseInputs, RoleFile
from jumar.core import files, leftovers
from jumar.core.codec import FORMAT, encode
from jumar.core.lock import LoopLock
from jumar.core.marks import MARK
from jumar.core.text import escape
from jumar.errors import ExistsError, NotFoundError, StoreDamagedError
from jumar.model.pipeline import GIVEN, Role, RunPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSource:
    """One case as it goes into a run: its texts, and the file that they came from."""

    number: int
    case_id: str
    report: str
    prompt: str
    source: str


def create_run(
    paths: RunPaths,
    *,
    run_id: str,
    config: Mapping[str, Any],
    cases: tuple[CaseSource, ...],
    base: Mapping[str, bytes | Path],
    plan: RunPlan,
    created_at: str,
) -> RunStore:
    """Make a run with its inputs; it appears by one rename, or not at all.

    ``base`` has, for each carried role that there is, the file that it starts from, or its content. Errors:
    :class:`jumar.errors.ExistsError` when the run's directory exists, :class:`jumar.errors.StoreWriteError`.
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
            temporary.inputs.mkdir(parents=True)
            _write_inputs(temporary, cases, base, plan.roles)
            document = {
                "format": FORMAT,
                "kind": "cases",
                "run_id": run_id,
                "created_at": created_at,
                "nonce": nonce,
                "cases": [{"case": case.number, "case_id": case.case_id, "source": case.source} for case in cases],
                "plan": plan.to_json(),
                "config": dict(config),
            }
            files.replace_file(temporary.run_json, encode(document, sealed=True, place=f"{nonce}/{paths.run_json.name}"))
            files.sync_tree(temporary.directory)
            if not os.path.lexists(directory):
                files.rename_new(temporary.directory, directory)
                return RunStore(directory)
        raise taken
    finally:
        with contextlib.suppress(OSError):
            leftovers.remove_tree(temporary.directory)


def _write_inputs(
    paths: RunPaths, cases: tuple[CaseSource, ...], base: Mapping[str, bytes | Path], roles: Mapping[str, Role]
) -> None:
    for case in cases:
        (paths.inputs / f"human_report_{case_name(case.number)}.txt").write_bytes(case.report.encode())
        (paths.inputs / f"prompt_{case_name(case.number)}.txt").write_bytes(case.prompt.encode())
    (paths.inputs / "data_source.txt").write_bytes("".join(f"{case.source}\n" for case in cases).encode(errors="surrogateescape"))
    for name, content in base.items():
        target = paths.inputs / roles[name].snapshot_name(None)
        if isinstance(content, bytes):
            target.write_bytes(content)
        else:
            files.copy_file(content, target)


class RunReader:
    """A run that is only read. ``plan`` is how it ranks, ``config`` what a resume must not change.

    Errors: :class:`NotFoundError` when there is none, :class:`StoreDamagedError`.
    """

    def __init__(self, directory: Path) -> None:
        self.paths = RunPaths(Path(os.path.abspath(directory)))
        if not self.paths.run_json.exists():
            raise NotFoundError(f"{escape(os.fspath(directory))} is no run of cases: it has no run.json")
        self.trust = RunTrust(self.paths.directory)
        fields = self.trust.fields
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

    def carried(self, before: int) -> CarriedFrom | None:
        """Return what case ``before`` starts from: the choice of the nearest case before it that has one, None for the base."""
        for number in sorted((each for each in self.case_ids if each < before), reverse=True):
            best = self.case(number).best()
            if best is not None:
                return CarriedFrom(case=number, iteration=best.best_iter, selected_by=best.selected_by)
        return None


class RunStore(RunReader):
    """A run that is read and written."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._lock = LoopLock(self.paths.lock, what=f"run '{escape(self.run_id)}'")

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
        """Return one case to write."""
        return CaseStore(self.paths.directory, number, self.trust)

    def begin_case(self, number: int, roles: Mapping[str, Role], *, carry: bool) -> CaseInputs:
        """Bring what the case starts from into ``inputs/``, byte for byte, with hashes; doing it again changes nothing.

        ``carry`` is False for a case that starts from what the run started from. The caller holds the case's lock. Errors:
        :class:`jumar.errors.StoreWriteError`, :class:`StoreDamagedError` when a bundle is not what its record says.
        """
        reader = self.case(number)
        begun = reader.inputs()
        if begun is not None:
            return begun
        carried = self.carried(number) if carry else None
        given = {name: self._given(name, number) for name in GIVEN}
        for name, role in roles.items():
            if role.carry:
                file = self._base(role) if carried is None else self._copy(role, carried, number)
                if file is not None:
                    given[name] = file
        inputs = CaseInputs(case=number, case_id=self.case_ids[number], files=MappingProxyType(given), carried_from=carried)
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

    def _given(self, name: str, number: int) -> RoleFile:
        stem = "human_report" if name == "report" else name
        path = self.paths.inputs / f"{stem}_{case_name(number)}.txt"
        file = role_file(path, f"inputs/{path.name}")
        if file is None:
            raise StoreDamagedError(f"{path} is missing; restore it from a backup, or start another run")
        return file

    def _base(self, role: Role) -> RoleFile | None:
        name = role.snapshot_name(None)
        return role_file(self.paths.inputs / name, f"inputs/{name}")

    def _copy(self, role: Role, carried: CarriedFrom, number: int) -> RoleFile | None:
        """Copy what was selected. A role that the selected iteration did not write stays what that case had started from."""
        best = self.case(carried.case).best()
        source = None if best is None else best.files.get(role.name)
        if source is None:
            before = self.case(carried.case).inputs()
            source = None if before is None else before.files.get(role.name)
        if source is None:
            return None
        name = role.snapshot_name(number)
        target = self.paths.inputs / name
        with files.as_write_error("write", target):
            temporary = self._scratch(number) / leftovers.temporary_name()
            files.copy_file(self.paths.directory / source.path, temporary)
            files.sync_paths(temporary.parent, [temporary])
            os.replace(temporary, target)
            files.fsync_directory(target.parent)
        copy = role_file(target, f"inputs/{name}")
        if copy is None or copy.sha256 != source.sha256:
            raise StoreDamagedError(
                f"{self.paths.directory / source.path} is not what was recorded; `jumar cases verify RUN` lists what is"
            )
        return copy
