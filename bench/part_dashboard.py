"""The dashboard's answers over many loops and long ones, beside optuna-dashboard's over as many studies, in the same run."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from timing import medians, milliseconds

from jumar import BestOutputTracker

if TYPE_CHECKING:
    from timing import Row

LOOPS, LONG, STUDIES, ROUNDS = 10_000, 1_000, 300, 15
DIMENSIONS = {"validation": 0.7, "completeness": 0.8, "correctness": 0.75, "readability": 0.7, "efficiency": 0.65}


def measure(directory: Path) -> Iterator[Row]:
    many, few, long = directory / "many", directory / "few", directory / "long"
    _loops(many, LOOPS, 2)
    _loops(few, STUDIES, 2)
    _loops(long, 1, LONG)
    with _jumar(many) as (port, process, first):
        yield "dashboard, start to the first byte, 10,000 loops", milliseconds(first), "", "≤ 1 s"
        while b"still reading" in _get(port, "/"):
            time.sleep(0.5)
        (runs,) = medians([lambda: _get(port, "/")], ROUNDS)
        yield "… list of 10,000 loops", milliseconds(runs), "", "≤ 100 ms"
        yield "… its memory then", f"{process.memory_info().rss / 1e6:.0f} MB", "", "≤ 200 MB"
    with _jumar(long) as (port, process, _):
        _get(port, "/loops/loop-0")
        (page,) = medians([lambda: _get(port, "/loops/loop-0")], ROUNDS)
        yield "… a loop of 1,000 iterations", milliseconds(page), "", "≤ 150 ms"
        yield "… its memory then", f"{process.memory_info().rss / 1e6:.0f} MB", "", "≤ 200 MB"
    storage = f"sqlite:///{directory / 'studies.db'}"
    _studies(storage)
    with _jumar(few) as (port, _, _), _optuna(storage) as other:
        own, peer = medians([lambda: _get(port, "/"), lambda: _get(other, "/api/studies")], ROUNDS)
        what = f"… list of {STUDIES} loops"
        yield what, milliseconds(own), f"optuna-dashboard, as many studies {milliseconds(peer)}: {own / peer:.2f}×", ""


def _loops(directory: Path, count: int, iterations: int) -> None:
    directory.mkdir()
    os.chdir(directory)
    artifact = Path("text.md")
    for number in range(count):
        tracker = BestOutputTracker(f"loop-{number}", storage_path=directory / ".jumar" / "loops" / f"loop-{number}")
        for iteration in range(1, iterations + 1):
            artifact.write_text(f"{number} {iteration}\n")
            tracker.record_iteration(iteration_number=iteration, dimensions=DIMENSIONS, artifacts=[str(artifact)])
        tracker.close()


def _studies(storage: str) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for number in range(STUDIES):
        study = optuna.create_study(storage=storage, study_name=f"study-{number}")
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)


def _get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status}")
    return body


@contextmanager
def _jumar(directory: Path) -> Generator[tuple[int, psutil.Process, float]]:
    began = time.perf_counter()
    command = [sys.executable, "-m", "jumar.cli.entry", "dashboard", "--no-open"]
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True) as served:
        try:
            port = int(next(iter(served.stdout or ())).strip().rstrip("/").rpartition(":")[2])
            _get(port, "/healthz")
            yield port, psutil.Process(served.pid), time.perf_counter() - began
        finally:
            served.send_signal(signal.SIGINT)


@contextmanager
def _optuna(storage: str) -> Generator[int]:
    port = 8391
    command = [str(Path(sys.executable).with_name("optuna-dashboard")), storage, "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as served:
        try:
            for _ in range(100):
                time.sleep(0.2)
                try:
                    _get(port, "/api/studies")
                    break
                except OSError:
                    continue
            yield port
        finally:
            served.terminate()
