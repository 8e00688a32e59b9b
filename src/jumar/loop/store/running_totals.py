"""What the engine wants to know of all iterations after each one, without going through all of them each time."""

from __future__ import annotations

from dataclasses import replace

from jumar.loop.ranking.choose import leader, running_best
from jumar.loop.store.loop_reader import LoopReader
from jumar.model import IterationView
from jumar.model.attempts import Purpose, Spend
from jumar.model.budget.ledger import RunningReservation, RunningSpend, larger
from jumar.model.budget.limits import Budget, Reservation
from jumar.model.decisions import recheck_seconds
from jumar.model.selection import SelectionCriteria


class RunningTotals:
    """The best so far, the spend and the reservations of one store; equal to what the pure functions say of all records."""

    def __init__(self, store: LoopReader, budget: Budget, criteria: SelectionCriteria | None = None) -> None:
        self._store = store
        self._budget = budget
        self._criteria = criteria
        self._spend = RunningSpend(budget)
        self._reservations = RunningReservation()
        self._seen: set[int] = set()
        self._began: dict[int, float] = {}
        self._best: IterationView | None = None

    def best(self) -> IterationView | None:
        """Return :func:`jumar.loop.ranking.choose.leader` of all iterations; without criteria the one with the highest score.

        Records never change: each is looked at once.
        """
        views = self._store.views()
        missing = len(views) - len(self._seen)
        if missing:
            # parallel candidates are recorded as they end, so a new one may stand before others
            new = views[-missing:]
            if any(view.number in self._seen for view in new):
                new = tuple(view for view in views if view.number not in self._seen)
            views = new if self._best is None else (self._best, *new)
            self._best = running_best(views) if self._criteria is None else leader(views, self._criteria)
            self._seen.update(view.number for view in new)
        return self._best

    def spend(self) -> Spend:
        """Return :func:`jumar.model.budget.ledger.spend` of all attempts, with the time that rechecks took."""
        found, beside = self._spend.of(self._store.attempts()), recheck_seconds(self._store.decisions())
        return replace(found, seconds=found.seconds + beside) if beside else found

    def reservation(self, purpose: Purpose) -> Reservation:
        """Return :func:`jumar.model.budget.ledger.reservation` of all attempts."""
        return self._reservations.of(self._store.attempts(), self._budget, purpose)

    def needed(self, purpose: Purpose) -> Reservation:
        """Return what another step of ``purpose`` may take: what is reserved for it, or more where one has taken more."""
        seen = self._reservations.of(self._store.attempts(), Budget(), purpose)
        return larger(self.reservation(purpose), seen)

    def note_begin(self, attempt: int, monotonic: float) -> None:
        """Remember by the clock that never goes back when an attempt of this run began."""
        self._began[attempt] = monotonic

    def began(self, attempt: int) -> float | None:
        """Return when an attempt of this run began, by the monotonic clock; None for one of an earlier run."""
        return self._began.get(attempt)
