"""CSV, JSON, JUnit, the rows of the table, the read model and the small words: one behaviour a test."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from report_samples import AUTOMATIC, decision, engine_report, hostile_report, record, report_of, seed_records

from jumar import BestOutputTracker, DiminishingReturns, NotFoundError
from jumar.core.rendering import figures
from jumar.core.rendering.plot import NARROW, WIDE, Panel
from jumar.loop.report.advice import checklist
from jumar.loop.report.export import COLUMNS, export_csv, render_csv, render_json, render_junit, report_document, safe_cell
from jumar.loop.report.plot import sparklines, trajectory_plot
from jumar.loop.report.read import LoopReport, load_report, weights_of
from jumar.loop.report.rows import quality_trajectory, summary, trajectory_rows
from jumar.loop.report.spending import spend_of_records
from jumar.loop.store.in_force import criteria_of
from jumar.model import CheckResult, SelectionCriteria, Spend

# ------------------------------------------------------------------------------------------------------------ CSV


def test_csv_columns_are_the_contracts():
    lines = render_csv(report_of(seed_records())).splitlines()
    assert lines[0] == (
        "iteration,timestamp,quality_score,quality_delta,tokens_used,cost_usd,execution_time_ms,verification_status"
    )
    assert lines[3] == "3,2026-01-28T10:03:00Z,83,-2,5500,0.055,30000,passed"


def test_csv_of_nothing_is_the_header():
    assert export_csv([]) == ",".join(COLUMNS) + "\n"


def test_csv_unknown_is_an_empty_cell():
    item = record(1, None, tokens_used=None, token_cost_usd=None, execution_time_ms=None, status="generator_failed")
    assert export_csv([item]).splitlines()[1] == "1,2026-01-28T10:01:00Z,,,,,,passed"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1+1", "'+1+1"),
        ("-1+1", "'-1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", r"'\t=1"),
        ("\r=1", r"'\r=1"),
        ("＝1+1", "'＝1+1"),
        ("-2.0", "-2.0"),
        ("+3", "+3"),
        ("1e3", "1e3"),
        ("-", "'-"),
        ("text", "text"),
        ("", ""),
        (None, ""),
        (-2.0, "-2"),
        (-2.5, "-2.5"),
        (85, "85"),
        (1e-07, "1e-07"),
        (0.1 + 0.2, "0.30000000000000004"),
    ],
)
def test_a_cell_is_never_run_by_a_spreadsheet(value: str | float | None, cell: str):
    assert safe_cell(value) == cell


def test_csv_quotes_what_needs_it():
    text = export_csv([record(1, 72, timestamp='a,"b"')])
    assert text.splitlines()[1].startswith('1,"a,""b""",72,')
    assert next(iter(csv.reader(io.StringIO(text.splitlines()[1]))))[1] == 'a,"b"'


# ----------------------------------------------------------------------------------------------------------- JSON


def test_the_document_has_everything():
    document = report_document(report_of(seed_records(), decisions=AUTOMATIC))
    assert set(document) == {
        "format", "loop_id", "created_at", "storage_path", "selected_iteration", "reason", "selection", "override", "order",
        "criteria", "weights", "stop", "spend", "summary", "trajectory", "degradation", "diminishing_returns", "rationale",
        "ranking", "budget", "course", "given_by",
        "rechecked", "rechecked_because",
        "recommendations", "checklist", "certainty", "artifacts_complete", "records", "decisions", "config",
    }  # fmt: skip
    assert document["selected_iteration"] == 2
    assert document["selection"]["margin"] == 2
    assert document["order"] == [2, 3, 1]
    assert document["ranking"][0] == {"iteration": 2, "score": 85, "readings": 1, "loop_score": 85}
    assert document["summary"]["average_quality"] == 80
    assert document["trajectory"][1] == {"iteration": 2, "quality": 85}
    assert document["degradation"]["likely_causes"][0]["pattern"] == "over-refinement"


def test_json_keeps_integer_scores_and_undecodable_names():
    document = json.loads(render_json(hostile_report("\udcff")))
    assert document["records"][0]["quality_score"] == 72
    assert isinstance(document["records"][0]["quality_score"], int)
    assert document["loop_id"] == "\udcff"


