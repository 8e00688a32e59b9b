"""Commands on a real Dask cluster of 1, 2 and 4 worker processes, and with one of two killed at work; wall clock, in turns.

Not among the parts of ``make bench``: ``python bench machines``, some minutes. ``JUMAR_DATA`` has the recorded judgements.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import part_cases
import part_cheap

from jumar.cases.chain import run_chain
from jumar.integrations.dask import dask_executor
from jumar.model.pipeline import Step

if TYPE_CHECKING:
    from timing import Row

WORKERS = (1, 2, 4)
ROUNDS = 2
APART = 8
ITEMS = 40_000
KILLED_AFTER = 3.0

Work = Callable[[str | None, Path], None]
"""Runs a command on the cluster at an address, or here, into a folder that is not there yet."""


def measure(directory: Path) -> Iterator[Row]:
    for name, work in works(directory).items():
        alone: list[float] = []
        found: dict[int, list[float]] = {count: [] for count in WORKERS}
        killed: list[float] = []
        for number in range(ROUNDS):
            place = directory / f"{name.split()[1]}-{number}"
            place.mkdir()
            alone.append(seconds(work, None, place / "alone"))
            for count, times in found.items():
                with part_cases.cluster(place / f"cluster-{count}", count) as (address, _):
                    times.append(seconds(work, address, place / f"out-{count}"))
            with part_cases.cluster(place / "cluster-killed", 2) as (address, kill):
                clock = threading.Timer(KILLED_AFTER, kill)
                clock.start()
                killed.append(seconds(work, address, place / "out-killed"))
                clock.cancel()
        here = statistics.median(alone)
        middles = [statistics.median(times) for times in found.values()]
        each = [f"{count}: {middle:.1f} s ({here / middle:.2f}×)" for count, middle in zip(WORKERS, middles, strict=True)]
        shown = ", ".join(each)
        yield name, f"here {here:.1f} s", f"workers {shown}; 2, one killed: {statistics.median(killed):.1f} s", "—"


def works(directory: Path) -> dict[str, Work]:
    """Return what is measured, by its name."""
    return {
        f"`jumar cases run`, {APART} cases of 0.8 s": cases(directory),
        f"`jumar evaluate --mode cheap`, {ITEMS:,} items": evaluate(directory),
        "`jumar learn --robust`, one iteration": learn(),
    }


def seconds(work: Work, address: str | None, output: Path) -> float:
    began = time.perf_counter()
    work(address, output)
    return time.perf_counter() - began


def cases(directory: Path) -> Work:
    (directory / "slow.py").write_text(part_cases.SLOW)
    (directory / "judged.json").write_text(json.dumps(part_cases.JUDGED))
    program = Step(name="all", command="python3 slow.py && cp judged.json $JUMAR_OUT_JUDGE", outputs=("judge",))

    def work(address: str | None, output: Path) -> None:
        chain = part_cases.settings(directory, f"{output.parent.name}-{output.name}", APART, [program], carry_forward=False)
        with ExitStack() as stack:
            run_chain(chain, executor=None if address is None else stack.enter_context(dask_executor(address)))

    return work


def evaluate(directory: Path) -> Work:
    draw = random.Random(1)
    items = directory / "many.jsonl"
    with items.open("w") as file:
        for number in range(ITEMS):
            file.write(json.dumps({"id": f"i{number}", "text": part_cheap.sentence(draw, 120)}) + "\n")
    return command("evaluate", str(items), "--mode", "cheap", "-q", output="--per-item")


def learn() -> Work:
    items = Path(os.environ.get("JUMAR_DATA", "../shared/data")) / "judged" / "vicuna.jsonl"
    judge = ("--judge", f"replay:{items.absolute()}", "--max-iterations", "1")
    return command("learn", "run", str(items.absolute()), *judge, "--robust", "-q", output="-o")


def command(*words: str, output: str) -> Work:
    def work(address: str | None, place: Path) -> None:
        executor = () if address is None else ("--executor", f"dask://{address}")
        part_cheap.run([*part_cheap.COMMAND, *words, *executor, output, str(place)])

    return work
