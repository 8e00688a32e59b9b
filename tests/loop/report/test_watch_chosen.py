"""What a watcher is told of the best: the running best whatever the order of recording, and once it has ended what stands."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path

import pytest
from commands import call, call_json
from finished import finished_loop
from store_kit import AT, new_store, put, record

from jumar.loop.decisions.select import override
from jumar.loop.ranking.choose import running_best
from jumar.loop.report.frame import frame_lines
from jumar.loop.report.observer import LoopObserver
from jumar.loop.report.spending import spent_tokens
from jumar.loop.report.status import LoopStatus
from jumar.loop.store.loop_store import LoopStore
from jumar.model import SelectionCriteria
from jumar.model.attempts import Spend
from jumar.model.budget.pricing import Budget

SCORES = {1: 70.0, 2: 60.0, 3: 90.0, 4: None}


def store_of(here: Path) -> LoopStore:
    return LoopStore.open(here / ".jumar/loops/t")


@pytest.mark.parametrize("order", list(permutations(SCORES)), ids=str)
def test_the_best_is_right_in_whatever_order_candidates_are_recorded(fresh_place: Path, order: tuple[int, ...]) -> None:
    store = new_store(fresh_place / "loop")
    put(fresh_place / "work", {"a.txt": b"a"})
    observer = LoopObserver(fresh_place / "loop")
    for done, number in enumerate(order, start=1):
        record(store, number, ("a.txt",), fresh_place / "work", quality=SCORES[number])
        best = observer.look().best
        expected = running_best(store.views())
        assert done == len(store.views())
        assert (expected and expected.number) == (best and best.iteration_number)
    assert 3 == observer.look().to_json()["best"]["iteration"]


def test_a_finished_loop_shows_what_stands_an_override_included(fresh_place: Path) -> None:
    here = finished_loop(fresh_place)
    observer = LoopObserver(here / ".jumar/loops/t")
    status = observer.look().to_json()
    assert (2, 90.0, 1, None) == tuple(status["chosen"][key] for key in ("iteration", "quality_score", "readings", "by"))
    frame = call("watch", "--once", check=0).out
    assert "selected  ★ 90 (iteration 2)  +40 to the start" in frame
    assert "highest" not in frame
    override(store_of(here), 4, reason="keeps the API stable", by="kim", at=AT, criteria=SelectionCriteria(threshold=None))
    status = observer.look().to_json()
    assert (2, 4, 65.0, "kim") == (
        status["best"]["iteration"],
        *(status["chosen"][key] for key in ("iteration", "quality_score", "by")),
    )
    shown = call("watch", "--once", check=0).out
    assert "selected  ★ 65 (iteration 4, selected by kim)  +15 to the start" in shown
    assert "highest   ◆ 90 (iteration 2)" in shown
    assert "★ selected" in next(line for line in shown.splitlines() if line.strip().startswith("4 "))
    assert "selected  65 (it 4, selected by kim)" in call("status", "t", check=0).out
    assert re.search(r"90 \(it 2\) +4 ", call("status", check=0).out)


def test_a_selection_of_an_earlier_state_is_not_shown_as_the_choice(fresh_place: Path) -> None:
    here = finished_loop(fresh_place)
    store = store_of(here)
    put(fresh_place / "work", {"a.txt": b"a"})
    record(store, 5, ("a.txt",), fresh_place / "work", quality=95.0)
    assert call_json("status", "t")["chosen"] is None  # and nothing verified the higher score
    assert "best      ◆ 90 (iteration 2)" in call("watch", "--once", check=0).out


def test_a_long_state_is_told_whole() -> None:
    view = LoopStatus(loop_id="night", state="finished", detail="max cost: " + "word " * 30)
    lines = ["".join(text for text, _ in line) for line in frame_lines(view, width=80)]
    assert 30 == sum(line.count("word") for line in lines)
    assert 80 >= max(len(line) for line in lines)


@pytest.mark.parametrize(
    ("spend", "budget", "told"),
    [
        (Spend(tokens=1500, known_tokens=1500), Budget(), "1,500"),
        (Spend(tokens=1500, known_tokens=1500), Budget(max_tokens=2000), "1,500 of 2,000"),
        (
            Spend(tokens=None, known_tokens=1500, assumed_tokens=500, unknown_tokens=1),
            Budget(),
            "2,000 (500 estimated, 1 not reported)",
        ),
        (Spend(tokens=None, unknown_tokens=3), Budget(max_tokens=2000), "not reported, limit 2,000"),
        (Spend(), Budget(), "0"),
    ],
)
def test_tokens_are_told_with_what_is_assumed_and_unknown(spend: Spend, budget: Budget, told: str) -> None:
    assert told == spent_tokens(spend, budget)
