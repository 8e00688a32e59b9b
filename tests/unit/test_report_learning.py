"""The report of a learning run: one truth in three forms, and nothing in it that a run did not do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import call
from learn_items import GOOD, judged_items, write_items
from report_samples import HOSTILE

from jumar.app.learning_read import read_report
from jumar.report.learning.decisions import Decisions, points_text
from jumar.report.learning.document import render_json
from jumar.report.learning.html import render_html
from jumar.report.learning.markdown import render_markdown
from jumar.report.learning.plot import NARROW, WIDE, course_plot
from jumar.report.learning.progress import Progress, render_progress
from jumar.report.learning.reasons import features, phrases
from jumar.report.learning.verdict import checks, next_steps, verdict_lines
from jumar.report.learning.view import LearningReport

ROLLED: dict[str, Any] = {
    "action": "rolled_back",
    "description": "correlation decreased by 0.068",
    "interval": [-0.121, -0.016],
    "before": 0.538,
    "after": 0.535,
    "confirmed": 0.538,
}
KEPT: dict[str, Any] = {
    "action": "recovery",
    "recovery": "prune_low_weight_patterns",
    "diagnosis": "gap_plateau",
    "changed": True,
    "kept": True,
    "note": "3 patterns pruned",
    "before": 0.54,
    "after": 0.51,
}


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of one iteration; nobody changes it."""
    place = tmp_path_factory.mktemp("learned")
    items = write_items(place / "judged.jsonl", judged_items(40, 3, seed=8))
    call("learn", str(items), "--judge", f"replay:{items}", "-o", str(place / "out"), "--max-iterations", "1", "-q", check=0)
    return place / "out"


@pytest.fixture
def report(output: Path) -> LearningReport:
    return read_report(output)


def acted(report: LearningReport, *actions: dict[str, Any]) -> LearningReport:
    """The report with other actions in its last iteration."""
    return replace(report, logs=[*report.logs[:-1], {**report.logs[-1], "actions_taken": list(actions)}])


def test_the_three_forms_say_the_same(report: LearningReport):
    page, text, document = render_html(report), render_markdown(report), json.loads(render_json(report))
    assert report.proof is not None
    mae = report.proof["statistics"]["figures"]["mae"]
    assert document["proof"]["statistics"]["figures"]["mae"] == mae
    for form in (page, text):
        assert f"{mae:.2f} (" in form
        assert "look 1 of 3 planned" in form
        assert "differs from itself" in form
        for one in checks(report):
            assert one.says in form
        for phrase in phrases(report)[:20]:
            assert phrase.points in form
    assert [one["points"] for one in document["patterns"]] == [
        one["weight"] * (1 if one["type"] == "good" else -1) * report.unit for one in report.patterns
    ]


def test_nothing_is_said_twice(report: LearningReport):
    for form in (render_html(report), render_markdown(report)):
        sentences = re.findall(r"[^.>\n|]{40,}\.", re.sub(r"<style>.*?</style>", "", form, flags=re.DOTALL))
        told = [one for one in sentences if "iteration" not in one]
        assert sorted(set(told)) == sorted(told)


def test_every_proposal_is_told_with_its_reason(report: LearningReport):
    actions = report.logs[-1]["actions_taken"]
    assert {"committed_pattern", "rejected_pattern"} <= {one["action"] for one in actions}
    assert all(one["reason"] for one in actions)
    assert all(one["points"] for one in actions if one["action"] == "committed_pattern")
    text = render_markdown(report)
    rejected = sum(one["action"] == "rejected_pattern" for one in actions)
    assert f"{rejected:,} rejected: the fit gave {'it' if rejected == 1 else 'them'} no points" in text
    planted = next(one for one in phrases(report) if any(word in one.says for word in GOOD[0].split()))
    assert planted.value > 0
    assert 0 < planted.fired


def test_rollbacks_and_recoveries_are_told_with_their_figures(report: LearningReport):
    tried = {**KEPT, "kept": False, "after": 0.6, "note": "worse <b>"}
    told = acted(report, ROLLED, KEPT, tried)
    for form in (render_html(told), render_markdown(told)):
        assert "−0.121 to −0.016" in form
        assert "measured again after going back: 0.54" in form
        assert "kept: pruning patterns of little weight (3 patterns pruned; gap 0.54 → 0.51)" in form
        assert "tried, and worse" in form
        assert "<b>worse" not in form.replace("worse <b>", "<b>worse")
    plot = course_plot(told)
    assert plot is not None
    assert "back" == plot.strips[0].dots[-1].kind


