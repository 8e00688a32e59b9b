"""From ``cases.toml`` and the command line's options to a chain that is ready to run."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from jumar.app.config.cases import CasesConfig, RoleConfig, StepConfig, load_cases_config
from jumar.app.evaluate import open_executor
from jumar.app.init import AGENT
from jumar.app.run.request import DEFAULT_ROOT
from jumar.cases.chain import run_chain
from jumar.cases.config import new_run_id
from jumar.cases.layout import list_runs, open_runs
from jumar.cases.ranking import parse_conditions
from jumar.cases.records import CaseLimits, CaseListener, CaseStop, shown_ranking
from jumar.cases.run_store import CaseSource, RunReader
from jumar.cases.settings import ChainSettings, read_case_file, read_order
from jumar.cases.steps import DRY_STEPS, dry_run_of
from jumar.core.kept import Kept, copies_of, leading_to
from jumar.core.leftovers import give_rights
from jumar.core.text import escape, nearest
from jumar.errors import ConfigError, NotFoundError, NothingEvaluatedError, StoreDamagedError
from jumar.loop.store.layout import prepare_root, runs_directory
from jumar.model.attempts import Spend
from jumar.model.budget.pricing import Budget
from jumar.model.ordering import LexicographicOrder, parse_order
from jumar.model.pipeline import DEFAULT_KEYS, DEFAULT_ROLES, ContinueFrom, Role, Scale, Step
from jumar.processes.control import StopSwitch

_DEFAULT = "cases.toml"
_SIGNALS = {"interrupted": 130, "terminated": 143}

_SHOWN = 5
_LIMITS = ("max_iters", "max_seconds", "max_cost", "max_tokens", "reserve_cost")
_NOT_RECORDED = frozenset({"config", "base", "file", "output_root", "run_id", "resume", *_LIMITS})

_PLAIN_PATH = re.compile(r"\.{0,2}/?(?:[\w.-]+/)+[\w.-]+|\.{1,2}/[\w.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CasesRequest:
    """What a person asked to run: a configuration, and what the command line says instead. None: what the file says.

    ``base`` is the directory that relative paths of the file start from; those of options start where they were typed.
    ``file`` is the file of the configuration, with the links that lead to it.
    """

    config: CasesConfig
    base: Path
    file: tuple[Kept, ...] = ()
    output_root: Path
    run_id: str | None = None
    resume: bool = False
    cases: tuple[int, ...] = ()
    start_from_scratch: bool = False
    base_paths: Mapping[str, Path] | None = None
    max_iters: int | None = None
    max_seconds: float | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    reserve_cost: float | None = None
    thresholds: Mapping[str, float] | None = None
    order: str | None = None
    tiebreak: str | None = None
    select_best: bool | None = None
    carry_forward: bool | None = None
    continue_from: ContinueFrom | None = None
    dry_run: bool = False
    dry_run_stop_iter: int | None = None
    dry_run_scores: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CasesResult:
    """How a run of cases ended: each case's best, and why the run was ``stopped`` early, None when every case has ended.

    ``spend`` is what all steps used, None without a budget.
    """

    run_id: str
    run_dir: Path
    stopped: CaseStop | None
    cases: tuple[Mapping[str, Any], ...]
    spend: Spend | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of ``jumar cases run``, as documented."""
        if self.stopped is not None:
            return _SIGNALS.get(self.stopped.stopped_by, 1)
        selected = [case["best_iter"] is not None for case in self.cases]
        return 0 if all(selected) else 1 if any(selected) else NothingEvaluatedError.exit_code

    def document(self) -> dict[str, Any]:
        """Return the document of ``jumar cases run --json``."""
        stopped = None if self.stopped is None else self.stopped.stopped_by
        return {
            "run_id": self.run_id,
            "run_dir": str(self.run_dir),
            "stopped_by": stopped,
            "cases": [dict(case) for case in self.cases],
            **({} if self.spend is None else {"spend": self.spend.to_json()}),
        }


def cases_request(config: Path | None, *, output_root: Path | None, root: Path | None, **options: Any) -> CasesRequest:
    """Return the request for the file ``config`` (default: ``cases.toml``) with further fields of :class:`CasesRequest`.

    Runs go to ``output_root``, else to the file's own, else below ``root``: the folder of all of them is made ignored by git, as
    that of loops is. Errors: :class:`ConfigError`.
    """
    path = config or Path(_DEFAULT)
    path = path / _DEFAULT if path.is_dir() else path
    loaded, kept = load_cases_config(path), copies_of(leading_to(path))
    configured = loaded.run.output_root
    if output_root is None and configured is None:
        root = root or path.parent / DEFAULT_ROOT
        give_rights(root)
        prepare_root(root)
        output_root = runs_directory(root.absolute())
    output_root = Path(path.parent / (configured or "") if output_root is None else output_root).absolute()
    give_rights(output_root)
    return CasesRequest(config=loaded, base=path.parent, file=kept, output_root=output_root, **options)


