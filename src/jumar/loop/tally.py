"""What the engine wants to know of all iterations after each one, without going through all of them each time."""

from __future__ import annotations

from jumar.budget.ledger import RunningSpend
from jumar.model import IterationView
from jumar.model.attempts import Spend
from jumar.ranking.choose import running_best
from jumar.store.loop_reader import LoopReader

__all__ = ["Tally"]


class Tally:
    """The running best and the spend of one store; equal to what the pure functions say of all records."""

    def __init__(self, store: LoopReader) -> None:
        self._store = store
        self._spend = RunningSpend()
        self._seen = 0
        self._best: IterationView | None = None

    def best(self) -> IterationView | None:
        """Return :func:`jumar.ranking.choose.running_best` of all iterations; records never change: each is looked at once."""
        views = self._store.views()
        new = views[self._seen :]
        if new:
            self._best = running_best(new if self._best is None else (self._best, *new))
            self._seen = len(views)
        return self._best

    def spend(self) -> Spend:
        """Return :func:`jumar.budget.ledger.spend` of all attempts."""
        return self._spend.of(self._store.attempts())
