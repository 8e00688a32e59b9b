"""With noise known, the figures of a choice are of one scale, and a difference within the noise is called that."""

from __future__ import annotations

import re

import pytest

from jumar.model import IterationRecord, SelectionCriteria
from jumar.model.readings import Reading
from jumar.model.records import ScoreReading
from jumar.ranking.noise import Evidence, select
from jumar.report.html import render_html
from jumar.report.junit import render_junit
from jumar.report.markdown import render_markdown
from jumar.report.read import LoopReport, build_report

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
    return build_report("noisy", records, select(evidence, criteria), criteria=criteria, evidence=evidence)


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
    assert "chosen: iteration 1, 70.7% (mean of 2 readings; 72.3% as recorded)" in junit
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
    assert "Quality degraded by 31.3%" in text
