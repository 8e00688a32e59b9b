"""Files of rankings as pages: every strategy's cut is the one that the strategy makes, and no other file can be read."""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path

import pytest
from visits import visit

from jumar.dashboard.app import create_app
from jumar.dashboard.guard import Access, local_hosts
from jumar.dashboard.library import Library
from jumar.topk.report.cuts import cuts_of
from jumar.topk.result import ScoredItem
from jumar.topk.strategies import STRATEGIES, create_selection_strategy

SCORES = [0.92, 0.9, 0.71, 0.4, 0.39, 0.2, 0.1]
LABELLED = [
    {"query_id": f"q{number} & <b>", "scores": SCORES[number:], "relevant": [1, 0, 1, 0][: 7 - number] + [0] * max(0, 3 - number)}
    for number in range(4)
]


@pytest.fixture(autouse=True)
def _here(fresh_place: Path) -> Path:
    write("labelled.jsonl", *LABELLED)
    write("plain.jsonl", {"query_id": 1, "scores": SCORES}, {"query_id": 2, "scores": []})
    write("other.jsonl", {"id": "a", "text": "no ranking"})
    Path("table.csv").write_text("query_id,score,relevant\na,0.9,1\na,0.5,0\n")
    return fresh_place


def write(name: str, *rows: object) -> None:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def page(address: str, status: int = 200) -> str:
    app = create_app(Library([Path(".jumar")], Path()), Access(hosts=local_hosts(8400)))
    found, _, body = visit(app, address, host="127.0.0.1:8400")
    assert found == status
    return body


def test_every_strategy_cuts_as_it_does_by_itself():
    cuts = {cut.strategy: cut for cut in cuts_of(SCORES, max_k=5, min_k=1)}
    assert set(cuts) == set(STRATEGIES)
    items = [ScoredItem(position, score) for position, score in enumerate(SCORES)]
    for name, cut in cuts.items():
        result = create_selection_strategy(name).select(items, 5, 1)
        assert (cut.kept, cut.cutoff_score) == (len(result.selected), result.cutoff_score)


def test_a_strategy_that_refuses_the_scores_says_why():
    refused = [cut for cut in cuts_of(SCORES, max_k=5, min_k=1, scale="logit") if cut.kept is None]
    assert refused
    assert all(cut.rule and cut.cutoff_score is None for cut in refused)


def test_only_files_of_rankings_are_listed():
    files = re.findall(r'href="/topk\?file=([^"]+)"', page("/topk"))
    assert files == ["labelled.jsonl", "plain.jsonl", "table.csv"]


@pytest.mark.parametrize("file", ["labelled.jsonl", "plain.jsonl", "table.csv"])
def test_a_query_has_the_cut_of_every_strategy(file: str):
    shown = page(f"/topk?file={file}")
    assert all(f'<th scope="row" class="text">{name}</th>' in shown for name in STRATEGIES)
    assert ("Compared over all queries" in shown) == (file != "plain.jsonl")


def test_a_page_leads_to_the_queries_beside_it_whatever_they_are_called():
    shown = page("/topk?file=labelled.jsonl")
    assert "<b>" not in shown
    seen = 1
    while (link := re.search(r'rel="next" href="([^"]+)"', shown)) is not None:
        shown = page("/topk" + html.unescape(link[1]))
        seen += 1
    assert seen == len(LABELLED)


@pytest.mark.parametrize("labelled", [{}, {"relevant": [1, 0]}])
def test_a_name_that_no_address_can_hold_has_one_all_the_same(labelled: dict[str, list[int]]):
    Path("half.jsonl").write_text(
        "".join(json.dumps({"query_id": name, "scores": [0.9, 0.5]} | labelled) + "\n" for name in ("first", "\ud800"))
    )
    (link,) = re.findall(r'rel="next" href="([^"]+)"', page("/topk?file=half.jsonl"))
    assert r"Query \ud800" in page(f"/topk{html.unescape(link)}")


def test_a_ranking_without_scores_has_a_page():
    assert "Query 2" in page("/topk?file=plain.jsonl&query=2")


def test_scores_that_every_strategy_refuses_have_a_page():
    write("plain.jsonl", {"query_id": 1, "scores": [1e308, -1e308]})
    shown = page("/topk?file=plain.jsonl")
    assert "No strategy takes these scores." in shown
    assert shown.count("<td>refused</td>") == len(STRATEGIES)
    assert not re.search(r'(?:[xy\d]|points)="[^"]*(?:nan|inf)', shown)


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("file=none.jsonl", 404),
        ("file=../plain.jsonl", 404),
        ("file=%2Fetc%2Fpasswd", 404),
        ("file=link.jsonl", 404),
        ("file=plain.jsonl&query=9", 404),
        ("file=plain.jsonl&max_k=0", 400),
        ("file=plain.jsonl&max_k=x", 400),
        ("file=plain.jsonl&scale=x", 400),
        ("file=labelled.jsonl&scale=distance", 400),
        ("file=other.jsonl", 400),
    ],
)
def test_what_cannot_be_shown_says_so(asked: str, status: int):
    Path("link.jsonl").symlink_to("plain.jsonl")
    assert 'class="lead bad"' in page(f"/topk?{asked}", status)


def test_what_takes_the_place_of_a_listed_file_is_not_waited_for():
    library = Library([Path(".jumar")], Path())
    app = create_app(library, Access(hosts=local_hosts(8400)))
    assert "plain.jsonl" in visit(app, "/topk", host="127.0.0.1:8400")[2]
    Path("plain.jsonl").unlink()
    os.mkfifo("plain.jsonl")
    assert "plain.jsonl" not in visit(app, "/topk", host="127.0.0.1:8400")[2]
    status, _, body = visit(app, "/topk?file=plain.jsonl", host="127.0.0.1:8400")
    assert (status, "is no file" in body) == (400, True)


def test_a_file_of_gigabytes_is_refused_before_it_is_read():
    with Path("plain.jsonl").open("ab") as stream:
        stream.truncate(10_000_000_000)
    assert "larger ones" in page("/topk?file=plain.jsonl", 400)


def test_one_relevant_item_is_one():
    assert "; 1 is relevant." in page("/topk?file=table.csv&query=a")