def run_cases(
    settings: ChainSettings,
    *,
    resume: bool = False,
    executor: str | None = None,
    switch: StopSwitch | None = None,
    listener: CaseListener | None = None,
) -> CasesResult:
    """Run or ``resume`` a chain of cases: the use case of ``jumar cases run``.

    ``executor`` says where cases run side by side: ``threads:N``, ``processes:N`` or ``dask://HOST:PORT``. Errors: those of
    :func:`jumar.cases.chain.open_run`.
    """
    with open_executor(executor) as opened:
        outcome = run_chain(settings, resume=resume, executor=opened, switch=switch, listener=listener)
    run = RunReader(outcome.run_dir)
    cases = tuple(_case_result(run, source) for source in settings.cases)
    return CasesResult(run_id=run.run_id, run_dir=outcome.run_dir, stopped=outcome.stopped, cases=cases, spend=outcome.spend)


def _case_result(run: RunReader, source: CaseSource) -> dict[str, Any]:
    case = run.case(source.number)
    best, end, inputs = case.best(), case.end(), case.inputs()
    return {
        "case": source.number,
        "case_id": source.case_id,
        "best_iter": None if best is None else best.best_iter,
        "ranking": None if best is None else shown_ranking(best.values),
        "selected_by": None if best is None else best.selected_by,
        "stopped_by": None if end is None else end.stopped_by,
        "stop_detail": None if end is None else end.detail,
        "iterations": len(case.iterations()),
        "carried_from": None if inputs is None or inputs.carried_from is None else inputs.carried_from.to_json(),
    }


def chain_of(request: CasesRequest) -> ChainSettings:
    """Return the chain that was asked for; case files are read, nothing is made.

    Errors: :class:`ConfigError` that names file, line, case, role or key.
    """
    if request.resume:
        request = _as_before(request)
    config, base = request.config, request.base
    run = config.run
    keys = MappingProxyType(_keys(request))
    words, scales = _order(config)
    order = parse_order(
        words if request.order is None else request.order,
        config.ranking.tiebreak if request.tiebreak is None else request.tiebreak,
        known=tuple(keys),
    )
    settings = ChainSettings(
        run_id=request.run_id or run.run_id or new_run_id(),
        output_root=request.output_root,
        cases=_cases(request),
        steps=tuple(_step(step) for step in config.steps) or (DRY_STEPS if request.dry_run else ()),
        order=order,
        limits=_limits(request, keys, order, scales),
        roles=MappingProxyType(_roles(config.roles)),
        keys=keys,
        diff=tuple(config.ranking.diff),
        continue_from=request.continue_from or run.continue_from,
        carry_forward=run.carry_forward if request.carry_forward is None else request.carry_forward,
        select_best=run.select_best if request.select_best is None else request.select_best,
        from_scratch=request.start_from_scratch or (config.start.from_scratch and not request.base_paths),
        base=MappingProxyType(_base(request)),
        workdir=(base / run.workdir).resolve(),
        search=(base.resolve(),),
        environment=tuple(run.env),
        max_file_bytes=int(run.max_file_mb * 1_000_000),
        dry_run=_dry_run(request),
        recorded=_recorded(request),
        config=request.file,
        budget=_budget(request),
        carry_if=()
        if run.carry_if is None
        else parse_conditions(run.carry_if, "score" if "score" in keys else order.keys[0].name),
        confirmed=frozenset(name for name in _LIMITS if getattr(request, name) is not None),
    )
    if not settings.workdir.is_dir():
        raise ConfigError(f"the working directory {escape(str(settings.workdir))} does not exist; see [run] workdir")
    if settings.dry_run is None:
        _refuse_missing_programs(settings)
    return settings


def _refuse_missing_programs(settings: ChainSettings) -> None:
    """Refuse, before anything is made, a step whose program is not there; of a shell's line only the templates' placeholder."""
    for step in settings.steps:
        in_shell = isinstance(step.command, str)
        words = step.command.split()[:1] if isinstance(step.command, str) else step.command or ()
        program = words[0] if words and isinstance(words[0], str) else None
        # of a shell's line, what stands first may be anything: only a plain path and the templates' placeholder are looked up
        if program is None or "{" in program or (in_shell and program != AGENT and not _PLAIN_PATH.fullmatch(program)):
            continue
        path = shutil.which(settings.workdir / program if "/" in program else program)
        if path is None:
            raise ConfigError(
                f"step {step.name}: there is no program '{escape(program)}'; name yours in [[steps]], or install it"
            )


