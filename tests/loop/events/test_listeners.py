"""Listeners: each gets every event, none can break the loop, and what goes wrong is said once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from loops import jumar, write_loop

from jumar.loop.engine.engine import Loop
from jumar.loop.events.events import AttemptStarted, Event, Hook, IterationRecorded, Listeners, LoopStarted, Notice
from jumar.loop.settings import LoopParts, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.model import SelectionCriteria, StopRules
from jumar.testing import ManualClock, PassingValidator, ReadingScorer, ScriptedGenerator

EVENT = AttemptStarted(attempt=1, iteration=1)


def test_each_gets_every_event_in_order() -> None:
    heard: list[tuple[str, Event]] = []
    listeners = Listeners([lambda event: heard.append(("a", event)), lambda event: heard.append(("b", event))])
    listeners(EVENT)
    assert [("a", EVENT), ("b", EVENT)] == heard


def test_one_that_raises_is_passed_over_and_told_of_once() -> None:
    heard: list[Event] = []
    calls: list[Event] = []

    def bad(event: Event) -> None:
        calls.append(event)
        raise ValueError("no\x1b[31m way")

    listeners = Listeners([heard.append, Hook("mine:bad", bad)])
    for _ in range(3):
        listeners(EVENT)
    assert [EVENT] * 3 == calls
    notices = [event.message for event in heard if isinstance(event, Notice)]
    assert [r"the hook mine:bad failed and is passed over: ValueError: no\x1b[31m way"] == notices


def test_one_that_wants_to_exit_does_not() -> None:
    heard: list[Event] = []
    Listeners([Hook("mine:leave", lambda _event: sys.exit(3)), heard.append])(EVENT)
    assert [EVENT, Notice(message="the hook mine:leave failed and is passed over: SystemExit: 3")] == heard


def test_what_is_no_exception_does_not_reach_the_loop_and_a_person_does() -> None:
    class Panic(BaseException):
        """As extension modules raise it."""

    def raising(error: BaseException) -> Hook:
        def raise_it(_event: Event) -> None:
            raise error

        return Hook("mine:panic", raise_it)

    heard: list[Event] = []
    Listeners([raising(Panic("lost")), heard.append])(EVENT)
    assert [EVENT, Notice(message="the hook mine:panic failed and is passed over: Panic: lost")] == heard
    with pytest.raises(KeyboardInterrupt):
        Listeners([raising(KeyboardInterrupt())])(EVENT)


def test_a_slow_one_is_told_of_once() -> None:
    now = [0.0]
    heard: list[Event] = []

    def slow(_event: Event) -> None:
        now[0] += 2.5

    listeners = Listeners([heard.append, Hook("mine:slow", slow)], time_source=lambda: now[0])
    listeners(EVENT)
    listeners(EVENT)
    assert [
        EVENT,
        Notice(message="the hook mine:slow took 2.5 s for one event (attempt_started); the loop waits for it"),
        EVENT,
    ] == heard


def loop_of(tmp_path: Path, *listeners: Hook, passes: int = 3) -> Loop:
    tmp_path.mkdir(exist_ok=True)
    prepare_root(tmp_path / ".jumar")
    (tmp_path / "out.txt").write_text("0.1")
    store = LoopStore.create(tmp_path / ".jumar" / "loops" / "t", "t", {}, workdir=tmp_path, created_at="2026-01-01T00:00:00Z")
    settings = LoopSettings(
        loop_id="t",
        workdir=tmp_path,
        artifacts=ArtifactRules(include=("out.txt",)),
        criteria=SelectionCriteria(threshold=None),
        stop=StopRules(max_iterations=passes),
    )
    generator = ScriptedGenerator(tuple(f"0.{2 + number}" for number in range(passes)))
    parts = LoopParts(generator=generator, validators=(PassingValidator(),), scorers=(ReadingScorer(),))
    return Loop.of(store, settings, parts, clock=ManualClock(), listeners=listeners)


def test_a_loop_with_bad_hooks_ends_as_one_without(tmp_path: Path) -> None:
    heard: list[Event] = []

    def mutate(event: Event) -> None:
        if isinstance(event, IterationRecorded):
            object.__setattr__(event.record, "no_such_field", 1)
        raise KeyError("bad")

    with_hooks = loop_of(tmp_path / "one", Hook("m:mutate", mutate), Hook("m:heard", heard.append)).run()
    without = loop_of(tmp_path / "two").run()
    assert without.selection == with_hooks.selection
    assert without.stop == with_hooks.stop
    assert isinstance(heard[0], LoopStarted)
    assert [0, 1, 2, 3] == [event.record.iteration_number for event in heard if isinstance(event, IterationRecorded)]
    assert 1 == sum(isinstance(event, Notice) and "m:mutate" in event.message for event in heard)


def test_a_broken_hook_is_one_line_and_its_traceback_is_for_debugging(
    fresh_place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (fresh_place / "mine.py").write_text("def bad(event):\n    raise ValueError('no way')\n")
    write_loop(fresh_place, [0.6, 0.7], extra='[hooks]\npython = ["mine:bad"]\n')
    ended = jumar(fresh_place, "run", check=0)
    assert "" == ended.stderr
    assert 1 == ended.stdout.count("mine:bad failed and is passed over: ValueError: no way")
    assert 1 == (fresh_place / ".jumar/loops/t/events.jsonl").read_text().count("no way")

    def raising(_event: Event) -> None:
        raise ValueError("no way")

    with caplog.at_level("DEBUG", logger="jumar.loop"):
        Listeners([Hook("mine:bad", raising)])(EVENT)
    (record,) = caplog.records
    assert ("DEBUG", True) == (record.levelname, record.exc_info is not None)


def test_what_is_noted_before_the_first_row_stands_above_the_table(fresh_place: Path) -> None:
    write_loop(fresh_place, [0.6], check=None)
    lines = jumar(fresh_place, "run", check=0).stdout.splitlines()
    header = next(index for index, line in enumerate(lines) if line.split()[:2] == ["it", "score"])
    notes = [index for index, line in enumerate(lines) if line.startswith("note ")]
    assert notes
    assert max(notes) < header
    assert ["0"] == lines[header + 1].split()[:1]
