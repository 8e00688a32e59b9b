"""Every call that changes the disk, failed in every way.

What was acknowledged stays, what is found is whole, the next step works. By default a death is tried before every call, and the
other failures at every third, each kind of error at another one; ``JUMAR_SWEEP=full`` tries all of them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest
from store_kit import AT, Disk, Killed, Way, end, kept, kept_tree, memory_place, put, score, stored_tree

from jumar.core.leftovers import remove_tree
from jumar.errors import DuplicateIterationError, StoreWriteError, UsageError
from jumar.loop.snapshots import snapshot
from jumar.loop.snapshots.restore import plan_restore, restore
from jumar.loop.store.collect import collect
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify

TREES: tuple[dict[str, bytes | str], ...] = (
    {"a.txt": b"start", "sub/b.txt": b"bee", "link": "a.txt"},
    {"a.txt": b"first iteration", "sub/b.txt": b"bee", "link": "sub", "large": bytes(range(256)) * 8},
    {f"many/{number}.txt": b"%d" % number for number in range(26)},
)


@dataclass
class Story:
    """A loop's life, step by step; each step can be tried again after it failed."""

    place: Path
    acknowledged: dict[int, dict[str, bytes | str]] = field(default_factory=dict)
    staged: set[int] = field(default_factory=set)
    attempts: int = 0
    decisions: int = 0

    @property
    def directory(self) -> Path:
        return self.place / ".jumar" / "loops" / "loop-001"

    @property
    def work(self) -> Path:
        return self.place / "work"

    def steps(self) -> list[tuple[str, Callable[[], None]]]:
        steps: list[tuple[str, Callable[[], None]]] = [("create", self.create)]
        for number, tree in enumerate(TREES):
            steps += [
                ("work", partial(put_tree, self.work, tree)),
                ("begin", partial(self.begin, number)),
                ("end", self.end),
                ("stage", partial(self.stage, number)),
                ("commit", partial(self.commit, number)),
                ("decide", partial(self.decide, number)),
            ]
        steps += [("aside", self.aside), ("restore", partial(self.restore, 0)), ("tidy", self.tidy), ("add", self.add)]
        return [*steps, ("work", self.clean), ("collect", self.collect)]

    def store(self) -> LoopStore:
        return LoopStore.open(self.directory)

    def create(self) -> None:
        try:
            LoopStore.create(self.directory, "loop-001", {}, workdir=self.work, created_at=AT)
        except UsageError:
            self.store()  # it was created although that was not said

    def begin(self, number: int) -> None:
        for unknown in self.store().attempts():
            if unknown.end is None:  # it began although that was not said
                self.store().end_attempt(unknown.start.number, end(outcome="lost", seconds=None))
        attempt = self.store().begin_attempt(number, None, f"n{number}", AT)
        assert attempt.start.number > self.attempts
        self.attempts = attempt.start.number

    def end(self) -> None:
        with contextlib.suppress(UsageError):  # it ended although that was not said
            self.store().end_attempt(self.attempts, end())

    def stage(self, number: int) -> None:
        try:
            pending = self.store().stage(
                number, source=self.work, paths=["."], nonce=f"n{number}", attempt=self.attempts, stage={"k": 1}, logs=None
            )
        except DuplicateIterationError:
            found = self.store().pending()
            assert found is not None
            pending = found
        self.staged.add(number)
        assert kept_tree(pending.content, pending.manifest) == TREES[number]

    def commit(self, number: int) -> None:
        store = self.store()
        pending = store.pending()
        if pending is None:
            assert number in store.iteration_numbers()
        else:
            store.commit(pending, score(number, 50.0 + number))
        self.staged.discard(number)
        self.acknowledged[number] = TREES[number]

    def decide(self, number: int) -> None:
        decision = self.store().add_decision("select", best_iteration=number, reason="best", by="ada", at=AT)
        assert decision.number > self.decisions
        self.decisions = decision.number

    def aside(self) -> None:
        kept = self.store().set_aside(self.work, ["many/1.txt"])
        assert stored_tree(kept / "artifacts") == {"many/1.txt": b"1"}

    def restore(self, number: int) -> None:
        store = self.store()
        present = [path for path in stored_tree(self.work) if not path.startswith(".jumar-tmp-")]
        restore(plan_restore(store.manifest(number), store.content(number), self.work, present))
        assert stored_tree(self.work) == TREES[number]

    def tidy(self) -> None:
        self.store().discard_leftovers()
        assert verify(self.store()).notes == ()

    def add(self) -> None:
        store = self.store()
        number = max(store.iteration_numbers()) + 1
        store.add(score(number, 80.0), source=self.work, paths=["a.txt"])
        self.acknowledged[number] = {"a.txt": b"start"}

    def clean(self) -> None:
        if self.store().has_snapshot(1):
            self.store().add_decision("cleanup", data={"iterations": [1]})
            remove_tree(self.store().artifacts(1))
        self.acknowledged.pop(1, None)

    def collect(self) -> None:
        """Of the packs one is not named any more, one in part, and one whole."""
        collect(self.place / ".jumar")

    def check(self) -> None:
        """What must hold after any failure."""
        if not self.directory.exists():
            assert self.acknowledged == {}
            return
        store = self.store()
        report = verify(store)
        assert report.problems == ()
        for number, tree in self.acknowledged.items():
            assert kept(store, number) == tree
            assert store.record(number).iteration_number == number
        for number in self.staged:
            pending = store.pending()
            assert number in store.iteration_numbers() or (pending is not None and pending.number == number)
        assert len(store.attempts()) >= self.attempts
        assert len(store.decisions()) >= self.decisions


