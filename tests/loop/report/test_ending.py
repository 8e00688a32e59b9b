"""The last word of run, demo and show: for each way in which a loop can end, what a person reads and can type."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from commands import call
from hypothesis import given
from hypothesis import strategies as st
from report_samples import decision, record, report_of
from store_kit import unmarked

from jumar.cli.terminal.ending import Commands, ending_lines
from jumar.core.text import cell_width
from jumar.loop.ranking.confirmed import Certainty, Confirmed
from jumar.loop.report.ending import KEPT, Place, Situation, State
from jumar.loop.report.read import LoopReport
from jumar.loop.report.rows import trajectory_rows
from jumar.loop.report.spending import Took
from jumar.model import CheckResult, IterationRecord, ScoreReading, SelectionCriteria, Spend, StopDecision, SuiteCounts
from jumar.model.budget.pricing import Budget

COMMANDS = Commands(of=lambda command, options: f"jumar {command} {options}".rstrip(), resume="jumar run --id calc-3")
ALL = StopDecision(reason="max_iterations", detail="4 of 4 iterations done")
PAID = Spend(iterations=4, calls=4, seconds=242.0, cost_usd=0.56, known_cost_usd=0.56)
VERIFIED = SelectionCriteria(threshold=None)


def counted(number: int, passed: int, total: int = 12, **changes: Any) -> IterationRecord:
    """One iteration whose score is the share of its tests that pass."""
    score = 100 * passed / total
    counts = SuiteCounts(passed=passed, failed=total - passed, missing=0, total=total)
    check = CheckResult(name="pytest -q", passed=passed == total, exit_code=int(passed < total), tests=counts)
    status = "passed" if passed == total else "failed"
    return record(number, score, checks=(check,), verification_status=status, **changes)


def loop(*passed: int, spend: Spend = PAID, criteria: SelectionCriteria = VERIFIED, **options: Any) -> LoopReport:
    return report_of([counted(number, one) for number, one in enumerate(passed)], criteria, spend=spend, **options)


def lines(
    report: LoopReport,
    state: State = "finished",
    place: Place = "applied",
    stop: StopDecision | None = ALL,
    *,
    width: int = 100,
    **more: Any,
) -> list[str]:
    situation = Situation(state=state, place=place, stop=stop, **more)
    return ending_lines(report, situation, COMMANDS, width)


def shown(*arguments: Any, **options: Any) -> str:
    """Return the end as one line, however it was broken."""
    return " ".join("\n".join(lines(*arguments, **options)).split())


def golden(text: str) -> list[str]:
    return ["", *text.strip("\n").split("\n")]


def test_the_picture_of_the_design() -> None:
    expected = """
Result   3/12 → 11/12 tests at iteration 2 (not all checks pass), applied here · $0.56 · 4m 02s
Why      No iteration passed all checks; selected by score alone. Iteration 1 is next, 16.7 points
         lower.
         Ended: 4 of 4 iterations done.
Next     jumar diff                  what changed since the start
         jumar report --open         the whole story as a page
         jumar apply --undo          put back what iteration 4 left
         jumar run --id calc-3 -n 8  resume with a higher limit
"""
    assert golden(expected) == lines(loop(3, 9, 11, 8, 9))


def test_done_when_every_check_passes() -> None:
    expected = """
Result   9/12 → 12/12 tests at iteration 2 (all checks pass), already in place · $0.56 · 4m 02s
Why      Highest score of those that pass all checks. Iteration 1 is next, 16.7 points lower.
         Ended: target 100 reached by iteration 2 (100).
Next     jumar diff           what changed since the start
         jumar report --open  the whole story as a page
