"""``CaseLoopConfig`` and ``run_case_loop``: one case from Python, with seed 3's options as fields."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast, get_args

from jumar.cases.chain import run_chain
from jumar.cases.records import CaseLimits, CaseListener
from jumar.cases.run_store import CaseSource
from jumar.cases.settings import ChainSettings, read_case_file, read_order
from jumar.cases.steps import DRY_STEPS, dry_run_of
from jumar.core.files import sha256_file
from jumar.core.record import nothing, plain
from jumar.errors import ConfigError
from jumar.model.budget.pricing import Budget
from jumar.model.ordering import DEFAULT_TIE_BREAKS, LexicographicOrder, parse_order, shown
from jumar.model.pipeline import (
    DEFAULT_DIFF,
    DEFAULT_FAILURES,
    DEFAULT_KEYS,
    DEFAULT_MAX_ITERS,
    DEFAULT_ORDER,
    DEFAULT_ROLES,
    ContinueFrom,
    Role,
    Scale,
    Step,
)
from jumar.processes.control import StopSwitch

_LARGEST: Final = 9_999

_Path = str | os.PathLike[str]
_Scores = Sequence[Mapping[str, Any]] | _Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLoopConfig:
    """One case. ``data_path`` is its file, ``output_root`` where ``run_<run_id>`` appears (by default a run id is made up).

    ``stop_accuracy``, ``stop_overall`` and ``stop_chain`` must all be reached (None: not asked for); they may lie above every
    score there is. Give ``base_ckg_path`` (and ``base_fix_db_path``), or ``base_paths`` by role, or ``start_from_scratch``.
    ``dry_run_judge_scores`` are rows of scores, or a file of them; they win over ``dry_run_stop_iter``. ``best_order`` and
    ``best_tiebreak`` are the command line's comma strings, or lists; a key of the order may be ``{key, min, max}``: a score
    outside of that is none. ``steps`` is the pipeline; a dry run has the seed's.
    """

    data_path: _Path
    output_root: _Path
    run_id: str | None = None
    case_id: str | None = None
    case_num: int = 1
    max_iters: int = DEFAULT_MAX_ITERS
    stop_accuracy: float | None = 9.0
    stop_overall: float | None = 8.0
    stop_chain: float | None = 8.0
    start_from_scratch: bool = False
    base_ckg_path: _Path | None = None
    base_fix_db_path: _Path | None = None
    dry_run: bool = False
    dry_run_stop_iter: int = 1
    dry_run_judge_scores: _Scores | None = None
    select_best: bool = True
    best_order: str | Iterable[str | Mapping[str, Any]] = DEFAULT_ORDER
    best_tiebreak: str | Iterable[str] = DEFAULT_TIE_BREAKS
    steps: Sequence[Step] = ()
    roles: Mapping[str, Role] = field(default_factory=lambda: DEFAULT_ROLES)
    keys: Mapping[str, str] = field(default_factory=lambda: DEFAULT_KEYS)
    diff: Sequence[str] = DEFAULT_DIFF
    base_paths: Mapping[str, _Path] = field(default_factory=nothing)
    continue_from: ContinueFrom = "previous"
    max_seconds: float | None = None
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    reserve_cost_usd: float | None = None
    consecutive_failures: int = DEFAULT_FAILURES
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
    _check_types(cfg)
    path = Path(cfg.data_path)
    words, scales = read_order(cfg.best_order)
    order = parse_order(words, cfg.best_tiebreak, known=tuple(cfg.keys))
    case = CaseSource(
        number=cfg.case_num,
        case_id=cfg.case_id or f"case{cfg.case_num}",
        source=os.fspath(path),
        **read_case_file(path)._asdict(),
    )
    given = {"accuracy": cfg.stop_accuracy, "overall": cfg.stop_overall, "chain": cfg.stop_chain}
    thresholds = {name: least for name, least in given.items() if least is not None and name in cfg.keys}
    workdir = Path(cfg.workdir or "").absolute()
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
            scales=scales,
        ),
        roles=cfg.roles,
        keys=cfg.keys,
        diff=tuple(cfg.diff),
        continue_from=cfg.continue_from,
        select_best=cfg.select_best,
        from_scratch=cfg.start_from_scratch,
        base=MappingProxyType({name: Path(given) for name, given in _base(cfg).items()}),
        workdir=workdir,
        search=(workdir,),
        environment=tuple(cfg.env),
        dry_run=dry_run_of(cfg.dry_run_judge_scores, cfg.dry_run_stop_iter) if cfg.dry_run else None,
        recorded=_recorded(cfg, order, scales),
        budget=Budget(max_cost_usd=cfg.max_cost_usd, max_tokens=cfg.max_tokens, reserve_cost_usd=cfg.reserve_cost_usd),
        confirmed=frozenset({"max_iters", "max_seconds", "max_cost", "max_tokens"}),
    )


def _base(cfg: CaseLoopConfig) -> dict[str, _Path]:
    """Return what the run starts from, by role; the seed's own two names win over ``base_paths``."""
    named = {"ckg": cfg.base_ckg_path, "fix_db": cfg.base_fix_db_path}
    return {**cfg.base_paths, **{role: path for role, path in named.items() if path is not None}}


