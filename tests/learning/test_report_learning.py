"""The report of a learning run: one truth in three forms, and nothing in it that a run did not do."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import CONTROL, call
from learn_items import GOOD, judged_items, write_items
from report_samples import HOSTILE

from jumar.core.rendering.plot import NARROW, WIDE, Frame
from jumar.learning.report.course import Totals, best_text, converged_text, course_rows, lost_lines, stop_words
from jumar.learning.report.plot import course_plot
from jumar.learning.report.reasons import features, phrases, set_text
from jumar.learning.report.render import render_html, render_json, render_markdown
from jumar.learning.report.verdict import (
    checks,
    figure_rows,
    lead,
    next_steps,
    noise_text,
    paid_text,
    quality_text,
    verdict_lines,
)
from jumar.learning.report.view import (
    DecisionGroup,
    Decisions,
    LearningProgress,
    LearningReport,
    points_text,
    recovery_text,
    render_progress,
)
from jumar.learning.run.read import read_report

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
    """A finished run of one iteration, whose judge likes long texts, too; nobody changes it."""
    place = tmp_path_factory.mktemp("learned")
    records = judged_items(40, 3, seed=8)
    for one in records:
        longer = (len(one["text"]) - 250) / 150
        one["judge_scores"] = [round(min(5.0, max(1.0, score + longer)), 2) for score in one["judge_scores"]]
    items = write_items(place / "judged.jsonl", records)
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
        assert f"{mae:.2f} [" in form
        assert "evaluation 1 of 3 planned" in form
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
    assert {"committed_pattern"} == {one["action"] for one in actions}, "nobody proposes anything before the first fit"
    assert all(one["reason"] for one in actions)
    assert all(one["points"] for one in actions if one["action"] == "committed_pattern")
    text = render_markdown(report)
    assert f"{len(actions):,} committed: the fit gave them points" in text
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
    assert "back" == plot.panels[0].marks[-1].kind


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
def test_the_plot_stays_inside_of_its_frame(report: LearningReport, size: Frame, count: int):
    logs = [
        {**report.logs[0], "metrics": {**report.logs[0]["metrics"], "iteration": number, "abs_gap": 0.4 + number % 7 / 10}}
        for number in range(1, count + 1)
    ]
    plot = course_plot(replace(report, logs=logs), size)
    assert plot is not None
    for panel in plot.panels:
        assert all(size.left <= mark.x <= size.x_end and panel.top <= mark.y <= panel.bottom for mark in panel.marks)
        assert all(panel.top - 0.1 <= tick.at <= panel.bottom + 0.1 for tick in panel.y_ticks)
    assert [mark.chosen for mark in plot.panels[0].marks].count(True) == 1


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
        page, text, document = render_html(told), render_markdown(told), render_json(told)
        assert "<script" not in page
        assert "\x1b" not in page + text
        assert not CONTROL & set(document)
        assert "\u202e" not in document
        assert name in json.loads(document)["patterns"][-1].values()


def test_progress_names_what_matters_most(report: LearningReport):
    text = render_progress([LearningProgress.of(report.logs[-1])])
    assert "rank correlation" in text
    assert re.search(r"\d+ more,\s+and", text)
    assert len(text.splitlines()) < 20


def test_the_report_of_the_loop_says_what_its_scores_are(output: Path):
    told = call("report", "--root", str(output / ".jumar"), "learn", check=0).out
    assert "not whether that set tracks the judge" in told
    assert f"jumar learn report {output}" in told
    assert "over-refinement" not in told


def test_too_few_sealed_groups_prove_nothing_and_that_is_said(report: LearningReport):
    assert report.proof is not None
    assert 20 > report.proof["statistics"]["groups"]
    assert "48 held-out items in 16 groups are too few to prove anything: 30 in 20 are the least" in " ".join(
        verdict_lines(report)
    )
    assert "--heldout" in " ".join(next_steps(report))


def test_held_out_items_without_a_score_are_counted(report: LearningReport):
    assert report.proof is not None
    items = {**report.proof["items"], "unscored": {"judge": 3, "cheap": 1, "open": 7}}
    told = " ".join(verdict_lines(replace(report, proof={**report.proof, "items": items})))
    assert "Held-out test set: 48 items, 16 groups; 4 more got no score." in told
    assert "no score" not in " ".join(verdict_lines(report))


def test_points_are_shown_as_far_as_they_say_something():
    shown = [points_text(value) for value in (0.314, -0.314, 0.0031, 0.00001, -0.00001, None)]
    assert ["+0.31", "−0.31", "+0.0031", "+0.00", "−0.00", ""] == shown


def test_an_unknown_entry_of_the_log_is_left_out():
    assert not Decisions.of([{"action": "something_new"}]).decided


# ------------------------------------------------------------------------------------------- it is true, and it adds up


def decided(action: str, name: str, points: float | None = None) -> dict[str, Any]:
    return {"action": action, "pattern_id": name, "description": f"says {name}", "reason": "the fit said so", "points": points}


def run_of(report: LearningReport, *iterations: list[dict[str, Any]], **changes: Any) -> LearningReport:
    """The report with these decisions, an iteration each; the figures of metrics are left as they are, and don't add up."""
    metrics = report.logs[0]["metrics"]
    logs = [
        {**report.logs[0], "metrics": {**metrics, "iteration": number}, "actions_taken": actions}
        for number, actions in enumerate(iterations, 1)
    ]
    return replace(report, logs=logs, **changes)


