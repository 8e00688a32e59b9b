"""A chain of 1,000 cases: what a case costs beside its programs, and that the last costs what the first did; Dask workers."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

from timing import Row, milliseconds

from jumar.cases.chain import run_chain
from jumar.cases.records import CaseEnded, CaseEvent, CaseLimits
from jumar.cases.run_store import CaseSource
from jumar.cases.settings import ChainSettings, DryRun
from jumar.cases.steps import DRY_STEPS
from jumar.model.ordering import parse_order
from jumar.model.pipeline import DEFAULT_KEYS, Step
from jumar.processes.control import StopSwitch

CASES = 1_000
WINDOW = 100
APART = 6
ROUNDS = 3
SLOW = "import os, time; t = time.process_time()\nwhile time.process_time() < t + 0.2: pass\ntime.sleep(0.6)"
"""A program that works for 0.2 seconds and waits for 0.6, as one does that asks a service."""
JUDGED = {
    "composite_score": 5,
    "dimensions": [{"name": n, "score": 5} for n in ("Root Cause Accuracy", "Causal Chain Completeness")],
}


def measure(directory: Path) -> Iterator[Row]:
    yield from flat(directory)
    try:
        yield from side_by_side(directory)
    except ImportError as error:
        yield "two Dask workers", "—", f"not installed ({error.name})", "—"


def settings(directory: Path, name: str, cases: int, steps: Sequence[Step], **more: object) -> ChainSettings:
    """Return a chain of ``cases`` cases with one iteration each."""
    listed = (
        CaseSource(number=n, case_id=f"case{n}", report="report", prompt="why?", source="here") for n in range(1, cases + 1)
    )
    return ChainSettings(
        run_id=name,
        output_root=directory / "runs",
        cases=tuple(listed),
        steps=tuple(steps),
        order=parse_order("accuracy,overall,chain", known=tuple(DEFAULT_KEYS)),
        limits=CaseLimits(
            thresholds=MappingProxyType({}), max_iters=1, max_seconds=1e9
        ),  # a limit of the run is looked at each time
        from_scratch=True,
        workdir=directory,
        **more,  # type: ignore[arg-type]
    )


# ----------------------------------------------------------------------------------------------- one after the other


def flat(directory: Path) -> Iterator[Row]:
    """A dry run of 1,000 cases with one iteration each, everything carried; beside its end, in turns, the begin of another."""
    # no entity is added, so that what is carried stays as small as it was and only the chain can grow
    scores: dict[int | None, tuple[dict[str, int], ...]] = {None: ({"accuracy": 5, "overall": 5, "chain": 5, "diff": 0},)}
    dry = DryRun(scores=MappingProxyType(scores))
    long, short = (Chain(settings(directory, name, CASES, DRY_STEPS, dry_run=dry)) for name in ("long", "short"))
    times = [long.next() for _ in range(CASES - WINDOW)]
    # in turns: what else the machine does then weighs on both
    pairs = [(short.next(), long.next()) for _ in range(WINDOW)]
    first, last = (statistics.median(each) for each in zip(*pairs, strict=True))
    for chain in (long, short):
        chain.end()
    whole = sum(times) + sum(late for _, late in pairs)
    yield (
        f"dry run of {CASES:,} cases, carried: a case at {CASES - WINDOW + 1}–{CASES:,}",
        milliseconds(last),
        f"{milliseconds(first)} at 1–{WINDOW}: {last / first:.2f}×",
        "flat",
    )
    yield f"… all {CASES:,} cases", f"{whole:.1f} s", f"median of a case {milliseconds(statistics.median(times))}", "—"
    os.sync()


class Chain:
    """A run in a thread of its own that is let on by one case at a time."""

    def __init__(self, chain: ChainSettings) -> None:
        self._switch = StopSwitch()
        self._go, self._ended = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(chain,))
        self._thread.start()

    def next(self) -> float:
        """Run the next case and return how many seconds that took."""
        began = time.perf_counter()
        self._go.release()
        self._ended.acquire()
        return time.perf_counter() - began

    def end(self) -> None:
        """Stop before the next case."""
        self._switch.finish()
        self._go.release()
        self._thread.join()

    def _run(self, chain: ChainSettings) -> None:
        self._go.acquire()
        run_chain(chain, switch=self._switch, listener=self._hear)

    def _hear(self, event: CaseEvent) -> None:
        if isinstance(event, CaseEnded):
            self._ended.release()
            self._go.acquire()


# -------------------------------------------------------------------------------------------------------- side by side


def side_by_side(directory: Path) -> Iterator[Row]:
    """Independent cases on one Dask worker and on two, in turns; the workers are there before."""
    from jumar.integrations.dask import dask_executor

    (directory / "slow.py").write_text(SLOW)
    (directory / "judged.json").write_text(json.dumps(JUDGED))
    program = Step(name="all", command=f"{sys.executable} slow.py && cp judged.json $JUMAR_OUT_JUDGE", outputs=("judge",))
    found: dict[int, list[float]] = {1: [], 2: []}
    with ExitStack() as stack:
        addresses = {count: stack.enter_context(cluster(directory / f"cluster-{count}", count))[0] for count in found}
        for number in range(ROUNDS):
            for count, times in found.items():
                chain = settings(directory, f"{count}-{number}", APART, [program], carry_forward=False)
                with dask_executor(addresses[count]) as executor:
                    began = time.perf_counter()
                    run_chain(chain, executor=executor)
                    times.append(time.perf_counter() - began)
    one, two = (statistics.median(found[count]) for count in (1, 2))
    yield (
        f"{APART} independent cases, a step of 0.8 s each, 2 Dask workers",
        f"{two:.1f} s",
        f"1 worker {one:.1f} s: {one / two:.2f}× faster",
        "towards 2×",
    )


@contextmanager
def cluster(directory: Path, workers: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Start a scheduler and workers with one thread each; give the address, and what kills the last one. All end afterwards."""
    import distributed

    directory.mkdir()
    file = directory / "scheduler.json"
    common = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file))
    module = ("-m", "distributed.cli.dask_scheduler"), ("-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny")
    commands = [(*module[0], "--port", "0"), *[(*module[1], "--local-directory", str(directory))] * workers]
    started = [
        subprocess.Popen([sys.executable, *command, *common], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in commands
    ]
    try:
        while not (file.exists() and file.read_text().endswith("}")):
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"].removeprefix("tcp://")
        with distributed.Client(f"tcp://{address}", set_as_default=False) as client:
            client.wait_for_workers(workers)
        yield address, started[-1].kill
    finally:
        for process in started:
            process.kill()
            process.wait()
