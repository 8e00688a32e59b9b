"""A learning run as pages: its report, its iterations, and the life of every phrase in its set."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from learn_items import judged_items, write_items
from visits import visit

from jumar.dashboard.app import create_app
from jumar.dashboard.guard import Access, local_hosts
from jumar.dashboard.library import Library
from jumar.judging.report.read import items_of, load_evaluation
from jumar.learning import learn
from jumar.learning.report.life import life_of
from jumar.learning.run.read import read_report


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("learned")
    source = write_items(place / "judged.jsonl", judged_items())
    learn(source, f"replay:{source}", place / "out", max_iterations=2)
    return place


def page(run: Path, address: str, status: int = 200) -> str:
    app = create_app(Library([run / ".jumar"], run), Access(hosts=local_hosts(8400)))
    found, _, body = visit(app, address, host="127.0.0.1:8400")
    assert found == status
    return body


def test_the_report_leads_to_every_phrase_and_every_iteration(run: Path):
    shown = page(run, "/learn/out")
    patterns = set(re.findall(r'href="(/learn/out/patterns/[^"]+)"', shown))
    iterations = set(re.findall(r'href="(/learn/out/iterations/\d+)"', shown))
    assert patterns
    assert iterations
    for address in (*patterns, *iterations):
        page(run, html.unescape(address))
    print(f"{len(patterns)} patterns, {len(iterations)} iterations")


def test_a_phrase_fires_on_the_items_that_say_it(run: Path):
    report, evaluation = read_report(run / "out"), load_evaluation(run / "out")
    items = list(items_of(evaluation))
    said = [pattern for pattern in report.patterns if len(pattern["phrases"]) == 1]
    assert said
    for pattern in said:
        life = life_of(report, str(pattern["id"]), evaluation, items)
        words = re.compile(rf"\b{re.escape(pattern['phrases'][0])}\b", re.IGNORECASE)
        assert {item.id for item in life.fired} == {item.id for item in items if words.search(item.text)}


def test_the_life_of_a_pattern_is_what_the_iterations_decided(run: Path):
    report, evaluation = read_report(run / "out"), load_evaluation(run / "out")
    log = json.loads((run / "out/iteration_1/iteration_log.json").read_text())
    decided = [action for action in log["actions_taken"] if action["action"] == "committed_pattern"]
    assert decided
    for action in decided:
        events = life_of(report, action["pattern_id"], evaluation, []).events
        assert ("committed", action["reason"]) in [(event.what, event.reason) for event in events if event.iteration == 1]


@pytest.mark.parametrize("name", ["none", "..%2F..%2Fjudged.jsonl"])
def test_an_unknown_pattern_says_so(run: Path, name: str):
    assert f"knows no pattern '{unquote(name)}'" in html.unescape(page(run, f"/learn/out/patterns/{name}", 404))


def test_an_item_says_in_words_what_a_learned_set_found(run: Path):
    report = load_evaluation(run / "out")
    item = next(items_of(report))
    shown = html.unescape(page(run, f"/learn/out/iterations/{report.number}/items/{item.id}"))
    found = shown.partition("What made the cheap score")[2]
    assert 'says "' in found
    assert "phrase:" not in found
    assert "what every item begins with" in found