def _as_before(request: CasesRequest) -> CasesRequest:
    """Return the request with the run that is meant, and with the options that it was started with where none are given now."""
    root = request.output_root
    open_runs(root)
    given = request.run_id or request.config.run.run_id
    if given is not None:
        if given not in list_runs(root):
            there = ", ".join(escape(run_id) for run_id in list_runs(root)[:_SHOWN]) or "none"
            raise NotFoundError(f"no run called '{escape(given)}' in {escape(str(root))}; there are: {there}")
        run = RunReader(root / f"run_{given}")
    else:
        run = _newest_unfinished(request)
    before: Any = run.config.get("options", {})
    filled: dict[str, Any] = {"run_id": run.run_id, **_caps_before(request, run)}
    for name, value in before.items():
        if getattr(request, name, None) in (None, False, (), {}):
            filled[name] = _as_given(name, value)
    return replace(request, **filled)


def _caps_before(request: CasesRequest, run: RunReader) -> dict[str, Any]:
    """Return the caps that the run was started with and that neither an option nor the file says now: they hold over resumes."""
    before, file = run.plan.budget or Budget(), request.config.budget
    caps = (
        ("max_cost", before.max_cost_usd, file.max_cost_usd),
        ("max_tokens", before.max_tokens, file.max_tokens),
        ("reserve_cost", before.reserve_cost_usd, file.reserve_cost_usd),
    )
    return {name: was for name, was, now in caps if was is not None and now is None and getattr(request, name) is None}


def _as_given(name: str, value: Any) -> Any:
    """Return an option as the command line gives it, from how ``run.json`` keeps it."""
    if name == "cases":
        return tuple(value)
    if name == "base_paths":
        return {role: Path(path) for role, path in value.items()}
    return Path(value) if name == "dry_run_scores" else value


def _newest_unfinished(request: CasesRequest) -> RunReader:
    """Return the newest run that has not ended and was started with this file, whatever its options were.

    Where some were begun here it is one of those: a step may have put another one there.
    """
    runs: list[RunReader] = []
    for run_id in list_runs(request.output_root):
        with contextlib.suppress(StoreDamagedError):  # a damaged run is none that could be gone on with; verify tells of it
            runs.append(RunReader(request.output_root / f"run_{run_id}"))
    file = _recorded(request)["file"]
    same = [run for run in runs if run.config.get("file") == file]
    begun_here = [run for run in same if run.trust.ours]
    unfinished = [run for run in begun_here or same if _may_go_on(run)]
    if not unfinished:
        others = ", ".join([escape(run.run_id) for run in runs if _may_go_on(run)][:_SHOWN])
        elsewhere = f"; unfinished with another configuration, or from elsewhere: {others}" if others else ""
        raise NotFoundError(
            f"no unfinished run of this configuration in {escape(str(request.output_root))}{elsewhere}; see --run-id"
        )
    return max(unfinished, key=lambda run: run.created_at)


def _may_go_on(run: RunReader) -> bool:
    with contextlib.suppress(StoreDamagedError):
        return any(run.case(number).may_go_on for number in run.case_ids)
    return False


def _cases(request: CasesRequest) -> tuple[CaseSource, ...]:
    config = request.config
    numbered = {case.number or place: case for place, case in enumerate(config.cases, start=1)}
    for wanted in request.cases:
        if wanted not in numbered:
            raise ConfigError(f"--case {wanted}: there is no such case; the configuration has {_listed(numbered)}")
    sources: list[CaseSource] = []
    for number, case in sorted(numbered.items()):
        if request.cases and number not in request.cases:
            continue
        path = request.base / case.file
        text = read_case_file(path, marker=config.case_file.marker, separator=config.case_file.separator)
        sources.append(CaseSource(number=number, case_id=case.id or f"case{number}", source=case.file, **text._asdict()))
    return tuple(sources)


def _keys(request: CasesRequest) -> dict[str, str]:
    """Return the configured keys; of the seed's three, those that the file leaves out but the order or a threshold names."""
    given = request.config.ranking.keys
    if given is None:
        return dict(DEFAULT_KEYS)
    order = request.order or _order(request.config)[0]
    words = order.split(",") if isinstance(order, str) else order
    named = {word.strip().removeprefix("-").partition(":")[0].strip() for word in words}
    named |= {*request.config.stop.thresholds, *(request.thresholds or {})}
    return {**{name: path for name, path in DEFAULT_KEYS.items() if name in named}, **given}


