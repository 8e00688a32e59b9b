"""An iteration whose tree cannot be kept, or is not what its generator left, also after jumar was killed in between."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jumar.core.leftovers import remove_tree
from jumar.errors import ArtifactError
from jumar.loop.engine.engine import Loop
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.events.events import Event, Notice
from jumar.loop.settings import Isolation, LoopParts, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.model import GenerateOutcome, SelectionCriteria, StepContext, StopRules, Usage
from jumar.model.attempts import AttemptEnd
from jumar.testing import ManualClock, PassingValidator, ReadingScorer

Act = Callable[[Path], object]


class Killed(BaseException):
    """Nothing in the loop may catch it, as nothing can catch SIGKILL."""


class Agent:
    """Writes a better text in each iteration, and does ``acts`` of its number in its directory."""

    def __init__(self, acts: dict[int, Act]) -> None:
        self.acts = acts
        self.calls: list[int] = []

    def generate(self, context: StepContext) -> GenerateOutcome:
        self.calls.append(context.iteration)
        (context.workdir / "out.txt").write_text(f"0.{context.iteration}")
        self.acts.get(context.iteration, lambda _: None)(context.workdir)
        return GenerateOutcome(exit_code=0, seconds=1.0, usage=Usage(token_cost_usd=0.5))


class Place:
    """One loop in a directory of its own, which is run as often as needed."""

    def __init__(self, directory: Path, isolation: Isolation = "none", candidates: int = 1) -> None:
        self.directory = directory
        self.isolation: Isolation = isolation
        self.candidates = candidates
        self.told: list[str] = []
        (directory / "out.txt").write_text("0.05")
        prepare_root(directory / ".jumar")
        self.loop = directory / ".jumar/loops/t"
        LoopStore.create(self.loop, "t", {}, workdir=directory, created_at="2026-01-01T00:00:00Z")

    @property
    def tree(self) -> Path:
        return self.directory if self.isolation == "none" else self.directory / ".jumar/work/t"

    @property
    def store(self) -> LoopStore:
        return LoopStore.open(self.loop)

    def run(self, agent: Agent, most: int = 3) -> LoopOutcome:
        configured = LoopSettings(
            loop_id="t",
            workdir=self.directory,
            isolation=self.isolation,
            candidates=self.candidates,
            apply="auto" if self.isolation == "none" else "never",
            artifacts=ArtifactRules(max_file_bytes=1_000),
            criteria=SelectionCriteria(threshold=None),
            stop=StopRules(max_iterations=most, consecutive_failures=3),
        )
        parts = LoopParts(generator=agent, validators=(PassingValidator(),), scorers=(ReadingScorer(),))

        def hear(event: Event) -> None:
            if isinstance(event, Notice):
                self.told.append(event.message)

        return Loop.of(self.store, configured, parts, clock=ManualClock(), listener=hear).run()

    def statuses(self) -> list[str]:
        assert verify(self.store).problems == ()
        return [record.status for record in self.store.records()]


@pytest.fixture
def place(fresh_place: Path) -> Place:
    return Place(fresh_place)


def killed_before_the_snapshot(place: Place, agent: Agent, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run until the generator of an iteration has ended, and no further."""
    stage = LoopStore.stage

    def dying(self: LoopStore, at: int, **given: Any) -> object:
        if at == number:
            raise Killed
        return stage(self, at, **given)

    with monkeypatch.context() as patched:
        patched.setattr(LoopStore, "stage", dying)
        with pytest.raises(Killed):
            place.run(agent)


def too_large(tree: Path) -> None:
    (tree / "large").write_bytes(b"x" * 2_000)


CHANGES: dict[str, Act] = {
    "edited": lambda tree: (tree / "out.txt").write_text("0.99"),
    "edited, with its old time": lambda tree: keeping_time(tree / "out.txt", "0.999"),
    "deleted": lambda tree: (tree / "out.txt").unlink(),
    "new": lambda tree: (tree / "mine.txt").write_text("0.99"),
    "another mode": lambda tree: (tree / "out.txt").chmod(0o700),
    "a link": lambda tree: ((tree / "out.txt").unlink(), os.symlink("/etc/hostname", tree / "out.txt")),
}