def test_rows_totals_and_decisions_count_the_same(report: LearningReport):
    told = run_of(
        report,
        [decided("committed_pattern", "a", 0.1), decided("committed_pattern", "b", 0.1), decided("rejected_pattern", "c")],
        [decided("rejected_pattern", "a"), decided("committed_pattern", "d", 0.1)],
    )
    rows = [(one.committed, one.rejected) for one in course_rows(told)[1:]]
    assert [("2", "1"), ("1", "1")] == rows
    totals = Totals.of(told.logs)
    assert (3, 2) == (totals.commits, totals.rejections)
    assert {"b", "d"} == set(totals.standing)
    assert "2 committed at the end (1 more was committed and rejected later), 2 rejected" == totals.text
    for form in (render_markdown(told), re.sub(r"<[^>]+>", "", render_html(told))):
        assert totals.text in form
    page = render_html(told)
    assert page.index("; 2 committed, 1 rejected") < page.index("; 1 committed, 1 rejected")


def test_a_commit_that_is_not_in_the_set_is_listed_with_the_reason(report: LearningReport):
    there = {**report.patterns[0], "id": "a", "feature": None}
    told = run_of(
        report,
        [decided("committed_pattern", "a", 0.1), decided("committed_pattern", "lost", 0.1)],
        [decided("committed_pattern", "late", 0.1)],
        patterns=[there],
        best=1,
    )
    fit, later = lost_lines(told)
    assert fit.endswith("the last fit, on all open items at once, gave them no points: says lost")
    assert "which is that of iteration 1: says late" in later
    assert fit in render_markdown(told)
    assert later in render_html(told)
    assert [] == lost_lines(replace(told, summary=None)), "before the end there is no last fit"


def test_commits_of_next_to_nothing_are_counted_and_not_listed():
    group = DecisionGroup(
        status="committed", reason="x", patterns=(("much", 0.2), ("less", -0.01), ("hardly", 0.0001), ("none", -0.0049))
    )
    assert ["much +0.20", "less −0.01"] == group.names(30)
    assert "2 more of under 0.005 points each" == group.rest(30)
    assert "1 more, and 2 of under 0.005 points each" == group.rest(1)
    tiny = DecisionGroup(status="committed", reason="x", patterns=(("hardly", 0.0001),))
    assert ([], "1 of under 0.005 points each") == (tiny.names(), tiny.rest())


def test_a_set_that_only_orders_says_so_and_lists_no_points(report: LearningReport):
    flat = replace(report, sealed_scores=(4.0, 4.001))
    assert "Nothing was learned." != lead(flat)
    assert "The set orders items, and no more" in verdict_lines(flat)[0]
    assert "(on the held-out items from 4.0000 to 4.0010)" in verdict_lines(flat)[0]
    text = render_markdown(flat)
    assert "enough to order items" in text
    assert "### Phrases" not in text
    assert "### Features" not in text


