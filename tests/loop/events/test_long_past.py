"""A loop that is gone on with tells of the last of what it has, and not of all ten thousand."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jumar.cli.terminal.display import TableDisplay
from jumar.loop.engine.engine import Loop
from jumar.loop.events.events import LATEST, Event, IterationRecorded, LoopStarted
from jumar.loop.settings import LoopParts, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore
from jumar.model import StopRules
from jumar.testing import ManualClock, PassingValidator, ReadingScorer, ScriptedGenerator

if TYPE_CHECKING:
    import pytest

PASSES = 44


def loop_of(directory: Path, passes: int) -> Loop:
    prepare_root(directory / ".jumar")
    (directory / "out.txt").write_text("0.1")
    store = LoopStore.create(directory / ".jumar" / "loops" / "t", "t", {}, workdir=directory, created_at="2026-01-01T00:00:00Z")
    stop = StopRules(max_iterations=passes)
    settings = LoopSettings(loop_id="t", workdir=directory, artifacts=ArtifactRules(include=("out.txt",)), stop=stop)
    generator = ScriptedGenerator(tuple(f"0.{200 + number}" for number in range(passes + 1)))
    parts = LoopParts(generator=generator, validators=(PassingValidator(),), scorers=(ReadingScorer(),))
    return Loop.of(store, settings, parts, clock=ManualClock())


def resumed(directory: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Event], list[int]]:
    """Run ``PASSES`` passes and then one more; return the events of the second run and which records it read."""
    first = loop_of(directory, passes=PASSES)
    first.run()
    store = type(first.store).open(first.store.paths.directory)
    heard: list[Event] = []
    read: list[int] = []
    slow = LoopReader.record

    def counted(self: LoopReader, number: int, **named: bool) -> object:
        read.append(number)
        return slow(self, number, **named)

    settings = replace(first.settings, stop=replace(first.settings.stop, max_iterations=PASSES + 1))
    loop = Loop.of(store, settings, first.parts, clock=first.shared.clock, listener=heard.append)
    with monkeypatch.context() as patched:
        patched.setattr(LoopReader, "record", counted)
        patched.setattr(
            "jumar.loop.engine.engine.refresh_views", lambda *_, **__: True
        )  # the report reads everything, at the end
        loop.run()
    return heard, read


def test_the_start_of_a_resume_tells_how_many_there_are_and_the_last_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, read = resumed(tmp_path, monkeypatch)
    started = heard[0]
    assert isinstance(started, LoopStarted)
    expected = list(range(PASSES + 1 - LATEST, PASSES + 1))
    assert (PASSES + 1, True, expected) == (
        started.recorded,
        started.resumed,
        [record.iteration_number for record in started.latest],
    )
    assert started.best in range(PASSES + 1)
    assert PASSES + 1 == started.to_json()["recorded"]
    assert set(range(1, PASSES + 1 - LATEST)) & set(read) <= {started.best}
    print(f"{len(read)} records read to go on from {PASSES + 1}")


def test_the_display_shows_the_last_rows_and_counts_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard, _ = resumed(tmp_path, monkeypatch)
    stream = io.StringIO()
    display = TableDisplay(stream)
    for event in heard:
        display.hear(event)
    lines = stream.getvalue().splitlines()
    first = lines.index("      15 earlier: `jumar show t`")
    rows = [line for line in lines[first + 1 :] if line.split()[0].isdigit()]
    assert [str(number) for number in range(PASSES - LATEST + 2, PASSES + 2)] == [row.split()[0] for row in rows]
    assert "—" not in rows[0].split()[2]  # compared with the one before, which is not shown
    assert sum(isinstance(event, IterationRecorded) for event in heard) == 1


def test_a_short_past_is_shown_whole(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, passes=3)
    loop.run()
    stream = io.StringIO()
    records = tuple(loop.store.records())
    TableDisplay(stream).hear(LoopStarted(loop_id="t", resumed=True, rules=StopRules(), recorded=4, weights={}, latest=records))
    lines = stream.getvalue().splitlines()
    assert ["0", "1", "2", "3", "note"] == [line.split()[0] for line in lines[2:]]
    assert "earlier" not in stream.getvalue()
