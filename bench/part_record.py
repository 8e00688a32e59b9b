"""``record_iteration`` with one 10 KB artifact: flat over 10,000 iterations, and beside MLflow and Optuna."""

from __future__ import annotations

import logging
import os
import statistics
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from timing import Row, milliseconds

from jumar import BestOutputTracker

DIMENSIONS = {"validation": 0.7, "completeness": 0.8, "correctness": 0.75, "readability": 0.7, "efficiency": 0.65}
LAST = 10_000
WINDOW = 200


def measure(directory: Path) -> Iterator[Row]:
    os.chdir(directory)
    long, short = Recorder(directory, "long"), Recorder(directory, "short")
    for _ in range(LAST - WINDOW):
        long.record()
    for _ in range(10):
        short.record()
    # in turns: what else the machine does then weighs on both
    pairs = [(short.record(), long.record()) for _ in range(WINDOW)]
    early, late = (statistics.median(times) for times in zip(*pairs, strict=True))
    yield (
        "`record_iteration`, 10 KB artifact",
        f"{milliseconds(late)} at {LAST:,}",
        f"{milliseconds(early)} at 10: {late / early:.2f}×",
        "≤ 1.3×",
    )
    for name, peer in (("MLflow run", mlflow_run), ("Optuna tell, SQLite", optuna_tell)):
        try:
            found = statistics.median(peer(directory))
        except ImportError as error:
            yield "`record_iteration`", milliseconds(early), f"{name}: not installed ({error.name})", "—"
            continue
        yield "`record_iteration`", milliseconds(early), f"{name} {milliseconds(found)}: {early / found:.2f}×", "—"


class Recorder:
    """A tracker whose next iteration has a new artifact of 10 KB."""

    def __init__(self, directory: Path, name: str) -> None:
        self._artifact = directory / f"{name}.md"
        self._tracker = BestOutputTracker(name, storage_path=directory / "loops" / name)
        self._number = 0

    def record(self) -> float:
        """Record the next iteration and return how many seconds that took."""
        self._number += 1
        self._artifact.write_bytes(f"{self._number}\n".encode() + b"x" * 10_000)
        began = time.perf_counter()
        self._tracker.record_iteration(iteration_number=self._number, dimensions=DIMENSIONS, artifacts=[self._artifact.name])
        return time.perf_counter() - began


def mlflow_run(directory: Path) -> list[float]:
    """One run with the same metrics and artifact, in MLflow's local file store."""
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    mlflow.set_tracking_uri((directory / "mlruns").as_uri())
    mlflow.set_experiment("bench")
    (directory / "out.md").write_bytes(b"x" * 10_000)
    times: list[float] = []
    for _ in range(60):
        began = time.perf_counter()
        with mlflow.start_run():
            mlflow.log_metrics({**DIMENSIONS, "quality": 75.0})
            mlflow.log_artifact(str(directory / "out.md"))
        times.append(time.perf_counter() - began)
    return times[10:]


def optuna_tell(directory: Path) -> list[float]:
    """Ask and tell one trial with the same numbers as user attributes; Optuna keeps no artifact here."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=f"sqlite:///{directory / 'optuna.db'}")
    times: list[float] = []
    for _ in range(60):
        trial = study.ask()
        began = time.perf_counter()
        study.tell(trial, 75.0)
        times.append(time.perf_counter() - began)
    return times[10:]