"""
    done = StopDecision(reason="target", detail="target 100 reached by iteration 2 (100)")
    assert golden(expected) == lines(loop(9, 10, 12), place="holds", stop=done)


def test_scores_of_ones_own_stand_first_and_tests_behind_them() -> None:
    made = [
        replace(one, dimensions=MappingProxyType({"speed": 0.5}), quality_score=score)
        for one, score in ((counted(0, 3), 40.0), (counted(1, 12), 81.5))
    ]
    told = shown(report_of(made, VERIFIED, spend=replace(PAID, cost_usd=None, known_cost_usd=0.0)), directory="work/x")
    assert (
        "score 40 → 81.5 and 3/12 → 12/12 tests at iteration 1 (all checks pass), applied to work/x · cost not reported" in told
    )
    reading = ScoreReading(dimension="validation", score=0.815, scorer="command")
    own = [replace(one, dimensions=MappingProxyType({"validation": 0.5}), readings=(reading,)) for one in made]
    assert "score 40 → 81.5 and 3/12 → 12/12 tests" in shown(report_of(own, VERIFIED))
    bare = report_of([record(0, 68.7, verification_status="skipped"), record(1, 89.3, verification_status="skipped")], VERIFIED)
    assert "Result score 68.7 → 89.3 at iteration 1, already in place in d · $0.05 · 30s" in shown(
        bare, place="holds", directory="d"
    )
    one = [replace(record(0, None, status="scorer_broken"), dimensions=MappingProxyType({})), record(1, 70.0)]
    assert "score not scored → 70 at iteration 1" in shown(report_of(one, VERIFIED))
    assert "start not scored → 4/12 tests at iteration 1" in shown(report_of([one[0], counted(1, 4)], VERIFIED))


def test_nothing_valid() -> None:
    failed = [
        record(n, None, status="scorer_broken", status_reason="no number in ''\x1b[2J", verification_status="skipped")
        for n in (0, 1)
    ]
    expected = r"""
