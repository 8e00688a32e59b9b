"""Later readings on disk: written once, numbered, sealed, seen by others, and verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_kit import unmarked

from jumar.core.codec import Fields
from jumar.core.leftovers import remove_tree
from jumar.errors import NotFoundError, StoreDamagedError
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.model import IterationRecord, Reading, ScoreReading


@pytest.fixture
def store(tmp_path: Path) -> LoopStore:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("a")
    made = LoopStore.create(tmp_path / "loops" / "loop", "loop", {}, workdir=None, created_at="then")
    for number in (0, 1):
        made.add(IterationRecord(iteration_number=number, timestamp="t", quality_score=50.0 + number), source=work, paths=["a"])
    return made


READ = ScoreReading(dimension="worth", score=0.5, repeats=(0.4, None, 0.6))


def test_readings_are_numbered_and_seen_by_others(store: LoopStore) -> None:
    other = LoopReader(store.paths.directory)
    assert () == store.readings() == other.readings()
    first = store.add_reading("rescore", 1, at="t1", attempt=None, score=50.0, dimensions={"worth": 0.5}, readings=(READ,))
    second = store.add_reading("holdout", 0, at="t2", attempt=None, score=None, status="scorer_broken", status_reason="gone")
    assert (1, 2) == (first.number, second.number)
    assert ["0001-rescore-iteration-001.json", "0002-holdout-iteration-000.json"] == sorted(
        path.name for path in store.paths.readings.iterdir()
    )
    assert (first, second) == store.readings() == other.readings() == LoopStore.open(store.paths.directory).readings()
    assert first == Reading.from_json(Fields(first.to_json(), "x"))
    report = verify(store)
    assert () == report.problems


def test_a_reading_of_nothing_is_refused(store: LoopStore) -> None:
    with pytest.raises(NotFoundError, match="no iteration 7"):
        store.add_reading("rescore", 7, at="t", attempt=None, score=1.0)
    assert () == store.readings()


def test_verify_finds_every_damage(store: LoopStore) -> None:
    for _ in range(5):
        store.add_reading("rescore", 1, at="t", attempt=None, score=50.0, readings=(READ,))
    store.add_reading("confirm", 1, at="t", attempt=9, score=50.0)
    directory = store.paths.readings
    (directory / "0002-rescore-iteration-001.json").unlink()
    path = directory / "0003-rescore-iteration-001.json"
    path.write_text(path.read_text().replace("50.0", "90.0"))
    (directory / "0004-rescore-iteration-001.json").rename(directory / "0004-holdout-iteration-000.json")
    (directory / "0005-rescore-iteration-001.json").write_text("{")
    (directory / "notes.txt").write_text("")
    found = {Path(problem.path).name: problem.what for problem in verify(store).problems}
    assert "is missing: readings are numbered without gaps" == found.pop("0002-*.json")
    assert "does not match its seal" in found.pop("0003-rescore-iteration-001.json")
    assert "holds a rescore of iteration 1" == found.pop("0004-holdout-iteration-000.json")
    assert "not readable as JSON" in found.pop("0005-rescore-iteration-001.json")
    assert "is not a reading's name" == found.pop("notes.txt")
    assert {"0006-confirm-iteration-001.json": "names attempt 9, of which there is nothing"} == found


def test_verify_finds_what_nothing_else_speaks_of(store: LoopStore) -> None:
    first = store.add_reading("rescore", 1, at="t", attempt=None, score=50.0)
    store = LoopStore.open(unmarked(store.paths.directory))
    store.paths.reading_file(1, "holdout", 1).write_bytes(store.paths.reading_file(1, first.kind, 1).read_bytes())
    remove_tree(store.paths.iteration(1))
    found = [problem.what for problem in verify(store).problems if problem.path.startswith("readings/")]
    assert ["holds a rescore of iteration 1", "has the same number as 0001-holdout-iteration-001.json"] == [
        what for what in found if "of which" not in what
    ]
    assert ["is of iteration 1, of which there is nothing"] == [what for what in found if "of which" in what]


def test_a_reading_that_was_renamed_is_damage(store: LoopStore) -> None:
    store.add_reading("rescore", 1, at="t", attempt=None, score=50.0)
    directory = store.paths.readings
    (directory / "0001-rescore-iteration-001.json").rename(directory / "0007-rescore-iteration-001.json")
    with pytest.raises(StoreDamagedError, match="was not written by jumar"):
        LoopReader(store.paths.directory).readings()
    with pytest.raises(StoreDamagedError, match="renamed by hand"):
        LoopReader(unmarked(store.paths.directory)).readings()
