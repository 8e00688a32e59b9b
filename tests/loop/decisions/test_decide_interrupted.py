"""Apply and undo, stopped at every single call that changes the disk: afterwards there is a way to one of the two states."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from decide_kit import AT, BY, RULES, File, Link, directories, new_loop, read_tree, record, write_tree
from dying import Killed, Way, changing_calls, dying, not_waiting

from jumar.errors import JumarError
from jumar.loop.decisions.apply import apply, finish, undo
from jumar.loop.decisions.plan import plan_apply
from jumar.loop.store.in_force import unfinished
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify

BEFORE = {
    "keep.txt": File(b"as it is\n"),
    "run.sh": File(b"#!/bin/sh\n", 0o755),
    "gone/only": File(b"in its directory", 0o600),
    "swap": File(b"a file that becomes a directory"),
    "dir/inner": File(b"a directory that becomes a file"),
    "link": Link("keep.txt"),
}
AFTER = {
    "keep.txt": File(b"as it is\n"),
    "run.sh": File(b"#!/bin/sh\nexit\n", 0o700),
    "swap/below": File(b"now a directory"),
    "dir": File(b"now a file"),
    "link": Link("run.sh"),
    "new/deep/file": File(b"new"),
}


@pytest.fixture(autouse=True)
def quick_disk():
    with not_waiting():
        yield


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory in state BEFORE, and a loop whose iteration 1 is AFTER."""
    work = tmp_path_factory.mktemp("scene") / "work"
    store = new_loop(work)
    record(store, 0, BEFORE)
    record(store, 1, AFTER, score=80)
    write_tree(work, BEFORE)
    (work / "gone").chmod(0o700)
    return work


class Stage:
    """Fresh copies of a scene, one for every death."""

    def __init__(self, scene: Path, place: Path) -> None:
        self._scene, self.work = scene, place / "copy"

    def reset(self) -> LoopStore:
        if self.work.exists():
            shutil.rmtree(self.work)
        shutil.copytree(self._scene, self.work, symlinks=True)
        return self.open()

    def open(self) -> LoopStore:
        return LoopStore.open(self.work / ".jumar" / "loops" / "polish")

    def state(self) -> tuple[object, object]:
        return read_tree(self.work), directories(self.work)


def do_apply(store: LoopStore) -> None:
    assert store.workdir is not None
    apply(store, plan_apply(store, 1, store.workdir, RULES), by=BY, at=AT)


def do_undo(store: LoopStore) -> None:
    undo(store, by=BY, at=AT)


def do_finish(store: LoopStore) -> None:
    finish(store, by=BY, at=AT)


# Who goes on after a death may do either; after an error that was seen, what is left on disk is the same.
CASES: list[tuple[Way, Callable[[LoopStore], None]]] = [
    ("killed before", do_finish),
    ("killed before", do_undo),
    ("killed after", do_finish),
    ("killed after", do_undo),
    ("error", do_finish),
    ("answer lost", do_undo),
]


def sweep(stage: Stage, operation: Callable[[LoopStore], None], way: Way, then: Callable[[LoopStore], None]) -> list[object]:
    """Stop ``operation`` at each of its calls, do ``then`` when it is unfinished; return the different states that came out."""
    states: list[object] = []
    store = stage.reset()
    total = changing_calls(lambda: operation(store))
    outcomes = {"whole": 0, "unfinished": 0}
    for at in range(1, total + 1):
        store = stage.reset()
        with dying(at, way), suppress(Killed, JumarError):
            operation(store)
        store = stage.open()  # the process that comes after
        left = unfinished(store)
        outcomes["whole" if left is None else "unfinished"] += 1
        assert verify(store).problems == ()
        if left is not None:
            then(store)
        assert unfinished(stage.open()) is None
        assert verify(stage.open()).problems == ()
        if stage.state() not in states:
            states.append(stage.state())
    print(f"{operation.__name__}, {way}, then {then.__name__}: {total} calls, {outcomes}")
    assert outcomes["unfinished"] > 5
    return states


@pytest.mark.parametrize(("way", "then"), CASES)
def test_an_apply_stopped_anywhere_ends_in_one_of_the_two_states(scene, tmp_path, way, then):
    stage = Stage(scene, tmp_path)
    store = stage.reset()
    before = stage.state()
    do_apply(store)
    after = stage.state()
    assert AFTER == after[0]
    states = sweep(stage, do_apply, way, then)
    assert all(state in (before, after) for state in states)
    assert (before if then is do_undo else after) in states


@pytest.mark.parametrize(("way", "then"), CASES)
def test_an_undo_stopped_anywhere_ends_in_one_of_the_two_states(scene, tmp_path, way, then):
    stage = Stage(scene, tmp_path)
    store = stage.reset()
    before = stage.state()
    do_apply(store)
    after = stage.state()
    shutil.copytree(stage.work, tmp_path / "applied", symlinks=True)
    states = sweep(Stage(tmp_path / "applied", tmp_path), do_undo, way, then)
    assert all(state in (before, after) for state in states)
    assert before in states


def die_in_the_middle(stage: Stage) -> None:
    """Kill an apply at the last call that leaves the tree in neither of its two states."""
    store = stage.reset()
    before = stage.state()
    total = changing_calls(lambda: do_apply(store))
    after = stage.state()
    for at in range(total, 0, -1):
        store = stage.reset()
        with dying(at, "killed before"), contextlib.suppress(Killed):  # a run may make a call fewer than the one counted
            do_apply(store)
        if stage.state() not in (before, after):
            return
    pytest.fail("no call leaves the tree between the two states")


@pytest.mark.parametrize("then", [do_finish, do_undo])
def test_a_recovery_may_itself_be_killed_anywhere(scene, tmp_path, then):
    stage = Stage(scene, tmp_path)
    store = stage.reset()
    before = stage.state()
    do_apply(store)
    after = stage.state()
    die_in_the_middle(stage)
    shutil.copytree(stage.work, tmp_path / "half", symlinks=True)
    states = sweep(Stage(tmp_path / "half", tmp_path), then, "killed before", then)
    assert states == [after if then is do_finish else before]


def test_what_was_laid_out_for_an_apply_that_died_is_gone_after_it_is_finished(scene, tmp_path):
    stage = Stage(scene, tmp_path)
    die_in_the_middle(stage)
    store = stage.open()
    assert [path.name for path in store.paths.scratch.iterdir()] == ["apply-0001"]
    do_finish(store)
    assert list(store.paths.scratch.iterdir()) == []
