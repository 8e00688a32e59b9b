"""Failures by kind: what a generator says of itself, what its output looks like, how long to wait, and how they are counted."""

from __future__ import annotations

import pytest

from jumar.loop.generators.failures import blocked_by_exit, last_words, next_wait, rate_limit, without_effect
from jumar.model import IterationView, Usage
from jumar.model.attempts import Attempt, AttemptEnd, AttemptStart
from jumar.model.budget.ledger import count_failures
from jumar.processes.environment import step_seed


@pytest.mark.parametrize(
    ("tail", "seconds"),
    [
        ("HTTP 429 Too Many Requests\nRetry-After: 17", 17.0),
        ("rate limit reached, try again in 2 minutes", 120.0),
        ("Rate-limited; retry after 250ms", 0.25),
        ("usage limit reached. Try again in 3 hours", 10_800.0),
        ("error: overloaded_error (529)", None),
        ("RESOURCE_EXHAUSTED", None),
    ],
)
def test_a_failed_run_that_was_turned_away_is_recognised_by_its_last_words(tail: str, seconds: float | None) -> None:
    found = rate_limit(1, tail, Usage())
    assert found is not None
    assert found.retry_after == seconds


@pytest.mark.parametrize(
    "tail", ["", "SyntaxError: invalid syntax", "4290 tests passed", "the limit of 80 columns", "delimiters"]
)
def test_another_failure_is_no_rate_limit(tail: str) -> None:
    assert rate_limit(1, tail, Usage()) is None


def test_what_the_generator_says_itself_counts_first() -> None:
    assert rate_limit(75, "", Usage()) is not None
    assert rate_limit(1, "429", Usage(rate_limited=False)) is None
    said = rate_limit(1, "Retry-After: 9", Usage(rate_limited=True, retry_after=3.0))
    assert said is not None
    assert said.retry_after == 3.0


def test_a_blocked_run_says_why_with_its_last_line() -> None:
    assert blocked_by_exit(77, "looked around\nno permission to read db\n") == "no permission to read db"
    assert "77" in str(blocked_by_exit(77, ""))
    assert blocked_by_exit(1, "no permission") is None


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", ""),
        ("looked around\nconnection reset\n\n", "connection reset"),
        ('connection reset\n{"type": "result", "cost": 0.1}\n', "connection reset"),
        ('reading\n{"type": "turn.failed", "error": {"message": "stream closed"}}', "stream closed"),
        ('{"is_error": true, "result": "first\\nAPI Error: 500"}', "API Error: 500"),
        ('{"type": "result", "cost": 0.1}', '{"type": "result", "cost": 0.1}'),
        ('{"error": null, "message": "", "result": 3}\n', '{"error": null, "message": "", "result": 3}'),
        ("{not json", "{not json"),
        ("[1, 2]", "[1, 2]"),
    ],
)
def test_why_a_run_failed_is_read_from_its_last_words(output: str, said: str) -> None:
    assert said == last_words(output)


def test_waits_double_up_to_a_quarter_of_an_hour_unless_told() -> None:
    assert [next_wait(None, refused) for refused in (1, 2, 3, 4, 5, 6, 500)] == [60, 120, 240, 480, 900, 900, 900]
    assert next_wait(7.0, 9) == 7.0
    assert next_wait(0.0, 1) == 0.0


def test_a_run_without_effect_is_told_from_one_that_said_something() -> None:
    assert without_effect(modified=True, printed=False) is None
    assert without_effect(modified=False, printed=True) == "changed_nothing"
    assert without_effect(modified=False, printed=None) == "changed_nothing"
    assert without_effect(modified=False, printed=False) == "produced_nothing"


def test_failures_are_counted_once_from_attempts_and_iterations() -> None:
    outcomes = ["ok", "failed", "rate_limited", "rate_limited", "lost", "interrupted", "timeout", "blocked"]
    attempts = [
        Attempt(
            start=AttemptStart(number=number, iteration=number, parent=0, nonce="n", started_at=""),
            end=AttemptEnd(outcome=outcome, seconds=1.0, ended_at=""),  # type: ignore[arg-type]
        )
        for number, outcome in enumerate(outcomes, 1)
    ]
    broken = AttemptEnd(outcome="broken", seconds=1.0, ended_at="", failure="scorer_broken")
    start = AttemptStart(number=9, iteration=1, parent=0, nonce="n", started_at="", purpose="score")
    attempts += [Attempt(start=start, end=broken), Attempt(start=start, end=None)]
    views = [
        IterationView(number=1, score=50.0, failure="changed_nothing"),
        IterationView(number=2, score=None, status="generator_failed", failure="generator_failed"),
        IterationView(number=3, score=None, failure="invalid_score"),
    ]
    assert count_failures(attempts, views) == {
        "generator_failed": 1,
        "generator_timeout": 1,
        "rate_limited": 2,
        "blocked": 1,
        "changed_nothing": 1,
        "scorer_broken": 1,
        "invalid_score": 1,
        "lost": 1,
    }
    assert count_failures([], []) == {}


def test_a_steps_seed_depends_on_everything_it_should_and_on_nothing_else() -> None:
    seeds = {
        step_seed(seed, iteration=iteration, candidate=candidate, purpose=purpose)
        for seed in (0, 1)
        for iteration in (1, 2, 12)
        for candidate in (None, 1, 2)
        for purpose in ("generate", "score")
    }
    assert len(seeds) == 2 * 3 * 3 * 2
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert step_seed(7, iteration=3, candidate=None, purpose="generate") == step_seed(
        7, iteration=3, candidate=0, purpose="generate"
    )
