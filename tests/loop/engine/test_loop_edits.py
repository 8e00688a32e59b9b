"""What a person changes in the working directory while candidates work in trees of their own is kept, and said."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.loop.engine.engine import Loop
from jumar.loop.settings import LoopParts, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.model import ScoreReading, SelectionCriteria, StepContext, StopRules
from jumar.testing import ManualClock, ReadingScorer, ScriptedGenerator

TOLD = "the working directory was changed while the loop ran"


class Killed(BaseException):
    pass


class Mortal(ReadingScorer):
    dies_at: int | None = None

    def score(self, context: StepContext) -> ScoreReading:
        if context.iteration == self.dies_at:
            raise Killed
        return super().score(context)


def run(
    work: Path, *, isolation: str = "none", candidates: int = 2, passes: int = 4, dies_at: int | None = None
) -> tuple[list[str], LoopStore]:
    place = work / ".jumar" / "loops" / "t"
    if not place.exists():
        prepare_root(work / ".jumar")
        LoopStore.create(place, "t", {}, workdir=work, created_at="2026-01-01T00:00:00Z")
    store = LoopStore.open(place)
    scorer = Mortal()
    scorer.dies_at = dies_at
    settings = LoopSettings(
        loop_id="t",
        workdir=work,
        isolation=isolation,  # type: ignore[arg-type]
        artifacts=ArtifactRules(include=("out.txt", "notes.txt", "mine.txt")),
        criteria=SelectionCriteria(threshold=None),
        stop=StopRules(max_iterations=passes),
        candidates=candidates,
        workers=1,
    )
    told: list[object] = []
    parts = LoopParts(generator=ScriptedGenerator(("0.3", "0.5", "0.9", "0.7", "0.95", "0.1")), scorers=(scorer,))
    Loop.of(store, settings, parts, clock=ManualClock(), listener=told.append).run()
    return [str(event) for event in told if TOLD in str(event)], store


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "out.txt").write_text("0.2")
    (tmp_path / "notes.txt").write_text("as at the start")
    return tmp_path


def kept(store: LoopStore) -> dict[str, str]:
    place = store.paths.set_aside
    return {str(path.relative_to(place)): path.read_text() for path in place.rglob("*.txt")}


@pytest.mark.parametrize(("isolation", "candidates"), [("none", 2), ("copy", 1), ("copy", 2)])
def test_edits_between_a_kill_and_the_resume_are_set_aside(work: Path, isolation: str, candidates: int):
    with pytest.raises(Killed):
        run(work, isolation=isolation, candidates=candidates, dies_at=2)
    (work / "out.txt").write_text("0.6666, which I typed")
    (work / "mine.txt").write_text("new, and mine")
    told, store = run(work, isolation=isolation, candidates=candidates)
    assert len(told) == 1
    assert "out.txt" in told[0]
    assert kept(store) == {"0001/artifacts/out.txt": "0.6666, which I typed"}
    assert (work / "out.txt").read_text() == "0.9"
    assert (work / "mine.txt").read_text() == "new, and mine"  # no iteration has it


@pytest.mark.parametrize("isolation", ["none", "copy"])
def test_nothing_is_said_where_nobody_changed_anything(work: Path, isolation: str):
    with pytest.raises(Killed):
        run(work, isolation=isolation, dies_at=3)
    told, store = run(work, isolation=isolation)
    assert told == []
    assert (work / "out.txt").read_text() == "0.9"
    more, store = run(work, isolation=isolation, passes=6)
    assert more == [], "what the loop itself put there is no edit"
    assert (work / "out.txt").read_text() == "0.95"
    assert kept(store) == {}


def test_an_edit_after_an_apply_is_set_aside_by_the_next(work: Path):
    run(work)
    (work / "out.txt").write_text("0.777")
    told, store = run(work, passes=6)
    assert len(told) == 1
    assert kept(store) == {"0001/artifacts/out.txt": "0.777"}


def test_an_edit_that_the_best_has_too_is_none(work: Path):
    with pytest.raises(Killed):
        run(work, dies_at=2)
    (work / "out.txt").write_text("0.9")
    told, store = run(work)
    assert (told, kept(store)) == ([], {})
