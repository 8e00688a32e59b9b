"""The markdown report: seed 2's example to the letter, and what jumar adds to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from report_samples import (
    AUTOMATIC,
    HOSTILE,
    decision,
    engine_records,
    engine_report,
    hostile_report,
    long_report,
    record,
    report_of,
    seed_records,
    structure,
)

from jumar.core.rendering.html import inline
from jumar.loop.report.page import MOST_BARS, render_markdown
from jumar.model import SelectionCriteria, Spend, StopDecision
from jumar.model.budget.pricing import Budget


def section(text: str, heading: str) -> list[str]:
    """The lines below a heading, up to the next one of its level, without blank ones."""
    _, _, rest = text.partition(f"\n## {heading}\n")
    assert rest, f"no section {heading}"
    body = rest.split("\n## ")[0]
    return [line for line in body.splitlines() if line]


def test_the_seed_example_is_reproduced():
    text = render_markdown(report_of(seed_records(), decisions=AUTOMATIC))
    lines = text.splitlines()
    assert lines[0] == "# Output Selection Report"
    assert [line for line in lines if line.startswith("**")] == [
        "**Loop ID**: loop-001",
        "**Total Iterations**: 3",
        "**Selected Iteration**: 2",
        "**Selected**: Iteration 2",
        "**Reason**: Highest verified quality: 85%",
    ]
    assert section(text, "Summary")[:7] == [
        "| Metric | Value |",
        "|--------|-------|",
        "| Selected Iteration | 2 |",
        "| Selected Quality | 85% |",
        "| Final Iteration | 3 |",
        "| Final Quality | 83% |",
        "| Degradation Detected | Yes |",
    ]
    assert section(text, "Quality Scores") == [
        "| Iteration | Quality | Delta | Tokens | Cost | Verified |",
        "|-----------|---------|-------|--------|------|----------|",
        "| 1 | 72% | — | 5000 | $0.0500 | ✓ |",
        "| 2 ✓ | 85% | +13.0% | 6000 | $0.0600 | ✓ |",
        "| 3 | 83% | -2.0% | 5500 | $0.0550 | ✓ |",
    ]
    expected = "Quality degraded from iteration 2 (85%) to final iteration 3 (83%). Selected best output instead of final."
    assert expected in section(text, "Selection Rationale")
    assert section(text, "Recommendations") == [
        "- Quality fell by 2 points after iteration 2, at a cost of $0.06: set a limit on the number of iterations",
    ]
    assert section(text, "Artifacts Applied") == ["- .jumar/loops/loop-001/iterations/iteration-002/artifacts/sad.md"]


def test_headings_stand_in_the_seeds_order():
    text = render_markdown(report_of(seed_records(), decisions=AUTOMATIC))
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# Output Selection Report",
        "## Summary",
        "## Quality Scores",
        "## Selection Rationale",
        "### Degradation Detected",
        "## Quality Trajectory",
        "## Artifacts Applied",
        "## Recommendations",
        "## Decisions",
        "## Validation Checklist",
    ]


def test_bars_are_scaled_to_the_best():
    bars = section(render_markdown(report_of(seed_records())), "Quality Trajectory")
    assert bars == [
        "```",
        "Iteration 1: ██████████████████████████████       72%",
        "Iteration 2: ████████████████████████████████████ 85% ← SELECTED",
        "Iteration 3: ███████████████████████████████████  83%",
        "```",
    ]
    assert [line.count("█") for line in bars[1:-1]] == [round(36 * score / 85) for score in (72, 85, 83)]


def test_rationale_is_seed_1s_and_computed():
    text = render_markdown(report_of(seed_records(), decisions=AUTOMATIC))
    assert [line for line in section(text, "Selection Rationale") if line.startswith("- ")] == [
        "- Highest quality score (85% vs 83% final)",
        "- Quality degraded in iteration 3 (by 2 points)",
        "- All validation checks passed",
        "- Runner-up: iteration 3 (83%), 2 points behind",
        "- Reaches the threshold (85% ≥ 70%)",
    ]


def test_a_run_with_a_start_state_failed_checks_and_an_invalid_pass():
    text = render_markdown(engine_report())
    table = section(text, "Quality Scores")
    assert table[2] == "| 0 (start) | 61.2% | — | — | — | ✗ |"
    assert table[5] == "| 3 | — (generator timeout) | — | — | — | ✗ |"
    assert table[6] == "| 4 ✓ | 85.3% | — | 5360 | $0.0610 | ✓ |"
    assert "**Total Iterations**: 7" in text.splitlines()
    bullets = section(text, "Selection Rationale")
    assert (
        "- Highest verified quality score (85.3% vs 74.6% final); the highest of all is iteration 5 with 86.1%, "
        "which failed verification" in bullets
    )
    assert "- All validation checks passed (3 of 3: pytest -q, links, spelling)" in bullets
    assert "- 24.1 points better than the start state (61.2%)" in bullets
    assert "| Stopped | decline: the last 2 changes are falls that add up to 11.5 points |" in section(text, "Summary")
    assert "| Spent | 7 iterations in 8 runs of the generator, 33m 32s, tokens not reported, cost not reported |" in section(
        text, "Summary"
    )
    patterns = [line.split(" | ")[0] for line in section(text, "Selection Rationale") if line.startswith("| ")]
    assert patterns == ["| Pattern", "| Information loss"]  # readability lost 0.04, too little to be called a drift
    bars = section(text, "Quality Trajectory")
    assert bars[1].endswith("61.2% (start)")
    assert bars[4].split() == ["Iteration", "3:", "—", "(generator", "timeout)"]


def test_the_start_state_may_be_the_chosen_one():
    records = [record(0, 80), record(1, 60, before=80), record(2, 50, before=60)]
    text = render_markdown(report_of(records))
    assert "**Selected Iteration**: 0 (start)" in text.splitlines()
    assert section(text, "Quality Scores")[2].startswith("| 0 (start) ✓ | 80% |")
    assert "- No iteration improved on the start" in section(text, "Selection Rationale")


def test_an_override_says_who_why_and_what_would_have_been_chosen():
    made = (
        decision(1, 2),
        decision(2, 3, kind="override", decision="use_final", by="bob", reason="keeps the API stable", replaced=2),
    )
    text = render_markdown(report_of(seed_records(), decisions=made))
    assert "**Selected Iteration**: 3" in text.splitlines()
    assert "**Reason**: Override (use_final) by bob: keeps the API stable" in text.splitlines()
    bullets = section(text, "Selection Rationale")
    assert (
        "- Selected by bob on 2026-01-28T10:20:00Z (use_final), in place of iteration 2; "
        "the automatic choice would be iteration 2 (85%)" in bullets
    )
    fell = "Quality degraded from iteration 2 (85%) to final iteration 3 (83%). The override keeps iteration 3."
    assert fell in bullets
    assert "| 2 | 2026-01-28T10:20:00Z | override (use_final) | 3 | 2 | bob | keeps the API stable |" in section(
        text, "Decisions"
    )
    assert section(text, "Quality Scores")[4].startswith("| 3 ✓ |")


def test_what_was_relaxed_is_said():
    records = [replace(item, verification_status="failed") for item in seed_records()]
    text = render_markdown(report_of(records, SelectionCriteria(threshold=90)))
    assert "**Reason**: Highest quality (no verified iterations): 85%" in text.splitlines()
    bullets = section(text, "Selection Rationale")
    assert "- No iteration meets every rule, so the threshold and the checks were set aside (highest_quality_verified)" in bullets
    assert "- Below the threshold (85% < 90%)" in bullets
    assert "| Meets Threshold | No (90% wanted) |" in section(text, "Summary")
    assert "- No iteration reaches the threshold of 90; iteration 2 is 5 points short" in section(text, "Recommendations")


def test_a_score_just_below_the_threshold_is_not_shown_as_equal_to_it():
    text = render_markdown(report_of([record(1, 69.96)], SelectionCriteria(threshold=70)))
    assert "- Below the threshold (69.9600% < 70%)" in section(text, "Selection Rationale")


def test_a_tie_says_what_broke_it():
    records = [record(1, 80), record(2, 80, before=80)]
    bullets = section(render_markdown(report_of(records)), "Selection Rationale")
    assert "- Runner-up: iteration 2, equal at 80%; the earlier one is selected" in bullets
    recent = section(
        render_markdown(report_of(records, SelectionCriteria(mode="most_recent_above_threshold"))), "Selection Rationale"
    )
    assert "- Runner-up: iteration 1, equal at 80%; the more recent one is selected" in recent


def test_a_runner_up_that_scores_more_says_why_it_lost():
    records = [record(1, 80), record(2, 91, before=80, verification_status="failed")]
    bullets = section(render_markdown(report_of(records)), "Selection Rationale")
    assert "- Runner-up: iteration 2 (91%), 11 points ahead, but does not pass all checks" in bullets


def test_below_the_start_is_said():
    records = [record(0, 80, verification_status="failed"), record(1, 75, before=80)]
    bullets = section(render_markdown(report_of(records)), "Selection Rationale")
    assert "- 5 points worse than the start state (80%), which does not qualify" in bullets


def test_nothing_valid_is_reported_and_not_invented():
    records = [record(1, None, status="generator_failed", status_reason="exit code 3")]
    text = render_markdown(report_of(records))
    assert "**Selected Iteration**: —" in text.splitlines()
    assert "- None of 1 iteration has a valid score (1: generator failed: exit code 3)" in section(text, "Selection Rationale")
    assert "## Artifacts Applied" not in text


def test_an_empty_loop_has_a_report():
    text = render_markdown(report_of([]))
    assert "**Total Iterations**: 0" in text.splitlines()
    assert "- No iteration is recorded" in text


MORE = "; more iterations may improve it"


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (
            (72, 85, 83),
            "Quality fell by 2 points after iteration 2, at a cost of $0.05: set a limit on the number of iterations",
        ),
        ((72, 85, 84.4), "None: nothing in these records asks for a change"),
        ((70, 75, 77, 78), "Iterations 3 and 4 gained 3 points together, at a cost of $0.10"),
        ((70, 75, 77, 77, 95), f"Quality was still rising at iteration 5, the last with a score (18 points up){MORE}"),
        ((60, 70, 82), f"Quality was still rising at iteration 3, the last with a score (12 points up){MORE}"),
        ((60, 70, 70.9), "None: nothing in these records asks for a change"),
        ((80, 80, 80), "Iterations 2 and 3 gained nothing, at a cost of $0.10"),
        ((60, 100), "None: nothing in these records asks for a change"),
        ((60, 100, 90), "Iteration 3 could not improve on iteration 2, which has 100, at a cost of $0.05"),
    ],
)
def test_recommendations_follow_the_trajectory(scores: tuple[float, ...], expected: str):
    records = [record(number, score, before=scores[number - 2] if number > 1 else None) for number, score in enumerate(scores, 1)]
    lines = section(render_markdown(report_of(records)), "Recommendations")
    assert lines == [f"- {expected}"]


FROM_BEST = '[loop] continue_from = "best" (each iteration starts from the best one)'
DECLINE = "[stop] decline = true (ends a loop that only falls)"


@pytest.mark.parametrize(
    ("scores", "run", "expected"),
    [
        ((60, 85, 70), {}, f"Quality fell by 15 points after iteration 1, at a cost of $0.05: set {FROM_BEST} or {DECLINE}"),
        (
            (60, 85, 70),
            {"stop": {"decline": True}},
            f"Quality fell by 15 points after iteration 1, at a cost of $0.05: set {FROM_BEST}",
        ),
        ((60, 85, 70), {"loop": {"continue_from": "best"}}, "Iteration 2 did not improve on iteration 1, at a cost of $0.05"),
        (
            (60, 75, 76, 76),
            {},
            "Iterations 2 and 3 gained 1 point together, at a cost of $0.10: set [stop] diminishing_returns = true",
        ),
        ((60, 75, 76, 76), {"stop": {"plateau": 2}}, "Iterations 2 and 3 gained 1 point together, at a cost of $0.10"),
        (
            (60, 75, 90),
            {},
            "Quality was still rising at iteration 2, the last with a score (15 points up); more iterations may improve it",
        ),
        (
            (60, 40, 50),
            {},
            "None of 2 scored iterations is better than the start, at a cost of $0.10: change the objective, the prompt or",
        ),
        ((60, 60, 60), {}, "2 iterations scored as the start did, at a cost of $0.10: measure what tells them apart"),
        (
            (60, 100, 90),
            {},
            "Iteration 2 could not improve on iteration 1, which has 100, at a cost of $0.05: set [stop] target = 100",
        ),
        (
            (60, 100, 90),
            {"stop": {"target": 100}},
            "Iteration 2 could not improve on iteration 1, which has 100, at a cost of $0.05",
        ),
        (
            (100, 90),
            {},
            "Iteration 1 could not improve on iteration 0 (start), which has 100, at a cost of $0.05: set [stop] target",
        ),
    ],
)
def test_nothing_is_advised_that_the_loop_has_set(scores: tuple[float, ...], run: dict[str, Any], expected: str):
    records = [record(number, score) for number, score in enumerate(scores)]
    text = render_markdown(report_of(records, config={"run": run}))
    line = section(text, "Recommendations")[0]
    assert line.startswith(f"- {expected}")
    for table, keys in run.items():
        for key in keys:
            assert f"[{table}] {key}" not in text


def test_what_was_made_at_the_same_time_is_no_decline():
    batches = {1: 1, 2: 1, 3: 3, 4: 3}
    scores = {0: 50, 1: 60, 2: 55, 3: 90, 4: 40}
    records = [record(number, score, batch=batches.get(number)) for number, score in scores.items()]
    text = render_markdown(report_of(records, config={"run": {}}))
    assert "| Degradation Detected | No (50 points, made at the same time) |" in text
    assert "Quality degraded" not in text
    assert section(text, "Recommendations")[0].startswith(
        "- Quality was still rising at iteration 3, the last with a score (30 points"
    )


def test_a_fall_that_was_made_up_for_is_no_over_refinement():
    falls = [record(number, score) for number, score in enumerate((72, 85, 60), 1)]
    assert any(line.startswith("| Over-refinement") for line in render_markdown(report_of(falls)).splitlines())
    text = render_markdown(report_of([*falls, record(4, 95)]))
    assert "Quality fell on the way, at iteration 3; the final iteration is the best choice again." in text
    assert "| Degradation Detected | No |" in text
    assert "### Worse on the Way\n" in text
    assert "### Degradation Detected\n" not in text
    assert "rises again" not in text


def test_recommendations_name_the_obstacles():
    records = [
        replace(item, quality_score=None, status="scorer_broken") if item.iteration_number == 1 else item
        for item in engine_records()
        if item.verification_status == "failed"
    ]
    spent = Spend(iterations=3, cost_usd=None)
    lines = section(render_markdown(report_of(records, spend=spent)), "Recommendations")
    assert "- No iteration passes every check; most often failing: spelling (2 of 3 iterations)" in lines
    assert any(line.startswith("- Without a valid score: iteration 3 (") for line in lines)
    assert not any("cost of" in line for line in lines), "nothing limits dollars"
    capped = replace(report_of(records, spend=spent), budget=Budget(max_cost_usd=1.0))
    unknown = "- The cost of some attempts was not reported and is estimated: max_cost_usd holds only as well as that"
    assert unknown in section(render_markdown(capped), "Recommendations")


def test_a_long_loop_keeps_every_row_and_thins_the_bars_openly():
    report = long_report(1000)
    text = render_markdown(report)
    assert len(section(text, "Quality Scores")) == 2 + 1001
    drawn = section(text, "Quality Trajectory")
    bars = drawn[2:-1]
    assert drawn[0] == f"{len(bars)} of 1,001 iterations are drawn; the table above has all of them."
    assert len(bars) <= 64
    shown = [int(line.split()[1].rstrip(":")) for line in bars]
    assert shown == sorted(set(shown))
    assert {0, 1000, report.chosen, report.selection and report.selection.runner_up} <= set(shown)
    assert sum("← SELECTED" in line for line in bars) == 1


def test_up_to_the_bound_all_bars_are_drawn():
    drawn = section(render_markdown(long_report(MOST_BARS - 1)), "Quality Trajectory")
    assert len(drawn) == MOST_BARS + 2


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_cannot_change_the_structure(name: str):
    assert structure(render_markdown(hostile_report(name))) == structure(render_markdown(hostile_report("plain")))


def test_ordinary_names_are_not_disfigured():
    ordinary = [
        "docs/a-b_c.md",
        "src/x1.2.py",
        "Highest verified quality: 85%, about ~2",
        "a & b",
        "v1 (final), 3.5 points",
        "a[0]",
    ]
    assert [inline(name) for name in ordinary] == ordinary


def test_escape_sequences_are_shown():
    text = render_markdown(hostile_report("\x1b[31mred\x07"))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert r"\x1b[31mred\x07" in text


def test_the_stop_reason_without_detail():
    stop = StopDecision(reason="max_iterations", detail="")
    text = render_markdown(report_of(seed_records(), stop=stop))
    assert "| Stopped | max_iterations |" in section(text, "Summary")


def test_an_apply_is_one_line_that_says_how_it_ended():
    made = (
        decision(1, 2),
        decision(2, 2, kind="apply", decision=None, reason="take it"),
        decision(3, 2, kind="apply-end", decision=None, reason="", data={"apply": 2}),
        decision(4, 2, kind="undo", decision=None, reason="no", data={"apply": 2}),
        decision(5, 2, kind="undo-end", decision=None, reason="", data={"undo": 4, "apply": 2}),
        decision(6, 2, kind="apply", decision=None, reason="again"),
        decision(7, 2, kind="end", decision=None, reason="4 of 4 iterations done"),
        decision(8, 2, kind="redact", decision=None, reason="from an older version: a value taken out of 3 files"),
    )
    lines = section(render_markdown(report_of(seed_records(), decisions=made)), "Decisions")
    kinds = [(line.split(" | ")[0], line.split(" | ")[2]) for line in lines[2:]]
    assert kinds == [
        ("| 1", "select (use_best)"),
        ("| 2", "apply, undone"),
        ("| 4", "undo"),
        ("| 6", "apply, unfinished"),
        ("| 7", "end"),
        ("| 8", "redact"),
    ]