def _recorded(cfg: CaseLoopConfig, order: LexicographicOrder, scales: Mapping[str, Scale]) -> dict[str, Any]:
    """Return what ``run.json`` keeps of the options: what a resume must not change. A function is known by its name only."""
    scores = cfg.dry_run_judge_scores
    if isinstance(scores, str | os.PathLike):
        scores = sha256_file(Path(scores))
    return {
        "start_from_scratch": cfg.start_from_scratch,
        "base": {name: os.fspath(path) for name, path in _base(cfg).items()},
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
        **({"scales": {name: scale.to_json() for name, scale in scales.items()}} if scales else {}),
        "tiebreak": list(order.tie_breaks),
        "continue_from": cfg.continue_from,
        "keys": dict(cfg.keys),
        "steps": [_step_to_json(step) for step in cfg.steps],
    }


def _step_to_json(step: Step) -> dict[str, Any]:
    call = None if step.call is None else getattr(step.call, "__qualname__", repr(step.call))
    return {each.name: call if each.name == "call" else plain(getattr(step, each.name)) for each in fields(step)}


def _check_types(cfg: CaseLoopConfig) -> None:
    """Raise :class:`jumar.errors.ConfigError` for the first field whose value is of another type than the class declares."""
    for declared in fields(cfg):
        value: object = getattr(cfg, declared.name)
        kind = str(declared.type)
        fits, wanted = _TYPES[kind.removesuffix(" | None")]
        if not fits(value) and not (value is None and kind.endswith(" | None")):
            raise ConfigError(f"{declared.name} is {shown(value)}: it should be {wanted}")


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


def _is_list_of(value: object, kind: Any) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    return all(isinstance(item, kind) for item in cast("Sequence[object]", value))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _LARGEST


_TYPES: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "_Path": (_is_path, "a path"),
    "int": (_is_whole, f"a whole number from 1 to {_LARGEST:,}"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "float": (lambda value: isinstance(value, int | float) and not isinstance(value, bool), "a number, or None"),
    "str": (lambda value: isinstance(value, str) and bool(value) and value.isprintable(), "a text of one line, or None"),
    "ContinueFrom": (lambda value: value in get_args(ContinueFrom), "'previous' or 'best'"),
    "Sequence[str]": (lambda value: _is_list_of(value, str), "a list of texts"),
    "str | Iterable[str]": (
        lambda value: isinstance(value, str) or _is_list_of(value, str),
        "a list of texts, or one with commas",
    ),
    "str | Iterable[str | Mapping[str, Any]]": (
        lambda value: isinstance(value, str) or _is_list_of(value, str | Mapping),
        "a list of keys, or one with commas",
    ),
    "Sequence[Step]": (lambda value: _is_list_of(value, Step), "a list of Step"),
    "_Scores": (lambda value: _is_path(value) or _is_list_of(value, Mapping), "a list of rows, or the path of a file"),
    "Mapping[str, Role]": (lambda value: isinstance(value, Mapping), "a mapping of roles by name"),
    "Mapping[str, str]": (lambda value: isinstance(value, Mapping), "a mapping of texts by name"),
    "Mapping[str, _Path]": (lambda value: isinstance(value, Mapping), "a mapping of paths by role"),
}
"""What a value of each type that :class:`CaseLoopConfig` declares has to be, where it is not None, and how an error calls it."""
