"""A disk that is full at any change the loop makes: it ends with that reason, loses nothing, and goes on when there is room."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from dying import not_waiting

from jumar.errors import StoreWriteError
from jumar.loop.engine.engine import Loop
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.settings import LoopParts, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.loop.workspace.disk_space import BALLAST, BALLAST_BYTES
from jumar.model import SelectionCriteria, StopRules
from jumar.testing import ManualClock, PassingValidator, ReadingScorer, ScriptedGenerator

SCRIPT = ("0.5", "0.9", "0.7")
FIRST = 8  # so many changes before the loop holds its locks
ROOM = 120  # calls that the ballast makes room for: what is left of a loop that gave it up and goes on
COUNTS = {"full": 0, "ended": 0}
_TAKES_ROOM = ("mkdir", "link", "symlink", "write", "pwrite", "open")


@contextmanager
def full_from(at: int, ballast: Path, number: int = errno.ENOSPC) -> Iterator[Callable[[], int]]:
    """From the ``at``-th call that takes room on (0: never) the disk refuses all of them.

    Giving the ballast up makes room for a while, and not for another ballast.
    """
    count = 0
    room = 0

    def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal count, room
            if name == "open" and not arguments[1] & os.O_CREAT:
                return real(*arguments, **named)
            count += 1
            if at and count >= at:
                if not room or (name == "write" and len(arguments[1]) >= BALLAST_BYTES):
                    raise OSError(number, os.strerror(number))
                room -= 1
            return real(*arguments, **named)

        return call

    real_unlink = os.unlink

    def unlink(path: Any, *arguments: Any, **named: Any) -> None:
        nonlocal room
        real_unlink(path, *arguments, **named)
        if at and count >= at and Path(path) == ballast:
            room = ROOM

    with ExitStack() as patches:
        for name in _TAKES_ROOM:
            patches.enter_context(mock.patch.object(os, name, wrap(name, getattr(os, name))))
        patches.enter_context(mock.patch.object(os, "unlink", unlink))
        patches.enter_context(not_waiting())
        yield lambda: count


def loop_of(directory: Path, generator: ScriptedGenerator, *, candidates: int = 1, holdout: bool = False) -> Loop:
    place = directory / ".jumar" / "loops" / "t"
    if place.exists():
        store = LoopStore.open(place)
    else:
        prepare_root(directory / ".jumar")
        store = LoopStore.create(place, "t", {}, workdir=directory, created_at="2026-01-01T00:00:00Z")
    told = LoopSettings(
        loop_id="t",
        workdir=directory,
        artifacts=ArtifactRules(include=("out.txt",)),
        criteria=SelectionCriteria(threshold=None),
        stop=StopRules(max_iterations=len(SCRIPT)),
        candidates=candidates,
        workers=candidates,
    )
    parts = LoopParts(
        generator=generator,
        validators=(PassingValidator(refused=("0.7",)),),
        scorers=(ReadingScorer(),),
        holdout=(ReadingScorer(),) if holdout else (),
    )
    return Loop.of(store, told, parts, clock=ManualClock())


def facts(directory: Path, outcome: LoopOutcome) -> dict[str, Any]:
    store = LoopStore.open(directory / ".jumar" / "loops" / "t")
    assert verify(store).problems == ()
    return {
        "records": [
            (record.iteration_number, record.quality_score, record.verification_status, record.status, record.parent)
            for record in store.records()
        ],
        "readings": [(reading.kind, reading.iteration, reading.score) for reading in store.readings()],
        "chosen": outcome.selection and outcome.selection.selected_iteration,
        "stop": outcome.stop.reason,
        "tree": (directory / "out.txt").read_text(),
        "ends": [decision.kind for decision in store.decisions()].count("end"),
    }


@pytest.mark.parametrize(("candidates", "holdout", "number"), [(1, True, errno.ENOSPC), (2, False, errno.EDQUOT)])
def test_full_at_any_change(candidates: int, holdout: bool, number: int) -> None:
    place = Path(tempfile.mkdtemp(prefix="jumar-full-"))
    try:
        whole = _new(place / "whole")
        once = ScriptedGenerator(SCRIPT)
        with full_from(0, whole) as changes:
            expected = facts(whole, loop_of(whole, once, candidates=candidates, holdout=holdout).run())
            total = changes()
        for at in range(1, total + 1, 5 if candidates == 1 else 9):
            directory = _new(place / f"at-{at}")
            generator = ScriptedGenerator(SCRIPT)
            ballast = directory / ".jumar" / "loops" / "t" / BALLAST
            loop = loop_of(directory, generator, candidates=candidates, holdout=holdout)
            COUNTS["full"] += 1
            with full_from(at, ballast, number):
                stopped = run(loop, at)
            COUNTS["ended"] += stopped == "disk_full"
            assert stopped in {"disk_full", expected["stop"]}, "or what was left to do fitted into what was kept back"
            assert all(attempt.end is not None for attempt in loop.store.attempts()), at
            outcome = loop_of(directory, generator, candidates=candidates, holdout=holdout).run()
            assert facts(directory, outcome) == expected, at
            assert generator.calls == once.calls, f"an iteration that was paid for was paid for again: {at}"
            lost = [attempt.start for attempt in loop.store.attempts() if attempt.end and attempt.end.outcome == "lost"]
            assert lost == [], at
            shutil.rmtree(directory)
    finally:
        shutil.rmtree(place)


def run(loop: Loop, at: int) -> str:
    """Return why the loop stopped, with the exit code that belongs to it."""
    try:
        outcome = loop.run()
    except StoreWriteError as error:
        if "could not lock" not in str(error) or at > FIRST:  # without the lock there is no loop that could end
            raise
        return "disk_full"
    assert outcome.stop.reason != "disk_full" or outcome.exit_code == 11
    return outcome.stop.reason


def _new(directory: Path) -> Path:
    directory.mkdir()
    (directory / "out.txt").write_text("0.2")
    return directory


def test_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nfull disk: {COUNTS['full']} places, {COUNTS['ended']} loops that ended for it and went on")
