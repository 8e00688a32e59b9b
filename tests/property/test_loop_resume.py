"""Promise 4: interrupted at any point and resumed equals uninterrupted."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.loop.engine.engine import Loop
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.settings import LoopParts, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.model import GenerateOutcome, ScoreReading, SelectionCriteria, StepContext, StopRules, TrendRule
from jumar.testing import ManualClock, PassingValidator, ReadingScorer, ScriptedGenerator

COUNTS = {"loops": 0, "interruptions": 0}
TEXTS = ("0.1", "0.2 ", "0.3", "0.5", "0.52", "0.7", "0.9", "words", None)


class Killed(BaseException):
    """Not an Exception: nothing in the loop may catch it, as nothing can catch SIGKILL."""


@dataclass
class Fuse:
    """Blows at the ``left``-th chance."""

    left: int | None

    def chance(self) -> None:
        if self.left is None:
            return
        self.left -= 1
        if self.left < 0:
            self.left = None
            COUNTS["interruptions"] += 1
            raise Killed


class FusedGenerator(ScriptedGenerator):
    fuse: Fuse

    def generate(self, context: StepContext) -> GenerateOutcome:
        self.fuse.chance()
        outcome = super().generate(context)
        self.fuse.chance()
        return outcome


class FusedScorer(ReadingScorer):
    fuse: Fuse

    def score(self, context: StepContext) -> ScoreReading:
        self.fuse.chance()
        return super().score(context)


@dataclass(frozen=True)
class Case:
    script: tuple[str | None, ...]
    continue_from: str
    rules: StopRules


cases = st.builds(
    Case,
    script=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6).map(tuple),
    continue_from=st.sampled_from(["previous", "best"]),
    rules=st.builds(
        StopRules,
        target=st.sampled_from([None, 70.0]),
        max_iterations=st.integers(1, 6),
        max_seconds=st.sampled_from([None, 3.5]),
        plateau=st.sampled_from([None, TrendRule(window=2, delta=5)]),
        decline=st.sampled_from([None, TrendRule(window=2, delta=0)]),
        consecutive_failures=st.integers(1, 3),
    ),
)


def run(directory: Path, case: Case, generator: FusedGenerator, fuse: Fuse) -> LoopOutcome:
    loop_directory = directory / ".jumar" / "loops" / "t"
    if loop_directory.exists():
        store = LoopStore.open(loop_directory)
    else:
        prepare_root(directory / ".jumar")
        store = LoopStore.create(loop_directory, "t", {}, workdir=directory, created_at="2026-01-01T00:00:00Z")
    scorer = FusedScorer()
    generator.fuse = scorer.fuse = fuse
    configured = LoopSettings(
        loop_id="t",
        workdir=directory,
        continue_from=case.continue_from,  # type: ignore[arg-type]
        artifacts=ArtifactRules(include=("out.txt",)),
        criteria=SelectionCriteria(threshold=None),
        stop=case.rules,
    )
    parts = LoopParts(generator=generator, validators=(PassingValidator(refused=("0.7",)),), scorers=(scorer,))

    def hear(_event: object) -> None:
        fuse.chance()

    return Loop.of(store, configured, parts, clock=ManualClock(), listener=hear).run()


def facts(directory: Path, outcome: LoopOutcome) -> dict[str, Any]:
    store = LoopStore.open(directory / ".jumar" / "loops" / "t")
    assert () == verify(store).problems
    chosen = None if outcome.selection is None else outcome.selection.to_json()
    records = [
        (
            *(record.iteration_number, record.quality_score, record.quality_delta, record.status),
            *(record.verification_status, record.parent),
            [(detail.path, detail.content_hash) for detail in record.artifacts_detail],
        )
        for record in store.records()
    ]
    return {
        "records": records,
        "chosen": chosen,
        "stop": (outcome.stop.reason, outcome.stop.detail),
        "code": outcome.exit_code,
        "tree": (directory / "out.txt").read_text(),
    }


@settings(deadline=None)
@given(case=cases, fuses=st.lists(st.integers(0, 30), min_size=1, max_size=4))
def test_interrupted_and_resumed_equals_uninterrupted(case: Case, fuses: list[int]) -> None:
    COUNTS["loops"] += 1
    place = Path(tempfile.mkdtemp(prefix="jumar-resume-"))
    try:
        whole, broken = place / "whole", place / "broken"
        for directory in (whole, broken):
            directory.mkdir()
            (directory / "out.txt").write_text("0.2")
        once = FusedGenerator(case.script)
        expected = facts(whole, run(whole, case, once, Fuse(None)))

        again = FusedGenerator(case.script)
        lost = 0
        pending = list(fuses)
        while True:
            before = again.calls
            fuse = Fuse(pending.pop(0) if pending else None)
            try:
                outcome = run(broken, case, again, fuse)
                break
            except Killed:
                store = LoopStore.open(broken / ".jumar" / "loops" / "t")
                lost += sum(attempt.end is None and attempt.start.purpose == "generate" for attempt in store.attempts())
                assert again.calls >= before
        if outcome.already_finished:
            expected["code"] = outcome.exit_code
        assert expected == facts(broken, outcome)
        assert once.calls <= again.calls <= once.calls + lost, "a pass that was paid for was paid for again"
    finally:
        shutil.rmtree(place)


def test_counts_are_printed(capsys: Any) -> None:
    with capsys.disabled():
        print(f"\nresume: {COUNTS['loops']} loops, {COUNTS['interruptions']} interruptions")