def _order(config: CasesConfig) -> tuple[str | list[str], Mapping[str, Scale]]:
    order = config.ranking.order
    return read_order(order if isinstance(order, str) else [key if isinstance(key, str) else key.model_dump() for key in order])


def _limits(request: CasesRequest, keys: Mapping[str, str], order: LexicographicOrder, scales: Mapping[str, Scale]) -> CaseLimits:
    config = request.config
    given = {**config.stop.thresholds, **(request.thresholds or {})}
    for name in given:
        if name not in keys:
            names = sorted((*keys, "max_seconds", "consecutive_failures"))
            raise ConfigError(f"[stop] {escape(name)}: unknown{nearest(name, names)}; known are: {', '.join(names)}")
    return CaseLimits(
        thresholds=MappingProxyType({name: float(least) for name, least in given.items()}),
        max_iters=request.max_iters or config.run.max_iters,
        max_seconds=request.max_seconds or config.budget.max_seconds or config.stop.max_seconds,
        consecutive_failures=config.stop.consecutive_failures,
        at_most=order.falling,
        scales=scales,
    )


def _budget(request: CasesRequest) -> Budget:
    """Return what the steps may cost; the time that they may take is another limit."""
    caps = request.config.budget.limits()
    given = {"max_cost_usd": request.max_cost, "max_tokens": request.max_tokens, "reserve_cost_usd": request.reserve_cost}
    now: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return replace(caps, **now, max_seconds=None)


def _base(request: CasesRequest) -> dict[str, Path]:
    if request.base_paths:
        return {name: Path(path).absolute() for name, path in request.base_paths.items()}
    if request.start_from_scratch:
        return {}
    return {name: (request.base / path).absolute() for name, path in request.config.start.base.items()}


def _dry_run(request: CasesRequest) -> Any:
    if not request.dry_run:
        return None
    config = request.config.dry_run
    scores = request.dry_run_scores
    if scores is None and request.dry_run_stop_iter is None and config.scores is not None:
        scores = request.base / config.scores
    dry = dry_run_of(scores, request.dry_run_stop_iter or config.stop_iter)
    there = {case.number or place for place, case in enumerate(request.config.cases, start=1)}
    unknown = sorted(number for number in dry.scores if number is not None and number not in there)
    if unknown:
        raise ConfigError(f"{escape(str(scores))}: there is no case {unknown[0]}; the configuration has {_listed(there)}")
    return dry


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _roles(given: Mapping[str, RoleConfig]) -> dict[str, Role]:
    roles = dict(DEFAULT_ROLES)
    for name, config in given.items():
        role = roles.get(name)
        set_here = config.model_dump(exclude_unset=True)
        suffix = set_here.pop("suffix", None)
        if role is None:
            dotted = "" if not suffix else "." + str(suffix).lstrip(".")
            role = Role(
                name=name,
                folder=name,
                file=f"{name}_{{iter}}_{{case}}{dotted}",
                best=f"best_{name}{dotted}",
                snapshot=f"base_{name}_snapshot{dotted}",
            )
        elif suffix is not None:
            raise ConfigError(f"[roles.{name}] suffix: this role has its names already; give file, best and snapshot instead")
        roles[name] = replace(role, **set_here)
    return roles


def _step(config: StepConfig) -> Step:
    return Step(**{name: _as_tuples(value) for name, value in config})


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, cast("list[Any]", value))) if isinstance(value, list) else value


def _recorded(request: CasesRequest) -> dict[str, Any]:
    """Return what ``run.json`` keeps: the file, and the options that change what comes out."""
    options = {each.name: getattr(request, each.name) for each in fields(request) if each.name not in _NOT_RECORDED}
    file = request.config.model_dump(mode="json", exclude_defaults=True)
    for name in ("max_iters", "max_file_mb", "run_id"):
        file.get("run", {}).pop(name, None)
    file.get("stop", {}).pop("max_seconds", None)
    file.pop("budget", None)
    flags = {each.name for each in fields(request) if each.default is False}
    given = {name: value for name, value in options.items() if value not in (None, (), {}) and (value or name not in flags)}
    return {"file": file, "options": {name: _as_recorded(value) for name, value in given.items()}}


def _as_recorded(value: Any) -> Any:
    """Return an option as ``run.json`` keeps it: paths absolute, the rest as it is."""
    if isinstance(value, Path):
        return str(value.absolute())
    if isinstance(value, Mapping):
        return {name: _as_recorded(each) for name, each in cast("Mapping[str, Any]", value).items()}
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