Result   nothing selected: no iteration has a valid score · $0.05 · 30s
Why      Iteration 1 is the last: scorer broken: no number in ''\x1b[2J.
         Ended: 4 of 4 iterations done.
Next     jumar show  the status of each iteration
         jumar logs  what the programs of the last one printed
"""
    assert golden(expected) == lines(report_of(failed, VERIFIED), place="nowhere")
    assert "no iteration is recorded yet" in shown(report_of([], VERIFIED), state="new", place="nowhere", stop=None)


@pytest.mark.parametrize(
    ("reason", "detail", "first", "ended"),
    [
        ("interrupted", "on request; run the same command again to resume", "jumar run --id calc-3", "Ended: on request."),
        ("stop_file", "the file STOP asks to stop; remove it", "jumar stop --undo", "Ended: the file STOP asks to stop."),
        ("disk_full", "the disk is full", "jumar run --id calc-3", "Ended: the disk is full."),
    ],
)
def test_an_interrupted_loop_says_how_to_resume_first(reason: Any, detail: str, first: str, ended: str) -> None:
    told = shown(loop(3, 9), state="interrupted", place="later", stop=StopDecision(reason=reason, detail=detail))
    assert "Result 3/12 → 9/12 tests at iteration 1 so far (not all checks pass), not applied yet · $0.56 · 4m 02s" in told
    assert ended in told
    assert f"Next {first} " in told
    assert "jumar run --id calc-3 resume" in told
    assert "put iteration 1 into this directory" in told


@pytest.mark.parametrize(
    ("reason", "budget", "command", "meaning"),
    [
        ("max_cost", Budget(max_cost_usd=0.5), "jumar run --id calc-3 --max-cost 1", "took $0.28 on average"),
        ("max_tokens", Budget(max_tokens=1000), "jumar run --id calc-3 --max-tokens 2000", "took 400 tokens on average"),
        ("max_seconds", Budget(max_seconds=60.5), "jumar run --id calc-3 --max-seconds 121", "took 2m 01s on average"),
        ("max_attempts", Budget(max_iterations=2), "jumar run --id calc-3", "once [budget] max_iterations is higher"),
        ("rate_limited", Budget(), "jumar run --id calc-3", "once the provider takes requests again"),
        ("blocked", Budget(), "jumar run --id calc-3", "once what blocks the agent is seen to"),
    ],
)
def test_after_a_limit_the_first_command_resumes(reason: Any, budget: Budget, command: str, meaning: str) -> None:
    spent = replace(PAID, tokens=800, known_tokens=800)
    report = replace(loop(3, 9, 11, spend=spent), budget=budget)
    told = lines(report, stop=StopDecision(reason=reason, detail="it is used up"))
    start = next(number for number, line in enumerate(told) if line.startswith("Next"))
    told_next = " ".join(line.strip() for line in told[start:])
    assert told_next.startswith(f"Next     {command} ")
    assert meaning in told_next


@pytest.mark.parametrize(
    ("most", "known", "silent", "options"),
    [
        (20.0, 0.56, 2, "--reserve-cost 1"),
        (0.4, 0.0, 1, "--reserve-cost 0.1"),
        (1.0, 0.5, 2, "--reserve-cost 0.1"),
        (0.01, 0.0, 1, "--reserve-cost 0.0025"),
        (0.5, 0.6, 1, "--max-cost 1 --reserve-cost 0.12"),
    ],
)
def test_what_a_silent_iteration_is_charged_leaves_room_below_the_limit(
    most: float, known: float, silent: int, options: str
) -> None:
    spent = replace(PAID, known_cost_usd=known, assumed_cost_usd=0.0, unknown_costs=silent, uncharged_costs=silent)
    report = replace(loop(3, 9, spend=spent), budget=Budget(max_cost_usd=most))
    told = shown(report, stop=StopDecision(reason="unknown_cost", detail="an attempt did not say what it cost"))
    assert f"Next jumar run --id calc-3 {options} resume, charging $" in told


@pytest.mark.parametrize("budget", [Budget(max_tokens=5), Budget(max_cost_usd=1, on_unknown_cost="stop")])
def test_where_no_option_helps_none_is_proposed(budget: Budget) -> None:
    report = replace(loop(3, 9, spend=replace(PAID, unknown_costs=1, uncharged_tokens=1)), budget=budget)
    stop = StopDecision(reason="unknown_cost", detail="an attempt did not say how many tokens it used")
    assert "jumar run" not in shown(report, stop=stop)


def test_more_iterations_are_advised_only_where_they_may_help() -> None:
    assert "-n 4" in shown(loop(3, 9, 11)), "the last is the best, and the checks do not pass"
    assert "-n " not in shown(loop(3, 12, 11)), "it is done"
    assert "-n 4" in shown(loop(3, 9, 8)), "the checks do not pass"
    assert "higher limit" not in shown(
        loop(3, 9, 11), stop=StopDecision(reason="plateau", detail="plateau: three within a point")
    )


def test_a_check_that_the_counts_do_not_tell_of_is_named() -> None:
    lint = CheckResult(name="ruff check .", passed=False, exit_code=1)
    records = [replace(one, checks=(*one.checks, lint), verification_status="failed") for one in map(counted, (0, 1), (3, 12))]
    assert "3/12 → 12/12 tests at iteration 1 (ruff check . fails), applied" in shown(report_of(records, VERIFIED))
    rows = trajectory_rows(report_of(records, VERIFIED))
    assert ["ruff check . fails"] * 2 == [row.remarks[-1] for row in rows]


def test_a_start_that_was_cut_short_makes_no_whole_count() -> None:
    start, last = counted(0, 0, 1), counted(1, 1, 1)
    cut, whole = (check.tests for one in (start, last) for check in one.checks)
    assert cut is not None
    assert whole is not None
    records = [
        replace(start, checks=(replace(start.checks[0], tests=replace(cut, cut_short=True)),)),
        replace(last, checks=(replace(last.checks[0], tests=replace(whole, new_passing=5)),)),
    ]
    told = shown(report_of(records, VERIFIED))
    assert "0/1 → 1/1 counted tests at iteration 1" in told
    assert "Only tests that ran at the start are counted, which stopped at its first failure; 5 others pass." in told


def test_failures_are_counted_by_kind() -> None:
    took = Took(parts=(), failures={"rate_limited": 2, "generator_failed": 1})
    report = replace(loop(3, 9), took=took)
    assert "4m 02s Failures: 2 rate limited, 1 generator failed Why" in shown(report)
    broke = StopDecision(reason="consecutive_failures", detail="3 iterations failed in a row; the last: exit code 1")
    told = lines(report, stop=broke)
    assert "what the programs of the last iteration printed" in "\n".join(told)
    assert "--accept-changes" not in "\n".join(told)
    nothing = report_of([record(1, None, status="generator_failed")], VERIFIED)
    assert 1 == "\n".join(lines(nothing, stop=broke)).count("jumar logs"), "it is offered once"


def test_what_is_as_good_as_the_start_is_kept_and_the_way_back_is_named() -> None:
    expected = """
Result   3/12 tests, as good as the start: iteration 2 is kept (not all checks pass), already in
         place · $0.56 · 4m 02s
Why      Every iteration scored as the start did; the latest that is as good is kept.
         Ended: 4 of 4 iterations done.
Next     jumar diff                  what changed since the start
         jumar report --open         the whole story as a page
         jumar apply --undo          put the start back
         jumar run --id calc-3 -n 4  resume with a higher limit
"""
    made = [counted(0, 3), *(counted(number, 3, parent=0) for number in (1, 2))]
    told = report_of(made, VERIFIED, spend=PAID)
    assert golden(expected) == lines(told, place="holds", to_start=True)
    assert "put the start back" not in shown(told, place="holds"), "of a loop that worked elsewhere there is nothing to undo"
    gone = shown(told, place="gone")
    assert "(not all checks pass), not in the directory any more" in gone
    assert "jumar apply put iteration 2 into this directory" in gone
    worse = report_of([*made, counted(3, 2, parent=2)], VERIFIED)
    assert "iteration 2 is kept" in shown(worse)
    assert "No iteration scored higher than the start; the latest that is as good is kept. Ended" in shown(worse)
    idle = [counted(0, 3), counted(1, 3, parent=0, failure="changed_nothing")]
    assert "3/12 tests, the start" in shown(report_of(idle, VERIFIED), place="holds")
    assert "Iteration 1 is next, with the same score, and changed nothing." in shown(report_of(idle, VERIFIED), place="holds")


def test_the_start_is_restored_over_something_worse() -> None:
    told = shown(loop(12, 9, 8))
    assert "Result 12/12 tests, the start (all checks pass), put back here" in told
    assert "Every iteration scored lower than the start. Iteration 1 is next, 25 points lower." in told
    assert "put back what iteration 2 left" in told
    assert "jumar diff" not in told
    waiting = shown(loop(12, 9), state="interrupted", place="later", stop=None)
    assert "jumar apply" not in waiting, "nobody wants the start while the loop is not at its end"
    alone = [record(0, 40), record(1, None, status="generator_failed")]
    assert "Why No iteration has a valid score, so the start stays. Ended:" in shown(report_of(alone, VERIFIED), place="holds")
    batched = [record(0, 40), record(1, 30, batch=1, candidate=1)]
    assert "put back what was there before" in shown(report_of(batched, VERIFIED))


def test_below_the_start_but_verified() -> None:
    made = [record(0, 90, verification_status="failed"), record(1, 80)]
    told = shown(report_of(made, VERIFIED))
    assert (
        "Highest score of those that pass all checks. The start is next, 10 points higher, but does not pass all checks." in told
    )
    assert "It scores below the start, which does not pass the checks." in told


@pytest.mark.parametrize(
    ("criteria", "words"),
    [
        (SelectionCriteria(threshold=95), "No iteration reached the required score of 95; selected without it. "),
        (
            SelectionCriteria(threshold=95, mode="highest_quality"),
            "No iteration reached the required score of 95; selected without it.",
        ),
        (
            SelectionCriteria(threshold=50, mode="most_recent_above_threshold"),
            "reaches the required score of 50 and passes all checks. Iteration 1 is next, 10 points higher, but older.",
        ),
        (
            SelectionCriteria(threshold=None, mode="most_recent_above_threshold", require_verification=False),
            "Latest iteration. Iteration 1 is next",
        ),
    ],
)
def test_what_was_relaxed_and_which_rule_it_was(criteria: SelectionCriteria, words: str) -> None:
    assert words in shown(report_of([record(0, 40), record(1, 80), record(2, 70)], criteria))
    both = report_of([record(n, 40 + n, verification_status="failed") for n in range(2)], SelectionCriteria(threshold=95))
    assert "No iteration reached the required score of 95 or passed all checks; selected by score alone." in shown(both)


def test_an_override_says_who_and_what_the_rules_would_select() -> None:
    made = decision(2, 1, kind="override", decision="use_specific", by="kim\x07", reason="reads better.", final=2)
    told = shown(loop(3, 9, 11, decisions=(made,)))
    assert r"Selected by kim\x07: reads better; the rules would select iteration 2 (91.7)." in told
    assert "9/12 tests at iteration 1" in told


def sure(known: Certainty) -> LoopReport:
    """A report of which this much is known of the noise."""
    report = report_of([record(0, 83), record(1, 84)], VERIFIED)
    vars(report)["certainty"] = known
    return report


def test_what_confirmed_it_and_what_did_not() -> None:
    known = Certainty(
        standard_error=1.0,
        degrees=4,
        finalists=(),
        rescored=False,
        tied=(0, 1),
        width=2.0,
        chosen=1,
        won=84.0,
        confirmed=Confirmed(iteration=1, score=82.1, by="confirm"),
        optimism=1.9,
        optimism_width=2.4,
        compared=(),
        problems=("scoring iteration 0 again gave no score: \x1b timeout",),
    )
    told = shown(sure(known))
    assert "The start is next, 1 point lower, which is within the noise." in told
    assert "Scored once more, it has 82.1: selection bias +1.9 ± 2.4 points." in told
    assert r"Not confirmed: scoring iteration 0 again gave no score: \x1b timeout." in told
    held_out = replace(
        known, confirmed=Confirmed(iteration=1, score=90.0, by="holdout"), optimism=-6.0, optimism_width=None, problems=()
    )
    assert "The held-out scorers give 90: selection bias −6 points." in shown(sure(held_out))


def test_where_it_is_when_it_was_not_applied() -> None:
    apart = shown(loop(3, 9), place="apart", directory="elsewhere")
    assert "(not all checks pass), not applied · $0.56" in apart
    assert "put iteration 1 into elsewhere" in apart
    refused = shown(loop(3, 9), place="refused", problem="calc.py changed since\x1b the plan")
    assert r"4m 02s Not applied: calc.py changed since\x1b the plan" in refused
    assert "jumar apply" in refused


def test_a_loop_that_had_ended_before_says_so_and_what_to_type() -> None:
    told = lines(loop(3, 12), state="again", place="holds", stop=StopDecision(reason="target", detail="target 100 reached"))
    assert "Result   Nothing was run: this loop has ended before." == told[1]
    assert "jumar run --id calc-3 --new" in "\n".join(told)
    assert "jumar run --id calc-3 --keep-going" in "\n".join(told)
    limited = shown(loop(3, 12, 11), state="again", place="holds")
    assert "jumar run --id calc-3 -n 4" in limited
    assert "--new" not in limited


def test_a_running_loop_is_so_far_and_a_trackers_loop_has_nothing_to_resume() -> None:
    told = shown(
        loop(3, 9), state="running", place="later", stop=None, writer="process 7 (jumar run) writes this loop since 10:00"
    )
    assert "3/12 → 9/12 tests at iteration 1 so far" in told
    assert "Running: process 7 (jumar run) writes this loop since 10:00." in told
    assert ["jumar watch", "jumar stop"] == re.findall(r"jumar \w+", told.partition("Next")[2])
    tracked = ending_lines(loop(3, 9), Situation(state="tracked", place="apart"), replace(COMMANDS, resume=None), 100)
    assert "resume" not in "\n".join(tracked)
    assert "Ended" not in "\n".join(tracked)


def test_nothing_paid_is_said() -> None:
    told = shown(loop(12, spend=Spend(cost_usd=0.0, calls=1)), place="holds", stop=StopDecision(reason="target", detail="done"))
    assert "(all checks pass), already in place · nothing paid Why There is no iteration beside the start. Ended: done." in told


# ----------------------------------------------------------------------------------------------------- whatever the width


@given(
    scores=st.lists(st.integers(0, 12), min_size=1, max_size=6),
    state=st.sampled_from(["finished", "interrupted", "running", "again", "new", "tracked"]),
    place=st.sampled_from(["applied", "holds", "gone", "refused", "apart", "later", "nowhere"]),
    reason=st.sampled_from(["max_iterations", "max_cost", "interrupted", "consecutive_failures", "plateau", "rate_limited"]),
    words=st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters=KEPT), max_size=200),
    width=st.integers(30, 100),
)
def test_no_line_is_wider_than_it_may_be(
    scores: list[int], state: State, place: Place, reason: Any, words: str, width: int
) -> None:
    told = lines(
        loop(*scores), state, place, StopDecision(reason=reason, detail=words), width=width, problem=words, directory="a/b"
    )
    for line in told:
        body = line[9:].strip()
        alone = " " not in body or body.startswith("jumar ")  # a word or a command that is to be copied stays whole
        assert cell_width(line) <= width or alone, line
    assert ["Result", "Why", "Next"][: 1 + ("Why" in "".join(told))] == [line.split()[0] for line in told if line[:1].strip()][
        : 1 + ("Why" in "".join(told))
    ]


def test_the_commands_line_up_and_a_long_one_has_its_meaning_below() -> None:
    long = replace(COMMANDS, resume="jumar run --id " + "x" * 60)
    told = ending_lines(loop(3, 9, 11), Situation(state="finished", place="applied", stop=ALL), long, 80)
    beside = {
        line.index(meaning) for line in told for meaning in ("what changed", "the whole story", "put back") if meaning in line
    }
    assert 1 == len(beside)
    assert told[-2].endswith("x" * 60 + " -n 4")
    assert "           resume with a higher limit" == told[-1]


# ------------------------------------------------------------------------------------------------ as printed, in real loops


def commands_in(text: str) -> list[list[str]]:
    block = text.partition("Next ")[2]
    return [shlex.split(re.split(r"  +", line.strip())[0])[1:] for line in block.splitlines() if "jumar " in line]


AGENT = "import os; n = os.environ['JUMAR_ITERATION']; open('out.txt', 'w').write(n)"


def test_the_commands_of_the_end_work_as_printed(fresh_place: Path) -> None:
    (fresh_place / "agent.py").write_text(AGENT)
    (fresh_place / "out.txt").write_text("0")
    told = call("run", "-n", "2", "--check", "grep -q 1 out.txt", "--check", "test 1 = 2", "--", "python3", "agent.py").out
    typed = commands_in(told)
    assert [["diff"], ["report", "--open"], ["apply", "--undo"]] == typed[:3], told
    assert "-n" in typed[3]
    assert "1" == (fresh_place / "out.txt").read_text()
    assert "+1" in call(*typed[0], check=0).out
    call(*typed[2], check=0)
    assert "2" == (fresh_place / "out.txt").read_text()
    after = call("show", check=0).out
    assert ["apply"] in commands_in(after)
    call("apply", check=0)
    assert "1" == (fresh_place / "out.txt").read_text()
    more = call(*typed[3]).out
    assert re.search(r"^ +4 ", more, re.MULTILINE), "the two iterations that were added"


def test_a_loop_of_a_command_line_is_resumed_by_its_name_from_anywhere(fresh_place: Path) -> None:
    work = fresh_place / "work"
    work.mkdir()
    (work / "agent.py").write_text(AGENT)
    (work / "out.txt").write_text("0")
    os.chdir(work)
    call("run", "-n", "1", "--check", "grep -q 2 out.txt", "--", "python3", "agent.py", check=10)
    os.chdir(fresh_place)
    assert "there is no jumar.toml here" in call("run", "--id", "work-1", check=2).err
    call("run", "--id", "work-1", "--root", "work/.jumar", "-n", "2", check=0)
    assert "2" == (work / "out.txt").read_text()
    loop = unmarked(work / ".jumar/loops/work-1") / "loop.json"
    loop.write_text(loop.read_text().replace("agent.py", "[redacted: KEY]"))
    assert "leaves a secret out" in call("run", "--id", "work-1", "--root", "work/.jumar", "-n", "3", check=2).err


def test_options_that_repeat_what_a_loop_was_begun_with_change_nothing(fresh_place: Path) -> None:
    (fresh_place / "agent.py").write_text(AGENT)
    (fresh_place / "out.txt").write_text("0")
    begun = ("--id", "t", "--env", "SEQ", "--exclude", "x", "--check", "grep -q 9 out.txt", "--score", "speed=cat out.txt")
    call("run", "-n", "1", *begun, "--", "python3", "agent.py", check=10)
    again = json.loads(call("run", "-n", "2", *begun, "--json", check=10).out)
    assert (2, True) == (again["final_iteration"], again["resumed"])
    assert {"quality_score": 0.0, "checks": [{"name": "grep -q 9 out.txt", "passed": False, "tests": None}]} == again["start"]
    told = call("run", "-n", "3", *begun, "--check", "true", check=2).err
    assert "the configuration differs from the one" in told


def test_a_report_opens_as_a_page(fresh_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commands import record as tracked

    tracked([0.5, 0.8])
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    told = call("report", "--open", check=0)
    (page,) = [Path(url.removeprefix("file://")) for url in opened]
    try:
        assert page.read_text().startswith("<!doctype html>")
        assert f"wrote {page}" in told.out
    finally:
        page.unlink()
    assert "is none" in call("report", "--open", "--format", "csv", check=2).err
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    told = call("report", "--open", "-o", "r.html", check=0)
    assert "no browser could be started here" in told.err
    assert (fresh_place / "r.html").is_file()


def test_a_loop_of_a_command_line_is_resumed_beside_a_configuration_that_is_not_its_own(fresh_place: Path) -> None:
    (fresh_place / "agent.py").write_text(AGENT)
    (fresh_place / "out.txt").write_text("0")
    (fresh_place / "jumar.toml").write_text("[generator]\ncommand = 'exit 3'\n")
    call("run", "-n", "1", "--check", "grep -q 2 out.txt", "--", "python3", "agent.py", check=10)
    (resumed,) = [command for command in commands_in(call("show").out) if command[0] == "run"]
    assert ["run", "--id", "here-1", "-n", "2"] == resumed
    call(*resumed, check=0)
