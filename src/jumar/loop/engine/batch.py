"""Iterations side by side: their programs run in worker threads, the store stays with the thread that holds its lock."""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from jumar.errors import JumarError
from jumar.loop.engine.accounting import may_begin, turned_away, wait_for
from jumar.loop.engine.iteration import Trees
from jumar.loop.engine.run_context import LoopRun, Way
from jumar.loop.ranking.ratchet import BatchPlan
from jumar.loop.workspace.disk_space import disk_is_full
from jumar.model import IterationRecord, StopDecision
from jumar.model.budget.gate import Stop, Wait

_Future = concurrent.futures.Future[object]
_Pass = Way[IterationRecord | None]


@dataclass
class Batch:
    """Runs the iterations of one plan, at most ``workers`` at a time. ``recorded`` is told of each that is acknowledged."""

    run: LoopRun
    trees: Trees
    plan: BatchPlan
    recorded: Callable[[IterationRecord], None]
    _todo: deque[tuple[int, int | None]] = field(init=False)
    _under_way: dict[_Future, _Pass] = field(init=False, default_factory=dict[_Future, _Pass])
    _refused: StopDecision | None = field(init=False, default=None)
    _full: Exception | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._todo = deque(zip(self.plan.numbers, self.plan.candidates, strict=True))

    def go(self) -> StopDecision | None:
        """Run them; return why the budget ends the loop, if it does. What could not be recorded is simply still missing then.

        After an error the programs that run are ended, and the error is raised; after a full disk they may end by themselves.
        """
        with concurrent.futures.ThreadPoolExecutor(self.run.settings.workers, thread_name_prefix="jumar-candidate") as pool:
            try:
                while self._begin(pool) or self._under_way:
                    self._take_results(pool)
            except BaseException:
                self.run.switch.immediate.set()
                raise
        if self._full is not None:
            raise self._full
        return self._refused

    @contextlib.contextmanager
    def _going_on(self) -> Generator[None]:
        """A disk that is full for one iteration begins no other; those that run come to their end, and are on record with it."""
        try:
            yield
        except (JumarError, OSError) as error:
            if not disk_is_full(error):
                raise
            self._full = self._full or error
            self._todo.clear()

    def _begin(self, pool: concurrent.futures.Executor) -> bool:
        """Start what may start; return whether there is more that may still come."""
        while self._todo and not self.run.switch.requested and len(self._under_way) < self.run.settings.workers:
            answer = may_begin(self.run, running=len(self._under_way))
            if isinstance(answer, Stop):
                self._refused = answer.decision
                self._todo.clear()
            elif isinstance(answer, Wait):
                if self._under_way:
                    break
                wait_for(self.run, "calls_per_hour", answer.seconds or 0.0, detail=answer.why)
            else:
                number, candidate = self._todo.popleft()
                with self._going_on():
                    self._start(pool, number, candidate)
        return bool(self._todo) and not self.run.switch.requested

    def _start(self, pool: concurrent.futures.Executor, number: int, candidate: int | None) -> None:
        workspace = self.trees.of(candidate)
        workspace.restore(self.plan.parent)
        way = self.trees.step(candidate).generate(number, self.plan.parent, batch=self.plan.batch, candidate=candidate)
        self._under_way[pool.submit(next(way))] = way

    def _take_results(self, pool: concurrent.futures.Executor) -> None:
        if not self._under_way:
            return
        done, _ = concurrent.futures.wait(self._under_way, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in done:
            with self._going_on():
                self._go_on(pool, self._under_way.pop(future), future)

    def _go_on(self, pool: concurrent.futures.Executor, way: _Pass, future: _Future) -> None:
        error = future.exception()
        try:
            work = way.send(future.result()) if error is None else way.throw(error)
        except StopIteration as end:
            record: IterationRecord | None = end.value
            if record is not None:
                self.recorded(record)
            elif any(turned_away(self.run, number)[0] for number in self.plan.numbers):
                self._todo.clear()  # the provider wants us to wait: the rest comes after that, with the one that was refused
        else:
            self._under_way[pool.submit(work)] = way
