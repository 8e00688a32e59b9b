"""A whole chain as values: its cases, its pipeline, how it ranks, when it ends. Checked before anything is made or paid for."""

from __future__ import annotations

import copyreg
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from jumar.cases.judgement import BUILTINS, NO_SCALES, check_expression
from jumar.cases.ranking import Condition, check_limits
from jumar.cases.records import CHAIN_NAME, CaseLimits
from jumar.cases.run_store import CaseSource
from jumar.core.kept import Kept
from jumar.core.text import escape, nearest, plural
from jumar.errors import ConfigError
from jumar.model.budget.gate import check_budget
from jumar.model.budget.pricing import Budget
from jumar.model.ordering import LexicographicOrder, parse_order, shown
from jumar.model.pipeline import (
    DEFAULT_DIFF,
    DEFAULT_KEYS,
    DEFAULT_MAX_FILE_MB,
    DEFAULT_ROLES,
    GIVEN,
    ContinueFrom,
    Role,
    Scale,
    Step,
)
from jumar.processes.environment import check_patterns
from jumar.processes.functions import check_reference
from jumar.processes.process import check_command, check_timeout


def _frozen(items: dict[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(items)


def _thawed(mapping: Mapping[Any, Any]) -> tuple[Any, tuple[dict[Any, Any]]]:
    return _frozen, (dict(mapping),)


# A chain's settings go to the workers of an executor, and frozen mappings are the one thing in them that pickle does not know.
copyreg.pickle(MappingProxyType, _thawed)

MARKER: Final = "E2E Test Query"
SEPARATOR: Final = "---"
JUDGE: Final = "judge"
_LARGEST: Final = 16 << 20
_OWN_FOLDERS: Final = frozenset({"steps", "logs", "iteration.json"})
_TAKEN: Final[Mapping[str, str]] = MappingProxyType(
    {CHAIN_NAME: "it is how the key chain is called there", "diff": "the size of the augmentation"}
)
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_STEP: Final = re.compile(r"[a-z][a-z0-9_-]*")
_PATH: Final = re.compile(r"\{(in|out)\.([^{}\s]*)\}")
_FILE: Final = re.compile(r"[^/\0]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """Synthetic steps instead of programs. ``scores`` are rows by case, under None those of every other case.

    A row has the judge's scores by key, and may have ``diff``, the entities that the synthetic augmentation adds (default 1).
    Iteration k gets row k, later ones the last row. A case without rows rises evenly to its thresholds at ``stop_iter``.
    """

    stop_iter: int = 1
    scores: Mapping[int | None, tuple[Mapping[str, Any], ...]] = field(
        default_factory=lambda: MappingProxyType(dict[int | None, tuple[Mapping[str, Any], ...]]())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSettings:
    """What a run of cases is made of.

    ``cases`` are run in this order. ``base`` has, by role, the file that the run starts from; it is empty when ``from_scratch``.
    ``search`` are directories that Python steps are imported from. A file of more than ``max_file_bytes`` is a step's failure.
    ``budget`` limits what all steps cost, over all resumes; its seconds are ``limits.max_seconds``. A best that does not meet
    ``carry_if`` is not carried.
    ``recorded`` is the configuration as ``run.json`` keeps it, ``config`` its file and what that holds. ``confirmed`` are the
    limits that a person gave now.
    """

    run_id: str
    output_root: Path
    cases: tuple[CaseSource, ...]
    steps: tuple[Step, ...]
    order: LexicographicOrder
    limits: CaseLimits
    roles: Mapping[str, Role] = field(default_factory=lambda: DEFAULT_ROLES)
    keys: Mapping[str, str] = field(default_factory=lambda: DEFAULT_KEYS)
    diff: tuple[str, ...] = DEFAULT_DIFF
    continue_from: ContinueFrom = "previous"
    carry_forward: bool = True
    select_best: bool = True
    from_scratch: bool = False
    base: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType(dict[str, Path]()))
    workdir: Path = field(default_factory=Path.cwd)
    search: tuple[Path, ...] = ()
    environment: tuple[str, ...] = ()
    max_file_bytes: int = DEFAULT_MAX_FILE_MB * 1_000_000
    budget: Budget = field(default_factory=Budget)
    carry_if: tuple[Condition, ...] = ()
    dry_run: DryRun | None = None
    recorded: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType(dict[str, Any]()))
    config: tuple[Kept, ...] = ()
    confirmed: frozenset[str] = frozenset()


def input_name(declared: str) -> tuple[str, bool]:
    """Return the name of a declared input, and whether it may be missing: ``ckg?`` → ``("ckg", True)``."""
    return declared.removesuffix("?"), declared.endswith("?")


def read_order(given: str | Iterable[str | Mapping[str, Any]]) -> tuple[str | list[str], Mapping[str, Scale]]:
    """Return an order's keys as they are typed, and the scales of those that are given as ``{key, min, max}``.

    Errors: :class:`jumar.errors.ConfigError`.
    """
    if isinstance(given, str):
        return given, NO_SCALES
    words: list[str] = []
    scales: dict[str, Scale] = {}
    for item in given:
        if isinstance(item, str):
            words.append(item)
            continue
        if not {*item} <= {"key", "min", "max"} or not isinstance(item.get("key"), str):
            raise ConfigError(f"{shown(dict(item))} in the order: write a key, or {{key, min, max}}")
        words.append(item["key"])
        ends = {name: item[name] for name in ("min", "max") if item.get(name) is not None}
        if ends:
            scales[parse_order([item["key"]]).keys[0].name] = Scale(**ends)
    return words, MappingProxyType(scales)


def check_chain(settings: ChainSettings) -> None:
    """Refuse settings that cannot work. Errors: :class:`jumar.errors.ConfigError` that names the step, role, case or key."""
    check_limits(settings.limits)
    check_budget(settings.budget)
    check_patterns(settings.environment)
    _check_cases(settings.cases)
    _check_start(settings)
    for role in settings.roles.values():
        _check_role(role)
    _check_apart(settings.roles)
    _check_steps(settings)
    for name, expression in settings.keys.items():
        if name in _TAKEN:
            raise ConfigError(f"key {name}: this name means something else in best.json ({_TAKEN[name]}); choose another")
        check_expression(expression, where=f"key {name}")
    for expression in settings.diff:
        check_expression(expression, where="diff")
    for name, limit in settings.limits.thresholds.items():
        _known("stop threshold", name, settings.keys)
        _check_on_scale(f"stop threshold {name} = {limit:g}", name, limit, settings.limits)
    for condition in settings.carry_if:
        _known("carry_if", condition.key, settings.keys)
        _check_on_scale(f"carry_if: {condition}", condition.key, condition.limit, settings.limits)


def _check_cases(cases: Sequence[CaseSource]) -> None:
    if not cases:
        raise ConfigError("there are no cases: add [[cases]] with a file")
    seen: dict[int, str] = {}
    for case in cases:
        if case.number < 1:
            raise ConfigError(f"case number {case.number}: numbers start at 1")
        if case.number in seen:
            raise ConfigError(f"two cases have the number {case.number}: {escape(seen[case.number])} and {escape(case.source)}")
        seen[case.number] = case.source


def _check_start(settings: ChainSettings) -> None:
    if settings.from_scratch and settings.base:
        given = ", ".join(sorted(settings.base))
        raise ConfigError(f"a base ({given}) and a start from scratch exclude each other: keep one")
    carried = [name for name, role in settings.roles.items() if role.carry]
    for name, path in settings.base.items():
        _known("base", name, carried)
        if not path.is_file():
            raise ConfigError(f"the base for {name}, {escape(str(path))}, is no file; give a file, or start from scratch")
    if carried and not settings.from_scratch and not settings.base:
        raise ConfigError(
            f"nothing to start from: give a base for {carried[0]} (--base {carried[0]}=FILE), or --start-from-scratch"
        )


def _check_role(role: Role) -> None:
    where = f"role {escape(role.name)}"
    if not _NAME.fullmatch(role.name) or role.name in GIVEN:
        raise ConfigError(f"{where}: a role's name is a-z, 0-9 and _, and not {' or '.join(GIVEN)}")
    for what, name in (("folder", role.folder), ("file", role.file), ("best", role.best), ("snapshot", role.snapshot)):
        if what == "snapshot" and not role.carry:
            continue
        if not _FILE.fullmatch(name) or name in {".", ".."}:
            raise ConfigError(f"{where}: {what} = {escape(repr(name))} should be one name, without a slash")
    if role.folder in _OWN_FOLDERS:
        raise ConfigError(f"{where}: the name {role.folder} is jumar's own in an iteration; choose another folder")


def _check_apart(roles: Mapping[str, Role]) -> None:
    """No two roles may be the same file: one would be handed on as the other."""
    seen: dict[tuple[str, str], str] = {}
    for role in roles.values():
        places = [("file", f"{role.folder}/{role.file}"), ("best", f"{role.folder}/{role.best}")]
        places += [("snapshot", role.snapshot)] if role.carry else []
        for place in places:
            if place in seen:
                raise ConfigError(
                    f"roles {seen[place]} and {role.name} have the same {place[0]}, {escape(place[1])}; name them apart"
                )
            seen[place] = role.name


def _check_steps(settings: ChainSettings) -> None:
    if not settings.steps:
        raise ConfigError("there are no steps: add [[steps]] with a command, inputs and outputs")
    there = set(GIVEN) | set(starting_roles(settings))
    written: dict[str, str] = {}
    names: set[str] = set()
    for step in settings.steps:
        where = f"step {escape(step.name)}"
        if not _STEP.fullmatch(step.name) or step.name in names:
            problem = "is there twice" if step.name in names else "should be a-z, 0-9, _ and -"
            raise ConfigError(f"{where}: the name {problem}")
        names.add(step.name)
        if settings.dry_run is None:
            _check_program(step, where)
        _check_inputs(step, where, settings, there | set(written))
        for role in step.outputs:
            _known(f"{where}: output", role, settings.roles)
            if role in written:
                raise ConfigError(f"{where}: the output {role} is written by step {written[role]} already")
            written[role] = step.name
    if JUDGE not in written:
        raise ConfigError(
            f"no step writes the role '{JUDGE}', from which the scores are read: give a step outputs = [\"{JUDGE}\"]"
        )


def starting_roles(settings: ChainSettings) -> tuple[str, ...]:
    """Return the carried roles that there is something of at the start: a base, or what the role is when it is empty."""
    roles = settings.roles.values()
    return tuple(role.name for role in roles if role.carry and (role.name in settings.base or role.empty is not None))


def _check_inputs(step: Step, where: str, settings: ChainSettings, there: set[str]) -> None:
    later = {role for each in settings.steps for role in each.outputs}
    for declared in step.inputs:
        name, optional = input_name(declared)
        _known(f"{where}: input", name, (*settings.roles, *GIVEN))
        if name in there or (optional and name in later):
            continue
        if name not in later:
            raise ConfigError(f"{where}: the input {name} is never there: no step writes it")
        raise ConfigError(
            f"{where}: the input {name} is not there in the first iteration, because no step before this one writes it: "
            f"write '{name}?' if it may be missing"
        )


def _check_program(step: Step, where: str) -> None:
    given = [name for name in ("command", "python", "builtin", "call") if getattr(step, name) is not None]
    if len(given) != 1:
        raise ConfigError(f"{where}: give one of command, python or builtin" + (f", not {' and '.join(given)}" if given else ""))
    if step.command is not None:
        words = step.command if isinstance(step.command, str) else [word for word in step.command if isinstance(word, str)]
        check_command(words, where=where)
        _check_placeholders(step, where)
    if step.python is not None:
        check_reference(step.python, where=where)
    if step.builtin is not None:
        _known(f"{where}: builtin", step.builtin, BUILTINS)
        builtin = BUILTINS[step.builtin]
        if not set(builtin.inputs) <= set(step.inputs) or set(builtin.outputs) != set(step.outputs):
            needs = f"inputs = {json.dumps(builtin.inputs)} and outputs = {json.dumps(builtin.outputs)}"
            raise ConfigError(f"{where}: the builtin {step.builtin} needs {needs}; write them so")
    check_timeout(step.timeout, where=where)


def _check_placeholders(step: Step, where: str) -> None:
    """A path that is named in an argv must be declared: else it would silently be empty, in every iteration."""
    declared_names = {"in": tuple(input_name(name)[0] for name in step.inputs), "out": step.outputs}
    for word in () if isinstance(step.command, str) else step.command or ():
        for part in (word,) if isinstance(word, str) else word:
            for side, name in _PATH.findall(part):
                if name not in declared_names[side]:
                    declared = ("inputs" if side == "in" else "outputs", ", ".join(declared_names[side]) or "none")
                    hint = nearest(name, declared_names[side])
                    raise ConfigError(
                        f"{where}: {{{side}.{escape(name)}}} is not among its {declared[0]}{hint}; they are: {declared[1]}"
                    )


def _known(what: str, name: str, names: Sequence[str] | Mapping[str, Any]) -> None:
    if name not in names:
        names = tuple(names)
        raise ConfigError(f"{what}: unknown name '{escape(name)}'{nearest(name, names)}; known are: {', '.join(names)}")


def _check_on_scale(what: str, key: str, limit: float, limits: CaseLimits) -> None:
    scale = limits.scales.get(key)
    if scale is not None and limit not in scale:
        raise ConfigError(f"{what} is outside of the scale of {key}, {scale}: no score is there; give a number on it")


class CaseText(NamedTuple):
    """The two texts of a case, without the blank lines around them; neither is empty."""

    report: str
    prompt: str


def read_case_file(path: Path, *, marker: str = MARKER, separator: str = SEPARATOR) -> CaseText:
    """Read a case. The first line that contains ``marker`` begins the query; the last ``separator`` before it ends the report.

    Without a separator the report goes up to the marker. Errors: :class:`jumar.errors.ConfigError` that names file and line.
    """
    shown = escape(os.fspath(path))
    lines = _text(path, shown).replace("\r\n", "\n").split("\n")
    at = next((index for index, line in enumerate(lines) if marker in line), None)
    if at is None:
        raise ConfigError(
            f"{shown}: no line with the marker {escape(repr(marker))} in {plural(sum(map(bool, lines)), 'line')} of text; "
            f"a case is the expert's report, a line '{escape(separator)}', a line with the marker, and the query below it"
        )
    end = next((index for index in range(at - 1, -1, -1) if lines[index].strip() == separator), at)
    report = "\n".join(lines[:end]).strip()
    prompt = "\n".join(lines[at + 1 :]).strip()
    if not report:
        raise ConfigError(f"{shown}:{end + 1}: the expert's report is empty: there is nothing above this line")
    if not prompt:
        raise ConfigError(f"{shown}:{at + 1}: the query is empty: there is nothing below the marker in this line")
    return CaseText(report=report, prompt=prompt)


def _text(path: Path, shown: str) -> str:
    try:
        if not path.is_file():
            problem = "is a directory; name a file" if path.is_dir() else "there is no such file"
            raise ConfigError(f"{shown}: {problem}")
        if path.stat().st_size > _LARGEST:
            raise ConfigError(f"{shown}: larger than {_LARGEST >> 20} MB; that is no case file")
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown}: not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be read: {os.strerror(error.errno or 0)}") from None