def test_an_empty_set_says_first_that_nothing_was_learned_and_what_it_gives(report: LearningReport):
    empty = replace(report, patterns=[], calibration=None, best=0)
    assert "Nothing was learned." == lead(empty)
    assert "The set is empty: its scores are those of the built-in rubric." == verdict_lines(empty)[0]
    assert "★" in next(line for line in render_markdown(empty).splitlines() if "start" in line and line.startswith("|"))
    plot = course_plot(empty)
    assert plot is not None
    assert plot.panels[0].marks[0].chosen
    constant = replace(empty, calibration={"base": 3.25, "fitted": {"calibration": "constant"}}, sealed_scores=(3.25, 3.25))
    assert "The set is empty: it gives every item 3.25, the median of the judge's scores." == verdict_lines(constant)[0]
    assert "no pattern has earned a place, and it gives every item 3.25" in render_markdown(constant)
    assert "Nothing was learned." != lead(report)


def test_why_the_best_is_the_best_is_said_with_what_speaks_against_it(report: LearningReport):
    last = report.iterations[-1]
    assert last.abs_gap is not None
    start = replace(report, best=0, start=(last.abs_gap + 0.5, 0.99), scores={0: 80.0, last.iteration: 79.0})
    told = best_text(start)
    assert "nothing that was learned is kept" in told
    assert f"Iteration {last.iteration} has a smaller gap" in told
    assert "79.0 against 80.0" in told
    worse = replace(report, best=1, start=(last.abs_gap - 0.1, -0.5), scores={0: 60.0, last.iteration: 79.0})
    assert "The start has a smaller gap" in best_text(worse)
    assert "a worse order (−0.50" in best_text(worse)
    # closeness 1 - 1/4 and order (1 + 0.5)/2 make 75; without closeness it is 37.5
    far = replace(report, best=last.iteration, start=(1.0, 0.5), scores={0: 37.5, last.iteration: 79.0})
    assert "Of the start the order alone counts" in best_text(far)
    assert "the order alone" not in best_text(replace(far, scores={0: 75.0, last.iteration: 79.0}))


def test_how_a_run_ended_is_told_in_words_of_learning():
    engine = "the generator says it is done and the checks pass (iteration 3, 94.2%)"
    assert "two iterations in a row met every target" in stop_words("completed", engine, "converged")
    assert "nothing more to propose" in stop_words("completed", engine, "nothing more to propose")
    assert "generator" not in stop_words("completed", engine, "")
    assert "4 of 4 iterations done" == stop_words("max_iterations", "4 of 4 iterations done", "")


def test_what_convergence_lacks_is_said(report: LearningReport):
    assert report.summary is not None
    missing = [{"check": "gap_threshold", "says": "the gap is 0.70, 0.20 over its target of 0.5", "helps": "more judged items"}]
    told = converged_text({**report.summary, "converged": False, "missing": missing})
    assert "no: the gap is 0.70, 0.20 over its target of 0.5. What would help: more judged items" == told
    older = {name: value for name, value in report.summary.items() if name != "missing"}
    assert "no" == converged_text({**older, "converged": False})
    assert converged_text({**report.summary, "converged": True}).startswith("yes")


def test_the_judges_noise_rests_on_all_items_read_twice_and_says_only_what_the_figures_bear(report: LearningReport):
    assert report.noise is not None
    assert report.noise["items"] > report.noise["sealed"] > 0
    low, high = report.noise["interval"]
    assert low < report.noise["mean"] < high
    assert report.proof is not None
    mae = float(report.proof["statistics"]["figures"]["mae"])
    few = replace(report, noise={**report.noise, "mean": mae + 0.2, "items": 5, "sealed": 5})
    assert "2 readings each of 5 items, 5 of them held out." in noise_text(few)
    assert "So few items say roughly how much that is" in noise_text(few)
    assert "much closer" not in noise_text(few)
    assert f"the highest attainable Spearman is {report.noise['ceiling']['spearman']:.2f}" in noise_text(report)
    shares = [row for row in figure_rows(report) if "share of the attainable" in row[0]]
    assert [f"{report.noise['ceiling']['attained']:.0%}"] == [row[1] for row in shares]
    unknown = replace(report, noise={**report.noise, "ceiling": None})
    assert "attainable" not in noise_text(unknown) + str(figure_rows(unknown))
    refuted = replace(report, noise={**report.noise, "mean": mae + 0.2, "items": 200})
    assert "much closer" not in noise_text(refuted), "the set is closer than that"
    assert "much closer" in noise_text(replace(report, noise={**report.noise, "mean": mae - 0.01, "items": 200}))


