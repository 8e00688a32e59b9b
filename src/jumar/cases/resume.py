"""Resuming a run: what must not have changed since it was started, and cases that end later because a limit was raised."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from jumar.cases.accounting import CaseAccounting
from jumar.cases.case_store import CaseReader
from jumar.cases.records import SPENT
from jumar.cases.run_store import RunReader, RunStore
from jumar.cases.settings import ChainSettings
from jumar.core import files, leftovers
from jumar.core.codec import flat
from jumar.core.lock import LoopLock
from jumar.core.text import escape
from jumar.errors import ConfigError, ForgedError
from jumar.model.budget.pricing import Budget

_STRICTER: Final = ("allow", "charge_reserve", "stop")  # what becomes of a cost that nobody told


def check_resume(run: RunStore, settings: ChainSettings) -> None:
    """Refuse to go on with what would not compare, or what nobody wished. Errors: :class:`jumar.errors.ConfigError`."""
    _check_same(run, settings)
    _check_judge(run)
    _check_loosened(run, settings)


def _check_same(run: RunReader, settings: ChainSettings) -> None:
    """Refuse to mix two configurations in one run."""
    before, now = flat(run.config), flat(settings.recorded)
    changed = [key for key in sorted(before.keys() | now.keys()) if before.get(key) != now.get(key)]
    if changed:
        lines = "\n".join(escape(f"  {key}: {before.get(key, 'unset')!r} → {now.get(key, 'unset')!r}") for key in changed)
        raise ConfigError(
            f"the configuration differs from the one that run '{run.run_id}' was started with:\n{lines}\n"
            "Its cases would not compare. Put it back, or start another run."
        )


def _check_judge(run: RunStore) -> None:
    """Refuse to go on with another judge. What a step changed before jumar was killed is put back instead."""
    changed = run.given.judge_changed()
    if changed and not run.was_cut_off():
        lines = "\n".join(escape(f"  {each.path}: a copy is {run.paths.directory / each.copy.path}") for each in changed)
        raise ConfigError(
            f"what the judge runs is not what it was when run '{run.run_id}' was started:\n{lines}\n"
            "Its iterations would not compare. Put it back, or start another run."
        )


def _check_loosened(run: RunReader, settings: ChainSettings) -> None:
    """Refuse limits that a step may have loosened before jumar was killed, until a person gives them."""
    plan, limits = run.plan, settings.limits
    megabytes = None if plan.max_file_bytes is None else plan.max_file_bytes / 1_000_000
    caps, was = settings.budget, plan.budget or Budget()
    for name, before, now, option, looser in (
        ("max_iters", plan.max_iters, limits.max_iters, "max_iters", 1),
        ("max_seconds", plan.max_seconds, limits.max_seconds, "max_seconds", 1),
        ("max_cost_usd", was.max_cost_usd, caps.max_cost_usd, "max_cost", 1),
        ("max_tokens", was.max_tokens, caps.max_tokens, "max_tokens", 1),
        ("max_file_mb", megabytes, settings.max_file_bytes / 1_000_000, "", 1),
        ("reserve_cost_usd", was.reserve_cost_usd, caps.reserve_cost_usd, "reserve_cost", -1),
        ("reserve_tokens", was.reserve_tokens, caps.reserve_tokens, "", -1),
    ):
        loosened = before is not None and (now is None or looser * (now - before) > 0)
        if loosened and option not in settings.confirmed:
            _refuse_loosened(run, name, f"{before:.10g}", "gone" if now is None else f"{now:.10g}", option)
    before, now = (_STRICTER.index(each.on_unknown_cost) for each in (was, caps))
    if plan.budget is not None and now < before:
        _refuse_loosened(run, "on_unknown_cost", f'"{was.on_unknown_cost}"', f'"{caps.on_unknown_cost}"', "")


def _refuse_loosened(run: RunReader, name: str, before: str, now: str, option: str) -> None:
    if not run.was_cut_off():
        return
    if option:
        way_out = f"give --{option.replace('_', '-')} if it was you, or put it back"
    else:
        way_out = "put it back; a resume after that one may have another"
    raise ConfigError(
        f"{name} was {before} when run '{run.run_id}' was started and is {now} now, and jumar was killed while a step ran, which "
        f"may have changed it: {way_out}"
    )


def reopen(run: RunStore, settings: ChainSettings, accounting: CaseAccounting | None) -> Iterator[str]:
    """Open every case again that a limit ended which leaves room now, and yield what to tell; the caller holds the run's lock.

    A case that a later one was built on stays as it ended; where nothing is carried, none is. Killed in between, doing it again
    comes to the same. Errors: :class:`jumar.errors.LockedError`, :class:`jumar.errors.StoreWriteError`.
    """
    most = settings.limits.max_seconds
    if most is not None and run.seconds() >= most:
        return
    if accounting is not None and accounting.refusal() is not None:
        return
    built_on = False
    for number in sorted(run.case_ids, reverse=True):
        case = run.case(number)
        made = bool(case.records()) or case.pending() is not None
        if _ended_by_a_limit(case):
            if built_on:
                yield f"case {number} had ended by a limit, and stays so: a later case was built on what it selected"
            elif number in {each.number for each in settings.cases}:
                _open_again(run, case, forget=settings.carry_forward and not made)
                yield f"case {number} had ended by a limit that leaves room now, and goes on"
        built_on = built_on or (made and settings.carry_forward)


def _ended_by_a_limit(case: CaseReader) -> bool:
    with contextlib.suppress(ForgedError):
        end = case.end()
        return end is not None and end.stopped_by in SPENT
    return False


def _open_again(run: RunStore, case: CaseReader, *, forget: bool) -> None:
    """Remove the end of a case, after what was made from its iterations; with ``forget`` also what was carried into it."""
    paths = case.paths
    with LoopLock(paths.lock, what=f"case {case.number}"), files.as_write_error("remove", paths.end):
        leftovers.remove_tree(paths.best)
        inputs = case.inputs() if forget else None
        if inputs is not None:
            given = {file.path for file in run.given.files}
            carried = [run.paths.directory / file.path for file in inputs.files.values() if file.path not in given]
            for path in (paths.inputs, *carried):
                leftovers.remove_any(path)
        leftovers.remove_any(paths.end)
        files.fsync_directory(paths.directory)
