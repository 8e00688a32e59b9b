"""How many passes a budget buys: from what passes took so far, else from what is set aside for one. Pure, and nothing is paid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from jumar.core.record import Record
from jumar.model.attempts import Attempt, Spend
from jumar.model.budget.ledger import cost_of, tokens_of
from jumar.model.budget.pricing import Budget

_TOLERANCE: Final = 1e-9
_RAN: Final = frozenset({"ok", "failed", "timeout", "blocked"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PassUse:
    """What one iteration took, its scoring and earlier tries included. None: one of its attempts did not say."""

    cost_usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What an iteration may take where none was made yet. ``at_least``: it takes more than that, nobody knows how much."""

    use: PassUse
    source: str
    at_least: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Least, middle and most; each None where it is not known, or where nothing limits it."""

    low: float | None = None
    typical: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRow:
    """One limit: what is left of it, what an iteration takes of it, how many that makes, and where the figures come from."""

    limit: str
    left: float
    a_pass: Range = field(default_factory=Range)
    passes: Range = field(default_factory=Range)
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Record):
    """Iterations that all limits together leave, and the limit that is reached first in the typical case (else at best)."""

    passes: Range
    limited_by: str | None
    rows: tuple[EstimateRow, ...]


def passes_of(attempts: Iterable[Attempt]) -> tuple[PassUse, ...]:
    """Return what each iteration of a loop took, by number. The start state and what was never more than begun are none."""
    begun: dict[int, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.start.iteration > 0 and attempt.start.purpose != "confirm":
            begun.setdefault(attempt.start.iteration, []).append(attempt)
    return tuple(_use(tries) for _, tries in sorted(begun.items()) if any(_ran(attempt) for attempt in tries))


def _ran(attempt: Attempt) -> bool:
    return attempt.start.purpose == "generate" and attempt.end is not None and attempt.end.outcome in _RAN


def _use(tries: Sequence[Attempt]) -> PassUse:
    costs, tokens = [cost_of(attempt) for attempt in tries], [tokens_of(attempt) for attempt in tries]
    seconds = [attempt.end.seconds if attempt.end is not None else None for attempt in tries]
    return PassUse(
        cost_usd=None if None in costs else math.fsum(cost for cost in costs if cost is not None),
        tokens=None if None in tokens else sum(count for count in tokens if count is not None),
        seconds=None if None in seconds else math.fsum(value for value in seconds if value is not None),
    )


def estimate(
    *,
    budget: Budget,
    spend: Spend,
    passes: Sequence[PassUse] = (),
    source: str = "",
    expected: Expected | None = None,
    pass_limit: int | None = None,
) -> Estimate | None:
    """Return how many more iterations the budget buys, or None when no limit says anything.

    ``passes`` are the iterations that the figures are taken from and ``source`` says which; where none of them told a measure,
    what is ``expected`` is taken. ``pass_limit`` is how many iterations the loop has left anyway. The least number comes from
    the dearest iteration seen, the typical one from the median, the highest from the cheapest. Before each one the dearest (or
    the configured reservation) must still fit, as :func:`jumar.model.budget.gate.may_begin` asks for. Failures to come are not
    foreseen.
    """
    rows: list[EstimateRow] = []
    if budget.max_cost_usd is not None:
        left = max(0.0, budget.max_cost_usd - spend.charged_cost_usd)
        costs = [one.cost_usd for one in passes if one.cost_usd is not None]
        other = None if expected is None else expected.use.cost_usd
        rows.append(_row("max_cost_usd", left, costs, other, expected, source, reserved=budget.reserve_cost_usd))
    if budget.max_tokens is not None:
        left = float(max(0, budget.max_tokens - spend.charged_tokens))
        tokens = [float(one.tokens) for one in passes if one.tokens is not None]
        other = None if expected is None else expected.use.tokens
        rows.append(_row("max_tokens", left, tokens, other, expected, source, reserved=budget.reserve_tokens))
    if budget.max_seconds is not None:
        left = max(0.0, budget.max_seconds - spend.seconds)
        seconds = [one.seconds for one in passes if one.seconds is not None]
        other = None if expected is None else expected.use.seconds
        rows.append(_row("max_seconds", left, seconds, other, expected, source, reserved=0.0))
    if budget.max_iterations is not None:
        rows.append(_exact("max_iterations of [budget]", max(0, budget.max_iterations - spend.iterations)))
    if pass_limit is not None:
        rows.append(_exact("max_iterations", max(0, pass_limit)))
    return _together(rows)


def _exact(limit: str, left: int) -> EstimateRow:
    return EstimateRow(limit=limit, left=left, passes=Range(low=left, typical=left, high=left))


def _row(
    limit: str,
    left: float,
    seen: Sequence[float],
    other: float | None,
    expected: Expected | None,
    source: str,
    *,
    reserved: float | None,
) -> EstimateRow:
    if seen:
        ordered = sorted(seen)
        use = Range(low=ordered[0], typical=(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2, high=ordered[-1])
    elif other is None or expected is None:
        none_left = Range() if left else Range(low=0, typical=0, high=0)
        return EstimateRow(limit=limit, left=left, passes=none_left, source="nothing is known yet")
    else:
        source = expected.source
        use = Range(low=other) if expected.at_least else Range(low=other, typical=other, high=other)
    fits = reserved if reserved is not None else use.high or use.low or 0.0
    passes = Range(low=_count(left, use.high, fits), typical=_count(left, use.typical, fits), high=_count(left, use.low, fits))
    return EstimateRow(limit=limit, left=left, a_pass=use, passes=passes, source=source)


def _count(left: float, use: float | None, fits: float) -> int | None:
    """Return how many iterations of ``use`` begin while ``fits`` is left and not all is spent; None for as many as one likes."""
    if use is None:
        return None
    slack = max(left * _TOLERANCE, 1e-15)
    if left <= 0 or fits > left + slack:
        return 0
    if use == 0:
        return None
    by_room = math.floor((left - fits + slack) / use) + 1
    by_rest = math.ceil((left - slack) / use)
    return max(1, min(by_room, by_rest))


def _together(rows: Sequence[EstimateRow]) -> Estimate | None:
    known = [row for row in rows if row.passes != Range() or row.a_pass != Range()]
    if not known:
        return None
    unsure = any(row.a_pass.typical is None and row.passes.typical is None for row in rows)
    typical = None if unsure else _least(row.passes.typical for row in rows)
    high = _least(row.passes.high for row in rows)
    low = None if unsure else _least(row.passes.low for row in rows)
    first = next((row.limit for row in rows if typical is not None and row.passes.typical == typical), None)
    if first is None:
        first = next((row.limit for row in rows if high is not None and row.passes.high == high), None)
    return Estimate(passes=Range(low=low, typical=typical, high=high), limited_by=first, rows=tuple(rows))


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)
