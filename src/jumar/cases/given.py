"""What a run gives to its cases, and from where it is written again when a program has changed it."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from jumar.cases.records import JudgeFile, RoleFile
from jumar.cases.role_files import copy_as_recorded, is_as_recorded
from jumar.core import files, leftovers
from jumar.core.kept import Kept
from jumar.processes.bytecode import clear_bytecode
from jumar.processes.check_files import installed_modules, standing_in


def stand_ins(workdir: Path, judge: Iterable[str]) -> set[str]:
    """Return what stands beside the judge's files, or in ``workdir``, in the place of an installed module; paths as theirs."""
    places = {(workdir / path).parent for path in judge if path.endswith(".py")}
    found = standing_in(places and places | {workdir}, _modules(workdir))
    return {path.relative_to(workdir).as_posix() if path.is_relative_to(workdir) else os.fspath(path) for path in found}


@functools.cache
def _modules(workdir: Path) -> frozenset[str]:
    return sys.stdlib_module_names | installed_modules((), workdir=workdir)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What ``run.json`` says that a run gives: ``files`` in its directory, copies of the ``judge``'s own ones among them.

    All of it is empty for a run of an older jumar. ``absent`` are paths in ``workdir`` that would run instead of the judge's own
    module, were they there, and ``beside`` what stood in for an installed module when the run began. ``contents`` are what the
    run was made from: contents, or files that have them; ``config`` is the configuration in use.
    ``elsewhere`` returns the files of the run that had the content of another when they were recorded.
    """

    run: Path
    workdir: Path
    files: tuple[RoleFile, ...]
    judge: tuple[JudgeFile, ...]
    absent: tuple[str, ...]
    beside: tuple[str, ...]
    config: tuple[Kept, ...]
    contents: tuple[bytes | Path, ...]
    elsewhere: Callable[[RoleFile], Iterable[Path]]

    def copy(self, file: RoleFile, target: Path, *, first: Path | None = None, mode: int = 0o644) -> bool:
        """Write a new file with the content of ``file``, from wherever that is still to be found; False where it is nowhere."""
        judge = (self.workdir / each.path for each in self.judge)
        there = first or self.run / file.path
        return copy_as_recorded(there, target, file, mode) or any(
            copy_as_recorded(source, target, file, mode) for source in (*self.contents, *judge, *self.elsewhere(file))
        )

    def write(self, file: RoleFile, target: Path, *, scratch: Path, first: Path | None = None, mode: int = 0o644) -> bool:
        """As :meth:`copy`, whole and durable, in the place of a file that is there; ``scratch`` is where it lies meanwhile."""
        temporary = scratch / leftovers.temporary_name()
        if not self.copy(file, temporary, first=first, mode=mode):
            return False
        files.sync_paths(scratch, [temporary])
        if files.is_directory(target):
            leftovers.remove_tree(target)
        temporary.replace(target)
        files.fsync_directory(target.parent)
        return True

    def judge_changed(self) -> list[JudgeFile]:
        """Return the judge's files that are not what they were when the run began; links come last."""
        changed = [each for each in self.judge if not self._is_same(each)]
        return sorted(changed, key=lambda each: (self.workdir / each.path).is_symlink())

    def _is_same(self, program: JudgeFile) -> bool:
        real = os.path.realpath(self.workdir / program.path)
        return is_as_recorded(Path("/"), RoleFile(path=real, sha256=program.copy.sha256, size=program.copy.size))

    def intruders(self) -> list[str]:
        """Return what would run instead of a module of the judge's, or of one that it may import, and was not there before."""
        there = {path for path in self.absent if os.path.lexists(self.workdir / path)}
        return sorted(there | stand_ins(self.workdir, [each.path for each in self.judge]) - {*self.beside})

    def clear_bytecode(self) -> None:
        """Remove bytecode that may be that of other sources than the judge's."""
        clear_bytecode(self.workdir, (), os.environ, known=lambda _path, _status: True)

    def put_judge_back(self, program: JudgeFile) -> bool:
        """Write a file of the judge's again; False where that cannot be, or would be written elsewhere through a link."""
        target = self.workdir / program.path
        try:
            files.make_directory(target.parent)
            inside = Path(program.path).is_absolute() or files.is_inside(target, self.workdir)
            return inside and self.write(program.copy, target, scratch=target.parent, mode=program.mode)
        except OSError:
            return False
