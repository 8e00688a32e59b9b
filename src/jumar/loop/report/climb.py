"""How a loop's best score rose: over its iterations, over what they cost, and over their time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jumar.loop.report.read import LoopReport
from jumar.loop.report.spending import spend_of_records
from jumar.model.attempts import Attempt
from jumar.model.budget.ledger import spend
from jumar.model.ordering import valid_score


@dataclass(frozen=True, slots=True, kw_only=True)
class ClimbPoint:
    """An iteration's score and the best one so far, 0–100, None before the first valid one.

    ``cost_usd`` and ``seconds`` are those of all attempts up to this iteration's; the cost is None from the first on that did
    not report its own.
    """

    iteration: int
    score: float | None
    best: float | None
    cost_usd: float | None
    seconds: float


def climb_of(report: LoopReport, attempts: Iterable[Attempt]) -> tuple[ClimbPoint, ...]:
    """Return a point for every record, by number.

    ``attempts`` are the loop's, in any order. Without any (a tracker inside of somebody else's loop) the records say what their
    iterations used.
    """
    waiting = sorted(attempts, key=lambda attempt: attempt.start.iteration, reverse=True)
    recorded = bool(waiting)
    points: list[ClimbPoint] = []
    best: float | None = None
    cost: float | None = 0.0
    seconds = 0.0
    for record in report.records:
        number = record.iteration_number
        begun: list[Attempt] = []
        while waiting and waiting[-1].start.iteration <= number:
            begun.append(waiting.pop())
        spent = spend(begun, report.budget) if recorded else spend_of_records([record])
        cost = None if cost is None or spent.cost_usd is None else cost + spent.cost_usd
        seconds += spent.seconds
        score = valid_score(record.view())
        best = score if best is None or (score is not None and score > best) else best
        points.append(ClimbPoint(iteration=number, score=score, best=best, cost_usd=cost, seconds=seconds))
    return tuple(points)
