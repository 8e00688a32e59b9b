"""What the steps of a whole run cost, and whether another may begin: the ledger of a loop over the records of steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jumar.cases.case_store import CaseReader
from jumar.cases.records import CaseStop, StepOutcome, StepRecord, StepStart, StoppedBy
from jumar.cases.run_store import RunReader
from jumar.cases.settings import ChainSettings
from jumar.core.lock import LoopLock
from jumar.core.text import escape
from jumar.model.attempts import Attempt, AttemptEnd, AttemptStart, Outcome, Spend
from jumar.model.budget import Go, Stop, may_begin, reservation, spend
from jumar.model.budget.pricing import Budget, Reservation

_OUTCOMES: Final[dict[StepOutcome, Outcome]] = {
    "ok": "ok",
    "failed": "failed",
    "timeout": "timeout",
    "missing_output": "failed",
    "interrupted": "interrupted",
    "lost": "lost",
}
_REASONS: Final[dict[str, StoppedBy]] = {"max_cost": "max_cost", "max_tokens": "max_tokens"}
_PATIENCE: Final = 60.0  # seconds; another case holds the lock while it reads and writes a few records


@dataclass(frozen=True, slots=True)
class Paid:
    """A run of a step that costs something."""

    step: str
    attempt: Attempt


class CaseAccounting:
    """The money of one run, over all its cases, steps and resumes. Hold ``lock`` from asking until the step has begun.

    Built-in steps run no program, and cost nothing. What was read once through ``run`` stays in the sums, whatever becomes of
    the record.
    """

    def __init__(self, run: RunReader, settings: ChainSettings) -> None:
        self.budget = settings.budget
        self._steps = [step.name for step in settings.steps if step.builtin is None]
        self._cases = [run.case(number) for number in run.case_ids]
        self._seen = run.paid
        lock = run.paths.lock.with_name(f"{run.paths.lock.name}.budget")
        self.lock = LoopLock(lock, patience=_PATIENCE, what=f"the budget of run '{escape(run.run_id)}'")

    @classmethod
    def of(cls, run: RunReader, settings: ChainSettings) -> CaseAccounting | None:
        """Return the accounting of a run; None where nothing limits what it costs, or nothing costs anything."""
        return cls(run, settings) if is_capped(settings.budget) and settings.dry_run is None else None

    def spend(self) -> Spend:
        """Return what all steps used; one that began and has not ended is charged what was set aside for it."""
        return spend([each.attempt for each in self._paid()], self.budget)

    def ask(self, step: str, *behind: str) -> Go | Stop:
        """Return whether ``step`` may begin when those ``behind`` it shall fit, too; of these, what nobody knows is nothing."""
        paid = self._paid()
        wanted, *others = (self._reserve(paid, name) for name in (step, *behind))
        later = Reservation(
            cost_usd=math.fsum(one.cost_usd or 0.0 for one in others), tokens=sum(one.tokens or 0 for one in others)
        )
        gate = may_begin(
            spend=spend([each.attempt for each in paid], self.budget), budget=self.budget, generate=wanted, score=later
        )
        # with nothing that runs beside it there is nothing to wait for
        return gate if isinstance(gate, Stop) else Go(reservation=wanted)

    def refusal(self) -> CaseStop | None:
        """Return why no further iteration may begin; None while all its steps fit."""
        gate = self.ask(*self._steps) if self._steps else None
        return stop_of(gate) if isinstance(gate, Stop) else None

    def _reserve(self, paid: Sequence[Paid], step: str) -> Reservation:
        return reservation([each.attempt for each in paid if each.step == step], self.budget, "generate")

    def _paid(self) -> list[Paid]:
        for case in self._cases:
            for key, runs in _paid_in(case):
                if len(runs) >= len(self._seen.get(key, ())):  # another process, or a program, may be moving them right now
                    self._seen[key] = runs
        return [each for _, runs in sorted(self._seen.items()) for each in runs if each.step in self._steps]


def is_capped(budget: Budget) -> bool:
    """Return whether a budget limits dollars or tokens."""
    return budget.max_cost_usd is not None or budget.max_tokens is not None


def stop_of(stop: Stop) -> CaseStop:
    """Return why a case ends, from why no step may begin."""
    detail = stop.decision.detail.replace(" or a price for its model", "")  # steps of cases have no prices
    return CaseStop(stopped_by=_REASONS.get(stop.decision.reason, "unknown_cost"), detail=detail)


def _paid_in(case: CaseReader) -> Iterator[tuple[tuple[int, int], list[Paid]]]:
    """Yield the runs of steps of each iteration that is recorded or being made; what is not jumar's is passed over."""
    recorded = case.records()
    for record in recorded:
        yield (case.number, record.number), [Paid(step.step, _attempt(record.number, step, step)) for step in record.steps]
    for number, steps in case.begun():
        if all(number != record.number for record in recorded):
            yield (case.number, number), [Paid(start.step, _attempt(number, start, end)) for start, end in steps]


def _attempt(iteration: int, start: StepStart | StepRecord, end: StepRecord | None) -> Attempt:
    begun = AttemptStart(
        number=start.attempt,
        iteration=iteration,
        parent=None,
        nonce="",
        started_at="",
        reserve_cost_usd=start.reserve_cost_usd,
        reserve_tokens=start.reserve_tokens,
    )
    if end is None:
        return Attempt(start=begun, end=None)
    ended = AttemptEnd(outcome=_OUTCOMES[end.outcome], seconds=end.seconds, ended_at="", usage=end.usage)
    return Attempt(start=begun, end=ended)
