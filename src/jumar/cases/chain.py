"""A whole run: cases one after the other, each from the best of the one before; or side by side, when nothing is carried.

A case is iterations until a limit, then the best bundle and the end.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from jumar.cases.accounting import CaseAccounting, is_capped
from jumar.cases.case_store import CaseStore
from jumar.cases.iteration import IterationRunner, tell_told
from jumar.cases.layout import RunPaths
from jumar.cases.ranking import case_parent, last_complete, rank_case, stop_case
from jumar.cases.records import (
    CaseBest,
    CaseEnd,
    CaseEnded,
    CaseEvent,
    CaseIteration,
    CaseLimits,
    CaseListener,
    CaseNotice,
    CaseStarted,
    CaseStop,
    IterationMade,
    TieBreak,
    tell,
)
from jumar.cases.resume import check_resume, reopen
from jumar.cases.run_store import RunReader, RunStore, contents_of, create_run
from jumar.cases.settings import JUDGE, ChainSettings, check_chain, starting_roles
from jumar.cases.steps import dry_keys
from jumar.core.clock import SystemClock
from jumar.core.offload import Submits, as_executor_error
from jumar.core.text import escape, plural
from jumar.errors import ConfigError, JumarError, NotFoundError, UsageError
from jumar.model.attempts import Spend
from jumar.model.budget.pricing import Budget
from jumar.model.pipeline import RunPlan, Step
from jumar.model.protocols import Clock
from jumar.processes.check_files import CheckSource, check_files, shadows
from jumar.processes.command_words import placed_commands
from jumar.processes.control import StopSwitch
from jumar.processes.process_tree import programs_above


def run_case(
    settings: ChainSettings,
    number: int,
    *,
    clock: Clock | None = None,
    switch: StopSwitch | None = None,
    listener: CaseListener | None = None,
    elsewhere: float | None = None,
    run: RunStore | None = None,
) -> CaseStop | None:
    """Run one case of a run that exists, or resume it; return why it was stopped early, None when it has ended.

    ``elsewhere`` are the seconds of the run's other cases, where the caller knows them (None: they are read); ``run`` is the run
    where it is open, with what is known of it whatever a program deletes. Running an ended case again does nothing, so that a
    task whose worker died can simply be run a second time. Errors: :class:`jumar.errors.LockedError` when another process runs
    this case, :class:`jumar.errors.StoreWriteError`, :class:`jumar.errors.StoreDamagedError`; what was acknowledged stays.
    """
    run = run or _open(settings)
    clock, switch = clock or SystemClock(), switch or StopSwitch()
    case = run.store(number)
    if case.tidy:
        return None
    with case.lock() as store:
        tell_told(store, listener)
        store.clear_scratch()
        inputs = run.begin_case(number, settings.roles, carry=settings.carry_forward)
        tell_told(store, listener)
        end = store.end()
        if end is not None:
            _write_best_again(store, settings, end)
            store.remove_leftovers()
            return None
        iterations = store.iterations()
        best = rank_case(iterations, settings.order).best
        started = CaseStarted(
            case=number,
            case_id=inputs.case_id,
            carried_from=inputs.carried_from,
            recorded=iterations,
            best=None if best is None else best.number,
        )
        tell(started, listener)
        runner = IterationRunner(
            store=store,
            settings=settings,
            inputs=inputs,
            clock=clock,
            switch=switch,
            listener=listener,
            accounting=CaseAccounting.of(run, settings),
        )
        if elsewhere is None and settings.limits.max_seconds is not None:
            elsewhere = run.seconds() - _seconds(store.iterations())
        stop = _iterate(store, settings, runner, elsewhere or 0.0)
        if stop.stopped_by in {"interrupted", "terminated"}:
            return stop
        end = _finish(store, settings, stop, at=clock.now())
        chosen = store.best()
    tell(CaseEnded(end=end, best=chosen), listener)
    return None


def _write_best_again(store: CaseStore, settings: ChainSettings, end: CaseEnd) -> None:
    """Write the bundle of a case that has ended, where what stood in its place was set aside."""
    record = next((each for each in store.iterations() if each.number == end.best_iter), None)
    if store.best() is None and record is not None and store.sound(record):
        wanted = choose_bundle(store.iterations(), settings)
        if wanted is not None and wanted.best_iter == end.best_iter:
            store.write_best(wanted, settings.roles)


def _iterate(store: CaseStore, settings: ChainSettings, runner: IterationRunner, elsewhere: float) -> CaseStop:
    while True:
        store.tidy_up()
        tell_told(store, runner.listener)
        iterations = store.iterations()
        seconds, most = elsewhere + _seconds(iterations), settings.limits.max_seconds
        stop = _stopped(store, iterations, settings.limits, seconds) or _refused(store, runner)
        wanted = None if stop is None or store.best() is not None else choose_bundle(iterations, settings)
        parent = case_parent(iterations, settings.continue_from, settings.order)
        used = parent if stop is None else next((each for each in iterations if wanted and each.number == wanted.best_iter), None)
        if used is not None and not store.sound(used):
            continue
        if stop is not None:
            return stop
        if runner.switch.requested:
            return CaseStop(stopped_by=runner.switch.reason, detail="stopped on request")
        record = runner.make(store.next_number(), parent, left=None if most is None else most - seconds)
        if record is not None:
            best = rank_case(store.iterations(), settings.order).best
            tell(IterationMade(record=record, best=None if best is None else best.number), runner.listener)


def _refused(store: CaseStore, runner: IterationRunner) -> CaseStop | None:
    """Return why no iteration may be paid for. One that was begun is asked for step by step: what it cost is to be on record."""
    if runner.accounting is None or store.pending() is not None:
        return None
    with runner.accounting.lock:
        return runner.accounting.refusal()


def _stopped(store: CaseStore, iterations: Sequence[CaseIteration], limits: CaseLimits, seconds: float) -> CaseStop | None:
    """Return why the case ends. One whose best bundle is written is decided, also when a resume has raised a limit meanwhile."""
    stop = stop_case(iterations, limits, seconds=seconds)
    if stop is None and store.best() is not None:
        return stop_case(iterations, replace(limits, max_iters=len(iterations)), seconds=seconds)
    return stop


def _seconds(iterations: Sequence[CaseIteration]) -> float:
    """Return what all recorded steps took, in seconds; those that were lost up to their last heartbeat."""
    return sum(step.seconds or 0.0 for record in iterations for step in record.steps)


def _finish(store: CaseStore, settings: ChainSettings, stop: CaseStop, *, at: str) -> CaseEnd:
    """Write the best bundle, unless it is there from before an interruption, then the end."""
    iterations = store.iterations()
    wanted = choose_bundle(iterations, settings)
    written = store.best()
    if wanted is not None and (written is None or written.best_iter != wanted.best_iter):
        store.write_best(wanted, settings.roles)
    end = CaseEnd(
        case=store.number,
        stopped_by=stop.stopped_by,
        detail=stop.detail,
        iterations=len(iterations),
        best_iter=None if wanted is None else wanted.best_iter,
        ended_at=at,
    )
    store.write_end(end)
    return end


def choose_bundle(iterations: Sequence[CaseIteration], settings: ChainSettings) -> CaseBest | None:
    """Return what goes into ``best/``: the best by the order, or the last complete one when the last is asked for.

    None when there is no such iteration.
    """
    ranking = rank_case(iterations, settings.order)
    last = last_complete(iterations)
    chosen = ranking.best if settings.select_best else last
    if chosen is None or last is None:
        return None
    ties = settings.order.tie_breaks
    best = settings.select_best
    return CaseBest(
        case=chosen.case,
        best_iter=chosen.number,
        selected_by="best" if best else "last",
        values=chosen.values,
        tie_break=TieBreak(prefer_earlier_iter="earlier_iter" in ties, prefer_smaller_diff="smaller_diff" in ties),
        files=MappingProxyType(dict(chosen.outputs)),
        order=settings.order.words,
        runner_up=ranking.runner_up if best else None,
        margin=ranking.margin if best else None,
        decided_by=ranking.decided_by if best else None,
        explanation=ranking.explanation if best else "the last complete iteration, as was asked for",
        last_iter=last.number,
        last_values=last.values,
        not_carried=_not_carried(chosen, settings),
    )


def _not_carried(chosen: CaseIteration, settings: ChainSettings) -> str | None:
    """Return why what was selected is not good enough for the next case; None where it is."""
    missed = next((each for each in settings.carry_if if not each.holds(chosen.values)), None)
    if missed is None:
        return None
    value = chosen.values.get(missed.key)
    return f"{missed.key} is {'missing' if value is None else f'{value:g}'}, and carry_if asks for {missed}"


_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOutcome:
    """Where the run is, and why it was stopped early: None when every case has ended.

    ``spend`` is what all steps used, None without a budget.
    """

    run_dir: Path
    stopped: CaseStop | None = None
    spend: Spend | None = None


def open_run(settings: ChainSettings, *, resume: bool, clock: Clock | None = None) -> RunStore:
    """Make the run's directory with its inputs, or open the one that is to be resumed. Nothing is paid for.

    Errors: :class:`jumar.errors.ConfigError` for settings that cannot work, or that differ from the recorded ones;
    :class:`jumar.errors.ExistsError` when the run exists and is not to be resumed; :class:`jumar.errors.NotFoundError` when it
    does not exist and is.
    """
    check_chain(settings)
    paths = RunPaths.of(settings.output_root, settings.run_id)
    if resume:
        run = _open(settings)
        if any(run.trust.nonce in nonces for *_, nonces in programs_above()):
            said = "a step of this run, or of one that it is a copy of, called `jumar cases run --resume`"
            raise UsageError(f"{said}, which is for a person to do; nothing was changed")
        check_resume(run, settings)
        return run
    base = _base(settings)
    workdir = settings.workdir.resolve()
    guarded = [] if settings.dry_run else [step for step in settings.steps if step.files or JUDGE in step.outputs]
    sources = [_source(step, workdir) for step in guarded]
    search = settings.search[0].absolute() if settings.search else workdir
    judge = check_files(sources, workdir=workdir, base=search, is_candidate=lambda _: False)
    for name, path in base.items():
        if isinstance(path, Path) and not os.access(path, os.R_OK):
            raise ConfigError(f"the base for {name}, {escape(str(path))}, cannot be read")
    create_run(
        paths,
        run_id=settings.run_id,
        config=settings.recorded,
        cases=settings.cases,
        base=base,
        plan=RunPlan(
            order=settings.order.words,
            tie_breaks=settings.order.tie_breaks,
            keys=MappingProxyType(dict(settings.keys if settings.dry_run is None else dry_keys(settings.keys))),
            diff=settings.diff,
            roles=settings.roles,
            scales=settings.limits.scales,
            budget=settings.budget if is_capped(settings.budget) else None,
            max_iters=settings.limits.max_iters,
            max_seconds=settings.limits.max_seconds,
            max_file_bytes=settings.max_file_bytes,
        ),
        created_at=(clock or SystemClock()).now(),
        workdir=workdir,
        judge=[file.path for file in judge],
        absent=shadows(sources, workdir=workdir),
    )
    return _open(settings)


_RULES: Final = MappingProxyType(
    {
        "make": ("GNUmakefile", "makefile", "Makefile"),
        "just": ("justfile", ".justfile", "Justfile"),
        **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    }
)
"""What programs run that are given the name of a rule, and no file."""


def _source(step: Step, workdir: Path) -> CheckSource:
    """Return what must stay as it is for a step: its program, and the files that its command names, such as a rubric."""
    command = step.command
    if command is not None and not isinstance(command, str):
        command = tuple(part for word in command for part in ((word,) if isinstance(word, str) else word))
    commands = () if command is None or step.files is not None else placed_commands(command)
    pairs = [(place, pair) for place, words in commands for pair in pairwise(("", *words))]
    named = (workdir / place / word.rpartition("=")[2].lstrip("@") for place, (before, word) in pairs if not before.endswith(">"))
    rules = (workdir / place / name for place, (_, word) in pairs for name in _RULES.get(word, ()))
    read = tuple(path for path in chain(named, rules) if path.is_relative_to(workdir) and path.is_file())
    return CheckSource(label=f"step '{step.name}'", command=command, reference=step.python, files=step.files, read=read)


def _base(settings: ChainSettings) -> dict[str, bytes | Path]:
    return {name: settings.base.get(name) or (settings.roles[name].empty or "").encode() for name in starting_roles(settings)}


def _open(settings: ChainSettings) -> RunStore:
    contents = contents_of(settings.cases, _base(settings), settings.roles)
    workdir = settings.workdir.resolve()
    return RunStore(RunPaths.of(settings.output_root, settings.run_id).directory, contents, workdir, settings.config)


def run_chain(
    settings: ChainSettings,
    *,
    resume: bool = False,
    executor: Executor | Submits | None = None,
    clock: Clock | None = None,
    switch: StopSwitch | None = None,
    listener: CaseListener | None = None,
) -> ChainOutcome:
    """Run all cases and return where the run is. Errors: as :func:`open_run` and :func:`run_case`.

    With ``executor`` the cases run side by side, each as a task of its own that may be run again; that needs
    ``carry_forward = False``, and events are told of ended cases only.
    """
    if executor is not None and settings.carry_forward:
        raise ConfigError(
            "cases that carry their best forward run one after the other: set carry_forward = false, or no executor"
        )
    if executor is not None and is_capped(settings.budget) and not _reserves(settings.budget):
        raise ConfigError(
            "cases side by side under a budget need to know what a step may cost before any has said so: give [budget] "
            "reserve_cost_usd (and reserve_tokens for max_tokens), or no executor"
        )
    run = open_run(settings, resume=resume, clock=clock)
    for warning in settings.order.warnings:
        tell(CaseNotice(message=warning), listener)
    if resume and not run.trust.ours:
        message = "this run was begun on another machine, by another user or by an older jumar: its records are taken as they lie"
        tell(CaseNotice(message=message), listener)
    switch = switch or StopSwitch()
    with run.lock():
        for message in reopen(run, settings, CaseAccounting.of(run, settings)) if resume else ():
            tell(CaseNotice(message=message), listener)
        if resume and all(run.case(case.number).ended for case in settings.cases):
            message = "every case has ended already and nothing is run; only one that a raised limit had ended is opened again"
            tell(CaseNotice(message=message), listener)
        if executor is not None and not isinstance(executor, ThreadPoolExecutor | ProcessPoolExecutor):
            run.share()
        if executor is not None:
            stopped = _side_by_side(run, settings, executor, switch, listener)
        else:
            stopped = _in_order(run, settings, clock, switch, listener)
        _put_back(run, listener)
    accounting = CaseAccounting.of(run, settings)
    spend = None if accounting is None else accounting.spend()
    return ChainOutcome(run_dir=run.paths.directory, stopped=stopped, spend=spend)


def _reserves(budget: Budget) -> bool:
    return (budget.max_cost_usd is None or budget.reserve_cost_usd is not None) and (
        budget.max_tokens is None or budget.reserve_tokens is not None
    )


def _put_back(run: RunStore, listener: CaseListener | None) -> None:
    if message := run.put_back():
        tell(CaseNotice(message=message), listener)


def _in_order(
    run: RunStore, settings: ChainSettings, clock: Clock | None, switch: StopSwitch, listener: CaseListener | None
) -> CaseStop | None:
    limited = settings.limits.max_seconds is not None
    spent = run.seconds() if limited else 0.0

    # added up: reading every record again before each case would make a long run slower with every case
    def hear(event: CaseEvent) -> None:
        nonlocal spent
        spent += _seconds([event.record]) if isinstance(event, IterationMade) else 0.0
        tell(event, listener)

    for number in _in_turn(run, [case.number for case in settings.cases]):
        _put_back(run, listener)
        elsewhere = spent - run.case(number).seconds() if limited else None
        stopped = run_case(settings, number, clock=clock, switch=switch, listener=hear, elsewhere=elsewhere, run=run)
        if stopped is not None:
            return stopped
    return None


def _in_turn(run: RunReader, numbers: Sequence[int]) -> Iterator[int]:
    """Yield the cases in their order, before each the one that it starts from, and all of them once more at the end.

    What a later case did to an earlier one is found then, and mended.
    """
    for place, number in enumerate(numbers):
        for earlier in reversed(numbers[:place]):
            yield earlier
            if os.path.lexists(run.case(earlier).paths.best_json):
                break
        yield number
    yield from numbers


def _side_by_side(
    run: RunStore, settings: ChainSettings, executor: Executor | Submits, switch: StopSwitch, listener: CaseListener | None
) -> CaseStop | None:
    """Hand every case that has not ended to the executor; the first error is raised when all are done.

    Asked to stop, it takes back what has not begun. What runs in this process sees the switch too; elsewhere a case that has
    begun goes on to its end, and is waited for unless it shall be at once.
    """
    # only what shares this process can share the switch
    shared = isinstance(executor, ThreadPoolExecutor)
    task = functools.partial(run_case, switch=switch, run=run) if shared else run_case
    wanted = [case.number for case in settings.cases if not run.case(case.number).ended]
    waiting: dict[Future[Any], int] = {}
    errors: dict[int, JumarError] = {}
    for number in wanted:
        try:
            waiting[executor.submit(task, settings, number)] = number
        except Exception as error:  # noqa: BLE001 - an executor that broke meanwhile raises what it likes
            errors[number] = _as_ours(error)
    running = set(waiting)
    while running and not (switch.immediate.is_set() and not shared):
        _put_back(run, listener)
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
    return as_executor_error(error)
