"""Repair ends in a store that verify accepts, keeps what was whole, and can be cut off anywhere."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from damage import DAMAGE, READING, edit, rewrite, sample
from dying import Killed, changing_calls, dying, not_waiting
from store_kit import AT, end, memory_place, put, stored_tree, unmarked

from jumar.loop.store.layout import open_to_owner
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.repair import plan_repair, repair
from jumar.loop.store.verify import verify

CASES = {case[0]: case[1] for case in DAMAGE if case[0] not in {"identity", "newer"}}
SETS = "is moved to quarantine/"
SNAPSHOT = "is moved to quarantine/ with its snapshot; the record stays, and nothing starts from it any more"
ANEW = "is written anew, so that it is charged"
ON_RECORD = "is accepted, and on record"

# What becomes of each, where that is more than that the path that was damaged is set aside.
ELSE = {
    **dict.fromkeys(("content", "size", "kind", "target", "no link", "missing", "snapshot"), (SNAPSHOT,)),
    **dict.fromkeys(("renamed",), ("is named iteration-002 again",)),
    **dict.fromkeys(("manifest", "base", "circle"), ("is made anew from metrics.json",)),
    **dict.fromkeys(("start", "attempt gone"), (ANEW,)),
    **dict.fromkeys(("start cut", "attempt number", "two claims"), (SETS, ANEW)),
    **dict.fromkeys(("decision",), (ON_RECORD,)),
    **dict.fromkeys(("decision cut", "exchanged"), (SETS, ON_RECORD)),
    **dict.fromkeys(("decision kind",), ("is named 0001-select.json again",)),
    "iteration a decision names": (SETS, ON_RECORD),  # its reading, then what names it
    # of a tracker nothing can be scored again: the iteration and its reading
    **dict.fromkeys(("metrics", "cut off", "score", "listed", "no attempt", "sealed"), (SETS, SETS, ON_RECORD)),
}


@pytest.fixture
def store(fresh_place: Path) -> LoopStore:
    return sample(fresh_place)


def repaired(directory: Path) -> tuple[str, ...]:
    mendings, left = repair(LoopStore.open(directory), by="me", at=AT)
    assert left == ()
    assert verify(LoopStore.open(directory)).problems == ()
    return tuple(item.does for item in mendings)


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "unmarked"])
@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_damage_is_repaired(store: LoopStore, case: str, *, ours: bool) -> None:
    directory = store.paths.directory if ours else unmarked(store.paths.directory)
    CASES[case](directory)
    before = {path: content for path, content in stored_tree(directory).items() if path != ".lock"}
    planned = plan_repair(LoopStore.open(directory), verify(LoopStore.open(directory)).problems)
    assert before == {path: content for path, content in stored_tree(directory).items() if path != ".lock"}
    did = repaired(directory)
    assert did == ELSE.get(case, (SETS,))
    assert tuple(item.does for item in planned) == did[: len(planned)]
    after = list(stored_tree(directory).values())
    assert [path for path, content in before.items() if content not in after] == []
    assert LoopStore.open(directory).views()
    assert repaired(directory) == ()


def test_what_is_missing_and_accepted_is_a_note_and_new_damage_there_a_problem(store: LoopStore) -> None:
    directory = store.paths.directory
    (directory / "decisions/0001-select.json").unlink()
    repaired(directory)
    (note,) = verify(store).notes
    assert note == (
        "decisions/0001-*.json: is missing: decisions are numbered without gaps; accepted by the repair of decision 3"
    )
    shutil.rmtree(directory / "iterations/iteration-002/artifacts")
    assert len(verify(store).problems) == 1


def test_all_that_is_damaged_at_once_is_repaired(store: LoopStore) -> None:
    directory = store.paths.directory
    for name in ("content", "stray", "start cut", "decision cut", "decision name", "undo", "reading", "pending name", "target"):
        CASES[name](directory)
    did = repaired(directory)
    assert len(did) == 11
    again = LoopStore.open(directory)
    assert again.iteration_numbers() == (1, 2)
    assert [view.score for view in again.views()] == [None, None]  # their snapshots are gone: nothing starts from them
    assert [record.quality_score for record in again.records()] == [70.0, 70.0]
    assert [attempt.end is None for attempt in again.attempts()] == [False, False]


def test_an_end_whose_start_was_lost_keeps_its_cost(fresh_place: Path) -> None:
    store = sample(fresh_place)
    store.begin_attempt(3, 2, "n3", AT, purpose="score", reserve_cost_usd=0.25)
    store.end_attempt(3, end(seconds=7.0))
    start = store.paths.attempt_start(1)
    start.unlink()
    repaired(store.paths.directory)
    attempt = LoopStore.open(store.paths.directory).attempts()[0]
    assert (attempt.start.iteration, attempt.start.nonce, attempt.start.purpose) == (1, "n1", "generate")
    assert (attempt.start.reserve_cost_usd, attempt.start.started_at) == (0.25, AT)
    assert attempt.end == store.attempts()[0].end


def test_copies_under_a_number_that_is_taken_are_set_aside_and_not_the_original(store: LoopStore) -> None:
    directory = store.paths.directory
    shutil.copy(directory / "decisions/0001-select.json", directory / "decisions/0001-apply.json")  # comes first
    shutil.copy(directory / READING, directory / "readings/0001-holdout-iteration-001.json")
    assert repaired(directory) == (SETS, SETS)
    assert sorted(path.name for path in directory.glob("*/0001-*.json") if path.parent.name != "quarantine") == [
        "0001-rescore-iteration-001.json",
        "0001-select.json",
    ]


def test_an_apply_that_is_set_aside_takes_its_copy_along(store: LoopStore) -> None:
    directory = store.paths.directory
    rewrite(directory / "decisions/0002-apply.json", b"{}")
    assert repaired(directory) == (SETS, SETS)  # else the next apply, of the same number, took the copy for its own
    assert not (directory / "undo/0002").exists()


def test_an_undo_that_needs_a_damaged_copy_ends(store: LoopStore) -> None:
    directory = store.paths.directory
    data = {"apply": 2, "iteration": 1, "workdir": ".", "set_aside": None}
    store.add_decision("apply-end", data={"apply": 2})
    undo = store.add_decision("undo", data=data)
    CASES["undo"](directory)
    assert repaired(directory) == (SETS, "ends undone")
    last = LoopStore.open(directory).decisions()[-1]
    assert (last.kind, last.data) == ("undo-end", {"undo": undo.number, "apply": 2})


def test_a_file_where_a_directory_belongs_is_set_aside(store: LoopStore) -> None:
    directory = store.paths.directory
    shutil.rmtree(directory / "readings")
    put(directory, {"readings": b"none"})
    assert [problem.what for problem in verify(store).problems] == ["cannot be listed: Not a directory"]
    repaired(directory)
    assert (directory / "quarantine/0001-readings").read_bytes() == b"none"


def test_what_a_newer_jumar_wrote_is_left_alone(store: LoopStore) -> None:
    directory = unmarked(store.paths.directory)
    edit(directory / "decisions/0001-select.json", format=7)
    problems = verify(store).problems
    assert plan_repair(store, [problem for problem in problems if "newer jumar" in problem.what]) == ()


@pytest.mark.parametrize("case", CASES)
def test_killed_anywhere_a_second_repair_completes_it(case: str) -> None:
    with memory_place() as place, not_waiting():

        def damaged(name: str) -> Path:
            store = sample(place / name)
            CASES[case](store.paths.directory)
            return store.paths.directory

        (place / "sound").mkdir()
        os.chdir(place / "sound")
        expected = damaged("sound")
        calls = changing_calls(lambda: repair(LoopStore.open(expected), by="me", at=AT))
        for at in range(1, calls + 1):
            (place / f"{at}").mkdir()
            os.chdir(place / f"{at}")
            directory = damaged(f"{at}")
            with dying(at, "killed before"), pytest.raises(Killed):
                repair(LoopStore.open(directory), by="me", at=AT)
            repaired(directory)
            os.chdir(place)
            shutil.rmtree(place / f"{at}")


def test_folders_that_were_closed_are_opened_without_a_look_at_every_file(store: LoopStore) -> None:
    folder, file = store.paths.iterations, store.paths.attempt_start(1)
    for each in (folder, file):
        each.chmod(0)
    open_to_owner(store.paths, folders_only=True)
    assert [0o700, 0] == [each.stat().st_mode & 0o777 for each in (folder, file)]
    open_to_owner(store.paths)
    assert 0o600 == file.stat().st_mode & 0o777
    content = store.paths.objects / ("ab" * 32)
    content.parent.mkdir()
    content.touch(0)
    open_to_owner(store.paths, snapshots=True)
    assert content.stat().st_mode & 0o400