def put_tree(work: Path, tree: dict[str, bytes | str]) -> None:
    """Not the store's business: it is made without faults."""
    remove_tree(work)
    work.mkdir(parents=True)
    put(work, tree)


def prepared(root: Path) -> list[tuple[str, Story]]:
    """Live the story without a fault, and keep a copy of the place as it was before each step."""
    story = Story(root / "calm")
    story.place.mkdir()
    kept: list[tuple[str, Story]] = []
    for index, (name, step) in enumerate(story.steps()):
        copy = replace(story, place=root / f"before-{index}", acknowledged=dict(story.acknowledged), staged=set(story.staged))
        shutil.copytree(story.place, copy.place, symlinks=True)
        kept.append((name, copy))
        step()
    story.check()
    assert len(story.acknowledged) == len(TREES)
    return kept


def fail_once(before: Story, index: int, place: Path, disk: Disk) -> bool:
    """Do one step with a fault in it, check, do it again without, check; returns whether the fault was noticed."""
    shutil.copytree(before.place, place, symlinks=True)
    story = replace(before, place=place, acknowledged=dict(before.acknowledged), staged=set(before.staged))
    step = story.steps()[index][1]
    noticed = False
    try:
        with disk.failing():
            step()
    except (Killed, StoreWriteError):
        noticed = True
        story.check()
        step()
    story.check()
    remove_tree(place)
    return noticed


@pytest.mark.sweep
@pytest.mark.parametrize("layout", ["plain", "by hash"])
@pytest.mark.parametrize(
    ("way", "number", "every", "first"),
    [
        ("killed before", errno.EIO, 1, 0),
        ("killed after", errno.EIO, 3, 0),
        ("error", errno.EIO, 3, 1),
        ("error", errno.ENOSPC, 3, 2),
        ("answer lost", errno.EIO, 3, 0),
        ("error for good", errno.EROFS, 3, 1),
    ],
)
def test_every_failure_leaves_a_loop_that_goes_on(
    way: Way, number: int, every: int, first: int, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if layout == "by hash":
        monkeypatch.setattr(snapshot, "PLAIN_FILES", 2)
        monkeypatch.setattr(snapshot, "SMALL", 1_000)
    if os.environ.get("JUMAR_SWEEP") == "full":
        every, first = 1, 0
    calls = tried = noticed = 0
    with memory_place() as place:
        for index, (name, before) in enumerate(prepared(place)):
            if name == "work":
                continue
            counted = Disk(0, way, number)
            fail_once(before, index, place / "counted", counted)
            for at in range(1, counted.count + 1):
                calls += 1
                if calls % every == first:
                    tried += 1
                    noticed += fail_once(before, index, place / "failed", Disk(at, way, number))
    print(f"{layout}, {way}, {errno.errorcode[number]}: {calls} calls, {tried} failed one by one, {noticed} noticed")
    assert calls > 150
    assert tried >= calls // every
    assert 0.6 * tried < noticed <= tried
