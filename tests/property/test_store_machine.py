"""A store that dies, fails and is opened again in any order, against a plain dictionary.

What was acknowledged is there with the right bytes; what was staged is there or was acknowledged; what raised is whole or absent;
and after every fault the loop verifies clean and goes on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from store_kit import AT, WAYS, Disk, Killed, Way, end, kept, kept_tree, put, record, score, stored_tree

from jumar.errors import DuplicateIterationError, StoreWriteError, UsageError
from jumar.loop.snapshots import snapshot
from jumar.loop.snapshots.restore import plan_restore, restore
from jumar.loop.store.collect import collect
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify

if TYPE_CHECKING:
    import pytest

_T = TypeVar("_T")
Tree = dict[str, bytes | str]

PATHS = ("a.txt", "b", "sub/a.txt", "sub/deep/x", "caf\udce9", "-rf", "many/1", "many/2")
LARGE = b"large"
"""Stands for a file of several reads."""
CONTENTS = st.sampled_from([b"", b"one", b"two", b"eno", LARGE]) | st.sampled_from(["a.txt", "/etc", "nowhere"])
FAULTS = st.tuples(
    st.integers(1, 12) | st.integers(1, 60), st.sampled_from(WAYS), st.sampled_from([errno.EIO, errno.ENOSPC, errno.EROFS])
)
COUNTS: Counter[str] = Counter()


class StoreMachine(RuleBasedStateMachine):
    """The model: what was acknowledged, what may have happened, what waits."""

    def __init__(self) -> None:
        super().__init__()
        shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.place = Path(tempfile.mkdtemp(prefix="jumar-machine-", dir=shared))
        self.work = self.place / "work"
        self.work.mkdir()
        self.tree: Tree = {}
        self.modes: dict[str, int] = {}
        self.acknowledged: dict[int, tuple[Tree, float]] = {}
        self.possible: dict[int, list[tuple[Tree, float]]] = {}
        self.staged: dict[int, Tree] = {}
        self.maybe_staged: dict[int, list[Tree]] = {}
        self.attempts = 0
        self.ended: set[int] = set()
        self.decisions: list[str] = []
        self.others: dict[int, Tree] = {}  # of another loop, which shares contents
        COUNTS["stories"] += 1

    @initialize()
    def create(self) -> None:
        self.store = LoopStore.create(self.directory, "loop-001", {}, workdir=self.work, created_at=AT)
        self.other = LoopStore.create(self.directory.with_name("loop-002"), "loop-002", {}, workdir=self.work, created_at=AT)

    def teardown(self) -> None:
        self.check()
        shutil.rmtree(self.place)

    @property
    def directory(self) -> Path:
        return self.place / ".jumar" / "loops" / "loop-001"

    def do(self, fault: tuple[int, Way, int] | None, body: Callable[[], _T]) -> _T | None:
        """Run one operation; None when it was cut off, and then what is on disk is looked at by a new object."""
        COUNTS["operations"] += 1
        if fault is None:
            return body()
        try:
            with Disk(*fault).failing():
                return body()
        except (Killed, StoreWriteError) as error:
            COUNTS["deaths" if isinstance(error, Killed) else "refusals"] += 1
            if isinstance(error, Killed):
                self.store = LoopStore.open(self.directory)
            self.verify_clean()
            return None

    def verify_clean(self) -> None:
        COUNTS["verified"] += 1
        assert verify(self.store).problems == ()
        assert verify(self.other).problems == ()

    @rule(changes=st.dictionaries(st.sampled_from(PATHS), CONTENTS | st.none(), max_size=4), executable=st.booleans())
    def change_tree(self, changes: dict[str, bytes | str | None], executable: bool) -> None:
        for path, content in changes.items():
            if content is None:
                self.tree.pop(path, None)
                self.modes.pop(path, None)
                with contextlib.suppress(FileNotFoundError):
                    (self.work / path).unlink()
            else:
                self.tree[path] = LARGE * 300_000 if content == LARGE else content
                put(self.work, {path: self.tree[path]})
                self.modes.pop(path, None)
                if isinstance(content, bytes):
                    self.modes[path] = 0o755 if executable else 0o644
                    (self.work / path).chmod(self.modes[path])

    @rule(gap=st.integers(0, 2), quality=st.integers(0, 100), fault=st.none() | FAULTS)
    def add(self, gap: int, quality: int, fault: tuple[int, Way, int] | None) -> None:
        number = self.next_number() + gap
        tree = dict(self.tree)
        self.possible.setdefault(number, []).append((tree, float(quality)))
        record = self.do(fault, lambda: self.store.add(score(number, float(quality)), source=self.work, paths=["."]))
        if record is not None:
            assert [detail.mode for detail in record.artifacts_detail if detail.kind == "file"] == [
                self.modes[detail.path] for detail in record.artifacts_detail if detail.kind == "file"
            ]
            self.acknowledged[number] = (tree, float(quality))

    @rule(fault=st.none() | FAULTS)
    def begin(self, fault: tuple[int, Way, int] | None) -> None:
        attempt = self.do(fault, lambda: self.store.begin_attempt(self.next_number(), None, "n", AT))
        if attempt is not None:
            assert attempt.start.number > self.attempts
            self.attempts = attempt.start.number

    @precondition(lambda self: self.attempts > 0 and self.attempts not in self.ended)
    @rule(fault=st.none() | FAULTS)
    def finish(self, fault: tuple[int, Way, int] | None) -> None:
        def body() -> bool:
            with contextlib.suppress(UsageError):  # it ended although that was not said
                self.store.end_attempt(self.attempts, end(outcome="interrupted"))  # nothing has to follow
            return True

        if self.do(fault, body):
            self.ended.add(self.attempts)

    @precondition(lambda self: self.attempts > 0 and not self.staged)
    @rule(fault=st.none() | FAULTS)
    def stage(self, fault: tuple[int, Way, int] | None) -> None:
        waiting = self.store.pending()
        if waiting is not None:  # it was staged although that was not said
            tree = kept_tree(waiting.content, waiting.manifest)
            assert tree in self.maybe_staged[waiting.number]
            self.staged[waiting.number] = tree
            return
        number, tree = self.next_number(), dict(self.tree)
        self.maybe_staged.setdefault(number, []).append(tree)
        pending = self.do(
            fault,
            lambda: self.store.stage(
                number, source=self.work, paths=["."], nonce="n", attempt=self.attempts, stage={"why": 1}, logs=None
            ),
        )
        if pending is not None:
            self.staged[number] = tree

    @precondition(lambda self: bool(self.staged))
    @rule(quality=st.integers(0, 100), fault=st.none() | FAULTS)
    def commit(self, quality: int, fault: tuple[int, Way, int] | None) -> None:
        ((number, tree),) = self.staged.items()
        pending = self.store.pending()
        if pending is None:  # it was acknowledged although that was not said
            assert number in self.store.iteration_numbers()
            self.acknowledged[number] = (tree, self.store.record(number).quality_score or 0.0)
            self.staged.clear()
            return
        assert (pending.number, dict(pending.stage)) == (number, {"why": 1})
        self.possible.setdefault(number, []).append((tree, float(quality)))
        record = self.do(fault, lambda: self.store.commit(pending, score(number, float(quality))))
        if record is not None:
            self.acknowledged[number] = (tree, record.quality_score or 0.0)
            self.staged.clear()

    @rule(fault=st.none() | FAULTS, reason=st.text(max_size=3))
    def decide(self, fault: tuple[int, Way, int] | None, reason: str) -> None:
        if self.do(fault, lambda: self.store.add_decision("select", reason=reason, by="ada", at=AT)) is not None:
            self.decisions.append(reason)

    @precondition(lambda self: bool(self.acknowledged))
    @rule(data=st.data(), fault=st.none() | FAULTS)
    def restore_and_set_aside(self, data: st.DataObject, fault: tuple[int, Way, int] | None) -> None:
        number = data.draw(st.sampled_from(sorted(self.acknowledged)))
        if self.tree:
            kept = self.do(fault, lambda: self.store.set_aside(self.work, list(self.tree)))
            assert kept is None or stored_tree(kept / "artifacts") == self.tree

        def body() -> bool:
            present = [path for path in stored_tree(self.work) if not path.startswith(".jumar-tmp-")]
            restore(plan_restore(self.store.manifest(number), self.store.content(number), self.work, present))
            return True

        if not self.do(fault, body):
            assert body()
        self.tree = dict(self.acknowledged[number][0])
        assert stored_tree(self.work) == self.tree
        details = self.store.manifest(number).entries.values()
        self.modes = {detail.path: detail.mode for detail in details if detail.kind == "file"}
        assert {path: stat.S_IMODE((self.work / path).stat().st_mode) for path in self.modes} == self.modes

    @rule(fault=st.none() | FAULTS)
    def tidy(self, fault: tuple[int, Way, int] | None) -> None:
        def body() -> bool:
            self.store.discard_leftovers()
            return True

        if self.do(fault, body):
            assert [note for note in verify(self.store).notes if "interrupted" in note] == []

    @precondition(lambda self: bool(self.acknowledged))
    @rule(data=st.data())
    def drop_artifacts(self, data: st.DataObject) -> None:
        """A cleanup, as ``decide`` does it: the decision, then the files. The model forgets the bytes, not the record."""
        number = data.draw(st.sampled_from(sorted(self.acknowledged)))
        if self.store.has_snapshot(number) and len(self.acknowledged) > 1:
            self.store.add_decision("cleanup", data={"iterations": [number]})
            self.decisions.append("")
            shutil.rmtree(self.store.artifacts(number))
            del self.acknowledged[number]

    @rule()
    def another_loop_keeps_the_same_and_more(self) -> None:
        number = max(self.other.iteration_numbers(), default=0) + 1
        mine = {"mine": b"of %d, and of nothing else" % number * 1_000}
        put(self.work, mine)
        record(self.other, number, (".",), self.work)
        (self.work / "mine").unlink()
        self.others[number] = {**self.tree, **mine}

    @precondition(lambda self: bool(self.others))
    @rule()
    def another_loop_drops_its_oldest(self) -> None:
        number = min(self.others)
        self.other.add_decision("cleanup", data={"iterations": [number]})
        shutil.rmtree(self.other.artifacts(number))
        del self.others[number]
        COUNTS["bytes collected"] += collect(self.place / ".jumar")

    @rule(fault=st.none() | FAULTS)
    def collect(self, fault: tuple[int, Way, int] | None) -> None:
        freed = self.do(fault, lambda: collect(self.place / ".jumar"))
        if freed is not None:
            assert collect(self.place / ".jumar") == 0
            COUNTS["bytes collected"] += freed
            COUNTS["collections"] += 1

    @rule()
    def open_again(self) -> None:
        self.store = LoopStore.open(self.directory)

    @rule(quality=st.integers(0, 100))
    def somebody_else_adds(self, quality: int) -> None:
        other = LoopStore.open(self.directory)
        number, tree = self.next_number(), dict(self.tree)
        other.add(score(number, float(quality)), source=self.work, paths=["."])
        self.acknowledged[number] = (tree, float(quality))

    @precondition(lambda self: bool(self.acknowledged))
    @rule()
    def add_the_same_again(self) -> None:
        number = max(self.acknowledged)
        with contextlib.suppress(DuplicateIterationError):
            self.store.add(score(number, 1.0), source=self.work, paths=["."])
            raise AssertionError(number)

    def next_number(self) -> int:
        return max([-1, *self.store.iteration_numbers(), *self.staged, *self.maybe_staged, *self.possible]) + 1

    @invariant()
    def counts_hold(self) -> None:
        if not hasattr(self, "store"):
            return
        numbers = set(self.store.iteration_numbers())
        assert numbers >= set(self.acknowledged)
        assert [view.number for view in self.store.views()] == sorted(numbers)
        for number in self.staged:
            pending = self.store.pending()
            assert number in numbers or (pending is not None and pending.number == number)

    def check(self) -> None:
        """Compare everything on disk with the model, through a new object."""
        store = LoopStore.open(self.directory)
        self.verify_clean()
        for number in store.iteration_numbers():
            record = store.record(number)
            if not store.has_snapshot(number):
                continue
            tree = kept(store, number)
            assert sorted(detail.path for detail in record.artifacts_detail) == sorted(tree)
            if number in self.acknowledged:
                assert (tree, record.quality_score) == self.acknowledged[number]
                COUNTS["acknowledged"] += 1
            else:
                assert (tree, record.quality_score) in self.possible[number]
                COUNTS["recorded although the call raised"] += 1
        other = LoopStore.open(self.other.paths.directory)
        assert {number: kept(other, number) for number in self.others} == self.others
        assert len(store.attempts()) >= self.attempts
        found = [decision.reason for decision in store.decisions()]
        position = iter(found)
        assert all(reason in position for reason in self.decisions)


def test_the_store_survives_any_story(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "PLAIN_FILES", 0)  # what is staged is kept by its contents, what is added plainly
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(StoreMachine, settings=settings(stateful_step_count=40))
    print(", ".join(f"{name}: {count:,}" for name, count in sorted(COUNTS.items())))
    assert COUNTS["deaths"] > 15
    assert COUNTS["refusals"] > 15
    assert COUNTS["acknowledged"] > 50
    assert COUNTS["collections"] > 5
    assert COUNTS["bytes collected"] > 25_000
