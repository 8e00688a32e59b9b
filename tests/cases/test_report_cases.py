"""What a report of cases says: of a run, of a recording, of failures, and of a worse iteration that was carried."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from cases_kit import ORDER, POISONED, add_iteration, make_recording, make_run
from markdown_it import MarkdownIt
from report_samples import HOSTILE

from jumar.cases.ranking import last_complete, rank_case
from jumar.cases.records import CaseIteration, CaseStatus, StepRecord
from jumar.cases.report import (
    CaseReport,
    ChainReport,
    Handover,
    Origin,
    Paid,
    load_recording,
    load_run,
    paid_for,
)
from jumar.cases.report.render import MOST_ARROWS, MOST_IN_FULL, render_html, render_markdown, replay_document, to_json
from jumar.cases.report.words import (
    case_lines,
    cost_text,
    failure_lines,
    handover_sentence,
    lead,
    origin_text,
    signed_text,
    stopped_text,
    value_text,
)
from jumar.errors import NotFoundError, StoreDamagedError
from jumar.model.ordering import parse_order
from jumar.model.pipeline import DEFAULT_ROLES
from jumar.model.records import Usage

RENDERINGS = (render_markdown, render_html)


def chain(rows: dict[int, list[Any]], **options: Any) -> ChainReport:
    return load_run(make_run(rows, **options))


def sentences(report: ChainReport) -> list[str]:
    return [handover_sentence(report, one) for one in report.handovers]


# ------------------------------------------------------------------------------------------------------ the read model


def test_a_run_that_carries_its_best():
    report = chain(POISONED)
    one, two = report.cases
    assert ("r", 3, 3) == (report.run_id, report.columns, report.planned)
    assert (1, 3, 1, 2) == (one.best and one.best.number, one.last and one.last.number, one.chosen, one.ranking.runner_up)
    assert {"accuracy": 6, "overall": 5, "chain": 6} == dict(one.behind)
    assert Origin(kind="base", roles=("ckg", "fix_db")) == one.origin
    assert Origin(kind="carried", case=1, iteration=1, selected_by="best", roles=("ckg", "fix_db")) == two.origin
    (handed,) = report.handovers
    zeros: dict[str, float | None] = {"accuracy": 0, "overall": 0, "chain": 0}
    assert Handover(source=1, target=2, carried=1, best=1, last=3, lost=zeros, poisoned=False) == handed
    assert [
        (
            "Case 2 started from iteration 1 of case 1, its best (accuracy 9, overall 8.75, chain 8); "
            "the last, iteration 3, would have brought accuracy 3, overall 3.75, chain 2."
        )
    ] == sentences(report)


def test_a_run_that_carries_its_last_says_what_the_best_would_have_been():
    report = chain(POISONED, select="last")
    assert [1] == [one.source for one in report.poisoned]
    assert [
        (
            "Case 2 started from iteration 3 of case 1, not from its best, iteration 1: "
            "accuracy 3 instead of 9, overall 3.75 instead of 8.75, chain 2 instead of 8."
        )
    ] == sentences(report)
    (kept,) = [line for line in case_lines(report, report.case(1)) if "was kept, as was asked for; " in line]
    assert "the best would have been iteration 1 (accuracy 9, overall 8.75, chain 8)" == kept.partition("; ")[2]
    document = to_json(report)["cases"][0]
    assert (3, "last", 1) == (document["best_iter"], document["selected_by"], document["by_order"]["best_iter"])
    assert {"accuracy": 3, "overall": 3.75, "causal_chain_completeness": 2} == document["ranking"]


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ((2, 2, 2), "its best; the last, iteration 2, scored the same."),
        (None, "its best; the last, iteration 2, has no usable score."),
        ("boom", "its best; the last one is the same."),
    ],
)
def test_what_the_last_would_have_brought(last: Any, said: str):
    report = chain({1: [(2, 2, 2), last], 2: [(1, 1, 1)]})
    assert [f"Case 2 started from iteration 1 of case 1, {said}"] == sentences(report)
    assert (last is None) == ("last, not carried" in render_html(report))
    if last == (2, 2, 2):
        assert "The last, iteration 2, scored the same" in case_lines(report, report.case(1))


def test_not_evaluated_is_not_failed_is_not_invalid():
    report = chain({1: ["exit 1: boom", None, (5, 5, 5)], 2: [(6, 6, 6)], 3: [(1, 1, 1)]}, begun=2)
    table = [line for line in render_markdown(report).splitlines() if re.match(r"\| [123] ", line)]
    cells = [[cell.strip() for cell in line.split("|")[2:5]] for line in table]
    assert [
        ["✗ failed", "! no usable score", "★ → 5 / 5 / 5"],
        ["★ 6 / 6 / 6", "·", "·"],
        ["·", "·", "·"],
    ] == cells
    assert ["max iters", "max iters", "not begun"] == [stopped_text(case) for case in report.cases]
    page = render_html(report)
    assert {"failed": 1, "invalid": 1, "absent": 5, "ok": 2} == {
        state: len(re.findall(rf'<div class="cell {state}', page)) for state in ("failed", "invalid", "absent", "ok")
    }
    assert [[], [2, 3], [1, 2, 3]] == [case["not_evaluated"] for case in to_json(report)["cases"]]
    assert [
        (1, "step failed: step all: exit 1: boom"),
        (2, "invalid score: there is no composite_score in judge.json"),
    ] == failure_lines(report.case(1))


def test_a_case_without_a_valid_iteration_hands_nothing_on():
    report = chain({1: [(5, 5, 5)], 2: ["a", None], 3: [(7, 7, 7)]})
    assert [(1, 2), (1, 3)] == [(one.source, one.target) for one in report.handovers]
    assert report.case(2).best is None
    assert "2 of 3 cases have a best iteration." == lead(report)
    with pytest.raises(KeyError):
        report.case(9)
    assert "No iteration is valid, so there is no best" == case_lines(report, report.case(2))[0]
    assert {None} == {to_json(report)["cases"][1][name] for name in ("best_iter", "ranking")}
    assert "↓ into cases 2 and 3" in render_html(report)


def test_a_run_under_way():
    run = make_run({1: [(5, 5, 5)], 2: [(6, 6, 6)], 3: []}, begun=2, ended=False)
    with run.store(2).lock() as store:
        add_iteration(store, 2, (9, 9, 9), commit=False)
    report = load_run(run)
    case = report.case(2)
    assert (2, None, "under way") == (case.pending, case.chosen, stopped_text(case))
    assert 3 == report.paid.step_runs, "what is being made was paid for"
    assert "Iteration 2 is being made, or waits to be resumed" in case_lines(report, case)
    assert "… being made" in render_markdown(report)
    assert "being made" in render_html(report)


def test_nothing_at_all_yet():
    report = chain({1: [], 2: []}, begun=0, max_iters=None)
    assert (0, "Nothing is evaluated yet.") == (report.columns, lead(report))
    for render in RENDERINGS:
        assert "not begun" in render(report)
    assert "No iteration has a usable score." == lead(chain({1: ["x"]}, run_id="x"))
    assert "Iteration 1 is the best." == lead(chain({1: [(1, 1, 1)]}, run_id="y"))


def test_the_limit_of_a_long_case_draws_no_empty_columns():
    assert 2 == chain({1: [(1, 1, 1)] * 2}, max_iters=500).columns
    assert 4 == chain({1: [(1, 1, 1)] * 2}, run_id="x", max_iters=4).columns


def test_unknown_cost_is_never_zero():
    report = chain(POISONED, cost=None)
    assert (None, "—") == (report.paid.cost_usd, cost_text(report.paid))
    for render in RENDERINGS:
        assert "$" not in render(report)
    assert "$0.0600" == cost_text(chain(POISONED, run_id="x").paid)
    steps = [
        StepRecord(attempt=n, step="a", outcome="ok", seconds=None, usage=Usage(token_cost_usd=cost))
        for n, cost in ((1, 0.5), (2, None))
    ]
    assert Paid(step_runs=2, cost_usd=0.5, cost_reported=1) == paid_for(steps)
    assert "$0.5000 (reported by 1 of 2 step runs)" == cost_text(paid_for(steps))
    assert "$0.0000" == cost_text(Paid(step_runs=1, cost_usd=0.0, cost_reported=1)), "known to be nothing"


def test_a_step_that_was_run_again_is_told():
    run = make_run({1: []}, ended=False)
    with run.store(1).lock() as store:
        directory = store.begin_iteration(1)
        attempt = store.begin_step(directory, "all", "2026-01-28T10:00:00Z").attempt
        lost = StepRecord(attempt=attempt, step="all", outcome="lost", seconds=None, detail="its process died")
        store.end_step(directory, lost)
        done = StepRecord(attempt=2, step="all", outcome="ok", seconds=1.0)
        store.begin_step(directory, "all", "2026-01-28T10:00:00Z")
        store.end_step(directory, done)
        values = MappingProxyType({"accuracy": 1.0, "overall": 1.0, "chain": 1.0})
        store.commit(CaseIteration(case=1, number=1, status="ok", values=values, steps=(lost, done)))
    assert [(1, "step all, run 1, lost: its process died")] == failure_lines(load_run(run).case(1))


def test_damage_is_an_error_that_names_the_file():
    run = make_run({1: [(1, 1, 1)]})
    path = run.paths.case(1).iteration(1) / "iteration.json"
    path.write_text("{")
    with pytest.raises(StoreDamagedError, match=r"iteration\.json"):
        load_run(run)


# ------------------------------------------------------------------------------------------------- the recorded order


@pytest.mark.parametrize(("order", "ties"), [("accuracy,overall,chain", "earlier_iter"), ("-overall,chain", "smaller_diff")])
def test_the_order_is_the_one_that_the_run_was_made_with(order: str, ties: str):
    report = chain({1: [(1, 1, 1), (1, 2, 1)]}, order=parse_order(order, ties))
    assert parse_order(order, ties) == report.order


@pytest.mark.parametrize("order", [["a", "a"], [""], []])
def test_an_order_that_cannot_be_read_is_damage(order: list[str]):
    run = make_run({1: [(1, 1, 1)]})
    document = json.loads(run.paths.run_json.read_bytes())
    document["plan"]["order"] = order
    del document["mark"]
    run.paths.run_json.write_text(json.dumps(document))
    with pytest.raises(StoreDamagedError, match=r"run\.json: plan: "):
        load_run(type(run)(run.paths.directory))


# --------------------------------------------------------------------------------------------------------- recordings

CHAIN = {1: [(9, 8.75, 8), (9, 8.75, 8), (3, 3.75, 2)], 2: [(3, 3.45, 2), (4, 4.25, 3), (4, 4.2, 3)], 3: [(7, 7, 7)]}


def test_a_recording_says_by_hash_what_each_case_started_from():
    report = load_recording(make_recording(Path("r"), CHAIN, carried={2: (1, 3), 3: (1, 1)}))
    one, two, three = (case.origin for case in report.cases)
    assert Origin(kind="base", roles=("ckg",), by_hash=True) == one
    assert Origin(kind="carried", case=1, iteration=3, selected_by="last", roles=("ckg",), by_hash=True) == two
    assert Origin(kind="carried", case=1, iteration=1, selected_by="best", roles=("ckg",), by_hash=True) == three
    assert [(1, 2, True), (1, 3, False)] == [(one.source, one.target, one.poisoned) for one in report.handovers]
    assert "Started from iteration 3 of case 1 (its last): ckg has the same SHA-256" in case_lines(report, report.case(2))
    assert [1, 2, 1] == [case["best_iter"] for case in replay_document(report)["cases"]]


def test_a_middle_iteration_was_carried():
    report = load_recording(make_recording(Path("r"), CHAIN, carried={2: (1, 2)}))
    assert None is report.case(2).origin.selected_by
    assert "iteration 2 of case 1" == origin_text(report.case(2).origin)
    assert ["Case 2 started from iteration 2 of case 1, which scored as its best, iteration 1, did."] == sentences(report)
    assert () == report.poisoned


def test_an_iteration_without_a_score_was_carried():
    rows: dict[int, list[Any]] = {1: [(9, 9, 9), b"{}"], 2: [(1, 1, 1)]}
    report = load_recording(make_recording(Path("r"), rows, carried={2: (1, 2)}))
    assert [
        (
            "Case 2 started from iteration 2 of case 1, not from its best, iteration 1: "
            "it has no usable score, the best has accuracy 9, overall 9, chain 9."
        )
    ] == sentences(report)
    assert "The last, iteration 2, has no usable score" in case_lines(report, report.case(1))
    assert {None} == set(report.handovers[0].lost.values())


def test_a_case_without_a_best_was_carried():
    report = load_recording(make_recording(Path("r"), {1: [b"{}"], 2: [(1, 1, 1)]}, carried={2: (1, 1)}))
    assert ["Case 2 started from iteration 1 of case 1; no iteration of that case has a usable score."] == sentences(report)


def test_snapshots_that_are_not_there_or_prove_nothing():
    make_recording(Path("r"), CHAIN, carried={2: (1, 3)})
    base = Path("r/case2/inputs/base_ckg_snapshot.json")
    base.write_bytes(b"")
    Path("r/case1/case_01/iterations/iter_0001", DEFAULT_ROLES["ckg"].path(1, 1)).write_bytes(b"")
    assert "base" == load_recording(Path("r")).case(2).origin.kind
    base.unlink()
    report = load_recording(Path("r"))
    assert "unknown" == report.case(2).origin.kind
    assert "What it started from is not recorded" in case_lines(report, report.case(2))
    assert "not recorded" in render_markdown(report)


def test_nothing_recorded():
    Path("empty").mkdir()
    with pytest.raises(NotFoundError, match="holds no recorded case"):
        load_recording(Path("empty"))


def test_reading_writes_nothing():
    make_recording(Path("r"), CHAIN)
    make_run(POISONED)
    before = {path: os.stat(path).st_mtime_ns for path in Path().rglob("*")}
    for report in (load_recording(Path("r")), load_run(make_run_again())):
        for render in RENDERINGS:
            render(report)
    assert before == {path: os.stat(path).st_mtime_ns for path in Path().rglob("*")}


def make_run_again():
    from jumar.cases.run_store import RunReader

    return RunReader(Path(".jumar/runs/run_r"))


def test_the_recording_that_this_was_built_from(recorded_data: Path):
    report = load_recording(recorded_data / "closed_loop" / "recorded_chain")
    assert [(1, 5), (2, 5), (1, 5)] == [(case.best and case.best.number, case.last and case.last.number) for case in report.cases]
    assert [(1, 5, 2), (2, 5, 3)] == [(one.source, one.carried, one.target) for one in report.handovers]
    assert {"accuracy": 6, "overall": 5, "chain": 6} == dict(report.handovers[0].lost)
    assert 2 == len(report.poisoned)


# ---------------------------------------------------------------------------------------------------------- renderings


@pytest.mark.parametrize(
    ("value", "shown"),
    [(9, "9"), (8.75, "8.75"), (1 / 3, "0.3333"), (9.0, "9"), (-0.00001, "0"), (0, "0"), (None, "—"), (10, "10")],
)
def test_scores_keep_their_decimals(value: float | None, shown: str):
    assert shown == value_text(value)


def test_differences_have_a_sign():
    assert ["+6", "−0.05", "0", "0", "—"] == [signed_text(value) for value in (6, -0.05, 0, 0.0, None)]


def test_markdown_and_page_show_the_poisoned_carry_over():
    report = chain(POISONED, select="last")
    markdown, page = render_markdown(report), render_html(report)
    assert "### Poisoned carry-over" in markdown
    assert "1 case started from something worse than what was there." in markdown
    assert "iteration 3 instead of 1" in page
    assert "★ not carried" in page
    assert '<span class="arrow worse">↓ into case 2</span>' in page
    kept = render_html(chain(POISONED, run_id="x"))
    assert "Poisoned" not in kept
    assert '<span class="arrow spared">last, not carried</span>' in kept
    assert '<span class="arrow down">↓ into case 2</span>' in kept


def test_nothing_was_carried():
    report = chain(POISONED, carry=False)
    assert () == report.handovers
    assert "Nothing was carried from one case into another." in render_markdown(report)
    assert "Carried forward</h2>" not in render_html(report)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_reasons_cannot_change_a_rendering(name: str):
    def shape(text: str) -> list[tuple[str, str]]:
        return [(token.type, token.tag) for token in MarkdownIt().enable("table").parse(text)]

    plain, hostile = (chain({1: [text, (1, 1, 1)]}, run_id=run) for text, run in (("boom", "a"), (name, "b")))
    assert shape(render_markdown(plain)) == shape(render_markdown(hostile))
    page = render_html(hostile)
    assert "<script" not in page
    assert "\x1b" not in page + render_markdown(hostile)
    assert json.dumps(to_json(hostile))


def test_a_thousand_cases():
    report = many(1000)
    page, markdown = render_html(report), render_markdown(report)
    assert 1000 == len(re.findall(r'<tr><th scope="row">\d+<', page))
    assert "arrows" not in re.findall(r'<tr class="(\w+)"', page)
    assert MOST_IN_FULL >= page.count("<details")
    assert len(page) < 2_000_000
    assert len(markdown) < 500_000
    print(f"1,000 cases: page {len(page):,} characters, markdown {len(markdown):,}")
    assert "those in which something went wrong or was lost" in markdown
    assert "more; the JSON report has all of them" in markdown
    assert 'aria-label="carried">↓' in page


def test_arrows_of_few_cases():
    assert MOST_ARROWS - 1 == len(re.findall('<tr class="arrows"', render_html(many(MOST_ARROWS))))


def many(count: int) -> ChainReport:
    """Cases of two iterations: every third one fails first, every tenth gets the last of the one before, which is worse."""
    cases: list[CaseReport] = []
    handovers: list[Handover] = []
    names: tuple[str, ...] = ("accuracy", "overall", "chain")
    for number in range(1, count + 1):
        first: CaseStatus = "step_failed" if number % 3 == 0 else "ok"
        states: list[tuple[int, CaseStatus, float | None]] = [(1, first, 9.0), (2, "ok", 4.0)]
        made = tuple(
            CaseIteration(
                case=number, number=index, status=status, reason="boom", values=MappingProxyType(dict.fromkeys(names, score))
            )
            for index, status, score in states
        )
        poisoned = number % 10 == 1 and number > 1
        origin = Origin(kind="base")
        if number > 1:
            carried = 2 if poisoned or number % 3 == 1 else 1
            origin = Origin(kind="carried", case=number - 1, iteration=carried, selected_by="best")
            handovers.append(
                Handover(
                    source=number - 1,
                    target=number,
                    carried=carried,
                    best=2 if (number - 1) % 3 == 0 else 1,
                    last=2,
                    lost=MappingProxyType({}),
                    poisoned=carried == 2 and (number - 1) % 3 != 0,
                )
            )
        cases.append(
            CaseReport(
                number=number,
                case_id=f"incident-{number}",
                iterations=made,
                ranking=rank_case(made, ORDER),
                last=last_complete(made),
                origin=origin,
                paid=Paid(),
            )
        )
    return ChainReport(
        directory="/somewhere/x",
        run_id="many",
        created_at=None,
        config=MappingProxyType({}),
        order=ORDER,
        cases=tuple(cases),
        handovers=tuple(handovers),
        columns=2,
        planned=None,
        paid=Paid(),
    )