def test_without_a_proof_it_is_said_that_it_is_missing(report: LearningReport):
    bare = replace(report, proof=None, noise=None, sealed_scores=None)
    assert "the proof is missing" in lead(bare)
    assert "`proof.json`" in " ".join(verdict_lines(bare))
    assert "jumar prove" in " ".join(next_steps(bare))
    render_html(bare)


def test_a_file_of_answers_is_not_a_judge_that_was_asked(report: LearningReport):
    assert report.judge.startswith("replay:")
    assert "nobody was asked" in paid_text(report)
    assert report.summary is not None
    asked = replace(report, judge="mock:", summary={**report.summary, "cost_usd": 0.0, "judge_calls": 1})
    assert "The judge was asked 1 time; no cost." == paid_text(asked)


def test_the_items_average_stands_beside_the_judges_own(report: LearningReport):
    assert report.proof is not None
    assert report.summary is not None
    own = report.summary["cheap_avg"] - report.proof["statistics"]["figures"]["bias"]
    assert f"the judge's own average of them is {own:.2f}" in quality_text(report)


def test_where_profile_seed_failed_the_other_one_is_named(report: LearningReport):
    assert report.proof is not None
    told = replace(report, profile="seed", proof={**report.proof, "verdict": "fails"})
    assert "--profile evidence" in " ".join(next_steps(told))
    assert "--profile evidence" not in " ".join(next_steps(replace(told, profile="evidence")))


def test_phrases_come_first_and_steps_are_named_once(report: LearningReport):
    for form in (render_markdown(report), render_html(report)):
        assert form.index("Phrases<" if "<html" in form else "### Phrases") < form.index(
            "Features<" if "<html" in form else "### Features"
        )
    steps = len(report.steps)
    assert 0 < steps < len(report.patterns)
    assert f"{len(report.patterns) - steps} phrases and {steps} steps of features" in set_text(report)[0]
    assert f"steps are not: the fit sets all of them, {steps} in the set" in render_markdown(report)


def test_every_feature_has_a_name_in_words():
    from jumar.judging.cheap.features import FEATURES
    from jumar.learning.report.reasons import feature_words

    assert [] == [
        name for name in FEATURES if "_" in name and feature_words(name) == name.replace("_", " ") and name not in PLAIN
    ]


PLAIN = {"different_words", "list_entries"}
"""Features whose name is said as people say it."""


def test_a_recovery_that_moves_nothing_says_that_the_gap_stays():
    told = recovery_text({**KEPT, "before": 0.20364, "after": 0.20361, "note": "x"})
    assert told.endswith("(x; the gap stays at 0.20, less by under 0.001)")
    assert "from a gap that stays above its target, kept: pruning patterns of little weight" in told
    assert "gap 0.522 → 0.523" in recovery_text({**KEPT, "kept": False, "before": 0.522, "after": 0.523})


def test_a_gap_that_grew_without_a_rollback_says_why_it_was_kept(report: LearningReport):
    metrics = report.logs[0]["metrics"]
    logs = [
        {**report.logs[0], "metrics": {**metrics, "iteration": number, "abs_gap": gap}} for number, gap in ((1, 0.49), (2, 0.54))
    ]
    for form in (render_markdown(replace(report, logs=logs)), render_progress([LearningProgress.of(one) for one in logs])):
        assert "gap grew by 0.05" in " ".join(form.split())
    rolled = [logs[0], {**logs[1], "actions_taken": [ROLLED]}]
    assert "gap grew" not in render_markdown(replace(report, logs=rolled))


def test_a_folder_that_an_evaluation_left_beside_is_no_iteration_of_learning(output: Path, tmp_path: Path):
    copied = tmp_path / "out"
    shutil.copytree(output, copied)
    shutil.copytree(copied / "iteration_1", copied / "iteration_2")
    path = copied / "iteration_2" / "iteration_log.json"
    log = json.loads(path.read_text())
    log["iteration"] = log["metrics"]["iteration"] = 2
    path.write_text(json.dumps(log))
    assert [1] == [one.iteration for one in read_report(copied).iterations]
