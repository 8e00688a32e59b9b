"""The engine's own time for an iteration, generator and scorers excluded, its memory over many, and how soon it goes on."""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from resuming import begun, resume_row
from timing import Row, milliseconds

from jumar.loop.engine.engine import Loop
from jumar.loop.events.events import Event, IterationRecorded
from jumar.loop.settings import LoopParts, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.model import GenerateOutcome, ScoreReading, StepContext, StopRules

ITERATIONS = 10_000
EARLY = 1_000


class Trivial:
    """Changes one small file and scores it with a number: everything else that takes time is the engine's."""

    dimension = "quality"

    def generate(self, context: StepContext) -> GenerateOutcome:
        (context.workdir / "out.md").write_text(f"{context.iteration}\n" * 100)
        return GenerateOutcome(exit_code=0, seconds=0.0)

    def score(self, context: StepContext) -> ScoreReading:
        return ScoreReading(dimension=self.dimension, score=0.5 + (context.iteration % 7) / 100)


def measure(directory: Path) -> Iterator[Row]:
    memory: dict[int, int] = {}
    late = statistics.median(gaps(directory / "long", ITERATIONS, memory)[-500:])
    early = statistics.median(gaps(directory / "short", 510, {})[10:])  # directly after: the machine is as busy as it was
    yield "engine, one iteration", milliseconds(early), "limit 20 ms", "≤ 20 ms"
    yield f"… at {ITERATIONS:,} iterations", milliseconds(late), f"{milliseconds(early)} at 10: {late / early:.2f}×", "flat"
    start, end = memory[EARLY], memory[ITERATIONS]
    yield (
        f"memory at {ITERATIONS:,} iterations",
        f"{end / 1e6:.0f} MB",
        f"{start / 1e6:.0f} MB at {EARLY:,}: {end / start:.2f}×",
        "flat",
    )
    yield resume_row(directory / "long", ITERATIONS)
    os.sync()


def gaps(work: Path, iterations: int, memory: dict[int, int]) -> list[float]:
    """Run a loop and return the seconds between one recorded iteration and the next; fill in what memory it had."""
    store = begun(work)
    settings = LoopSettings(
        loop_id="bench",
        workdir=work,
        artifacts=ArtifactRules(include=("out.md",)),
        stop=StopRules(max_iterations=iterations),
    )
    process = psutil.Process()
    moments: list[float] = []

    def hear(event: Event) -> None:
        if isinstance(event, IterationRecorded):
            moments.append(time.perf_counter())
            if event.record.iteration_number in {EARLY, ITERATIONS}:
                memory[event.record.iteration_number] = process.memory_info().rss

    trivial = Trivial()
    Loop.of(store, settings, LoopParts(generator=trivial, scorers=(trivial,)), listener=hear).run()
    return [later - earlier for earlier, later in itertools.pairwise(moments)]
