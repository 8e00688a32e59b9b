"""``CaseLoopConfig`` and ``run_case_loop``: one case from Python, with seed 3's options as fields."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, cast

from jumar.cases.chain import run_chain
from jumar.cases.dry_run import DRY_STEPS, parse_scores
from jumar.cases.records import CaseLimits, CaseListener
from jumar.cases.settings import ChainSettings, DryRun, read_case_file
from jumar.cases.store.run_store import CaseSource
from jumar.core.files import sha256_file
from jumar.core.text import escape, once
from jumar.errors import ConfigError
from jumar.model.ordering import DEFAULT_TIE_BREAKS, LexicographicOrder, parse_order
from jumar.model.pipeline import DEFAULT_DIFF, DEFAULT_KEYS, DEFAULT_ORDER, DEFAULT_ROLES, Role, Step
from jumar.model.views import shown
from jumar.processes.control import StopSwitch

__all__ = [
    "CaseLoopConfig",
    "chain_settings",
    "dry_run_of",
    "new_run_id",
    "read_scores",
    "run_case_loop",
    "step_to_json",
]

_PATHS: Final = ("data_path", "output_root")
_OPTIONAL_PATHS: Final = ("base_ckg_path", "base_fix_db_path", "workdir")
_WHOLE: Final = ("case_num", "max_iters", "dry_run_stop_iter", "consecutive_failures")
_FLAGS: Final = ("start_from_scratch", "dry_run", "select_best", "resume")
_NUMBERS: Final = ("stop_accuracy", "stop_overall", "stop_chain", "max_seconds")
_TEXTS: Final = ("run_id", "case_id")
_LISTS: Final = ("best_order", "best_tiebreak", "diff", "env")
_LARGEST: Final = 9_999

_Path = str | os.PathLike[str]


def _no_paths() -> Mapping[str, _Path]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLoopConfig:
    """One case. ``data_path`` is its file, ``output_root`` where ``run_<run_id>`` appears (by default a run id is made up).

    ``stop_accuracy``, ``stop_overall`` and ``stop_chain`` must all be reached (None: not asked for); they may lie above every
    score there is. Give ``base_ckg_path`` (and ``base_fix_db_path``), or ``base_paths`` by role, or ``start_from_scratch``.
    ``dry_run_judge_scores`` are rows of scores, or a file of them; they win over ``dry_run_stop_iter``. ``best_order`` and
    ``best_tiebreak`` are the command line's comma strings, or lists. ``steps`` is the pipeline; a dry run has the seed's.
    """

    data_path: _Path
    output_root: _Path
    run_id: str | None = None
    case_id: str | None = None
    case_num: int = 1
    max_iters: int = 5
    stop_accuracy: float | None = 9.0
    stop_overall: float | None = 8.0
    stop_chain: float | None = 8.0
    start_from_scratch: bool = False
    base_ckg_path: _Path | None = None
    base_fix_db_path: _Path | None = None
    dry_run: bool = False
    dry_run_stop_iter: int = 1
    dry_run_judge_scores: Sequence[Mapping[str, Any]] | _Path | None = None
    select_best: bool = True
    best_order: str | Iterable[str] = DEFAULT_ORDER
    best_tiebreak: str | Iterable[str] = DEFAULT_TIE_BREAKS
    steps: Sequence[Step] = ()
    roles: Mapping[str, Role] = field(default_factory=lambda: DEFAULT_ROLES)
    keys: Mapping[str, str] = field(default_factory=lambda: DEFAULT_KEYS)
    diff: Sequence[str] = DEFAULT_DIFF
    base_paths: Mapping[str, _Path] = field(default_factory=_no_paths)
    continue_from: Literal["previous", "best"] = "previous"
    max_seconds: float | None = None
    consecutive_failures: int = 3
    workdir: _Path | None = None
    env: Sequence[str] = ()
    resume: bool = False


def new_run_id() -> str:
    """Return a run id from the time and some random digits: ``20260118-200257-1f3a``."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def run_case_loop(cfg: CaseLoopConfig, *, switch: StopSwitch | None = None, listener: CaseListener | None = None) -> Path:
    """Run one case and return the run's directory, ``output_root/run_<run_id>``.

    Errors: :class:`jumar.errors.ConfigError` for options and files that cannot be used, :class:`jumar.errors.ExistsError` (a
    ``FileExistsError``) when the run exists and is not to be resumed, :class:`jumar.errors.StoreWriteError`. A step that fails
    is no error: it is a record of its iteration.
    """
    settings = chain_settings(cfg)
    return run_chain(settings, resume=cfg.resume, switch=switch, listener=listener).run_dir


