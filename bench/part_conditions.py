"""What real conditions cost: the ledger and the events for an iteration, and candidates side by side against the ideal."""

from __future__ import annotations

import functools
import math
import os
import shlex
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from timing import Row, milliseconds, shortest

from jumar.core.clock import SystemClock
from jumar.core.redaction import Redactor
from jumar.loop.engine import accounting as purse
from jumar.loop.engine.engine import Loop
from jumar.loop.engine.run_context import LoopRun
from jumar.loop.events.events import AttemptStarted, Event, IterationRecorded
from jumar.loop.generators.generators import CommandGenerator
from jumar.loop.settings import LoopParts, LoopSettings
from jumar.loop.snapshots.matching import ArtifactRules
from jumar.loop.store.in_force import RunningTotals
from jumar.loop.store.layout import prepare_root
from jumar.loop.store.loop_store import LoopStore
from jumar.model import GenerateOutcome, ScoreReading, StepContext, StopRules, Usage
from jumar.model.budget.pricing import Budget
from jumar.processes.process import run_command

ITERATIONS = 500
CANDIDATES, WORKERS, SECONDS = 8, 2, 1.0


class Trivial:
    """Changes one small file, says what it cost, and scores it with a number."""

    dimension = "quality"

    def generate(self, context: StepContext) -> GenerateOutcome:
        (context.workdir / "out.md").write_text(f"{context.iteration}\n" * 100)
        return GenerateOutcome(exit_code=0, seconds=0.0, usage=Usage(token_cost_usd=0.01, tokens_used=100))

    def score(self, context: StepContext) -> ScoreReading:
        return ScoreReading(dimension=self.dimension, score=0.5 + (context.iteration % 7) / 100)


LOG = (
    b"2026-10-12T10:11:12.345Z INFO worker-3 the token of request 7 was read, key 12 of 40\n"
    b'10.0.3.4 "GET /static/app.5f3c.js?v=7 HTTP/1.1" 200 5120 "https://example.com/a/b" "Mozilla/5.0 (X11; Linux x86_64)"\n'
    b"tests/test_module_12.py::test_something_that_is_long PASSED [ 40%]\n"
    b'{"level": "info", "request_id": "2d1568b0c6f4a9b7d3e2f1a0b9c8d7e6", "path": "/api/v1/items/17", "status": 200}\n'
)


def measure(directory: Path) -> Iterator[Row]:
    yield redaction(50_000_000)
    yield flood(directory, 1_000_000_000)
    spent: dict[str, float] = defaultdict(float)
    with timed(spent):
        engine = run(directory / "ledger", Trivial(), iterations=ITERATIONS)
    for name, aim in (("ledger", ""), ("events", "")):
        share = spent[name] / engine
        yield f"{name}, for an iteration", milliseconds(spent[name] / ITERATIONS), f"{share:.1%} of the engine's own time", aim
    both = (spent["ledger"] + spent["events"]) / engine
    yield "ledger and events together", f"{both:.1%}", f"{milliseconds(engine / ITERATIONS)} for an iteration", "≤ 5 %"
    command = CommandGenerator(f"echo $JUMAR_ITERATION > out.md; sleep {SECONDS:g}")
    took = run(directory / "parallel", command, iterations=CANDIDATES, candidates=CANDIDATES, workers=WORKERS)
    ideal = math.ceil(CANDIDATES / WORKERS) * SECONDS
    what = f"{CANDIDATES} candidates of {SECONDS:g} s, {WORKERS} workers"
    yield what, milliseconds(took), f"ideal {ideal:g} s: {took / ideal:.2f}×", "≤ 1.10×"


@contextmanager
def timed(spent: dict[str, float]) -> Iterator[None]:
    """Add up the seconds in the calls of the ledger and of the events. None of them calls another."""

    def timing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                spent[name] += time.perf_counter() - began

        return call

    places = (
        ("ledger", RunningTotals, "spend"),
        ("ledger", RunningTotals, "reservation"),
        ("ledger", purse, "_gate"),
        ("events", LoopRun, "tell"),
    )
    with ExitStack() as patches:
        for name, owner, attribute in places:
            patches.enter_context(mock.patch.object(owner, attribute, timing(name, getattr(owner, attribute))))
        yield


def redaction(size: int) -> Row:
    """Return what it costs to look through a log, as it comes from a program: known values and formats, against values alone."""
    values = {f"NAME_{number}": f"{number}-a-value-{number}" for number in range(8)}
    chunk = (LOG * (65_536 // len(LOG) + 1))[:65_536]

    def look_through(redactor: Redactor) -> None:
        stream = redactor.stream()
        for _ in range(size // len(chunk)):
            stream.feed(chunk)

    both, alone = shortest(
        [functools.partial(look_through, Redactor(values)), functools.partial(look_through, Redactor(values, shapes=False))], 3
    )
    return f"redaction, {size / 1e6:.0f} MB of log", f"{size / 1e6 / both:.0f} MB/s", f"8 values alone: {both / alone:.1f}×", "—"


def flood(directory: Path, size: int) -> Row:
    """Return what a command costs that prints more than is kept, against printing it into ``cat``."""
    printing = ["head", "-c", str(size), "/dev/zero"]
    environment = dict(os.environ)

    def into_cat() -> None:
        subprocess.run(f"{shlex.join(printing)} | cat > /dev/null", shell=True, check=True)

    def into_jumar() -> None:
        run_command(printing, cwd=directory, env=environment, timeout=None, log=directory / "flood.log")

    ours, alone = shortest([into_jumar, into_cat], 3)
    return f"a command that prints {size / 1e9:.0f} GB", f"{size / 1e6 / ours:.0f} MB/s", f"into cat: {ours / alone:.1f}×", "≤ 2×"


def run(work: Path, generator: Any, *, iterations: int, candidates: int = 1, workers: int = 1) -> float:
    """Run a loop under a budget; return the seconds from the start of the first iteration to the last one's record."""
    work.mkdir()
    (work / "out.md").write_text("0\n")
    prepare_root(work / ".jumar")
    store = LoopStore.create(work / ".jumar" / "loops" / "bench", "bench", {}, workdir=work, created_at=SystemClock().now())
    settings = LoopSettings(
        loop_id="bench",
        workdir=work,
        artifacts=ArtifactRules(include=("out.md",)),
        stop=StopRules(max_iterations=iterations, consecutive_failures=iterations),
        budget=Budget(
            max_cost_usd=1e6,
            max_tokens=10**12,
            max_seconds=1e6,
            on_unknown_cost="allow",
            reserve_cost_usd=0.1,
            reserve_tokens=100,
        ),
        candidates=candidates,
        workers=workers,
    )
    moments: list[float] = []

    def hear(event: Event) -> None:
        if isinstance(event, IterationRecorded) or (isinstance(event, AttemptStarted) and event.purpose == "generate"):
            moments.append(time.perf_counter())

    outcome = Loop.of(store, settings, LoopParts(generator=generator, scorers=(Trivial(),)), listener=hear).run()
    if outcome.selection is None or outcome.selection.final_iteration != iterations:
        raise SystemExit(f"the loop did not make its {iterations} passes: {outcome.stop.detail}")
    return moments[-1] - moments[1]  # the first is the record of the start
