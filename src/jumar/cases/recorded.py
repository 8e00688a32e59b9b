"""Cases that are on disk already, by whoever made them: runs of ours, and recordings with seed 3's layout and no ``run.json``.

An iteration is a directory ``iter_0001`` with a judge's file below it; what lies below a ``best/`` is a copy, and no iteration.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jumar.cases.judgement import NO_SCALES, CaseJudgement, diff_size, read_judgement
from jumar.cases.layout import case_number
from jumar.cases.records import CaseIteration, CaseStatus, RoleFile
from jumar.core.files import sha256_file
from jumar.core.leftovers import TEMPORARY, folders_of
from jumar.core.text import escape
from jumar.errors import ConfigError, NotFoundError
from jumar.model.pipeline import Role, Scale

_UNFINISHED: Final = frozenset({"pending", "scratch"})
_ITER: Final = re.compile(r"iter_(\d{1,9})")
_DIGITS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCase:
    """One case: its directory, its iterations by number, and what it started from, by role."""

    number: int
    directory: Path
    iterations: tuple[CaseIteration, ...]
    base: Mapping[str, RoleFile]


def read_recording(
    directory: Path,
    *,
    roles: Mapping[str, Role],
    keys: Mapping[str, str],
    needed: Sequence[str],
    diff: Sequence[str],
    scales: Mapping[str, Scale] = NO_SCALES,
) -> tuple[RecordedCase, ...]:
    """Find the cases below ``directory`` (at any depth) and read their judge's files; nothing is written.

    ``needed`` are the keys without which an iteration is invalid. Errors: :class:`NotFoundError` when there is no iteration,
    :class:`jumar.errors.ConfigError` when two directories are the same case.
    """
    if not directory.is_dir():
        problem = "is a file, not a directory" if directory.exists() else "does not exist"
        raise NotFoundError(f"{escape(os.fspath(directory))} {problem}")
    directory = directory.absolute()
    by_case: dict[Path, list[tuple[int, Path]]] = {}
    for number, path in _iteration_directories(directory):
        case = path.parent.parent if path.parent.name == "iterations" else path.parent
        by_case.setdefault(case, []).append((number, path))
    if not by_case:
        raise NotFoundError(
            f"{escape(os.fspath(directory))} holds no recorded case: looked for iter_0001/judge/*.json, at any depth"
        )
    numbered = _numbered(sorted(by_case))
    return tuple(
        RecordedCase(
            number=number,
            directory=case,
            iterations=tuple(
                _iteration(number, iteration, path, roles=roles, keys=keys, needed=needed, diff=diff, scales=scales)
                for iteration, path in sorted(by_case[case])
            ),
            base=_base(case, number, roles),
        )
        for number, case in numbered
    )


def _iteration_directories(directory: Path) -> list[tuple[int, Path]]:
    """Return the directories ``iter_0001`` with their numbers; other tools fill up with fewer zeros, or none."""
    directories: list[tuple[int, Path]] = []
    for parent, names, _ in folders_of(directory):
        skipped = _UNFINISHED if "iterations" in names else frozenset[str]()
        names[:] = sorted(n for n in names if n != "best" and n not in skipped and not n.startswith(TEMPORARY))
        inside = {name: match for name in names if (match := _ITER.fullmatch(name))}
        directories += [(int(match[1]), Path(parent, name)) for name, match in inside.items()]
        names[:] = [name for name in names if name not in inside]
    return directories


def _numbered(cases: list[Path]) -> list[tuple[int, Path]]:
    """Number cases by their names: ``case_02``, else the last digits in it; those without get the numbers that are left."""
    numbers: dict[int, Path] = {}
    unnamed: list[Path] = []
    # in runs of digits and of others, so that case10 comes after case2
    parts = {case: re.findall(r"\d+|\D+", os.fspath(case)) for case in cases}
    for case in sorted(cases, key=lambda path: [(int(part) if part.isdigit() else 0, part) for part in parts[path]]):
        digits = _DIGITS.findall(case.name)
        number = case_number(case.name) or (int(digits[-1]) if digits else None)
        if not number:
            unnamed.append(case)
        elif number in numbers:
            raise ConfigError(
                f"case {number} is there twice: {escape(os.fspath(numbers[number]))} and {escape(os.fspath(case))}; "
                "name the directory of one run or chain"
            )
        else:
            numbers[number] = case
    free = (number for number in itertools.count(1) if number not in numbers)
    return sorted([*numbers.items(), *zip(list(itertools.islice(free, len(unnamed))), unnamed, strict=True)])


def _iteration(
    case: int,
    number: int,
    directory: Path,
    *,
    roles: Mapping[str, Role],
    keys: Mapping[str, str],
    needed: Sequence[str],
    diff: Sequence[str],
    scales: Mapping[str, Scale],
) -> CaseIteration:
    judges = sorted((directory / roles["judge"].folder).glob("*.json")) if "judge" in roles else []
    paths = {name: path for name, role in roles.items() if (path := _role_path(directory, role, case, number)) is not None}
    values: Mapping[str, float | None] = MappingProxyType({})
    status: CaseStatus = "missing_output"
    if len(judges) != 1:
        reason = "it has no judge's file" if not judges else f"it has {len(judges)} judge's files"
    else:
        judgement = read_judgement(judges[0], keys, scales)
        reason = unusable(judgement, needed)
        status, values = "invalid_score" if reason else "ok", judgement.values
    return CaseIteration(
        case=case,
        number=number,
        status=status,
        reason=reason,
        values=values,
        diff=diff_size(paths.get("ckg_diff"), diff),
        outputs=MappingProxyType({name: _file(path, directory) for name, path in paths.items()}),
    )


def unusable(judgement: CaseJudgement, needed: Sequence[str]) -> str:
    """Return why an iteration with this judgement cannot be ranked by the keys ``needed``; empty when it can."""
    return "; ".join(dict.fromkeys(judgement.problems[name] for name in needed if name in judgement.problems))


def _file(path: Path, directory: Path) -> RoleFile:
    return RoleFile(path=path.relative_to(directory).as_posix(), sha256=sha256_file(path), size=path.stat().st_size)


def _role_path(directory: Path, role: Role, case: int, number: int) -> Path | None:
    """Return a role's file by its name, else the one file whose name begins as the role's does."""
    exact = directory / role.path(case, number)
    if exact.is_file():
        return exact
    stem = role.file.partition("{")[0]
    similar = sorted((directory / role.folder).glob(f"{stem}*")) if stem else []
    return similar[0] if len(similar) == 1 and similar[0].is_file() else None


def _base(case: Path, number: int, roles: Mapping[str, Role]) -> dict[str, RoleFile]:
    """Return what the case started from, by the snapshots that lie beside it."""
    snapshots: dict[str, RoleFile] = {}
    for name, role in roles.items():
        if not role.carry:
            continue
        for snapshot in (role.snapshot_name(number), role.snapshot_name(None)):
            path = case.parent / "inputs" / snapshot
            if path.is_file():
                snapshots[name] = _file(path, case.parent)
                break
    return snapshots
