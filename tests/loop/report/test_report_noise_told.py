"""With noise known, the figures of a choice are of one scale, and a difference within the noise is called that."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from report_samples import report_of

from jumar.loop.ranking.noise import Evidence, select
from jumar.loop.report.export import render_junit, report_document
from jumar.loop.report.page import render_html, render_markdown
from jumar.loop.report.read import LoopReport
from jumar.model import IterationRecord, SelectionCriteria
from jumar.model.records import Reading, ScoreReading

AT = "2026-01-01T00:00:00+00:00"


def answer(*scores: float) -> tuple[ScoreReading, ...]:
    return (ScoreReading(dimension="q", score=sum(scores) / len(scores), scorer="s", repeats=scores),)


def record(number: int, *scores: float) -> IterationRecord:
    mean = sum(scores) / len(scores)
    return IterationRecord(
        iteration_number=number,
        timestamp=AT,
        quality_score=round(100 * mean, 4),
        dimensions={"q": mean},
        readings=answer(*scores),
        verification_status="passed",
        status="ok",
    )


def again(number: int, iteration: int, *scores: float) -> Reading:
    mean = sum(scores) / len(scores)
    return Reading(
        number=number,
        kind="rescore",
        iteration=iteration,
        at=AT,
        attempt=None,
        score=100 * mean,
        dimensions={"q": mean},
        readings=answer(*scores),
    )


def report(last: tuple[float, float] = (0.69, 0.73), threshold: float = 71.0) -> LoopReport:
    records = [record(0, 0.30, 0.32), record(1, 0.71, 0.736), record(2, *last)]
    later = (again(1, 1, 0.68, 0.70), again(2, 2, 0.66, 0.68)) if last[0] > 0.6 else ()
    evidence = Evidence(views=tuple(one.view() for one in records), readings=later)
    criteria = SelectionCriteria(mode="highest_quality", threshold=threshold)
    return replace(report_of(records, criteria), selection=select(evidence, criteria), evidence=evidence)


def test_the_choice_is_told_by_the_mean_of_its_readings_everywhere():
    made = report()
    assert made.certainty is not None
    assert made.certainty.rescored
    assert made.chosen == 1
    mean, final = made.chosen_quality, made.final_quality
    assert mean == pytest.approx(70.65)
    assert final == pytest.approx(69.0)
    text = render_markdown(made)
    assert "| Selected Quality | 70.7% (mean of 2 readings; 72.3% as recorded) |" in text
    assert "| Final Quality | 69% (mean of 2 readings) |" in text
    assert "- Below the threshold (70.7% < 71%)" in text
    assert "| Meets Threshold | No (71% wanted) |" in text
    junit = render_junit(made)
    assert "selected: iteration 1, 70.7% (mean of 2 readings; 72.3% as recorded)" in junit
    page = render_html(made)
    assert re.search(r"1\.[67] points below, within the noise", page)


def test_a_fall_within_the_noise_is_no_degradation():
    made = report()
    assert made.selection is not None
    assert made.selection.degradation_detected
    assert not made.degraded
    text = render_markdown(made)
    assert "within the noise) |" in text
    assert "over-refinement" not in text
    assert "Quality degraded" not in text


def test_a_fall_beyond_the_noise_is_degradation():
    made = report((0.40, 0.42))
    assert made.degraded
    text = render_markdown(made)
    assert "| Degradation Detected | Yes |" in text
    assert "Quality degraded from iteration" in text


def night(*pairs: tuple[float, float], failed: tuple[int, ...] = ()) -> LoopReport:
    """A loop in which every iteration was asked about twice, and nobody later; some fail a check."""
    records = [
        replace(record(number, *pair), verification_status="failed" if number in failed else "passed")
        for number, pair in enumerate(pairs)
    ]
    evidence = Evidence(views=tuple(one.view() for one in records))
    criteria = SelectionCriteria(threshold=None)
    return replace(report_of(records, criteria), selection=select(evidence, criteria), evidence=evidence)


def test_falls_on_the_way_within_the_noise_are_not_told():
    made = night((0.40, 0.60), (0.70, 0.90), (0.62, 0.82), (0.60, 0.74), (0.85, 0.75))
    assert made.certainty is not None
    assert made.certainty.standard_error == pytest.approx(9.0, abs=1)
    told = report_document(made)["degradation"]
    assert (False, [], None, [], False) == tuple(
        told[key] for key in ("detected", "iterations", "sentence", "likely_causes", "final_degraded")
    )
    assert "Degradation Detected\n" not in render_markdown(made)
    assert "quality drop" not in render_markdown(made)


def test_a_fall_on_the_way_beyond_the_noise_is_told():
    made = night((0.40, 0.42), (0.80, 0.82), (0.60, 0.62), (0.58, 0.62), (0.81, 0.83))
    told = report_document(made)["degradation"]
    assert (True, [2]) == (told["detected"], [number for number in told["iterations"] if number < 3])
    assert "Quality fell on the way, at iteration" in told["sentence"]


def test_failing_checks_are_no_fall_of_quality():
    made = night((0.40, 0.60), (0.70, 0.90), (0.69, 0.89), failed=(2,))
    told = report_document(made)["degradation"]
    assert ["validation_failures_increased"] == told["triggers"]
    assert "More checks failed than before at iteration 2; the final iteration fails its checks." == told["sentence"]
    assert [] == told["likely_causes"]


def test_the_order_is_by_what_was_decided_with():
    made = report()
    assert made.selection is not None
    ranking = report_document(made)["ranking"]
    assert [1, 2, 0] == [place["iteration"] for place in ranking] == list(made.order)
    assert (1, made.selection.runner_up) == made.order[:2]
    assert [(pytest.approx(70.65), 2, 72.3), (pytest.approx(69.0), 2, 71.0), (31.0, 1, 31.0)] == [
        (place["score"], place["readings"], place["loop_score"]) for place in ranking
    ]