def chain_settings(cfg: CaseLoopConfig) -> ChainSettings:
    """Return the chain of one case. Errors: :class:`jumar.errors.ConfigError`."""
    check_types(cfg)
    path = Path(cfg.data_path)
    text = read_case_file(path)
    order = parse_order(cfg.best_order, cfg.best_tiebreak, known=tuple(cfg.keys))
    case = CaseSource(
        number=cfg.case_num,
        case_id=cfg.case_id or f"case{cfg.case_num}",
        report=text.report,
        prompt=text.prompt,
        source=os.fspath(path),
    )
    given = {"accuracy": cfg.stop_accuracy, "overall": cfg.stop_overall, "chain": cfg.stop_chain}
    thresholds = {name: least for name, least in given.items() if least is not None and name in cfg.keys}
    base = {**cfg.base_paths, **({"ckg": cfg.base_ckg_path} if cfg.base_ckg_path is not None else {})}
    if cfg.base_fix_db_path is not None:
        base["fix_db"] = cfg.base_fix_db_path
    dry = dry_run_of(cfg.dry_run_judge_scores, cfg.dry_run_stop_iter) if cfg.dry_run else None
    return ChainSettings(
        run_id=cfg.run_id or new_run_id(),
        output_root=Path(cfg.output_root),
        cases=(case,),
        steps=tuple(cfg.steps) or (DRY_STEPS if cfg.dry_run else ()),
        order=order,
        limits=CaseLimits(
            thresholds=MappingProxyType(thresholds),
            max_iters=cfg.max_iters,
            max_seconds=cfg.max_seconds,
            consecutive_failures=cfg.consecutive_failures,
            at_most=order.falling,
        ),
        roles=cfg.roles,
        keys=cfg.keys,
        diff=tuple(cfg.diff),
        continue_from=cfg.continue_from,
        select_best=cfg.select_best,
        from_scratch=cfg.start_from_scratch,
        base=MappingProxyType({name: Path(given) for name, given in base.items()}),
        workdir=Path.cwd() if cfg.workdir is None else Path(cfg.workdir).absolute(),
        search=(Path.cwd() if cfg.workdir is None else Path(cfg.workdir).absolute(),),
        environment=tuple(cfg.env),
        dry_run=dry,
        recorded=_recorded(cfg, order),
    )


def dry_run_of(scores: Sequence[Mapping[str, Any]] | _Path | None, stop_iter: int) -> DryRun:
    """Return a dry run by rows, by a file of them, or rising to the thresholds. Errors: :class:`jumar.errors.ConfigError`."""
    if stop_iter < 1:
        raise ConfigError(f"dry_run_stop_iter is {stop_iter}: iterations start at 1")
    if scores is None:
        return DryRun(stop_iter=stop_iter)
    if isinstance(scores, str | os.PathLike):
        return DryRun(stop_iter=stop_iter, scores=read_scores(Path(scores)))
    return DryRun(stop_iter=stop_iter, scores=parse_scores(list(scores), where="dry_run_judge_scores"))


def read_scores(path: Path) -> Mapping[int | None, tuple[Mapping[str, Any], ...]]:
    """Read a file of dry-run scores. Errors: :class:`jumar.errors.ConfigError` that names the file."""
    shown = escape(os.fspath(path))
    try:
        data: object = json.loads(path.read_bytes(), object_pairs_hook=once)
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be read: {os.strerror(error.errno or 0)}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{shown}: not JSON: {error}") from None
    return parse_scores(data, where=shown)


