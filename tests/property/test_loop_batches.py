"""Promise 4 for candidates side by side: killed at any point, at any change of the disk, and resumed equals uninterrupted."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dying import Killed, Way, dying
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.loop.engine.engine import Loop
from jumar.loop.engine.outcome import LoopOutcome
from jumar.loop.settings import LoopParts, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.model import SelectionCriteria, StopRules, TrendRule, Usage
from jumar.model.attempts import Attempt
from jumar.testing import ManualClock, PassingValidator, ReadingScorer, ScriptedGenerator

COUNTS: Counter[str] = Counter()
TEXTS = ("0.1", "0.2 ", "0.3", "0.5", "0.52", "0.7", "0.9", "words", None)


@dataclass(frozen=True)
class Case:
    script: tuple[str | None, ...]
    candidates: int
    workers: int
    continue_from: str
    isolation: str
    rules: StopRules


cases = st.builds(
    Case,
    script=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=7).map(tuple),
    candidates=st.integers(1, 3),
    workers=st.integers(1, 2),
    continue_from=st.sampled_from(["previous", "best"]),
    isolation=st.sampled_from(["none", "copy"]),
    rules=st.builds(
        StopRules,
        target=st.sampled_from([None, 90.0]),
        max_iterations=st.integers(1, 7),
        plateau=st.sampled_from([None, TrendRule(window=2, delta=5)]),
        decline=st.sampled_from([None, TrendRule(window=2, delta=0)]),
        consecutive_failures=st.integers(1, 4),
    ),
)
deaths = st.tuples(st.integers(1, 220), st.sampled_from(["killed before", "killed after"]))


def run(directory: Path, case: Case, generator: ScriptedGenerator) -> LoopOutcome:
    place = directory / ".jumar" / "loops" / "t"
    if (place / "loop.json").exists():
        store = LoopStore.open(place)
    else:
        prepare_root(directory / ".jumar")
        store = LoopStore.create(place, "t", {}, workdir=directory, created_at="2026-01-01T00:00:00Z")
    configured = LoopSettings(
        loop_id="t",
        workdir=directory,
        continue_from=case.continue_from,  # type: ignore[arg-type]
        isolation=case.isolation,  # type: ignore[arg-type]
        artifacts=ArtifactRules(include=("out.txt",)),
        criteria=SelectionCriteria(threshold=None),
        stop=case.rules,
        candidates=case.candidates,
        workers=min(case.workers, case.candidates),
    )
    parts = LoopParts(generator=generator, validators=(PassingValidator(refused=("0.7",)),), scorers=(ReadingScorer(),))
    return Loop.of(store, configured, parts, clock=ManualClock()).run()


def stored(directory: Path) -> LoopStore:
    return LoopStore.open(directory / ".jumar" / "loops" / "t")


def facts(directory: Path) -> dict[str, Any]:
    store = stored(directory)
    assert () == verify(store).problems
    records = [
        (
            *(record.iteration_number, record.quality_score, record.quality_delta, record.status, record.failure),
            *(record.verification_status, record.parent, record.batch, record.candidate),
            [(detail.path, detail.content_hash) for detail in record.artifacts_detail],
        )
        for record in store.records()
    ]
    decided = [
        (one.kind, one.best_iteration, one.final_iteration, one.reason)
        for one in store.decisions()
        if one.kind in {"select", "end"}
    ]
    return {"records": records, "decided": decided, "tree": (directory / "out.txt").read_text()}


def ended(directory: Path) -> bool:
    there = (directory / ".jumar" / "loops" / "t" / "loop.json").exists()
    return there and any(one.kind == "end" for one in stored(directory).decisions())


def generated(attempts: tuple[Attempt, ...]) -> Counter[int]:
    """How often each iteration was generated to an end."""
    return Counter(
        one.start.iteration for one in attempts if one.start.purpose == "generate" and one.end and one.end.outcome != "lost"
    )


@settings(deadline=None)
@given(case=cases, pending=st.lists(deaths, min_size=1, max_size=4))
def test_interrupted_and_resumed_equals_uninterrupted(case: Case, pending: list[tuple[int, Way]]) -> None:
    COUNTS["loops"] += 1
    place = Path(tempfile.mkdtemp(prefix="jumar-batches-"))
    try:
        whole, broken = place / "whole", place / "broken"
        for directory in (whole, broken):
            directory.mkdir()
            (directory / "out.txt").write_text("0.2")
        usage = Usage(token_cost_usd=0.1, tokens_used=10)
        outcome = run(whole, case, ScriptedGenerator(case.script, usage=usage))
        expected = facts(whole)

        generator = ScriptedGenerator(case.script, usage=usage)
        resumed: LoopOutcome | None = None
        while resumed is None and not ended(broken):
            at, way = pending.pop(0) if pending else (0, "error")
            try:
                with dying(at, way):
                    resumed = run(broken, case, generator)
            except Killed:
                COUNTS["deaths"] += 1
        assert expected == facts(broken)
        once = generated(stored(whole).attempts())
        assert once == generated(stored(broken).attempts()), "a pass that was paid for was paid for again"
        COUNTS["iterations"] += len(once)
        if resumed is not None:
            assert (outcome.stop, outcome.selection) == (resumed.stop, resumed.selection)
            spent = 0.1 * generated(stored(broken).attempts()).total()
            assert resumed.spend.known_cost_usd == pytest.approx(spent)
    finally:
        shutil.rmtree(place)


def test_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nbatches: {COUNTS['loops']} loops, {COUNTS['deaths']} deaths, {COUNTS['iterations']} iterations")
