"""A Dask cluster of real processes on this machine: a scheduler, and workers that tests can kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Cluster", "cluster"]

_PATIENCE = 60


class Cluster:
    """A scheduler that was started already, and its workers by name."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self.directory = directory
        self._environment = {key: value for key, value in os.environ.items() if not key.startswith("DASK_")} | dict(settings)
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.file = directory / "scheduler.json"
        self.scheduler = self._start("scheduler", "dask_scheduler", "--host", "127.0.0.1", "--port", "0")
        self.address = ""

    def wait(self) -> None:
        """Wait until the scheduler listens, and say where."""
        deadline = time.monotonic() + _PATIENCE
        while not self.address:
            assert self.scheduler.poll() is None, self.log("scheduler")
            assert time.monotonic() < deadline, self.log("scheduler")
            time.sleep(0.02)
            if self.file.exists() and self.file.read_text().endswith("}"):
                self.address = json.loads(self.file.read_text())["address"].removeprefix("tcp://")

    def add_worker(self, name: str, *, before: Sequence[str] = ()) -> None:
        """Start a worker with one thread and without a nanny, so that one that is killed stays dead. ``before`` runs it."""
        options = ("--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--name", name)
        directory = ("--local-directory", str(self.directory / name))
        self.workers[name] = self._start(name, "dask_worker", *options, *directory, before=before)

    def registered(self, name: str) -> None:
        """Wait until the scheduler knows the worker."""
        deadline = time.monotonic() + _PATIENCE
        while "Registered to" not in self.log(name):
            assert self.workers[name].poll() is None, self.log(name)
            assert time.monotonic() < deadline, self.log(name)
            time.sleep(0.02)

    def log(self, name: str) -> str:
        """Return what a process of the cluster said."""
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def end(self) -> None:
        """End every process."""
        for process in (*self.workers.values(), self.scheduler):
            process.kill()
            process.wait(timeout=30)

    def _start(self, name: str, module: str, *options: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        with (self.directory / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [
                    *(*before, sys.executable, "-m", f"distributed.cli.{module}", *options),
                    *("--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(self.file)),
                ],
                cwd=self.directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


@contextmanager
def cluster(directory: Path, workers: int, **settings: str) -> Generator[Cluster]:
    """Start a scheduler and ``workers`` workers, named ``w1``, ``w2`` and so on; every process is ended afterwards.

    ``settings`` are Dask's environment variables, without ``DASK_DISTRIBUTED__``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    made = Cluster(directory, {f"DASK_DISTRIBUTED__{name}": value for name, value in settings.items()})
    try:
        made.wait()
        for number in range(1, workers + 1):
            made.add_worker(f"w{number}")
        for name in made.workers:
            made.registered(name)
        yield made
    finally:
        made.end()