def keeping_time(path: Path, text: str) -> None:
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("isolation", ["none", "copy"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_after_the_generator_ended_is_not_its_result(
    fresh_place: Path, monkeypatch: pytest.MonkeyPatch, change: str, isolation: Isolation
) -> None:
    place, agent = Place(fresh_place, isolation), Agent({})
    killed_before_the_snapshot(place, agent, 2, monkeypatch)
    CHANGES[change](place.tree)
    kept = {path.name: path.read_bytes() for path in place.tree.glob("*.txt") if not path.is_symlink()}
    outcome = place.run(agent)
    assert place.statuses() == ["ok", "ok", "snapshot_failed", "ok"]
    assert agent.calls == [1, 2, 3]
    assert outcome.spend.cost_usd == 1.5
    record = place.store.record(2)
    assert record.status_reason == "the working directory was changed after it ended, before a snapshot was taken"
    assert (record.quality_score, record.token_cost_usd, record.analysis.artifacts_modified) == (None, 0.5, ())
    aside = {path.name: path.read_bytes() for path in place.loop.glob("quarantine/tree-*/*") if not path.is_symlink()}
    assert {name: aside.get(name) for name in kept} == kept
    assert any("quarantine/tree-" in message for message in place.told) == (change != "deleted")


@pytest.mark.parametrize("isolation", ["none", "copy"])
@pytest.mark.parametrize("times", [0, 2_000_000_000])
def test_what_nobody_changed_is_its_result_whatever_the_clocks_say(
    fresh_place: Path, monkeypatch: pytest.MonkeyPatch, isolation: Isolation, times: int
) -> None:
    place, agent = Place(fresh_place, isolation), Agent({2: lambda tree: os.utime(tree / "out.txt", (times, times))})
    killed_before_the_snapshot(place, agent, 2, monkeypatch)
    place.run(agent)
    assert place.statuses() == ["ok"] * 4
    assert agent.calls == [1, 2, 3]


def test_an_attempt_of_an_older_jumar_is_taken_as_it_lies(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent({})
    to_json = AttemptEnd.to_json
    with monkeypatch.context() as patched:
        patched.setattr(AttemptEnd, "to_json", lambda end: {k: v for k, v in to_json(end).items() if k != "tree"})
        killed_before_the_snapshot(place, agent, 2, monkeypatch)
    (place.tree / "out.txt").write_text("0.9")
    place.run(agent)
    assert place.statuses() == ["ok"] * 4


@pytest.mark.parametrize("linked", [False, True])
def test_the_persons_directory_is_not_the_result_of_a_copy_that_is_gone(
    fresh_place: Path, monkeypatch: pytest.MonkeyPatch, *, linked: bool
) -> None:
    place, agent = Place(fresh_place, "copy"), Agent({})
    killed_before_the_snapshot(place, agent, 2, monkeypatch)
    shutil.rmtree(place.tree)
    if linked:
        place.tree.symlink_to(place.directory)
    place.run(agent)
    assert place.statuses() == ["ok", "ok", "snapshot_failed", "ok"]
    assert (place.directory / "out.txt").read_text() == "0.05"
    assert not place.tree.is_symlink()


def test_a_tree_over_the_quota_fails_its_iteration_after_a_kill_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent({2: too_large})
    killed_before_the_snapshot(place, agent, 2, monkeypatch)
    place.run(agent)
    assert place.statuses() == ["ok", "ok", "snapshot_failed", "ok"]
    assert agent.calls == [1, 2, 3]
    assert not (place.tree / "large").exists()


def test_three_in_a_row_end_the_loop_with_the_best_in_place(place: Place) -> None:
    outcome = place.run(Agent(dict.fromkeys((2, 3, 4), too_large)), most=9)
    assert (outcome.stop.reason, outcome.failures) == ("consecutive_failures", {"snapshot_failed": 3})
    assert (outcome.spend.cost_usd, outcome.exit_code) == (2.0, 0)
    assert (place.tree / "out.txt").read_text() == "0.1"
    assert len(list(place.loop.glob("quarantine/tree-*/large"))) == 3


def test_the_files_of_a_person_are_never_deleted_but_a_copys_large_ones_are(fresh_place: Path) -> None:
    place = Place(fresh_place, "copy")
    place.run(Agent({2: lambda tree: (too_large(tree), (tree / "small").write_text("x"))}))
    assert [path.name for path in place.loop.glob("quarantine/tree-*/*") if path.name != "out.txt"] == ["small"]


def test_a_start_that_cannot_be_kept_is_refused_before_anything_is_paid(place: Place) -> None:
    too_large(place.directory)
    agent = Agent({})
    with pytest.raises(ArtifactError, match="too large: large"):
        place.run(agent)
    assert (agent.calls, place.store.attempts()) == ([], ())


def test_what_a_killed_generator_left_is_cleared_however_deep(place: Place) -> None:
    def deep(tree: Path) -> None:
        os.chdir(tree)
        for _ in range(1_500):
            os.mkdir("d")
            os.chdir("d")
        Path("file").write_text("x")
        os.chdir(tree)
        raise Killed

    with pytest.raises(Killed):
        place.run(Agent({2: deep}))
    place.run(Agent({}))
    assert place.statuses() == ["ok"] * 4
    assert not (place.tree / "d").exists()


def test_a_candidate_that_deletes_its_copy_fails_alone(fresh_place: Path) -> None:
    place = Place(fresh_place, candidates=3)
    place.run(Agent({2: shutil.rmtree}), most=6)
    assert place.statuses() == ["ok", "ok", "snapshot_failed", "ok", "ok", "ok", "ok"]


def test_a_working_directory_that_was_deleted_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "store").mkdir()
    place = Place(tmp_path / "store")
    remove_tree(place.loop)
    (tmp_path / "tree/out.txt").write_text("0.05")
    LoopStore.create(place.loop, "t", {}, workdir=tmp_path / "tree", created_at="2026-01-01T00:00:00Z")
    place.directory = tmp_path / "tree"
    place.run(Agent({2: shutil.rmtree}))
    assert place.statuses() == ["ok", "ok", "snapshot_failed", "ok"]
    assert (tmp_path / "tree/out.txt").read_text() == "0.3"


def test_a_deep_tree_is_removed(tmp_path: Path) -> None:
    os.chdir(tmp_path)
    for _ in range(1_500):
        os.mkdir("d")
        os.chdir("d")
        Path("file").write_text("x")
    os.chdir(tmp_path)
    remove_tree(tmp_path / "d")
    assert not (tmp_path / "d").exists()
