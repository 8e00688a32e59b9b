"""A whole run: cases one after the other, each from the best of the one before; or side by side, when nothing is carried."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

from jumar.cases.case import case_seconds, run_case, run_seconds
from jumar.cases.dry_run import dry_keys
from jumar.cases.events import CaseEnded, CaseListener, CaseNotice, tell
from jumar.cases.records import CaseStop
from jumar.cases.settings import ChainSettings, check_chain, starting_roles
from jumar.cases.store.layout import RunPaths
from jumar.cases.store.run_store import RunReader, RunStore, create_run
from jumar.core.clock import SystemClock
from jumar.core.codec import flat
from jumar.core.text import escape, plural
from jumar.errors import ConfigError, JumarError, NotFoundError
from jumar.model.pipeline import RunPlan
from jumar.model.protocols import Clock
from jumar.processes.control import StopSwitch

__all__ = ["ChainOutcome", "open_run", "run_chain"]

_POLL_SECONDS: Final = 0.2


class _Submits(Protocol):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOutcome:
    """Where the run is, and why it was stopped early: None when every case has ended."""

    run_dir: Path
    stopped: CaseStop | None = None


def open_run(settings: ChainSettings, *, resume: bool, clock: Clock | None = None) -> RunStore:
    """Make the run's directory with its inputs, or open the one that is to be resumed. Nothing is paid for.

    Errors: :class:`jumar.errors.ConfigError` for settings that cannot work, or that differ from the recorded ones;
    :class:`jumar.errors.ExistsError` when the run exists and is not to be resumed; :class:`jumar.errors.NotFoundError` when it
    does not exist and is.
    """
    check_chain(settings)
    paths = RunPaths.of(settings.output_root, settings.run_id)
    if resume:
        run = RunStore(paths.directory)
        _check_same(run, settings)
        return run
    for name in starting_roles(settings):
        _readable(name, settings.base.get(name))
    base: dict[str, bytes | Path] = {}
    for name in starting_roles(settings):
        base[name] = settings.base.get(name) or (settings.roles[name].empty or "").encode()
    return create_run(
        paths,
        run_id=settings.run_id,
        config=settings.recorded,
        cases=settings.cases,
        base=base,
        plan=_plan(settings),
        created_at=(clock or SystemClock()).now(),
    )


def _plan(settings: ChainSettings) -> RunPlan:
    keys = settings.keys if settings.dry_run is None else dry_keys(settings.keys)
    return RunPlan(
        order=settings.order.words,
        tie_breaks=settings.order.tie_breaks,
        keys=MappingProxyType(dict(keys)),
        diff=settings.diff,
        roles=settings.roles,
        max_iters=settings.limits.max_iters,
    )


def _readable(name: str, path: Path | None) -> None:
    if path is not None and not os.access(path, os.R_OK):
        raise ConfigError(f"the base for {name}, {escape(str(path))}, cannot be read")


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


def run_chain(
    settings: ChainSettings,
    *,
    resume: bool = False,
    executor: Executor | _Submits | None = None,
    clock: Clock | None = None,
    switch: StopSwitch | None = None,
    listener: CaseListener | None = None,
) -> ChainOutcome:
    """Run all cases and return where the run is. Errors: as :func:`open_run` and :func:`jumar.cases.case.run_case`.

    With ``executor`` the cases run side by side, each as a task of its own that may be run again; that needs
    ``carry_forward = False``, and events are told of ended cases only.
    """
    if executor is not None and settings.carry_forward:
        raise ConfigError(
            "cases that carry their best forward run one after the other: set carry_forward = false, or no executor"
        )
    run = open_run(settings, resume=resume, clock=clock)
    for warning in settings.order.warnings:
        tell(CaseNotice(message=warning), listener)
    if resume and all(run.case(case.number).end() is not None for case in settings.cases):
        message = "every case has ended already and nothing is run; an ended case is not opened again, start another run"
        tell(CaseNotice(message=message), listener)
    switch = switch or StopSwitch()
    with run.lock():
        if executor is not None:
            stopped = _side_by_side(run, settings, executor, switch, listener)
        else:
            stopped = _in_order(run, settings, clock, switch, listener)
    return ChainOutcome(run_dir=run.paths.directory, stopped=stopped)


def _in_order(
    run: RunStore, settings: ChainSettings, clock: Clock | None, switch: StopSwitch, listener: CaseListener | None
) -> CaseStop | None:
    limited = settings.limits.max_seconds is not None
    spent = run_seconds(run) if limited else 0.0
    for case in settings.cases:
        before = case_seconds(run.case(case.number)) if limited else 0.0
        stopped = run_case(
            settings, case.number, clock=clock, switch=switch, listener=listener, elsewhere=spent - before if limited else None
        )
        if stopped is not None:
            return stopped
        # added up: reading every record again before each case would make a long run slower with every case
        spent += case_seconds(run.case(case.number)) - before if limited else 0.0
    return None


def _side_by_side(
    run: RunStore, settings: ChainSettings, executor: Executor | _Submits, switch: StopSwitch, listener: CaseListener | None
) -> CaseStop | None:
    """Hand every case that has not ended to the executor; the first error is raised when all are done.

    Asked to stop, it takes back what has not begun. What runs in this process sees the switch too; elsewhere a case that has
    begun goes on to its end, and is waited for unless it shall be at once.
    """
    # only what shares this process can share the switch
    shared = isinstance(executor, ThreadPoolExecutor)
    task = functools.partial(run_case, switch=switch) if shared else run_case
    wanted = [case.number for case in settings.cases if run.case(case.number).end() is None]
    waiting: dict[Future[Any], int] = {}
    errors: dict[int, JumarError] = {}
    for number in wanted:
        try:
            waiting[executor.submit(task, settings, number)] = number
        except Exception as error:  # noqa: BLE001 - an executor that broke meanwhile raises what it likes
            errors[number] = _as_ours(error)
    running = set(waiting)
    while running and not (switch.immediate.is_set() and not shared):
        done, running = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        for future in done:
            number = waiting[future]
            try:
                future.result()
            except Exception as error:  # noqa: BLE001 - as above
                errors[number] = _as_ours(error)
                continue
            end = run.case(number).end()
            if end is not None:
                tell(CaseEnded(end=end, best=run.case(number).best()), listener)
        if switch.requested:
            running = {future for future in running if not future.cancel()}
    if switch.requested and any(run.case(number).end() is None for number in wanted):
        return CaseStop(stopped_by=switch.reason, detail="stopped on request")
    for number in sorted(errors)[:1]:
        error = errors[number]
        raise type(error)(
            f"case {number}: {error}; {len(errors)} of {plural(len(wanted), 'case')} failed, --resume runs them again"
        ) from error
    return None


def _as_ours(error: Exception) -> JumarError:
    """Return an error that a person can use, for whatever an executor or the way to it raised."""
    if isinstance(error, NotFoundError):
        return NotFoundError(f"{error}: a worker does not see what this process sees there; it must have it under the same path")
    if isinstance(error, JumarError):
        return error
    said = " ".join(str(error).split()) or "no more is known"
    return JumarError(f"it could not be run by the executor: {type(error).__name__}: {escape(said)}")
