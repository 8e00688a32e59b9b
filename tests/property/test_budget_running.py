"""Spend that is added up as attempts come equals spend that is added up at the end, to the last bit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jumar.model import Attempt, AttemptEnd, AttemptStart, Usage
from jumar.model.budget.ledger import RunningSpend, spend

amounts = st.one_of(st.none(), st.floats(0, 1e12, allow_subnormal=False), st.sampled_from([0.1, 1e-9, 1e9]))
usages = st.builds(
    Usage,
    tokens_used=st.one_of(st.none(), st.integers(0, 10**9)),
    input_tokens=st.one_of(st.none(), st.integers(0, 10**9)),
    output_tokens=st.one_of(st.none(), st.integers(0, 10**9)),
    token_cost_usd=amounts,
)
ends = st.builds(
    AttemptEnd,
    outcome=st.sampled_from(["ok", "failed", "timeout", "interrupted", "lost"]),
    seconds=amounts,
    ended_at=st.just("2026-01-01T00:00:00Z"),
    usage=usages,
)


def attempt(number: int, end: AttemptEnd | None) -> Attempt:
    start = AttemptStart(number=number, iteration=number, parent=0, nonce="n", started_at="2026-01-01T00:00:00Z")
    return Attempt(start=start, end=end)


@given(ends=st.lists(ends, max_size=30), looks=st.sets(st.integers(0, 30)))
def test_running_spend_equals_spend(ends: list[AttemptEnd], looks: set[int]) -> None:
    running = RunningSpend()
    done: list[Attempt] = []
    for number, end in enumerate(ends, start=1):
        open_ended = (*done, attempt(number, None))
        if number in looks:
            assert spend(open_ended) == running.of(open_ended)
        done.append(attempt(number, end))
        if number in looks:
            assert spend(done) == running.of(done)
    assert spend(done) == running.of(done)
