"""One case: iterations until a limit, then the best bundle and the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from jumar.cases.events import CaseEnded, CaseListener, CaseStarted, IterationMade, tell
from jumar.cases.iteration import IterationRunner
from jumar.cases.ranking import case_parent, rank_case, stop_case
from jumar.cases.records import CaseBest, CaseEnd, CaseIteration, CaseLimits, CaseStop, TieBreak
from jumar.cases.settings import ChainSettings
from jumar.cases.store.case_reader import CaseReader
from jumar.cases.store.case_store import CaseStore
from jumar.cases.store.run_store import RunReader, RunStore
from jumar.core.clock import SystemClock
from jumar.model.protocols import Clock
from jumar.processes.control import StopSwitch

__all__ = ["case_seconds", "run_case", "run_seconds"]


def case_seconds(case: CaseReader) -> float:
    """Return what all recorded steps of a case took, in seconds; those that were lost up to their last heartbeat."""
    return _seconds(case.iterations())


def run_seconds(run: RunReader) -> float:
    """Return what all recorded steps of a run took, in seconds. Reads every record of the run."""
    return sum(case_seconds(run.case(number)) for number in run.case_ids)


def run_case(
    settings: ChainSettings,
    number: int,
    *,
    clock: Clock | None = None,
    switch: StopSwitch | None = None,
    listener: CaseListener | None = None,
    elsewhere: float | None = None,
) -> CaseStop | None:
    """Run one case of a run that exists, or resume it; return why it was stopped early, None when it has ended.

    ``elsewhere`` are the seconds of the run's other cases, where the caller knows them (None: they are read). Running an ended
    case again does nothing, so that a task whose worker died can simply be run a second time. Errors:
    :class:`jumar.errors.LockedError` when another process runs this case, :class:`jumar.errors.StoreWriteError`,
    :class:`jumar.errors.StoreDamagedError`; what was acknowledged stays.
    """
    run = RunStore(settings.output_root / f"run_{settings.run_id}")
    clock, switch = clock or SystemClock(), switch or StopSwitch()
    case = run.store(number)
    if case.tidy:
        return None
    with case.lock() as store:
        if store.end() is not None:
            store.remove_leftovers()
            return None
        store.refuse_foreign_best()
        store.clear_scratch()
        inputs = run.begin_case(number, settings.roles, carry=settings.carry_forward)
        known = store.iterations()
        best = rank_case(known, settings.order).best
        started = CaseStarted(
            case=number,
            case_id=inputs.case_id,
            carried_from=inputs.carried_from,
            recorded=known,
            best=None if best is None else best.number,
        )
        tell(started, listener)
        runner = IterationRunner(store=store, settings=settings, inputs=inputs, clock=clock, switch=switch, listener=listener)
        if elsewhere is None and settings.limits.max_seconds is not None:
            elsewhere = run_seconds(run) - case_seconds(store)
        stop = _iterate(store, settings, runner, elsewhere or 0.0)
        if stop.stopped_by in {"interrupted", "terminated"}:
            return stop
        end = _finish(store, settings, stop, at=clock.now())
        chosen = store.best()
    tell(CaseEnded(end=end, best=chosen), listener)
    return None


def _iterate(store: CaseStore, settings: ChainSettings, runner: IterationRunner, elsewhere: float) -> CaseStop:
    while True:
        known = store.iterations()
        waiting = store.pending()
        seconds, most = elsewhere + _seconds(known), settings.limits.max_seconds
        if waiting is None:
            stop = _stopped(store, known, settings.limits, seconds)
            if stop is not None:
                return stop
        if runner.switch.requested:
            return CaseStop(stopped_by=runner.switch.reason, detail="stopped on request")
        parent = case_parent(known, settings.continue_from, settings.order)
        number = waiting or (known[-1].number + 1 if known else 1)
        record = runner.make(number, parent, left=None if most is None else most - seconds)
        if record is not None:
            best = rank_case(store.iterations(), settings.order).best
            tell(IterationMade(record=record, best=None if best is None else best.number), runner.listener)


def _stopped(store: CaseStore, known: Sequence[CaseIteration], limits: CaseLimits, seconds: float) -> CaseStop | None:
    """Return why the case ends. One whose best bundle is written is decided, also when a resume has raised a limit meanwhile."""
    stop = stop_case(known, limits, seconds=seconds)
    if stop is None and store.best() is not None:
        return stop_case(known, replace(limits, max_iters=len(known)), seconds=seconds)
    return stop


def _seconds(iterations: Sequence[CaseIteration]) -> float:
    return sum(step.seconds or 0.0 for record in iterations for step in record.steps)


def _finish(store: CaseStore, settings: ChainSettings, stop: CaseStop, *, at: str) -> CaseEnd:
    """Write the best bundle, unless it is there from before an interruption, then the end."""
    iterations = store.iterations()
    wanted = choose_bundle(iterations, settings)
    found = store.best()
    if wanted is not None and (found is None or found.best_iter != wanted.best_iter):
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
    last = next((each for each in reversed(iterations) if each.complete), None)
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
    )
