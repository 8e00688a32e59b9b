"""``jumar learn --executor``: the same bytes as without one, whatever dies; a cluster that goes away loses nothing."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from cluster import Cluster, cluster
from commands import unwrapped
from learn_items import judged_items, write_items
from loops import jumar

needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="dask is not installed: jumar[dask]")
_FILES = ("patterns.json", "split.json", "ledger.json", "predictions.json", "verdicts.jsonl", "sealed_tests.json", "state.json")
_SECONDS = 0.3
"""What a worker has to work before it counts as being at work."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_items(tmp_path_factory.mktemp("items") / "judged.jsonl", judged_items(40, 3, seed=8))


def words(judged: Path, output: str, *options: str) -> Sequence[str]:
    """The command, with few iterations."""
    judge = ("--judge", f"replay:{judged}", "-o", output, "--max-iterations", "1")
    return ("learn", "run", str(judged), *judge, "--robust", "--json", *options)


@pytest.fixture(scope="module")
def alone(judged: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a run without an executor leaves."""
    place = tmp_path_factory.mktemp("alone")
    jumar(place, *words(judged, "out"), check=0, timeout=300)
    return contents(place / "out")


def contents(output: Path) -> dict[str, str]:
    """The files of a finished run without the time at which it began."""
    dated = r'"(discovered_at|last_updated|timestamp)": ?"[^"]*"'
    found = {name: re.sub(dated, "", (output / name).read_text()) for name in _FILES}
    result = json.loads((output / "result.json").read_text())
    return {**found, "result.json": json.dumps({name: result[name] for name in sorted(result) if name != "proof"})}


@contextmanager
def running(place: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A command in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "jumar.cli.entry", *command],
        cwd=place,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def at_work(made: Cluster, process: subprocess.Popen[str]) -> subprocess.Popen[bytes]:
    """Wait until one of the workers works, and return it."""
    began = {name: used(worker.pid) for name, worker in made.workers.items()}
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        for name, worker in made.workers.items():
            if used(worker.pid) > began[name] + _SECONDS:
                return worker
        time.sleep(0.01)
    raise AssertionError(process.communicate())


def used(pid: int) -> float:
    """The seconds of processor that a process had so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_on_this_machine_it_leaves_the_same_bytes(executor: str, judged: Path, tmp_path: Path, alone: dict[str, str]) -> None:
    jumar(tmp_path, *words(judged, "out", "--executor", executor), check=0, timeout=300)
    assert alone == contents(tmp_path / "out")


@needs_dask
def test_a_worker_that_is_killed_at_work_changes_no_byte(judged: Path, tmp_path: Path, alone: dict[str, str]) -> None:
    with (
        cluster(tmp_path / "cluster", 2) as made,
        running(tmp_path, *words(judged, "out", "--executor", f"dask://{made.address}")) as process,
    ):
        at_work(made, process).kill()
        _, err = process.communicate(timeout=300)
        assert 0 == process.returncode, err
    assert alone == contents(tmp_path / "out")


@needs_dask
def test_a_cluster_that_goes_away_is_a_clear_error_and_nothing_is_lost(
    judged: Path, tmp_path: Path, alone: dict[str, str]
) -> None:
    with (
        cluster(tmp_path / "cluster", 1) as made,
        running(tmp_path, *words(judged, "out", "--executor", f"dask://{made.address}")) as process,
    ):
        at_work(made, process)
        paid = (tmp_path / "out" / "verdicts.jsonl").read_bytes()
        made.scheduler.kill()
        _, err = process.communicate(timeout=300)
    assert 1 == process.returncode, err
    assert "jumar: it could not be run by the executor: " in err
    assert "; the same command resumes, with an executor or without; what the judge said is kept" in unwrapped(err)
    assert "Traceback" not in err.rpartition("jumar: ")[2]
    jumar(tmp_path, *words(judged, "out"), check=0, timeout=300)
    assert (tmp_path / "out" / "verdicts.jsonl").read_bytes().startswith(paid), "no verdict was asked for again"
    assert alone == contents(tmp_path / "out")


@needs_dask
def test_no_scheduler_is_refused_before_anything_is_made(judged: Path, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        done = jumar(tmp_path, *words(judged, "out", "--executor", f"dask://{address}"), check=1)
    assert f"no Dask scheduler answers at {address}" in done.stderr
    assert not (tmp_path / "out").exists()


@needs_dask
def test_evaluate_says_clearly_that_the_cluster_went_away(tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", judged_items(3_000, 8, seed=8))
    with (
        cluster(tmp_path / "cluster", 1) as made,
        running(tmp_path, "evaluate", str(items), "--mode", "cheap", "--executor", f"dask://{made.address}") as process,
    ):
        at_work(made, process)
        made.scheduler.kill()
        out, err = process.communicate(timeout=120)
    assert (1, "") == (process.returncode, out), err
    assert "jumar: it could not be run by the executor: " in err
    assert "Traceback" not in err.rpartition("jumar: ")[2]
