"""The ledger: what one decision costs after 10,000 attempts, against adding up all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from timing import Row, shortest

from jumar.model import Attempt, AttemptEnd, AttemptStart, Budget, Usage
from jumar.model.budget import RunningReservation, RunningSpend, may_begin, reservation, spend

ATTEMPTS = 10_000
FEW = 10


def attempts(count: int) -> list[Attempt]:
    """Return runs of a generator and scorings in turn, every tenth lost."""
    made: list[Attempt] = []
    for number in range(1, count + 1):
        start = AttemptStart(
            number=number,
            iteration=number // 2,
            parent=0,
            nonce="n",
            started_at="2026-01-01T00:00:00Z",
            purpose="score" if number % 2 else "generate",
            reserve_cost_usd=0.3,
            reserve_tokens=900,
        )
        usage = Usage() if number % 10 == 0 else Usage(token_cost_usd=0.1 + number / 1e6, tokens_used=number % 700)
        outcome = "lost" if number % 10 == 0 else "ok"
        end = AttemptEnd(outcome=outcome, seconds=1.5, ended_at="2026-01-01T00:00:01Z", usage=usage)
        made.append(Attempt(start=start, end=end))
    return made


def measure(_directory: Path) -> Iterator[Row]:
    budget = Budget(max_cost_usd=1e6, max_tokens=10**9, max_seconds=1e9)

    def decider(known: list[Attempt]):
        total, largest = RunningSpend(budget), RunningReservation()

        def decide() -> object:
            return may_begin(
                spend=total.of(known),
                budget=budget,
                generate=largest.of(known, budget, "generate"),
                score=largest.of(known, budget, "score"),
            )

        decide()  # what is settled is looked at once
        return decide

    many, few = attempts(ATTEMPTS), attempts(FEW)

    def from_nothing() -> object:
        return spend(many, budget), reservation(many, budget, "generate"), reservation(many, budget, "score")

    late, early, whole = shortest([decider(many), decider(few), from_nothing], 50)
    yield (
        f"budget: one decision after {ATTEMPTS:,} attempts",
        f"{late * 1e6:.0f} µs",
        f"{early * 1e6:.0f} µs after {FEW}: {late / early:.2f}×",
        "flat",
    )
    yield "… each time from nothing", f"{whole * 1e3:.0f} ms", f"{whole / late:,.0f}× as long", "—"
