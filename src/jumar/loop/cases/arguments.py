"""What callers without a type checker may hand in: each field of a configuration is of its kind, or an error names it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from jumar.errors import ConfigError
from jumar.model.pipeline import Step
from jumar.ranking.views import shown

if TYPE_CHECKING:
    from jumar.loop.cases.config import CaseLoopConfig

__all__ = ["check_types"]

_PATHS: Final = ("data_path", "output_root")
_OPTIONAL_PATHS: Final = ("base_ckg_path", "base_fix_db_path", "workdir")
_WHOLE: Final = ("case_num", "max_iters", "dry_run_stop_iter", "consecutive_failures")
_FLAGS: Final = ("start_from_scratch", "dry_run", "select_best", "resume")
_NUMBERS: Final = ("stop_accuracy", "stop_overall", "stop_chain", "max_seconds")
_TEXTS: Final = ("run_id", "case_id")
_LISTS: Final = ("best_order", "best_tiebreak", "diff", "env")
_LARGEST: Final = 9_999


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
