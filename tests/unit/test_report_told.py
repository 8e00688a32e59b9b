"""What a person is told beside the scores: money, attempts without a row, remarks, batches, changed settings."""

from __future__ import annotations

import pytest

from jumar.app.differences import told_differences
from jumar.model import IterationRecord, IterationView, Usage
from jumar.model.attempts import Attempt, AttemptEnd, AttemptStart, Outcome, Spend
from jumar.model.budget import Budget
from jumar.model.records import Analysis
from jumar.ranking.degradation import detect_degradation, detect_diminishing_returns
from jumar.report.figures import relaxed_text, runner_up_text
from jumar.report.money import beside, beside_line, spent_money
from jumar.report.rows import compared_with, trajectory_row
from jumar.text import cut

AT = "2026-01-01T00:00:00+00:00"


def attempt(number: int, iteration: int, outcome: Outcome | None, cost: float | None = None) -> Attempt:
    start = AttemptStart(number=number, iteration=iteration, parent=0, nonce="n", started_at=AT, reserve_cost_usd=0.3)
    end = None
    if outcome is not None:
        end = AttemptEnd(outcome=outcome, seconds=1.0, ended_at=AT, usage=Usage(token_cost_usd=cost))
    return Attempt(start=start, end=end)


def record(number: int, score: float | None = 50.0, **fields: object) -> IterationRecord:
    return IterationRecord(iteration_number=number, timestamp=AT, quality_score=score, **fields)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("spend", "budget", "told"),
    [
        (Spend(cost_usd=0.5, known_cost_usd=0.5), Budget(), "$0.50"),
        (Spend(cost_usd=0.5, known_cost_usd=0.5), Budget(max_cost_usd=5), "$0.50 of $5.00"),
        (
            Spend(cost_usd=None, known_cost_usd=0.1, assumed_cost_usd=0.8, unknown_costs=8),
            Budget(max_cost_usd=5),
            "$0.90 of $5.00 ($0.80 assumed, 8 unknown)",
        ),
        (Spend(cost_usd=None, unknown_costs=3), Budget(), "cost unknown (3 attempts did not say)"),
        (Spend(cost_usd=None, unknown_costs=1), Budget(max_cost_usd=2), "cost unknown, limit $2.00"),
    ],
)
def test_money_is_told_with_what_is_assumed_and_unknown(spend: Spend, budget: Budget, told: str):
    assert spent_money(spend, budget) == told


def test_attempts_without_a_row_are_counted_by_kind_and_add_up():
    attempts = [
        attempt(1, 1, "rate_limited"),
        attempt(2, 1, "rate_limited"),
        attempt(3, 1, "ok", 0.2),
        attempt(4, 2, "failed", 0.1),
        attempt(5, 2, "ok", 0.2),
        attempt(6, 3, "lost"),
    ]
    records = [record(0), record(1, attempt=3), record(2, attempt=5)]
    found = beside(attempts, records, Budget())
    assert dict(found.kinds) == {"lost": 1, "rate-limited": 2, "tried again": 1}
    assert dict(found.refused) == {1: 2}
    assert beside_line(found) == "and 1 lost, 2 rate-limited, 1 tried again (attempts without a row): $0.40 ($0.30 assumed)"
    assert beside_line(beside(attempts[2:3], records, Budget())) is None


def note_of(one: IterationRecord, refused: int = 0) -> str:
    return trajectory_row(one, None, best=None, refused=refused).cells[-1]


def test_a_pass_with_a_finding_has_a_remark():
    assert note_of(record(1, failure="changed_nothing")) == "changed nothing"
    assert note_of(record(1, failure="produced_nothing")) == "produced nothing"
    assert note_of(record(1, failure="blocked", usage=Usage(blocked="needs a key"))) == "blocked: needs a key"
    assert note_of(record(1), refused=2) == "rate-limited 2×"
    changed = record(1, tampering=("tests/x was changed and put back",), verification_status="failed")
    assert note_of(changed) == "not verified: tests/x was changed and put back"
    done = record(1, analysis=Analysis(completed=True), verification_status="failed")
    assert note_of(done) == "says it is done; the checks disagree"
    assert note_of(record(1)) == ""


def test_a_candidate_is_compared_with_its_parent_and_a_pass_after_a_failed_one_too():
    known = {number: record(number) for number in range(4)} | {2: record(2, None)}
    assert compared_with(record(2, parent=0, batch=1), known[1], known) is known[0]
    assert compared_with(record(2, parent=0), known[1], known) is known[1]
    assert compared_with(record(3, parent=1), known[2], known) is known[1]


def test_siblings_of_a_batch_are_no_fall():
    scores = [(0, 50.0, None), (1, 80.0, 1), (2, 60.0, 1), (3, 70.0, 2), (4, 60.0, 2)]
    views = [IterationView(number=number, score=score, batch=batch) for number, score, batch in scores]
    assert detect_degradation(views).iterations == (3,)
    alone = [IterationView(number=number, score=score) for number, score, _ in scores]
    assert detect_degradation(alone).iterations == (2, 4)
    flat = [IterationView(number=n, score=50.0 + n, batch=1 if n else None) for n in range(4)]
    assert not detect_diminishing_returns(flat).detected


def test_a_change_inside_a_list_of_tables_is_told_by_its_key():
    before = [{"dimension": "style", "weight": 1.0}, {"dimension": "size", "command": ["wc"]}]
    after = [{"dimension": "style", "weight": 2.0}, {"dimension": "tests"}]
    assert told_differences("scorers", before, after) == [
        "scorers[style].weight: 1.0 → 2.0",
        "scorers[size]: removed",
        "scorers[tests]: added",
    ]
    assert told_differences("generator.command", ["a"], ["b"]) == ["generator.command: ['a'] → ['b']"]


def test_a_long_text_is_cut_after_a_word():
    assert cut("one two three", 13) == "one two three"
    assert cut("one two three", 12) == "one two…"
    assert cut("one two three", 8) == "one two…"
    assert cut("x" * 20, 10) == "x" * 9 + "…"


def test_the_closing_line_is_in_plain_words():
    assert relaxed_text("verification") == "no iteration meets every rule, so the checks were set aside"
    assert runner_up_text(1, 0.0, tied=False) == "runner-up iteration 1, equally good"
    assert runner_up_text(0, -1.8, tied=True) == "runner-up iteration 0 (start), 1.8 points higher, within the noise"
