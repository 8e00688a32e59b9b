"""What was not written by jumar is set aside, whatever else lies in the way of that, and however often it is cut off."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import edit
from dying import Killed, changing_calls, dying, not_waiting
from store_kit import AT, end, memory_place, put, score, stored_tree

from jumar.errors import ForgedError
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.repair import quarantined, repair, set_aside
from jumar.loop.store.verify import verify


def sample(place: Path) -> Path:
    """A loop of two iterations whose first one has the record of another; nothing lies where it waited."""
    place.mkdir(exist_ok=True)
    os.chdir(place)
    put(place / "work", {"a.txt": b"one"})
    store = LoopStore.create(place / "x", "x", {"run": {}}, workdir=place / "work", created_at=AT)
    for number in (1, 2):
        store.begin_attempt(number, number - 1, f"n{number}", AT)
        store.end_attempt(number, end())
        pending = store.stage(number, source=place / "work", paths=["."], nonce=f"n{number}", attempt=number, stage={}, logs=None)
        store.commit(pending, score(number))
        put(place / "work", {"a.txt": b"changed"})
    return store.paths.directory


def forge(directory: Path) -> None:
    edit(directory / "iterations/iteration-001/metrics.json", quality_score=99.0)


def of_another(waits: Path) -> None:
    shutil.copytree(waits.parents[1] / "iterations/iteration-002", waits)


def its_own(waits: Path) -> None:
    shutil.copytree(waits.parents[1] / "iterations/iteration-001", waits)


def the_snapshot(waits: Path) -> None:
    its_own(waits)
    (waits / "metrics.json").unlink()


IN_THE_WAY: dict[str, Callable[[Path], object]] = {
    "nothing": lambda waits: None,
    "an empty directory": Path.mkdir,
    "a file": lambda waits: waits.write_text(""),
    "a link": lambda waits: waits.symlink_to(waits.parents[1]),
    "a link to nothing": lambda waits: waits.symlink_to("nowhere"),
    "the snapshot": the_snapshot,
    "the iteration": its_own,
    "another iteration": of_another,
}


def settled(directory: Path) -> None:
    """Go on as a run does: what cannot be believed is set aside until all that is left can be."""
    for _ in range(9):
        try:
            store = LoopStore.open(directory)
            store.views()
            with store.lock():
                quarantined(store)
                return
        except ForgedError as error:
            set_aside(error)
    raise AssertionError("there is no end to it")


def repaired(directory: Path) -> None:
    assert repair(LoopStore.open(directory), by="me", at=AT)[1] == ()


WAYS = {"by a run": settled, "by repair": repaired}


def is_scored_again(directory: Path) -> None:
    store = LoopStore.open(directory)
    assert (store.iteration_numbers(), store.pending_numbers()) == ((2,), (1,))
    waits = store.pending_of(1)
    assert (waits.record, waits.whole, waits.nonce) == (None, True, "n1")
    assert (waits.artifacts / "a.txt").read_bytes() == b"one"
    assert verify(store).problems == ()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lies", IN_THE_WAY)
def test_an_iteration_whose_record_is_forged_is_scored_again_whatever_lies_where_it_waits(
    fresh_place: Path, lies: str, way: str
) -> None:
    directory = sample(fresh_place)
    forge(directory)
    IN_THE_WAY[lies](directory / "pending/iteration-001")
    before = [content for path, content in stored_tree(directory).items() if path != ".lock"]
    WAYS[way](directory)
    is_scored_again(directory)
    after = list(stored_tree(directory).values())
    assert [content for content in before if content not in after] == []


ODD = [
    *itertools.product(("\u00b2", "9" * 20, "999999999"), ("attempts/{}.start.json", "attempts/{}.end.json", "checks/{}")),
    *itertools.product(("\u00b2\u00b2\u00b2", "9" * 200, "003"), ("iterations/iteration-{}", "pending/iteration-{}")),
    *itertools.product(
        ("\u00b2\u00b2\u00b2\u00b2-x", "9999-x", "99999-x", "999999999-x", "n" * 255),
        ("quarantine/{}", "pending/{}", "attempts/{}"),
    ),
    *itertools.product(("\u00b2", "9" * 255, "999999999", "0001"), ("set-aside/{}", "undo/{}", "checks/{}")),
    *itertools.product(("9999-select", "\u00b2-select"), ("decisions/{}.json", "readings/{}.json")),
]
PLANTED = [place.format(name) for name, place in ODD]


@pytest.mark.parametrize("kind", [Path.mkdir, Path.touch, os.mkfifo], ids=["a directory", "a file", "a FIFO"])
@pytest.mark.parametrize("planted", PLANTED, ids=lambda path: path[:40])
def test_a_name_that_nobody_counted_to_stops_nothing(fresh_place: Path, planted: str, kind: Callable[[Path], object]) -> None:
    directory = sample(fresh_place)
    there = directory / planted
    there.parent.mkdir(exist_ok=True)
    kind(there)
    forge(directory)
    settled(directory)
    store = LoopStore.open(directory)
    assert (store.iteration_numbers(), store.pending_numbers()) == ((2,), (1,))
    assert store.last_attempt() == 2
    assert len({store.set_aside(fresh_place / "work", ["a.txt"]) for _ in range(2)}) == 2
    assert len(verify(store).problems) < 9
    repaired(directory)
    assert not os.path.lexists(there) or planted.startswith("quarantine/")
    assert verify(store).problems == ()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lies", ["nothing", "an empty directory", "the iteration"])
def test_cut_off_anywhere_the_next_one_completes_it(lies: str, way: str) -> None:
    with memory_place() as place, not_waiting():

        def damaged(name: str) -> Path:
            directory = sample(place / name)
            forge(directory)
            IN_THE_WAY[lies](directory / "pending/iteration-001")
            return directory

        sound = damaged("sound")
        calls = changing_calls(lambda: WAYS[way](sound))
        assert calls > 3
        for at in range(1, calls + 1):
            directory = damaged(str(at))
            with dying(at, "killed before"), pytest.raises(Killed):
                WAYS[way](directory)
            WAYS[way](directory)
            is_scored_again(directory)
            os.chdir(place)