# ---------------------------------------------------------------------------------------------------------- JUnit


def outcomes(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for case in ET.fromstring(text).iter("testcase"):
        kinds = [child.tag for child in case if child.tag != "system-out"]
        found[case.attrib["name"]] = kinds[0] if kinds else "passed"
    return found


def test_junit_has_a_case_for_each_iteration_and_the_gate():
    text = render_junit(engine_report())
    assert outcomes(text) == {
        "iteration 0 (start)": "failure",
        "iteration 1": "passed",
        "iteration 2": "passed",
        "iteration 3": "error",
        "iteration 4": "passed",
        "iteration 5": "failure",
        "iteration 6": "passed",
        "iteration 7": "passed",
        "gate": "passed",
    }
    suite = ET.fromstring(text)[0]
    assert suite.attrib["name"] == "jumar.readme-polish"
    assert {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "9",
        "failures": "2",
        "errors": "1",
        "skipped": "0",
    }
    failure = suite.find("testcase[@name='iteration 5']/failure")
    assert failure is not None
    assert failure.attrib["message"] == "spelling (86.1%)"
    assert "recieve -> receive" in (failure.text or "")
    error = suite.find("testcase[@name='iteration 3']/error")
    assert error is not None
    assert error.attrib["message"] == "generator timeout: the generator did not end within 1800 s"


def test_junit_without_validators_is_skipped_and_below_the_threshold_the_gate_fails():
    records = [replace(item, verification_status="skipped") for item in seed_records()]
    text = render_junit(report_of(records, SelectionCriteria(mode="highest_quality", threshold=90)))
    assert outcomes(text) == {"iteration 1": "skipped", "iteration 2": "skipped", "iteration 3": "skipped", "gate": "failure"}
    gate = ET.fromstring(text).find(".//testcase[@name='gate']/failure")
    assert gate is not None
    assert gate.attrib["message"] == "iteration 2, 85%, wanted 90%; no iteration meets every rule, so the threshold was set aside"


def test_junit_gate_without_a_threshold_asks_for_the_start_state():
    criteria = SelectionCriteria(threshold=None)
    better = [record(0, 50), record(1, 60, before=50)]
    worse = [record(0, 80, verification_status="failed"), record(1, 60, before=80)]
    assert outcomes(render_junit(report_of(better, criteria)))["gate"] == "passed"
    assert outcomes(render_junit(report_of(worse, criteria)))["gate"] == "failure"


def test_junit_gate_of_an_override_is_about_the_overriding_one():
    made = (decision(1, 2), decision(2, 1, kind="override", reason="because"))
    assert outcomes(render_junit(report_of(seed_records(), SelectionCriteria(threshold=70), decisions=made)))["gate"] == "passed"
    assert outcomes(render_junit(report_of(seed_records(), SelectionCriteria(threshold=80), decisions=made)))["gate"] == "failure"


def test_junit_of_nothing_evaluated_is_an_error():
    assert outcomes(render_junit(report_of([]))) == {"gate": "error"}


def test_junit_shows_what_xml_cannot_hold():
    text = render_junit(hostile_report("\x00\x0b\ufffe\udc80]]><x>"))
    assert ET.fromstring(text).find("testsuite") is not None
    assert r"\x00\x0b" in text


# ----------------------------------------------------------------------------------------------- rows of the table


def test_rows_are_those_of_the_picture():
    cells = [row.cells for row in trajectory_rows(engine_report())]
    assert cells == [
        ("0", "61.2", "", "2/3", "—", "0.4s", "start"),
        ("1", "72.0", "+10.8", "3/3 ✓", "$0.05", "29s", ""),
        ("2", "78.4", "+6.4", "3/3 ✓", "$0.05", "29s", ""),
        ("3", "—", "", "✗", "—", "30s", "generator timeout"),
        ("4", "85.3", "", "3/3 ✓", "$0.06", "31s", "★ selected"),
        ("5", "86.1", "+0.8", "2/3", "$0.06", "32s", "highest score"),
        ("6", "83.1", "−3.0", "3/3 ✓", "$0.05", "32s", "readability −6.0"),
        ("7", "74.6", "−8.5", "3/3 ✓", "$0.05", "33s", "structure −17.0"),
    ]


def test_the_best_row_is_starred_when_it_is_chosen():
    assert [row.note for row in trajectory_rows(report_of(seed_records()))] == ["", "★ best", "validation −2.0"]


def test_the_largest_fall_is_by_weight():
    before = record(1, 80, dimensions={"a": 0.9, "b": 0.9})
    after = record(2, 70, before=80, dimensions={"a": 0.8, "b": 0.7})
    plain = report_of([before, after])
    heavy = report_of([before, after], config={"quality_weights": {"a": 9, "b": 1}})
    assert trajectory_rows(plain)[1].note == "b −20.0"
    assert trajectory_rows(heavy)[1].note == "a −10.0"


def test_a_broken_check_does_not_count_as_passed():
    checks = (CheckResult(name="x", passed=True, broken="not found"), CheckResult(name="y", passed=True))
    item = record(1, None, status="validator_broken", verification_status="failed", checks=checks)
    assert trajectory_rows(report_of([item]))[0].checks == "1/2"


# ------------------------------------------------------------------------------------------------------- checklist


def answers(report: LoopReport) -> dict[str, tuple[bool, str]]:
    return {line.text: (line.done, line.fact) for line in checklist(report)}


def test_the_checklist_is_seed_1s_in_its_order():
    assert [line.text for line in checklist(report_of(seed_records()))] == [
        "All iteration outputs preserved",
        "Quality score calculated for each iteration",
        "Best tracker maintained throughout",
        "Selection based on quality, not recency",
        "Selection decision logged with rationale",
        "Override option available if needed",
        "Degradation patterns detected",
    ]


def test_all_lines_hold_for_a_finished_loop():
    found = answers(report_of(seed_records(), decisions=AUTOMATIC))
    assert all(done for done, _ in found.values())
    assert found["Best tracker maintained throughout"][1] == "running best: 1 → 2 (85%)"


def test_no_line_but_the_override_holds_for_an_empty_loop():
    found = answers(report_of([]))
    assert [done for done, _ in found.values()] == [False, False, False, False, False, True, False]


def test_snapshots_that_nobody_looked_for_are_not_claimed():
    report = replace(report_of(seed_records()), snapshots=None)
    assert answers(report)["All iteration outputs preserved"] == (False, "not looked at: this report was made from records alone")


def test_cleaned_up_snapshots_are_named_with_the_decision():
    made = (decision(1, 2), decision(2, 2, kind="cleanup", reason="room"))
    report = report_of(seed_records(), decisions=made)
    report = replace(report, snapshots=frozenset({2}))
    fact = "iterations 1 and 3 removed by cleanup (decision 2); 1 of 3 stored"
    assert answers(report)["All iteration outputs preserved"] == (False, fact)


def test_recency_is_not_quality():
    report = report_of(seed_records(), SelectionCriteria(mode="most_recent_above_threshold"))
    assert not answers(report)["Selection based on quality, not recency"][0]


def test_an_override_is_not_a_selection_by_quality():
    made = (decision(1, 2), decision(2, 3, kind="override", by="bob", reason="because"))
    found = answers(report_of(seed_records(), decisions=made))
    assert found["Selection based on quality, not recency"] == (False, "overridden by bob (decision 2)")
    assert found["Override option available if needed"] == (True, "available; used once")


def test_a_selection_of_an_earlier_state_is_not_the_one_that_stands():
    records = [*seed_records(), record(4, 95, before=83)]
    found = answers(report_of(records, decisions=(decision(1, 2),)))
    assert found["Selection decision logged with rationale"] == (False, "the logged selection is of an earlier state")


def test_a_decision_without_reason_is_not_a_rationale():
    found = answers(report_of(seed_records(), decisions=(decision(1, 2, reason=" "),)))
    assert found["Selection decision logged with rationale"] == (False, "decision 1 gives no reason")


def test_an_override_that_is_switched_off_is_not_available():
    report = report_of(seed_records(), config={"run": {}, "override_enabled": False})
    assert not answers(report)["Override option available if needed"][0]


# ------------------------------------------------------------------------------------------------------ read model


def test_a_selection_that_names_no_record_is_refused():
    report = report_of(seed_records())
    with pytest.raises(NotFoundError, match="iteration 2, which is not among the records"):
        replace(report, records=report.records[:1])
    with pytest.raises(NotFoundError, match="iteration 9"):
        report_of(seed_records(), decisions=(decision(1, 9, kind="override"),))
    with pytest.raises(NotFoundError, match="has no iteration 7"):
        report_of(seed_records()).record(7)


def test_the_last_override_stands():
    made = (decision(1, 2), decision(2, 3, kind="override"), decision(3, 1, kind="override"), decision(4, 2))
    assert report_of(seed_records(), decisions=made).chosen == 1


def test_criteria_come_from_either_kind_of_configuration():
    assert criteria_of({}) == SelectionCriteria()
    assert criteria_of({"selection": {"mode": "highest_quality"}}) == SelectionCriteria(mode="highest_quality")
    assert criteria_of({"run": {}, "selection": {}}) == SelectionCriteria(threshold=None)
    assert criteria_of({"selection": {"mode": "best", "threshold": "x", "require_verification": 3}}) == SelectionCriteria(
        threshold=None
    )
    assert criteria_of({"selection": 3}) == SelectionCriteria()


def test_weights_are_the_trackers_or_the_engines():
    records = [record(1, 80, dimensions={"a": 0.8, "b": 0.8})]
    assert weights_of({"quality_weights": {"a": 2, "c": 1}}, records) == {"a": 2, "c": 1}
    assert weights_of({"run": {}, "quality_weights": {}}, records) == {"a": 1, "b": 1}
    assert weights_of({"run": {}, "quality_weights": {"a": 3}}, records) == {"a": 3, "b": 3}
    assert weights_of({"run": {}, "quality_weights": {"later": 3}}, records) == {"later": 3}


def test_the_end_of_a_loop_is_read_until_something_follows():
    tracker = BestOutputTracker("loop-001")
    five = {"validation": 0.8, "completeness": 0.8, "correctness": 0.8, "readability": 0.8, "efficiency": 0.8}
    tracker.record_iteration(iteration_number=1, dimensions=five)
    tracker.store.add_decision("end", final_iteration=1, reason="two iterations within 5 points", data={"stop_reason": "plateau"})
    stop = load_report(tracker.store).stop
    assert stop is not None
    assert (stop.reason, stop.detail) == ("plateau", "two iterations within 5 points")
    tracker.record_iteration(iteration_number=2, dimensions=five)
    assert load_report(tracker.store).stop is None


def test_iteration_0_begins_the_same_steps_in_the_tracker_and_in_the_report():
    tracker = BestOutputTracker("loop-001")
    for number, value in enumerate((0.70, 0.71, 0.72, 0.90)):
        five = {"validation": value, "completeness": value, "correctness": value, "readability": value, "efficiency": value}
        tracker.record_iteration(iteration_number=number, dimensions=five)
    report = load_report(tracker.store)
    assert report.diminishing == tracker.detect_diminishing_returns() == DiminishingReturns(detected=True, iteration=1)
    assert summary(report.records) == tracker.get_summary()
    assert 3 == tracker.get_summary().total_iterations


def test_summary_of_nothing_is_zeros_and_of_unknowns_is_unknown():
    assert dict(summary([])) == {
        "total_iterations": 0,
        "average_quality": 0,
        "best_quality": 0,
        "worst_quality": 0,
        "total_tokens": 0,
        "total_cost_usd": 0,
        "total_time_ms": 0,
    }
    found = summary([record(1, None, status="scorer_broken", tokens_used=None)])
    assert (found.total_iterations, found.average_quality, found.total_tokens, found.total_cost_usd) == (1, None, None, 0.05)


def test_summary_leaves_out_the_start_state():
    found = summary([record(0, 10), *seed_records()])
    assert (found["total_iterations"], found["worst_quality"], found["average_quality"]) == (3, 72, 80)
    assert found["total_cost_usd"] == pytest.approx(0.165)
    assert found["total_time_ms"] == 90000


def test_summary_is_a_dictionary_with_attributes():
    found = summary(seed_records())
    assert json.loads(json.dumps(found)) == found
    assert found.best_quality == found["best_quality"] == 85
    with pytest.raises(AttributeError, match="Summary has no 'cost'; it has total_iterations"):
        found.cost  # noqa: B018
    point = quality_trajectory(seed_records())[1]
    assert (point.iteration, point.quality) == (2, 85)


def test_spend_of_records():
    assert spend_of_records(seed_records()) == Spend(iterations=3, seconds=90.0, tokens=16500, cost_usd=0.165)
    assert spend_of_records([record(1, 7, tokens_used=None)]).tokens is None
    assert spend_of_records([]) == Spend()


# ------------------------------------------------------------------------------------------------ plot and figures


def test_the_plot_of_one_and_of_equal_scores_stays_inside():
    for records in ([record(1, 100)], [record(1, 0), record(2, 0)], [record(number, 50) for number in range(5)]):
        for frame in (WIDE, NARROW):
            plot = trajectory_plot(report_of(records, SelectionCriteria(threshold=None)), frame)
            assert plot is not None
            for mark in plot.panels[0].marks:
                assert frame.left <= mark.x <= frame.x_end
                assert plot.panels[0].top <= mark.y <= plot.panels[0].bottom
            assert all(0 <= float(tick.label) <= 100 for tick in plot.panels[0].y_ticks)


def engine_panel() -> Panel:
    plot = trajectory_plot(engine_report())
    assert plot is not None
    return plot.panels[0]


def test_an_invalid_iteration_breaks_the_line_and_is_bridged():
    panel = engine_panel()
    lines = {line.kind: line.path for line in panel.lines}
    assert lines["score"].count("M") == 2
    assert lines["bridge"].count("M") == 1
    assert [mark.kind for mark in panel.marks] == [
        "failed", "passed", "passed", "invalid", "passed", "failed", "passed", "passed",
    ]  # fmt: skip
    assert panel.marks[4].title == "iteration 4: 85.3%, verified, 31s, $0.06, selected"


def test_the_running_best_never_goes_down():
    stair = next(line.path for line in engine_panel().lines if line.kind == "stair")
    heights = [float(part.split("H")[0]) for part in stair.split("V")[1:]]
    assert heights == sorted(heights, reverse=True)
    assert len(heights) == 4


def test_there_is_a_sparkline_for_each_dimension():
    sparks = sparklines(engine_report())
    assert [(spark.name, spark.value, spark.change) for spark in sparks] == [
        ("key terms", "0.88", "−0.06"),
        ("readability", "0.74", "+0.33"),
        ("length", "0.86", "+0.74"),
        ("structure", "0.95", "−0.03"),
    ]
    assert all(spark.dot is not None for spark in sparks)


def test_nothing_recorded_is_no_plot():
    assert trajectory_plot(report_of([])) is None
    assert sparklines(report_of([])) == ()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"),
        (0, "0.0s"),
        (0.44, "0.4s"),
        (9.96, "10s"),
        (59.6, "1m 00s"),
        (91, "1m 31s"),
        (3599.9, "1h 00m"),
        (7500, "2h 05m"),
    ],
)
def test_duration(seconds: float | None, text: str):
    assert figures.duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_940, "999.9 kB"), (999_950, "1.0 MB"), (5e12, "5.0 TB")],
)
def test_size(number: float, text: str):
    assert figures.size(int(number)) == text


def test_small_words():
    assert figures.delta_percent(None) == "—"
    assert figures.delta_percent(-0.04) == "0.0%"
    assert figures.dollars(None) == "—"
    assert figures.dollars(1234.5) == "$1,234.5000"
    assert figures.point_text(-1) == "1 point"
    assert figures.listing([3]) == "iteration 3"
    assert figures.listing([3, 4, 7]) == "iterations 3, 4 and 7"
    assert figures.listing(list(range(1, 19))) == "iterations 1, 2, 3, 4, 5, 6 and 12 more"
