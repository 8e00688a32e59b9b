"""Cleaning up snapshots: what goes, what stays and why, and what a crash leaves."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from decide_kit import AT, BY, RULES, File, Link, new_loop, read_tree, record, write_tree
from dying import Killed, Way, changing_calls, dying, not_waiting

from jumar.errors import JumarError, NotFoundError, StoreDamagedError, UsageError
from jumar.loop.decisions.apply import apply, undo
from jumar.loop.decisions.cleanup import cleanup, plan_cleanup
from jumar.loop.decisions.plan import plan_apply
from jumar.loop.decisions.select import override
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.model import SelectionCriteria

SCORES = {0: 40.0, 1: 50.0, 2: 85.0, 3: 60.0, 4: 70.0, 5: 71.0, 6: 90.0, 7: 89.0}
CRITERIA = SelectionCriteria()


def tree(number: int) -> dict[str, File]:
    """One file that changes, one that never does."""
    return {"text": File(b"pass %d" % number), "same/for/all": File(b"x" * 1000, 0o755)}


@pytest.fixture
def store(tmp_path: Path) -> LoopStore:
    store = new_loop(tmp_path / "work")
    for number, score in SCORES.items():
        record(store, number, tree(number), score=score)
    return store


@pytest.fixture(autouse=True)
def quick_disk():
    with not_waiting():
        yield


def contents(found: Mapping[str, File | Link]) -> dict[str, bytes]:
    return {path: item.content for path, item in found.items() if isinstance(item, File)}


def with_snapshots(store: LoopStore) -> list[int]:
    return [number for number in store.iteration_numbers() if store.has_snapshot(number)]


def test_what_decisions_rest_on_stays_and_the_rest_goes(store):
    result = cleanup(store, keep=0, by=BY, at=AT)
    assert (1, 3, 4, 5) == result.removed
    assert {6: "best", 2: "best before a degradation", 7: "last", 0: "start"} == dict(result.kept)
    assert [0, 2, 6, 7] == with_snapshots(store)
    assert list(SCORES) == [record.iteration_number for record in store.records()]
    decision = store.decisions()[-1]
    assert ("cleanup", [1, 3, 4, 5], BY, AT) == (decision.kind, decision.data["iterations"], decision.by, decision.at)
    assert decision == result.decision


def test_keep_counts_the_best(store):
    assert (1, 3, 4) == cleanup(store, keep=4, by=BY, at=AT).removed
    assert [0, 2, 5, 6, 7] == with_snapshots(store)


def test_named_iterations_stay(store):
    result = cleanup(store, keep_iterations=(3,), by=BY, at=AT)
    assert (1, 4, 5) == result.removed
    assert "asked for" == result.kept[3]


def test_the_one_that_stands_stays(store):
    override(store, 1, reason="simpler", by=BY, at=AT, criteria=CRITERIA)
    result = cleanup(store, keep=0, by=BY, at=AT)
    assert "selected" == result.kept[1]
    assert store.has_snapshot(1)


def test_what_was_applied_stays_until_it_is_taken_back(store, tmp_path):
    work = write_tree(tmp_path / "work", {})
    apply(store, plan_apply(store, 3, work, RULES), by=BY, at=AT)
    assert "applied, may be taken back" == cleanup(store, keep=0, by=BY, at=AT).kept[3]
    undo(store, by=BY, at=AT)
    assert (3,) == cleanup(store, keep=0, by=BY, at=AT).removed


def test_what_the_next_step_would_go_on_from_stays(store):
    with store.lock():
        store.begin_attempt(8, 4, "nonce", AT)
    assert "the last step started from it" == plan_cleanup(store, keep=0).kept[4]


def test_the_latest_of_the_best_stays_because_the_next_iteration_starts_from_it(store):
    for number, score in ((8, 90.0), (9, 30.0)):
        record(store, number, tree(number), score=score)
    found = cleanup(store, keep=0, by=BY, at=AT)
    assert {6: "best", 8: "the next iteration starts from it"} == {key: why for key, why in found.kept.items() if key in (6, 8)}
    assert store.has_snapshot(8)


def test_a_plan_deletes_nothing(store):
    plan = plan_cleanup(store, keep=0)
    assert ((1, 3, 4, 5), 0, None) == (plan.removed, plan.freed, plan.decision)
    assert list(SCORES) == with_snapshots(store)
    assert () == store.decisions()
    kept = [(6, "best"), (2, "best before a degradation"), (7, "last"), (0, "start")]
    assert sorted((one["iteration"], one["why"]) for one in plan.to_json()["kept"]) == sorted(kept)


def test_a_second_cleanup_has_nothing_to_do_and_decides_nothing(store):
    cleanup(store, keep=0, by=BY, at=AT)
    again = cleanup(store, keep=0, by=BY, at=AT)
    assert ((), 0, None) == (again.removed, again.freed, again.decision)
    assert 1 == len(store.decisions())


def test_deleting_one_snapshot_does_not_harm_the_others(store, tmp_path):
    sizes = {
        number: sum(path.stat().st_size for path in store.artifacts(number).rglob("*") if path.is_file()) for number in SCORES
    }
    result = cleanup(store, keep=0, by=BY, at=AT)
    assert sum(sizes[number] for number in result.removed) == result.freed
    later = LoopStore.open(store.paths.directory)
    for number in (0, 2, 6, 7):
        work = tmp_path / f"out-{number}"
        work.mkdir()
        apply(later, plan_apply(later, number, work, RULES), by=BY, at=AT)
        assert tree(number) == read_tree(work)


def test_manifests_that_refer_to_a_cleaned_up_one_are_still_whole(tmp_path):
    store = new_loop(tmp_path / "work")
    many = {f"d{index % 10}/f{index}": File(b"%d" % index) for index in range(300)}
    for number, score in enumerate((10.0, 20.0, 30.0, 40.0)):
        record(store, number, {**many, "text": File(b"pass %d" % number)}, score=score)
    assert store.manifest(3).base is not None, "this test needs manifests that are differences"
    assert (1, 2) == cleanup(store, keep=0, by=BY, at=AT).removed
    later = LoopStore.open(store.paths.directory)
    assert 301 == len(later.record(2).artifacts_detail)
    work = tmp_path / "out"
    work.mkdir()
    apply(later, plan_apply(later, 3, work, RULES), by=BY, at=AT)
    assert {**many, "text": File(b"pass 3")} == read_tree(work)
    record(later, 4, {**many, "text": File(b"pass 4")}, score=50)
    assert b"pass 4" == b"".join(later.content(4).chunks(later.manifest(4).entries["text"]))


def test_wrong_requests_are_refused(store):
    with pytest.raises(UsageError, match="--keep takes"):
        cleanup(store, keep=-1, by=BY, at=AT)
    with pytest.raises(NotFoundError, match="there is no iteration 12"):
        cleanup(store, keep_iterations=(12,), by=BY, at=AT)
    cleanup(store, keep=0, by=BY, at=AT)
    with pytest.raises(UsageError, match="snapshot of iteration 1 was cleaned up"):
        plan_apply(store, 1, store.paths.directory, RULES)


def test_an_empty_loop_has_nothing_to_clean_up(tmp_path):
    result = cleanup(new_loop(tmp_path / "work"), keep=0, by=BY, at=AT)
    assert ((), {}, None) == (result.removed, dict(result.kept), result.decision)


def test_a_damaged_decision_is_named(store):
    store.add_decision("cleanup", by=BY, at=AT, data={"iterations": ["3"]})
    with pytest.raises(StoreDamagedError, match="'iterations' should be a list of whole numbers"):
        cleanup(store, keep=0, by=BY, at=AT)


@pytest.mark.parametrize("way", ["killed before", "killed after", "error", "answer lost"])
def test_a_cleanup_stopped_anywhere_is_completed_by_the_next(store, tmp_path, way: Way):
    source, copy = store.paths.directory.parent.parent, tmp_path / "copy"

    def fresh() -> LoopStore:
        if copy.exists():
            shutil.rmtree(copy)
        shutil.copytree(source, copy)
        return LoopStore.open(copy / "loops" / "polish")

    first = fresh()
    total = changing_calls(lambda: cleanup(first, keep=0, by=BY, at=AT))
    halves = 0
    for at in range(1, total + 1):
        store = fresh()
        with dying(at, way), suppress(Killed, JumarError):
            cleanup(store, keep=0, by=BY, at=AT)
        later = LoopStore.open(store.paths.directory)
        for number in SCORES:  # a snapshot is whole or not there, at any time
            if later.has_snapshot(number):
                assert contents(tree(number)) == contents(read_tree(later.artifacts(number)))
        assert verify(later).problems == ()
        halves += any(later.paths.iterations.rglob(".trash-*"))
        cleanup(later, keep=0, by=BY, at=AT)
        assert [0, 2, 6, 7] == with_snapshots(later)
        assert [] == list(later.paths.iterations.rglob(".trash-*"))
        assert verify(LoopStore.open(later.paths.directory)).problems == ()
        assert list(SCORES) == [one.iteration_number for one in later.records()]
    print(f"{way}: stopped at {total} calls, {halves} times with something half deleted")
    assert halves > 5


def test_an_interrupted_cleanup_does_not_delete_what_stands_by_now(store):
    with dying(changing_calls_until_decided(store), "killed before"), pytest.raises(Killed):
        cleanup(store, keep=0, by=BY, at=AT)
    later = LoopStore.open(store.paths.directory)
    assert "cleanup" == later.decisions()[-1].kind
    assert later.has_snapshot(3)
    override(later, 3, reason="simpler", by=BY, at=AT, criteria=CRITERIA)
    cleanup(later, keep=0, by=BY, at=AT)
    assert [0, 2, 3, 6, 7] == with_snapshots(later)


def changing_calls_until_decided(store: LoopStore) -> int:
    """Return the number of the first call after a decision was written."""
    return changing_calls(lambda: store.add_decision("end", by=BY, at=AT)) + 1
