"""What a judge said is paid for once: killed at any change of the disk, its answers are taken up; a planted record is not."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dying import Killed, Way, dying, not_waiting

from jumar.core.codec import encode
from jumar.loop.engine.engine import Loop
from jumar.loop.settings import LoopParts, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.model import ScoreReading, SelectionCriteria, StepContext, StopRules
from jumar.testing import ManualClock, PassingValidator, ReadingScorer, ScriptedGenerator

SCRIPT = ("0.5", "words", "0.7")
COUNTS = {"kills": 0, "taken up": 0}


class Judge(ReadingScorer):
    """Counts how often it is asked, which is what costs."""

    asked: Counter[int]

    def score(self, context: StepContext) -> ScoreReading:
        self.asked[context.iteration] += 1
        return super().score(context)


@pytest.fixture
def place() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="jumar-answers-"))
    yield made
    shutil.rmtree(made)


def loop_of(
    directory: Path, generator: ScriptedGenerator, asked: Counter[int], *, candidates: int = 1, told: list[object] | None = None
) -> Loop:
    where = directory / ".jumar" / "loops" / "t"
    if where.exists():
        store = LoopStore.open(where)
    else:
        directory.mkdir()
        (directory / "out.txt").write_text("0.2")
        prepare_root(directory / ".jumar")
        store = LoopStore.create(where, "t", {}, workdir=directory, created_at="2026-01-01T00:00:00Z")
    judge = Judge()
    judge.asked = asked
    configured = LoopSettings(
        loop_id="t",
        workdir=directory,
        artifacts=ArtifactRules(include=("out.txt",)),
        criteria=SelectionCriteria(threshold=None),
        stop=StopRules(max_iterations=len(SCRIPT)),
        candidates=candidates,
    )
    parts = LoopParts(generator=generator, validators=(PassingValidator(refused=("0.7",)),), scorers=(judge,))
    return Loop.of(store, configured, parts, clock=ManualClock(), listener=([] if told is None else told).append)


def facts(directory: Path) -> list[tuple[Any, ...]]:
    store = LoopStore.open(directory / ".jumar" / "loops" / "t")
    assert verify(store).problems == ()
    return [
        (record.iteration_number, record.quality_score, record.verification_status, record.status, record.readings, record.checks)
        for record in (replace(each, readings=tuple(replace(r, seconds=0.0) for r in each.readings)) for each in store.records())
    ]


@pytest.mark.parametrize(("way", "candidates"), [("killed before", 1), ("killed after", 2)])
def test_killed_at_any_change_nothing_is_asked_twice(place: Path, way: Way, candidates: int) -> None:
    with not_waiting():
        whole = loop_of(place / "whole", ScriptedGenerator(SCRIPT), Counter(), candidates=candidates)
        with dying(0, way) as counted:
            whole.run()
            total = counted()
        expected = facts(place / "whole")
        for at in range(1, total + 1, 11 if candidates == 1 else 17):
            directory, asked, generator = place / f"at-{at}", Counter[int](), ScriptedGenerator(SCRIPT)
            loop = loop_of(directory, generator, asked, candidates=candidates)
            with dying(at, way):
                try:
                    loop.run()
                except Killed:
                    COUNTS["kills"] += 1
            before = asked.copy()
            again = loop_of(directory, generator, asked, candidates=candidates)
            ended = [each.start for each in again.store.attempts() if each.start.purpose == "score" and each.end is not None]
            again.run()
            assert facts(directory) == expected, at
            for start in ended:
                COUNTS["taken up"] += 1
                assert asked[start.iteration] == before[start.iteration], (
                    f"killed at {at}: iteration {start.iteration} was asked again"
                )
            scored = [each for each in again.store.attempts() if each.start.purpose == "score" and each.end is not None]
            finished = Counter(each.start.iteration for each in scored if each.end and each.end.outcome == "ok")
            assert not finished or max(finished.values()) == 1, at
            shutil.rmtree(directory)


def waiting(place: Path, asked: Counter[int], *, answered: bool) -> tuple[Path, ScriptedGenerator]:
    """Return a loop whose first iteration waits in ``pending/``, with its evaluation ended or not yet begun."""
    generator = ScriptedGenerator(SCRIPT)
    loop = loop_of(place / "work", generator, asked)
    store = loop.store

    class Dead(BaseException):
        pass

    def dies(*_arguments: object) -> None:
        raise Dead

    real = store.commit if answered else store.begin_attempt

    def until_the_first_pass(*arguments: Any, **named: Any) -> Any:
        number = arguments[0].number if answered else arguments[0]
        if number == 1 and (answered or named["purpose"] == "score"):
            dies()
        return real(*arguments, **named)

    setattr(store, "commit" if answered else "begin_attempt", until_the_first_pass)
    with pytest.raises(Dead):
        loop.run()
    return store.paths.pending_iteration(1), generator


def plant(pending: Path, loop: Path, **changes: Any) -> None:
    """Put a record there as somebody would who read the one of the start."""
    data = json.loads((loop / "iterations" / "iteration-000" / "metrics.json").read_bytes())
    stage = json.loads((pending / "stage.json").read_bytes())
    manifest = json.loads((pending / "manifest.json").read_bytes())
    data |= {"iteration_number": 1, "nonce": stage["nonce"], "attempt": stage["attempt"], "parent": 0, "quality_score": 100.0}
    data |= {"dimensions": {"quality": 1.0}, "verification_status": "passed", "status": "ok"}
    data["artifacts_detail"] = manifest["entries"]
    data["readings"][0]["score"] = 1.0
    data |= changes
    data.pop("seal")
    (pending / "metrics.json").write_bytes(encode(data, sealed=True))


@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("changes", [{}, {"nonce": "other"}, {"attempt": 7}, {"artifacts_detail": []}])
def test_a_record_that_somebody_put_there_is_not_believed(place: Path, changes: dict[str, Any], *, answered: bool) -> None:
    asked: Counter[int] = Counter()
    pending, generator = waiting(place, asked, answered=answered)
    store = LoopStore.open(place / "work" / ".jumar" / "loops" / "t")
    plant(pending, store.paths.directory, **changes)
    told: list[object] = []
    loop_of(place / "work", generator, asked, told=told).run()
    assert "pending/iteration-001/metrics.json was not written by jumar" in str(told)
    assert [score for _, score, *_ in facts(place / "work")] == [20.0, 50.0, None, 70.0]
    assert asked[1] == 1
    assert (store.paths.directory / "quarantine" / "0001-metrics.json").is_file()


def test_a_record_that_is_ours_is_acknowledged(place: Path) -> None:
    asked: Counter[int] = Counter()
    generator = ScriptedGenerator(SCRIPT)
    loop = loop_of(place / "work", generator, asked)
    real = loop.store._acknowledge

    def dies(directory: Path, target: Path) -> None:
        if target.name == "iteration-001":
            raise Killed
        real(directory, target)

    loop.store._acknowledge = dies
    with pytest.raises(Killed):
        loop.run()
    stamp = json.loads((loop.store.paths.pending_iteration(1) / "metrics.json").read_bytes())["seal"]
    loop_of(place / "work", generator, asked).run()
    assert json.loads((loop.store.paths.iteration(1) / "metrics.json").read_bytes())["seal"] == stamp
    assert asked[1] == 1


def test_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nanswers kept: {COUNTS['kills']} kills, {COUNTS['taken up']} evaluations that were taken up")
