"""What the engine does not do twice: pay for a judgement that is on disk, or list directories that only it writes."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from jumar.loop.engine.engine import Loop
from jumar.loop.settings import LoopParts, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.staging import Pending
from jumar.model import IterationRecord, ScoreReading, SelectionCriteria, StepContext, StopRules
from jumar.testing import ManualClock, PassingValidator, ReadingScorer, ScriptedGenerator


class CountingScorer(ReadingScorer):
    def __init__(self) -> None:
        super().__init__()
        self.scored: list[int] = []

    def score(self, context: StepContext) -> ScoreReading:
        self.scored.append(context.iteration)
        return super().score(context)


def loop_in(tmp_path: Path, scorer: CountingScorer, passes: int) -> Loop:
    directory = tmp_path / ".jumar" / "loops" / "t"
    if directory.exists():
        store = LoopStore.open(directory)
    else:
        prepare_root(tmp_path / ".jumar")
        (tmp_path / "out.txt").write_text("0.1")
        store = LoopStore.create(directory, "t", {}, workdir=tmp_path, created_at="2026-01-01T00:00:00Z")
    settings = LoopSettings(
        loop_id="t",
        workdir=tmp_path,
        artifacts=ArtifactRules(include=("out.txt",)),
        criteria=SelectionCriteria(threshold=None),
        stop=StopRules(max_iterations=passes),
    )
    texts = tuple(f"0.{1 + number % 8}" for number in range(passes))
    parts = LoopParts(generator=ScriptedGenerator(texts), validators=(PassingValidator(),), scorers=(scorer,))
    return Loop.of(store, settings, parts, clock=ManualClock())


def test_a_scored_snapshot_is_acknowledged_without_another_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = CountingScorer()

    def die(self: LoopStore, directory: Path, target: Path) -> None:
        if target.name.endswith("002"):
            raise KeyboardInterrupt
        os.rename(directory, target)

    with monkeypatch.context() as patched:
        patched.setattr(LoopStore, "_acknowledge", die)
        with pytest.raises(KeyboardInterrupt):
            loop_in(tmp_path, scorer, 3).run()
    waiting = LoopStore.open(tmp_path / ".jumar" / "loops" / "t").pending()
    assert isinstance(waiting, Pending)
    assert isinstance(waiting.record, IterationRecord)
    outcome = loop_in(tmp_path, scorer, 3).run()
    assert [0, 1, 2, 3] == scorer.scored
    assert "max_iterations" == outcome.stop.reason


def test_directories_are_not_listed_again_while_the_lock_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: Counter[str] = Counter()
    listdir = os.listdir

    def counting(path: str | int = ".") -> list[str]:
        place = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else path
        listed[Path(place).name] += 1
        return listdir(path)

    monkeypatch.setattr(os, "listdir", counting)
    loop_in(tmp_path, CountingScorer(), 30).run()
    assert 5 > max(listed["iterations"], listed["attempts"], listed["decisions"]), listed