def _recorded(cfg: CaseLoopConfig, order: LexicographicOrder) -> dict[str, Any]:
    """Return what ``run.json`` keeps of the options: what a resume must not change. A function is known by its name only."""
    scores = cfg.dry_run_judge_scores
    if isinstance(scores, str | os.PathLike):
        scores = sha256_file(Path(scores))
    base = {"ckg": cfg.base_ckg_path, "fix_db": cfg.base_fix_db_path, **cfg.base_paths}
    return {
        "start_from_scratch": cfg.start_from_scratch,
        "base": {name: os.fspath(path) for name, path in base.items() if path is not None},
        "dry_run_stop_iter": cfg.dry_run_stop_iter,
        "dry_run_judge_scores": scores if scores is None or isinstance(scores, str) else [dict(row) for row in scores],
        "diff": list(cfg.diff),
        "data_path": os.fspath(cfg.data_path),
        "case_id": cfg.case_id,
        "case_num": cfg.case_num,
        "stop": {"accuracy": cfg.stop_accuracy, "overall": cfg.stop_overall, "chain": cfg.stop_chain},
        "dry_run": cfg.dry_run,
        "select_best": cfg.select_best,
        "order": list(order.words),
        "tiebreak": list(order.tie_breaks),
        "continue_from": cfg.continue_from,
        "keys": dict(cfg.keys),
        "steps": [step_to_json(step) for step in cfg.steps],
    }


def step_to_json(step: Step) -> dict[str, Any]:
    """Return a step as ``run.json`` keeps it; a Python callable by its name."""
    call = None if step.call is None else getattr(step.call, "__qualname__", repr(step.call))
    return {
        "name": step.name,
        "command": list(step.command) if isinstance(step.command, tuple) else step.command,
        "python": step.python,
        "builtin": step.builtin,
        "call": call,
        "inputs": list(step.inputs),
        "outputs": list(step.outputs),
        "timeout": step.timeout,
    }


def check_types(cfg: CaseLoopConfig) -> None:
    """Raise :class:`jumar.errors.ConfigError` for the first field that is of another kind than it should be."""
    for name in (*_PATHS, *_OPTIONAL_PATHS):
        value: object = getattr(cfg, name)
        if not (isinstance(value, str | os.PathLike) or (value is None and name in _OPTIONAL_PATHS)):
            raise _wrong(name, value, "a path")
    for name in _WHOLE:
        value = getattr(cfg, name)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST:
            raise _wrong(name, value, f"a whole number from 1 to {_LARGEST:,}")
    for name in _FLAGS:
        if not isinstance(getattr(cfg, name), bool):
            raise _wrong(name, getattr(cfg, name), "True or False")
    for name in _NUMBERS:
        value = getattr(cfg, name)
        if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
            raise _wrong(name, value, "a number, or None")
    for name in _TEXTS:
        value = getattr(cfg, name)
        if value is not None and not (isinstance(value, str) and value and value.isprintable()):
            raise _wrong(name, value, "a text of one line, or None")
    if cfg.continue_from not in {"previous", "best"}:
        raise _wrong("continue_from", cfg.continue_from, "'previous' or 'best'")
    _check_lists(cfg)


def _check_lists(cfg: CaseLoopConfig) -> None:
    for name in _LISTS:
        value: object = getattr(cfg, name)
        comma = isinstance(value, str) and name.startswith("best_")
        if not comma and not _is_list_of(value, str):
            raise _wrong(name, value, "a list of texts" + (", or one with commas" if name.startswith("best_") else ""))
    if not _is_list_of(cfg.steps, Step):
        raise _wrong("steps", cfg.steps, "a list of Step")
    scores: object = cfg.dry_run_judge_scores
    if not (scores is None or isinstance(scores, str | os.PathLike) or _is_list_of(scores, Mapping)):
        raise _wrong("dry_run_judge_scores", scores, "a list of rows, or the path of a file")


def _is_list_of(value: object, kind: Any) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    return all(isinstance(item, kind) for item in cast("Sequence[object]", value))


def _wrong(name: str, value: object, wanted: str) -> ConfigError:
    return ConfigError(f"{name} is {shown(value)}: it should be {wanted}")
