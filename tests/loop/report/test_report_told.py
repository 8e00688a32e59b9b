"""What a person is told beside the scores: money, attempts without a row, remarks, batches, changed settings."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

import pytest
from report_samples import record as recorded
from report_samples import report_of

from jumar.app.run.given import told_differences
from jumar.core.rendering.figures import relaxed_text
from jumar.core.text import cut
from jumar.loop.ranking.degradation import detect_degradation, detect_diminishing_returns
from jumar.loop.report.export import render_json
from jumar.loop.report.page import render_markdown
from jumar.loop.report.rows import checks_head, compared_with, started_from, trajectory_row, trajectory_rows
from jumar.loop.report.spending import spent_money, took_of, without_row_text
from jumar.model import CheckResult, IterationRecord, IterationView, SelectionCriteria, Usage
from jumar.model.attempts import Attempt, AttemptEnd, AttemptStart, Outcome, Spend
from jumar.model.budget.pricing import Budget
from jumar.model.records import Analysis, SuiteCounts

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
            "$0.90 of $5.00 ($0.80 estimated, 8 not reported)",
        ),
        (Spend(cost_usd=None, unknown_costs=3), Budget(), "cost not reported"),
        (Spend(cost_usd=None, unknown_costs=1), Budget(max_cost_usd=2), "cost not reported, limit $2.00"),
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
    took = took_of(attempts, {3, 5}, {}, Budget())
    kinds = {part.kind: part.attempts for part in took.parts}
    assert {"passes": 2, "lost": 1, "rate-limited": 2, "tried again": 1} == kinds
    assert {1: 2} == took.refused
    assert 3 == took.cut_off
    assert without_row_text(took) == "and 1 lost, 2 rate-limited, 1 tried again (attempts without a row): $0.40 ($0.30 estimated)"
    assert without_row_text(took_of(attempts[2:3], {3, 5}, {}, Budget())) is None
    open_one = replace(attempts[3], start=replace(attempts[3].start, reserve_cost_usd=None), end=None)
    assert without_row_text(took_of([open_one], set(), {}, Budget())) == (
        "and 1 not ended (an attempt without a row): cost not known yet"
    )


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


def counted(name: str, passed: int, *failing: str, ok: bool = False) -> CheckResult:
    counts = SuiteCounts(passed=passed, failed=len(failing), missing=0, total=passed + len(failing), known=passed + len(failing))
    return CheckResult(name=name, passed=ok, tests=counts, failures=failing)


def test_tests_are_shown_and_what_was_repaired_and_broken():
    parent = record(1, checks=(counted("a", 2, "m::x", "m::y"), CheckResult(name="lint", passed=True)))
    fell = record(
        2,
        40.0,
        parent=1,
        quality_delta=-10.0,
        dimensions={"validation": 0.4},
        checks=(counted("a", 3, "m::z"), CheckResult(name="lint", passed=False)),
    )
    row = trajectory_row(fell, parent, best=1)
    assert ("3/4", "fixed x, y · broke lint, z") == (row.checks, row.said())
    alone = trajectory_row(replace(fell, dimensions={"a": 0.4, "b": 1}), replace(parent, dimensions={"a": 0.5}), best=1)
    assert "a −10.0 · fixed x, y · broke lint, z" == alone.said()
    both = record(3, verification_status="passed", checks=(counted("a", 3, ok=True), counted("b", 4, ok=True)))
    assert "7/7 ✓" == trajectory_row(both, None, best=3).checks
    assert ("tests", "checks") == (checks_head([record(0), parent]), checks_head([record(0)]))


def test_an_iteration_is_compared_with_the_one_that_it_started_from():
    known = {number: record(number) for number in range(4)} | {2: record(2, None)}
    assert compared_with(record(2, parent=0, batch=1), known[1], known) is known[0]
    assert compared_with(record(2, parent=0), known[1], known) is known[0]
    assert compared_with(record(3, parent=1), known[2], known) is known[1]
    assert compared_with(record(3), known[2], known) is known[2], "of a program's own records nobody knows that"
    assert compared_with(record(9, parent=7), known[3], known) is None


def test_the_change_in_every_table_is_against_the_parent_and_the_row_says_which_one_that_is():
    scores = {0: 50.0, 1: 80.0, 2: 60.0, 3: 85.0, 4: None, 5: 40.0}
    parents = {1: 0, 2: 1, 3: 1, 4: 3, 5: 0}
    made = [
        recorded(
            number,
            score,
            parent=parents.get(number),
            quality_delta=99.0,
            status="ok" if score else "scorer_broken",
            dimensions=MappingProxyType({"a": (score or 0) / 100, "b": 1.0}),
        )
        for number, score in scores.items()
    ]
    report = report_of(made, SelectionCriteria(threshold=None))
    rows = trajectory_rows(report)
    assert ["", "+30.0", "\N{MINUS SIGN}20.0", "+5.0", "", "\N{MINUS SIGN}10.0"] == [one.delta for one in rows]
    origins = ["", "", "", "from 1", "", "from the start"]
    assert origins == [next((part for part in one.said().split(" · ") if part.startswith("from")), "") for one in rows]
    assert "a \N{MINUS SIGN}10.0 · from the start" == rows[5].said(), "the fall that is named is from there too"
    table = render_markdown(report).partition("## Quality Scores")[2]
    assert "| 3 (from 1) ✓ | 85% | +5.0% |" in table
    assert "| 5 (from the start) | 40% | -10.0% |" in table
    batch = [replace(record(number, parent=1), batch=2, candidate=number - 2) for number in (3, 4)]
    assert ["from 1", "from 1"] == [started_from(one) for one in batch]
    assert ["", ""] == [started_from(replace(one, parent=2)) for one in batch]
    assert [99.0] * 6 == [one["quality_delta"] for one in json.loads(render_json(report))["records"]]


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
