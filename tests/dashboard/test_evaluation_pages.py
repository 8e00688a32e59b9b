"""Evaluations and the iterations of learning runs as pages: every item with what both judges said, whatever was written there."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from commands import call
from visits import visit

from jumar.dashboard.app import create_app
from jumar.dashboard.guard import Access, local_hosts
from jumar.dashboard.library import Library
from jumar.errors import NotFoundError, StoreDamagedError
from jumar.judging.report.read import evaluations_in, load_evaluation, read_item

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HOSTILE = '<script>alert("x")</script>'
TEXTS = [f"{HOSTILE} number {number}. It says what it does, and why; {'more of it, and more. ' * number}" for number in range(12)]


@pytest.fixture(autouse=True)
def _here(fresh_place: Path) -> Path:
    rows = [
        {"id": f"i/{number}&", "text": text, "prompt": "Why?", "group": f"g{number // 2}", "judge_scores": [1 + number % 5, 2]}
        for number, text in enumerate(TEXTS)
    ]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return fresh_place


def evaluate(mode: str = "dual", out: str = "out") -> Path:
    judge = () if mode == "cheap" else ("--judge", "replay:in.jsonl")
    call("evaluate", "in.jsonl", "--mode", mode, *judge, "-o", out, "-q", check=0)
    return Path(out)


def board() -> ASGIApp:
    return create_app(Library([Path(".jumar")], Path()), Access(hosts=local_hosts(8400)))


def page(app: ASGIApp, address: str, status: int = 200) -> str:
    found, _, body = visit(app, address, host="127.0.0.1:8400")
    assert found == status
    return body


def test_every_item_has_the_scores_of_both_judges():
    report = load_evaluation(evaluate())
    assert (report.number, len(report.items)) == (1, 12)
    judged = {row["story_id"]: row["gestalt"] for row in document("expensive_eval.json")["individual_scores"]}
    cheap = {row["story_id"]: row["gestalt"] for row in document("cheap_eval.json")["individual_scores"]}
    assert {item.id: (item.expensive, item.cheap) for item in report.items} == {id_: (judged[id_], cheap[id_]) for id_ in judged}
    assert report.tracking == document("gap_analysis.json")["tracking"]
    assert [point.abs_gap for point in report.course] == [document("gap_analysis.json")["abs_gap_mean"]]


def document(name: str) -> Any:
    return json.loads((Path("out") / "iteration_1" / name).read_text("utf-8"))


def test_a_page_an_evaluation_and_a_page_an_item():
    evaluate()
    evaluate()
    app = board()
    assert 'href="/evaluations/out"' in page(app, "/")
    shown = page(app, "/evaluations/out")
    assert "Evaluation 2" in shown
    assert "Over the evaluations" in shown
    links = set(re.findall(r'href="(/evaluations/out/iterations/2/items/[^"]*)"', shown))
    assert len(links) == 12
    for link in links:
        item = page(app, html.unescape(link))
        assert HOSTILE not in item
        assert html.escape(HOSTILE, quote=False) in item.replace("&#34;", '"')
    assert shown.count('<circle class="dot"') == 12 + 2  # a point an item, and the course of two


@pytest.mark.parametrize(("mode", "judge"), [("cheap", "cheap judge"), ("expensive", "judge")])
def test_one_judge_alone_has_a_page_without_a_gap(mode: str, judge: str):
    evaluate(mode)
    shown = page(board(), "/evaluations/out")
    assert f"12 items scored by the {judge} alone." in shown
    assert '<th scope="col">Gap</th>' not in shown


def test_an_item_that_was_not_scored_says_why():
    rows = [json.loads(line) for line in Path("in.jsonl").read_text().splitlines()]
    Path("few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:9]))
    call("evaluate", "in.jsonl", "--judge", "replay:few.jsonl", "--max-unscored", "1", "-o", "out", "-q", check=0)
    verdicts = read_item(load_evaluation(Path("out")), "i/11&")
    assert verdicts.expensive is not None
    assert "No score: missing: " in page(board(), "/evaluations/out/iterations/1/items/i%2F11%26")


@pytest.mark.parametrize(("address", "status"), [("/evaluations/none", 404), ("/evaluations/out/iterations/9", 404)])
def test_what_is_not_there_says_so(address: str, status: int):
    evaluate()
    assert "no evaluation" in page(board(), address, status)


def test_an_unknown_item_and_a_way_out_are_no_item():
    evaluate()
    app = board()
    for item in ("none", "..%2F..%2Fin.jsonl", "../../../in.jsonl"):
        assert "has no item" in page(app, f"/evaluations/out/iterations/1/items/{item}", 404)


@pytest.mark.parametrize("text", ["{", "[]", '{"individual_scores": [{"story_id": "i/0&", "gestalt": "no"}]}'])
def test_a_damaged_file_is_named(text: str):
    folder = evaluate() / "iteration_1"
    (folder / "cheap_eval.json").write_text(text)
    with pytest.raises(StoreDamagedError, match="cheap_eval"):
        read_item(load_evaluation(Path("out")), "i/0&")


def test_a_folder_without_evaluations_has_none():
    Path("out/iteration_1").mkdir(parents=True)
    assert evaluations_in(Path("out")) == []
    with pytest.raises(NotFoundError):
        load_evaluation(Path("out"))
    assert "no runs here" in page(board(), "/")
    shutil.rmtree("out")