def test_features_come_with_their_steps_and_add_up(report: LearningReport):
    def step(feature: str, at_least: float, weight: float, kind: str = "good") -> dict[str, Any]:
        one = {"feature": feature, "at_least": at_least, "weight": weight, "type": kind, "id": f"{feature}>={at_least}"}
        return {**report.patterns[0], **one, "times_fired": int(at_least)}

    steps = [step("words", 40, 1.0), step("words", 9, 0.5), step("ends_whole", 1, 2.0, "bad")]
    told = replace(report, patterns=steps, calibration={**(report.calibration or {}), "unit": 0.1})
    found = {one.name: one for one in features(told)}
    assert ["ends as a sentence does", "words"] == sorted(found)
    assert ("from 9 on +0.05", "from 40 on +0.10") == found["words"].steps
    assert ("+0.15", 40) == (found["words"].points, found["words"].fired)
    assert "−0.20" == found["ends as a sentence does"].points
    for form in (render_html(told), render_markdown(told)):
        assert "from 9 on +0.05; from 40 on +0.10" in form


@pytest.mark.parametrize("size", [WIDE, NARROW])
@pytest.mark.parametrize("count", [1, 2, 300])
def test_the_plot_stays_inside_of_its_frame(report: LearningReport, size: tuple[int, int, int], count: int):
    logs = [
        {**report.logs[0], "metrics": {**report.logs[0]["metrics"], "iteration": number, "abs_gap": 0.4 + number % 7 / 10}}
        for number in range(1, count + 1)
    ]
    plot = course_plot(replace(report, logs=logs), size)
    assert plot is not None
    for strip in plot.strips:
        assert all(plot.left <= dot.x <= plot.right and strip.top <= dot.y <= strip.bottom for dot in strip.dots)
        assert all(strip.top - 0.1 <= tick.at <= strip.bottom + 0.1 for tick in strip.ticks)
    assert [one.best for one in plot.strips[0].dots].count(True) == 1


def test_before_there_is_a_verdict_the_report_says_how_to_go_on(report: LearningReport):
    early = replace(report, summary=None, proof=None, state="stopped", logs=[], best=None, stopped="")
    for form in (render_html(early), render_markdown(early)):
        assert "No verdict yet" in form
        assert "jumar learn" in re.sub(r"<[^>]+>", "", form)
    assert [] == checks(early)
    assert None is json.loads(render_json(early))["verdict"]


@pytest.mark.parametrize("verdict", ["tracks", "not_proven", "fails"])
def test_every_verdict_says_what_to_do(report: LearningReport, verdict: str):
    assert report.proof is not None
    told = replace(report, proof={**report.proof, "verdict": verdict})
    assert verdict == json.loads(render_json(told))["verdict"]
    assert next_steps(told)
    if verdict == "tracks":
        assert "evaluate new.jsonl --mode cheap" in " ".join(next_steps(told))


def test_names_of_others_are_text(report: LearningReport):
    for name in HOSTILE:
        action = {"action": "committed_pattern", "description": name, "reason": name, "points": 0.1}
        told = replace(acted(report, action), name=name, patterns=[{**report.patterns[-1], "description": name}])
        page, text = render_html(told), render_markdown(told)
        assert "<script" not in page
        assert "\x1b" not in page + text


def test_progress_names_what_matters_most(report: LearningReport):
    text = render_progress([Progress.of(report.logs[-1])])
    assert "rank correlation" in text
    assert "more)" in text
    assert len(text.splitlines()) < 20


def test_the_report_of_the_loop_says_what_its_scores_are(output: Path):
    told = call("report", "--root", str(output / ".jumar"), "learn", check=0).out
    assert "not whether that set tracks the judge" in told
    assert f"jumar learn report {output}" in told
    assert "over-refinement" not in told


def test_too_few_sealed_groups_prove_nothing_and_that_is_said(report: LearningReport):
    assert report.proof is not None
    assert 20 > report.proof["statistics"]["groups"]
    assert "too few to prove anything: 30 sealed items in 20 groups are the least" in " ".join(verdict_lines(report))
    assert "--heldout" in " ".join(next_steps(report))


def test_points_are_shown_as_far_as_they_say_something():
    shown = [points_text(value) for value in (0.314, -0.314, 0.0031, 0.00001, -0.00001, None)]
    assert ["+0.31", "−0.31", "+0.0031", "+0.00", "−0.00", ""] == shown


def test_an_unknown_entry_of_the_log_is_left_out():
    assert not Decisions.of([{"action": "something_new"}]).any
