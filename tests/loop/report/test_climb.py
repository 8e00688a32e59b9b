"""The climb of a loop, against adding everything up again for each iteration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import record, report_of

from jumar.loop.report.climb import climb_of
from jumar.loop.report.spending import spend_of_records
from jumar.model import Usage
from jumar.model.attempts import Attempt, AttemptEnd, AttemptStart
from jumar.model.budget.ledger import spend

ENDS = st.tuples(st.integers(0, 6), st.none() | st.sampled_from([0.0, 0.125, 2.0]), st.sampled_from([0.0, 1.5]))
SCORES = st.lists(st.none() | st.integers(0, 100), min_size=1, max_size=6)


def attempt(number: int, iteration: int, cost: float | None, seconds: float) -> Attempt:
    start = AttemptStart(number=number, iteration=iteration, parent=None, nonce="", started_at="2026-01-01T00:00:00Z")
    end = AttemptEnd(outcome="ok", seconds=seconds, ended_at="2026-01-01T00:00:01Z", usage=Usage(token_cost_usd=cost))
    return Attempt(start=start, end=end)


@given(SCORES, st.lists(ENDS, max_size=10))
def test_each_point_is_the_sum_of_what_came_before(scores: list[int | None], ends: list[tuple[int, float | None, float]]):
    report = report_of([record(number, score) for number, score in enumerate(scores, 1)])
    attempts = [attempt(number, *one) for number, one in enumerate(ends, 1)]
    for point in climb_of(report, attempts):
        before = [one for one in attempts if one.start.iteration <= point.iteration]
        until = spend(before) if attempts else spend_of_records(report.records[: point.iteration])
        valid = [score for score in scores[: point.iteration] if score is not None]
        assert point.best == max(valid, default=None)
        assert point.cost_usd == (None if until.cost_usd is None else pytest.approx(until.cost_usd))
        assert point.seconds == pytest.approx(until.seconds)
