"""The read model of a chain of cases: everything that its renderings show, computed once, without a lock and without a write.

:func:`load_run` reads a run of ours, :func:`load_recording` the judge's files of any. ``None`` is unknown, never zero.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from jumar.cases.judgement import NO_SCALES
from jumar.cases.ranking import CaseRanking, last_complete, rank_case
from jumar.cases.recorded import RecordedCase, read_recording
from jumar.cases.records import CaseBest, CaseEnd, CaseInputs, CaseIteration, StepRecord
from jumar.cases.run_store import RunReader
from jumar.errors import ConfigError, StoreDamagedError
from jumar.model.ordering import LexicographicOrder, difference, parse_order
from jumar.model.pipeline import DEFAULT_DIFF, DEFAULT_KEYS, DEFAULT_ORDER, DEFAULT_ROLES, GIVEN, Role, Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a case started from.

    ``carried``: what iteration ``iteration`` of case ``case`` wrote, in ``roles``; ``selected_by`` says which one that was
    there, None for neither. ``base``: what the chain started from, or a snapshot that no earlier case wrote. ``unknown``:
    there is no snapshot. ``not_begun``: the case has not started. ``by_hash`` is True when it was found by comparing files.
    """

    kind: Literal["carried", "base", "unknown", "not_begun"]
    case: int | None = None
    iteration: int | None = None
    selected_by: Literal["best", "last"] | None = None
    roles: tuple[str, ...] = ()
    by_hash: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """What runs of steps used. ``cost_usd`` and ``tokens`` are sums of what was reported, None when nothing was.

    ``step_runs`` counts every run of a step, failed and lost ones too; ``cost_reported`` those that said what they cost.
    """

    step_runs: int = 0
    seconds: float | None = None
    cost_usd: float | None = None
    cost_reported: int = 0
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReport:
    """One case. ``best`` is the best by the order, whatever was carried; ``last`` the last one whose steps all did their work.

    ``record`` is ``best.json``: what was selected, by which rule. ``end`` is None while the case goes on or has not begun.
    ``pending`` is the iteration that is being made. ``behind`` is the difference best − last by key, empty when there are not
    two to compare; a value that one of them lacks is None there.
    """

    number: int
    case_id: str
    iterations: tuple[CaseIteration, ...]
    ranking: CaseRanking
    last: CaseIteration | None
    origin: Origin
    paid: Paid
    pending: int | None = None
    record: CaseBest | None = None
    end: CaseEnd | None = None
    inputs: CaseInputs | None = None
    behind: Mapping[str, float | None] = field(default_factory=lambda: MappingProxyType(dict[str, "float | None"]()))

    @property
    def best(self) -> CaseIteration | None:
        """The best iteration, None when none is valid."""
        return self.ranking.best

    @property
    def chosen(self) -> int | None:
        """The iteration in the best bundle, None when there is none (yet)."""
        return None if self.record is None else self.record.best_iter

    def iteration(self, number: int) -> CaseIteration | None:
        """Return one iteration, None when it is not there."""
        return next((iteration for iteration in self.iterations if iteration.number == number), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """What case ``target`` got from case ``source``: its iteration ``carried``.

    ``best`` and ``last`` are the source's. ``lost`` is the difference best − carried by key; ``poisoned`` says that what was
    carried is worse than the best by a key of the order, or has no usable score although another one has.
    """

    source: int
    target: int
    carried: int
    best: int | None
    last: int | None
    lost: Mapping[str, float | None]
    poisoned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainReport:
    """A run (``run_id`` set) or a recording. ``columns`` is how many iterations the widest case has, or was allowed to have.

    ``planned`` is how many a case may have, None when nobody says.
    """

    directory: str
    run_id: str | None
    created_at: str | None
    config: Mapping[str, Any]
    order: LexicographicOrder
    cases: tuple[CaseReport, ...]
    handovers: tuple[Handover, ...]
    columns: int
    planned: int | None
    paid: Paid

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the order's keys, in its order."""
        return tuple(key.name for key in self.order.keys)

    @property
    def poisoned(self) -> tuple[Handover, ...]:
        """The handovers of something worse than the best."""
        return tuple(handover for handover in self.handovers if handover.poisoned)

    def case(self, number: int) -> CaseReport:
        """Return a case by its number. Errors: ``KeyError``."""
        for case in self.cases:
            if case.number == number:
                return case
        raise KeyError(number)


# ------------------------------------------------------------------------------------------------------------- a run


def run_order(reader: RunReader) -> LexicographicOrder:
    """Return the order that a run was made with. Errors: :class:`jumar.errors.StoreDamagedError` when it is none."""
    try:
        return parse_order(reader.plan.order, reader.plan.tie_breaks)
    except ConfigError as error:
        raise StoreDamagedError(f"{reader.paths.run_json}: plan: {error}") from error


def load_run(reader: RunReader) -> ChainReport:
    """Read a run, finished or not. Errors: :class:`jumar.errors.StoreDamagedError` that names the file."""
    bests = {number: reader.case(number).best() for number in reader.case_ids}
    order = run_order(reader)
    cases = tuple(_case_of_run(reader, number, order, bests[number]) for number in reader.case_ids)
    return _chain(
        directory=os.fspath(reader.paths.directory),
        run_id=reader.run_id,
        created_at=reader.created_at,
        config=reader.config,
        order=order,
        cases=cases,
        planned=reader.plan.max_iters,
    )


def _case_of_run(reader: RunReader, number: int, order: LexicographicOrder, record: CaseBest | None) -> CaseReport:
    case = reader.case(number)
    iterations, inputs = case.iterations(), case.inputs()
    pending = case.pending()
    begun = () if pending is None else case.steps(case.paths.pending_iteration(pending))
    unfinished = tuple(end for _, end in begun if end is not None)
    steps = [step for iteration in iterations for step in iteration.steps]
    return _case(
        number,
        iterations,
        order,
        case_id=reader.case_ids[number],
        origin=_origin_of(inputs),
        paid=paid_for([*steps, *unfinished]),
        pending=pending,
        record=record,
        end=case.end(),
        inputs=inputs,
    )


def _origin_of(inputs: CaseInputs | None) -> Origin:
    if inputs is None:
        return Origin(kind="not_begun")
    roles = tuple(name for name in inputs.files if name not in GIVEN)
    carried = inputs.carried_from
    if carried is None:
        return Origin(kind="base", roles=roles)
    return Origin(kind="carried", case=carried.case, iteration=carried.iteration, selected_by=carried.selected_by, roles=roles)


# ------------------------------------------------------------------------------------------------------- a recording


def load_recording(
    directory: Path,
    *,
    order: LexicographicOrder | None = None,
    keys: Mapping[str, str] = DEFAULT_KEYS,
    roles: Mapping[str, Role] = DEFAULT_ROLES,
    diff: Sequence[str] = DEFAULT_DIFF,
    scales: Mapping[str, Scale] = NO_SCALES,
) -> ChainReport:
    """Read judge's files below ``directory``, and find by their hashes what each case started from.

    Errors: :class:`jumar.errors.NotFoundError` when there is no iteration, :class:`jumar.errors.ConfigError`.
    """
    order = order or parse_order(DEFAULT_ORDER)
    needed = [key.name for key in order.keys]
    recorded = read_recording(directory, roles=roles, keys=keys, needed=needed, diff=diff, scales=scales)
    cases: list[CaseReport] = []
    for case in recorded:
        origin = _origin_by_hash(case, cases)
        cases.append(_case(case.number, case.iterations, order, case_id=f"case{case.number}", origin=origin, paid=Paid()))
    return _chain(
        directory=os.fspath(directory.absolute()),
        run_id=None,
        created_at=None,
        config=MappingProxyType({}),
        order=order,
        cases=tuple(cases),
        planned=None,
    )


def _origin_by_hash(case: RecordedCase, earlier: Sequence[CaseReport]) -> Origin:
    """Compare what the case started from with what earlier ones wrote, the nearest first. An empty file proves nothing."""
    if not case.base:
        return Origin(kind="unknown")
    for source in reversed(earlier):
        by_role = {role: _writers(source, role, file.sha256) for role, file in case.base.items() if file.size}
        writers = next((numbers for numbers in by_role.values() if numbers), None)
        if writers is None:
            continue
        best, last = (None if iteration is None else iteration.number for iteration in (source.best, source.last))
        number = best if best in writers else last if last in writers else writers[-1]
        return Origin(
            kind="carried",
            case=source.number,
            iteration=number,
            selected_by="best" if number == best else "last" if number == last else None,
            roles=tuple(role for role, numbers in by_role.items() if number in numbers),
            by_hash=True,
        )
    return Origin(kind="base", roles=tuple(case.base), by_hash=True)


def _writers(case: CaseReport, role: str, sha256: str) -> list[int]:
    return [
        iteration.number
        for iteration in case.iterations
        if role in iteration.outputs and iteration.outputs[role].sha256 == sha256
    ]


# -------------------------------------------------------------------------------------------------------------- both


def _case(number: int, iterations: tuple[CaseIteration, ...], order: LexicographicOrder, **facts: Any) -> CaseReport:
    ranking = rank_case(iterations, order)
    last = last_complete(iterations)
    behind = _difference(ranking.best, last)
    return CaseReport(number=number, iterations=iterations, ranking=ranking, last=last, behind=behind, **facts)


def _chain(*, cases: tuple[CaseReport, ...], order: LexicographicOrder, planned: int | None, **facts: Any) -> ChainReport:
    numbers = [iteration.number for case in cases for iteration in case.iterations]
    numbers += [case.pending for case in cases if case.pending is not None]
    widest = max(numbers, default=0)
    # the limit of a long case would draw hundreds of empty columns
    columns = max(widest, planned) if planned is not None and planned <= max(20, widest) else widest
    by_number = {case.number: case for case in cases}
    keys = [key.name for key in order.keys]
    return ChainReport(
        **facts,
        order=order,
        cases=cases,
        planned=planned,
        columns=columns,
        handovers=tuple(_handover(case, by_number, keys) for case in cases if case.origin.case in by_number),
        paid=_sum([case.paid for case in cases]),
    )


def _handover(target: CaseReport, cases: Mapping[int, CaseReport], keys: Sequence[str]) -> Handover:
    source, carried = cases[target.origin.case or 0], target.origin.iteration or 0
    given, best = source.iteration(carried), source.best
    lost = _difference(best, given)
    worse = any(lost.get(name) != 0 for name in keys)
    return Handover(
        source=source.number,
        target=target.number,
        carried=carried,
        best=None if best is None else best.number,
        last=None if source.last is None else source.last.number,
        lost=lost,
        poisoned=best is not None and carried != best.number and worse,
    )


def _difference(best: CaseIteration | None, other: CaseIteration | None) -> Mapping[str, float | None]:
    if best is None or other is None:
        return MappingProxyType({})
    differences: dict[str, float | None] = {}
    for name, value in best.values.items():
        against = other.values.get(name)
        differences[name] = None if value is None or against is None else difference(value, against)
    return MappingProxyType(differences)


def paid_for(steps: Sequence[StepRecord]) -> Paid:
    """Return what ``steps`` used."""
    costs = [step.usage.token_cost_usd for step in steps]
    reported = sum(cost is not None for cost in costs)
    tokens = [step.usage.tokens_used for step in steps]
    seconds = _total(step.seconds for step in steps)
    return Paid(step_runs=len(steps), seconds=seconds, cost_usd=_total(costs), cost_reported=reported, tokens=_total(tokens, sum))


def _sum(parts: Sequence[Paid]) -> Paid:
    return Paid(
        step_runs=sum(part.step_runs for part in parts),
        seconds=_total(part.seconds for part in parts),
        cost_usd=_total(part.cost_usd for part in parts),
        cost_reported=sum(part.cost_reported for part in parts),
        tokens=_total((part.tokens for part in parts), sum),
    )


def _total(values: Iterable[float | None], add: Callable[[list[Any]], Any] = math.fsum) -> Any:
    """Return the sum of the values that are known; None when none is."""
    known = [value for value in values if value is not None]
    return add(known) if known else None
