"""Where a run's attempts went: every one in one row, rows that add up to the total, and what it takes to go on."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import report_of, seed_records

from jumar.loop.report.export import report_document
from jumar.loop.report.page import render_html, render_markdown
from jumar.loop.report.read import LoopReport
from jumar.loop.report.spending import going_on, passes_text, took_of, took_rows
from jumar.model import Usage
from jumar.model.attempts import Attempt, AttemptEnd, AttemptStart, Outcome, Purpose, Spend
from jumar.model.budget.ledger import spend
from jumar.model.budget.pricing import Budget
from jumar.model.selection import StopDecision

AT = "2026-01-01T00:00:00+00:00"
PURPOSES: tuple[Purpose, ...] = ("generate", "generate", "score", "confirm")
OUTCOMES: tuple[Outcome | None, ...] = ("ok", "failed", "timeout", "rate_limited", "blocked", "interrupted", "lost", None)


@st.composite
def attempts(draw: st.DrawFn) -> tuple[Attempt, ...]:
    found: list[Attempt] = []
    for number in range(1, draw(st.integers(1, 12)) + 1):
        purpose: Purpose = draw(st.sampled_from(PURPOSES))
        start = AttemptStart(
            number=number, iteration=number, parent=0, nonce="n", started_at=AT, reserve_cost_usd=0.25, purpose=purpose
        )
        outcome = draw(st.sampled_from(OUTCOMES))
        cost, tokens = draw(st.none() | st.integers(0, 8)), draw(st.none() | st.integers(0, 5000))
        usage = Usage(token_cost_usd=None if cost is None else cost / 8, tokens_used=tokens)
        wait = draw(st.none() | st.just(2.0)) if outcome == "rate_limited" else None
        end = None if outcome is None else AttemptEnd(outcome=outcome, seconds=0.5, ended_at=AT, usage=usage, wait_seconds=wait)
        found.append(Attempt(start=start, end=end))
    return tuple(found)


@given(attempts(), st.sets(st.integers(1, 12)))
def test_every_attempt_is_in_one_part_and_the_parts_add_up(made: tuple[Attempt, ...], listed: set[int]) -> None:
    budget = Budget(max_cost_usd=5.0)
    found, total = took_of(made, frozenset(listed), {}, budget), spend(made, budget)
    assert len(made) == sum(part.attempts for part in found.parts) == total.calls
    for name in (
        "seconds",
        "known_cost_usd",
        "assumed_cost_usd",
        "known_tokens",
        "unknown_costs",
        "unknown_tokens",
        "iterations",
    ):
        parts = math.fsum(getattr(part.spend, name) for part in found.parts)
        assert parts == pytest.approx(getattr(total, name), abs=1e-9), name
    refusals = [one.end for one in made if one.end is not None and one.end.outcome == "rate_limited"]
    assert 2.0 * (len(refusals) - found.untold) == found.told_to_wait


def end(outcome: Outcome, cost: float | None, **fields: object) -> AttemptEnd:
    usage = Usage(token_cost_usd=cost, tokens_used=None if cost is None else round(1000 * cost))
    return AttemptEnd(outcome=outcome, seconds=1.0, ended_at=AT, usage=usage, **fields)  # pyright: ignore[reportArgumentType]


def told() -> LoopReport:
    """Three passes, one of them silent, after a crash and a refusal; a limit ended it."""
    ends = [end("failed", 0.5), end("ok", 1.0), end("rate_limited", None, wait_seconds=30.0), end("ok", None), end("ok", 1.5)]
    made: list[Attempt] = []
    for number, one in enumerate(ends, start=1):
        start = AttemptStart(number=number, iteration=number, parent=0, nonce="n", started_at=AT, reserve_cost_usd=0.75)
        made.append(Attempt(start=start, end=one))
    budget = Budget(max_cost_usd=4.0, max_seconds=60.0)
    total = spend(made, budget)
    stop = StopDecision(reason="max_cost", detail="$3.75 of $4.00")
    report = report_of(seed_records(), spend=total, stop=stop)
    failures = {"generator_failed": 1, "rate_limited": 1}
    return replace(report, budget=budget, took=took_of(made, frozenset({2, 4, 5}), failures, budget))


def test_a_report_says_where_it_went_once() -> None:
    report = told()
    assert [
        (
            "Iterations, as in the table of scores",
            "3",
            "$3.2500 ($0.75 estimated, 1 not reported)",
            "2,500 (1 not reported)",
            "3.0s",
        ),
        ("Refused by the provider", "1", "$0", "0", "1.0s"),
        ("Failed and tried again", "1", "$0.5000", "500", "1.0s"),
        ("In all", "5", "$3.7500 of $4.00 ($0.75 estimated, 1 not reported)", "3,000 (1 not reported)", "5.0s of 1m 00s"),
    ] == list(took_rows(report.took, report.spend, report.budget))
    text, page = render_markdown(report), render_html(report)
    assert 1 == text.count("## What the Run Took") == page.count("What the run took</h2>")
    assert "| Spent | 3 iterations in 5 runs of the generator, 5.0s, $3.7500 of $4.00 ($0.75 estimated, 1 not reported) |" in text
    for line in ("Went wrong: 1 generator failed, 1 rate limited", "Asked to wait by the provider: 30s in all"):
        assert f"- {line}\n" in text
        assert f"{line}." in page
    way = "To resume: raise [budget] max_cost_usd (jumar run --max-cost); an iteration took $1.25 on average"
    assert f"- {way}\n" in text
    assert way in page
    assert "The cost of 1 attempt was not reported and is estimated" in text
    document = report_document(report)
    assert 4.0 == document["budget"]["max_cost_usd"]
    assert [("passes", 3), ("rate-limited", 1), ("tried again", 1)] == [
        (part["what"], part["attempts"]) for part in document["course"]["parts"]
    ]
    assert 30.0 == document["course"]["told_to_wait"]


def test_without_attempts_there_is_no_such_section() -> None:
    report = report_of(seed_records())
    assert "What the Run Took" not in render_markdown(report)
    assert "What the run took" not in render_html(report)
    assert report_document(report)["course"] is None


@pytest.mark.parametrize(
    ("reason", "passes", "way"),
    [
        ("max_cost", 4, "raise [budget] max_cost_usd (jumar run --max-cost); an iteration took $0.25 on average"),
        ("max_tokens", 4, "raise [budget] max_tokens (jumar run --max-tokens); an iteration took 500 tokens on average"),
        ("max_seconds", 4, "raise [budget] max_seconds (jumar run --max-seconds); an iteration took 15s on average"),
        ("max_cost", 0, "raise [budget] max_cost_usd (jumar run --max-cost)"),
        ("max_attempts", 4, "jumar run, once [budget] max_iterations is higher"),
        ("disk_full", 4, "jumar run, once there is free space"),
        ("target", 4, None),
        ("plateau", 4, None),
    ],
)
def test_what_it_takes_to_go_on(reason: str, passes: int, way: str | None) -> None:
    assert way == going_on(reason, Spend(known_cost_usd=1.0, known_tokens=2000, seconds=60.0), passes)


def test_passes_are_told_from_runs() -> None:
    assert ("1 iteration", "3 iterations") == (passes_text(1, 1), passes_text(3, 3))
    assert "3 iterations in 5 runs of the generator" == passes_text(3, 5)
