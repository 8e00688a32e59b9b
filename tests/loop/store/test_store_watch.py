"""Somebody who writes in a loop's directory is caught, and what was recorded is put back byte by byte."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from store_kit import AT, end, new_store, put, record

from jumar.errors import StoreDamagedError
from jumar.loop.settings import GuardRules
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.tamper_check import StoreWatch
from jumar.loop.store.verify import verify
from jumar.loop.workspace.guard import Guard

RECORDED = ("attempts/*.json", "iterations/*/*.json", "decisions/*.json", "loop.json")


@pytest.fixture
def store(fresh_place: Path) -> LoopStore:
    work = fresh_place / "work"
    put(work, {"a.txt": b"one"})
    made = new_store("loops/x", work)
    for number in (1, 2, 3):
        attempt = made.begin_attempt(number, number - 1, f"nonce{number}", AT)
        made.end_attempt(attempt.start.number, end())
        record(made, number, ("a.txt",), work)
    made.add_decision("accept", reason="r", by="somebody", at=AT, data={"config": {}})
    return made


def content(store: LoopStore) -> dict[str, bytes]:
    root = store.paths.directory
    return {str(path.relative_to(root)): path.read_bytes() for pattern in RECORDED for path in root.glob(pattern)}


def raise_the_score(root: Path) -> None:
    path = root / "iterations/iteration-002/metrics.json"
    path.write_text(path.read_text().replace('"quality_score": ', '"quality_score": 9'))


def rewrite_unseen(root: Path) -> None:
    """The same size, and the old time stamps set again."""
    path = root / "iterations/iteration-001/metrics.json"
    status = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_by_a_link(root: Path) -> None:
    path = root / "attempts/000001.end.json"
    path.unlink()
    path.symlink_to("/etc/hostname")


def plant_an_iteration(root: Path) -> None:
    shutil.copytree(root / "iterations/iteration-003", root / "iterations/iteration-099")


WAYS: dict[str, tuple[Callable[[Path], object], str]] = {
    "raises an earlier score": (raise_the_score, "iterations/iteration-002/metrics.json was changed"),
    "rewrites and sets the time back": (rewrite_unseen, "iterations/iteration-001/metrics.json was changed"),
    "deletes a record": (
        lambda root: (root / "iterations/iteration-001/metrics.json").unlink(),
        "iterations/iteration-001/metrics.json was deleted",
    ),
    "deletes attempts": (
        lambda root: [path.unlink() for path in root.glob("attempts/000002.*")],
        "attempts/000002.start.json was deleted",
    ),
    "deletes the directory of attempts": (
        lambda root: shutil.rmtree(root / "attempts"),
        "attempts/000001.start.json was deleted",
    ),
    "puts a link in the place of an end": (replace_by_a_link, "attempts/000001.end.json was deleted"),
    "makes a directory of a decision": (
        lambda root: ((root / "decisions/0001-accept.json").unlink(), (root / "decisions/0001-accept.json").mkdir()),
        "decisions/0001-accept.json was deleted",
    ),
    "plants an iteration": (plant_an_iteration, "iterations/iteration-099 was put there; it lies in quarantine/ now"),
    "plants a snapshot to be scored": (
        lambda root: shutil.copytree(root / "iterations/iteration-003", root / "pending/iteration-004"),
        "pending/iteration-004 was put there; it lies in quarantine/ now",
    ),
    "plants a decision": (
        lambda root: (root / "decisions/0002-override.json").write_text("{}"),
        "decisions/0002-override.json was put there; it lies in quarantine/ now",
    ),
    "changes the configuration": (lambda root: (root / "loop.json").write_text("{}"), "loop.json was changed"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_recorded_is_put_back(store: LoopStore, way: str) -> None:
    before = content(store)
    watch = StoreWatch(store)
    watch.arm()
    act, expected = WAYS[way]

    act(store.paths.directory)
    damage = watch.look()

    assert expected in [str(item) for item in damage]
    assert all(item.mended for item in damage)
    assert content(store) == before
    assert verify(LoopStore.open(store.paths.directory)).problems == ()
    assert watch.look() == ()
    print(f"a generator that {way}: caught, put back")


def test_touching_and_giving_modes_is_no_change(store: LoopStore) -> None:
    watch = StoreWatch(store)
    watch.arm()
    for path in store.paths.directory.rglob("*.json"):
        path.chmod(0o600)
        os.utime(path)

    assert watch.look(everything=True) == ()


def test_what_the_store_itself_writes_meanwhile_is_expected(store: LoopStore, fresh_place: Path) -> None:
    watch = StoreWatch(store)
    first = store.begin_attempt(4, 3, "nonce4", AT)
    watch.arm()
    second = store.begin_attempt(5, 3, "nonce5", AT)  # of a candidate beside it
    store.end_attempt(second.start.number, end())
    record(store, 5, ("a.txt",), fresh_place / "work")

    assert watch.look() == ()
    store.end_attempt(first.start.number, end())
    watch.arm()
    assert watch.look(everything=True) == ()


def test_a_lost_snapshot_is_told_and_its_record_stays(store: LoopStore) -> None:
    watch = StoreWatch(store)
    watch.arm()
    shutil.rmtree(store.paths.iteration(2))

    found = {str(item): item.mended for item in watch.look()}

    assert found["iterations/iteration-002/artifacts was deleted and could not be put back"] is False
    assert store.record(2).iteration_number == 2


def test_a_store_that_is_gone_is_an_error_with_the_way_out(store: LoopStore) -> None:
    watch = StoreWatch(store)
    watch.arm()
    shutil.rmtree(store.paths.directory)

    with pytest.raises(StoreDamagedError, match=r"was deleted while the loop ran.*git clean -x -e \.jumar"):
        watch.look()


def test_a_record_laid_beside_a_pending_snapshot_is_not_believed(store: LoopStore, fresh_place: Path) -> None:
    pending = store.stage(
        4, source=fresh_place / "work", paths=("a.txt",), nonce="n", attempt=None, stage={}, logs=None, quota=None
    )
    watch = StoreWatch(store)
    watch.arm()
    (pending.directory / "metrics.json").write_text("{}")
    (pending.directory / "stage.json").write_text("{}")

    found = [str(item) for item in watch.look()]

    assert found == [
        "pending/iteration-004/metrics.json was put there; it lies in quarantine/ now",
        "pending/iteration-004/stage.json was changed",
    ]
    assert json.loads((pending.directory / "stage.json").read_text())["nonce"] == "n"


def test_an_old_record_is_looked_at_in_its_turn_and_at_the_end(store: LoopStore, fresh_place: Path) -> None:
    for number in range(4, 160):
        record(store, number, ("a.txt",), fresh_place / "work")
    watch = StoreWatch(store)
    for _ in range(20):  # the older ones are taken in by turns
        watch.arm()
    path = store.paths.iteration(20) / "metrics.json"
    time.sleep(0.01)
    path.write_text("{}")

    assert [str(item) for item in watch.look(everything=True)] == ["iterations/iteration-020/metrics.json was changed"]


@pytest.mark.parametrize("count", [100, 101, 400])
def test_very_many_names_are_moved_away_together(store: LoopStore, count: int) -> None:
    watch = StoreWatch(store)
    watch.arm()
    names = [f"{number:06d}.end.json" for number in range(100, 99 + count)]
    for name in names:
        (store.paths.attempts / name).write_text(name)
    (store.paths.attempts / "folder").mkdir(mode=0)
    before = store.last_attempt()

    found = list(watch.look())

    place = store.paths.directory / "quarantine"
    if count > 100:
        (place,) = place.iterdir()
        assert [f"attempts/ was given {count} names; they lie in quarantine/0001-attempts now"] == [str(item) for item in found]
    assert count == len(found) if count == 100 else len(found) == 1
    assert count == len(list(place.iterdir()))
    assert before == store.last_attempt()
    assert all(item.mended for item in found)


@pytest.mark.parametrize("under_way", [(4,), (4, 5, 6)])
def test_what_is_found_while_several_are_under_way_is_held_against_each_and_says_so(
    store: LoopStore, under_way: tuple[int, ...]
) -> None:
    guard = Guard(store, GuardRules())
    with store.lock():
        for number in under_way:
            guard.before_generate(number, store.paths.scratch / str(number))
        raise_the_score(store.paths.directory)
        found = [guard.after_generate(number) for number in under_way]
    start = "the store was written by somebody else: iterations/iteration-002/metrics.json was changed (put back)"
    shared = "; nobody can tell which of the iterations 4, 5 and 6 did it, so it is held against each that was under way"
    expected = start + (shared if len(under_way) > 1 else "")
    assert [[expected]] * len(under_way) == [[finding.message for finding in each if finding.fails] for each in found]


def test_a_running_attempt_is_looked_at_each_time_however_many_began_after_it(store: LoopStore) -> None:
    watch = StoreWatch(store)
    with store.lock():
        watch.arm()
        for number in range(4, 24):
            store.begin_attempt(number, 3, f"nonce{number}", AT)
        watch.arm()
        path = store.paths.attempt_start(4)
        before = path.read_bytes()
        path.write_bytes(before.replace(b"nonce4", b"nonce5"))
        damage = watch.look()
    assert [("attempts/000004.start.json", True)] == [(one.path, one.mended) for one in damage]
    assert before == path.read_bytes()


@pytest.mark.parametrize("copied", [True, False])
def test_loops_in_the_other_place_of_the_root_are_moved_away(store: LoopStore, fresh_place: Path, *, copied: bool) -> None:
    other = fresh_place / "node_modules/loops"
    watch = StoreWatch(store)
    with store.lock():
        watch.arm()
        if copied:
            shutil.copytree(fresh_place / "loops", other)
        else:
            put(other / "sdk", {"index.js": b""})  # somebody else's package of that name
        assert len(watch.look()) == copied
        assert other.exists() is not copied
        watch.arm()
        assert watch.look() == ()
    assert (fresh_place / "quarantine/0001-loops/x/loop.json").exists() is copied


def test_a_link_for_the_logs_of_the_loop_is_moved_away(store: LoopStore, fresh_place: Path) -> None:
    watch = StoreWatch(store)
    with store.lock():
        watch.arm()
        (store.paths.directory / "logs").symlink_to(fresh_place / "work")
        assert [damage.path for damage in watch.look()] == ["logs"]
    assert not os.path.lexists(store.paths.directory / "logs")
