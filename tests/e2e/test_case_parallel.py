"""Cases side by side, in threads, in processes and on a real Dask cluster: the results of a run in order, whatever dies."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cluster import cluster
from commands import unwrapped
from loops import jumar
from pipelines import RUN, before_steps, calls, facts, write_pipeline

from jumar.cases.chain import run_chain
from jumar.cases.config import CaseLoopConfig, chain_settings
from jumar.cases.layout import CasePaths
from jumar.cases.run_store import RunReader
from jumar.cases.verify import verify_run
from jumar.core.lock import LoopLock
from jumar.errors import JumarError
from jumar.model.pipeline import Step

SCORES = {number: [(number, 5, 5), (9 - number, 5, 5)] for number in range(1, 7)}
APART = "carry_forward = false"

needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="dask is not installed: jumar[dask]")


@contextmanager
def running(directory: Path, executor: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A run on an executor, in a process group of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "jumar.cli.entry", "cases", "run", "--json", "--executor", executor, *options],
        cwd=directory,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def until(holds: Callable[[], Any], patience: float = 60) -> None:
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, "this took too long"
        time.sleep(0.02)


def holder(directory: Path, case: int) -> int | None:
    """Return the number of the process that last took the lock of a case."""
    try:
        return json.loads((directory / ".jumar" / "runs" / ".locks" / f"run_t.case_{case:02d}").read_bytes())["pid"]
    except (OSError, ValueError):
        return None


def outcomes(directory: Path) -> Counter[str]:
    run = RunReader(directory / RUN)
    records = [record for number in run.case_ids for record in run.case(number).iterations()]
    return Counter(step.outcome for record in records for step in record.steps)


def assert_numbered_without_gap(directory: Path) -> None:
    run = RunReader(directory / RUN)
    for number in run.case_ids:
        assert [1, 2] == [record.number for record in run.case(number).iterations()]
    assert () == verify_run(directory / RUN).problems


@pytest.fixture(scope="module")
def in_order(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run without an executor comes to."""
    directory = tmp_path_factory.mktemp("in-order")
    write_pipeline(directory, SCORES, run=APART)
    jumar(directory, "cases", "run", "--json", check=0)
    return facts(directory / RUN)


# -------------------------------------------------------------------------------------------- threads and processes


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_side_by_side_equals_in_order(tmp_path: Path, in_order: dict[str, Any], executor: str) -> None:
    write_pipeline(tmp_path, SCORES, run=APART)
    done = jumar(tmp_path, "cases", "run", "--json", "--executor", executor, check=0)
    assert [2, 2, 2, 2, 1, 1] == [case["best_iter"] for case in json.loads(done.stdout)["cases"]]
    assert in_order == facts(tmp_path / RUN)
    assert {"ok": 48} == outcomes(tmp_path)
    assert_numbered_without_gap(tmp_path)


def test_a_case_that_another_process_runs_is_left_to_it(tmp_path: Path, in_order: dict[str, Any]) -> None:
    """A worker that only seemed to be dead: its case was given to another one, which finds the lock taken."""
    write_pipeline(tmp_path, SCORES, run=APART)
    jumar(tmp_path, "cases", "run", "--json", "--dry-run", "--run-id", "other", check=0)
    with LoopLock(CasePaths(tmp_path / RUN, 2).lock):
        done = jumar(tmp_path, "cases", "run", "--executor", "threads:2", check=13)
    assert "case 2: case 2 of run 't' is being written by process" in done.stderr
    assert "1 of 6 cases failed, --resume runs them again" in done.stderr
    assert {"ok": 40} == outcomes(tmp_path)
    jumar(tmp_path, "cases", "run", "--json", "--resume", "--executor", "threads:2", check=0)
    assert in_order == facts(tmp_path / RUN)


def test_a_step_that_cannot_travel_is_a_clear_error(tmp_path: Path) -> None:
    write_pipeline(tmp_path, {1: [(5, 5, 5)]})
    step = Step(name="all", call=lambda context: None, outputs=("judge",))
    config = CaseLoopConfig(
        data_path="case1.txt", output_root=tmp_path / "runs", run_id="t", start_from_scratch=True, steps=[step]
    )
    os.chdir(tmp_path)
    settings = replace(chain_settings(config), carry_forward=False)
    with (
        ProcessPoolExecutor(1) as executor,
        pytest.raises(JumarError, match=r"case 1: it could not be run by the executor: .*pickle"),
    ):
        run_chain(settings, executor=executor)


def test_cases_that_carry_are_not_run_side_by_side(tmp_path: Path) -> None:
    write_pipeline(tmp_path, SCORES)
    done = jumar(tmp_path, "cases", "run", "--executor", "threads:2", check=2)
    assert "set carry_forward = false, or no executor" in done.stderr
    assert not (tmp_path / RUN).exists()


@pytest.mark.parametrize(("signals", "ended"), [(1, "its step"), (2, "at once")])
def test_threads_are_stopped_like_a_run_in_order(tmp_path: Path, in_order: dict[str, Any], signals: int, ended: str) -> None:
    write_pipeline(tmp_path, SCORES, run=APART)
    before_steps(tmp_path, "while [ -e hang ]; do sleep 0.02; done")
    (tmp_path / "hang").touch()
    with running(tmp_path, "threads:2") as process:
        until(lambda: 2 == len(calls(tmp_path)))
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        if ended == "its step":
            (tmp_path / "hang").unlink()
        out, err = process.communicate(timeout=60)
    assert 130 == process.returncode, err
    assert "interrupted" == json.loads(out)["stopped_by"]
    assert 2 == len(calls(tmp_path)), "no case and no step was begun any more"
    (tmp_path / "hang").unlink(missing_ok=True)
    jumar(tmp_path, "cases", "run", "--json", "--resume", "--executor", "threads:2", check=0)
    assert in_order == facts(tmp_path / RUN)
    assert {"ok": 48} | ({"interrupted": 2} if ended == "at once" else {}) == outcomes(tmp_path)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_processes_finish_the_cases_that_they_have_begun(
    tmp_path: Path, in_order: dict[str, Any], number: int, code: int
) -> None:
    write_pipeline(tmp_path, SCORES, run=APART)
    before_steps(tmp_path, "sleep 0.2")
    with running(tmp_path, "processes:2") as process:
        until(lambda: len(calls(tmp_path)) >= 2)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert code == process.returncode, err
    assert err.count("finishing this step") <= 1
    assert {"ok"} == set(outcomes(tmp_path))
    run = RunReader(tmp_path / RUN)
    assert len([case for case in run.case_ids if run.case(case).end() is None]) in range(1, 5), "not all were begun"
    jumar(tmp_path, "cases", "run", "--json", "--resume", "--executor", "processes:2", check=0)
    assert in_order == facts(tmp_path / RUN)
    assert {"ok": 48} == outcomes(tmp_path)


def test_a_process_of_the_pool_that_dies_is_a_clear_error_and_resume_does_the_rest(
    tmp_path: Path, in_order: dict[str, Any]
) -> None:
    write_pipeline(tmp_path, SCORES, run=APART)
    before_steps(
        tmp_path, 'case "$JUMAR_CASE_NUM.$JUMAR_ITERATION $1" in "2.2 agent") while [ -e hang ]; do sleep 0.02; done;; esac'
    )
    (tmp_path / "hang").touch()
    with running(tmp_path, "processes:2") as process:
        until(lambda: "2.2 agent" in calls(tmp_path))
        victim = holder(tmp_path, 2)
        assert victim not in {None, process.pid}
        os.kill(victim or 0, signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert 1 == process.returncode
    assert "Traceback" not in err
    assert "it could not be run by the executor: BrokenProcessPool" in err
    assert "--resume runs them again" in err
    (tmp_path / "hang").unlink()
    jumar(tmp_path, "cases", "run", "--json", "--resume", "--executor", "processes:2", check=0)
    assert in_order == facts(tmp_path / RUN)
    found = outcomes(tmp_path)
    assert (48, 1 <= found["lost"] <= 2) == (found["ok"], True), found
    assert_numbered_without_gap(tmp_path)


# ------------------------------------------------------------------------------------------------------------- Dask

# the first time, this step never ends
ONCE = 'case "$JUMAR_CASE_NUM.$JUMAR_ITERATION $1" in "3.2 agent") ! mkdir once 2>/dev/null || sleep 600;; esac; sleep 0.05'


@needs_dask
def test_a_worker_that_is_killed_in_mid_run_loses_one_step(tmp_path: Path, in_order: dict[str, Any]) -> None:
    place = tmp_path / "place"
    write_pipeline(place, SCORES, run=APART)
    before_steps(place, ONCE)
    with cluster(tmp_path / "cluster", 2) as made:
        numbers = {worker.pid for worker in made.workers.values()}
        with running(place, f"dask://{made.address}") as process:
            until((place / "once").exists)
            victim = next(worker for worker in made.workers.values() if worker.pid == holder(place, 3))
            victim.kill()
            out, err = process.communicate(timeout=120)
        assert 0 == process.returncode, err
        other = holder(place, 3)
        assert {victim.pid, other} == numbers, "the other worker took the case over"
        # everything has ended: a client that asks again finds nothing to do
        again = jumar(place, "cases", "run", "--json", "--resume", "--executor", f"dask://{made.address}", check=0)
    assert json.loads(out) == json.loads(again.stdout)
    assert in_order == facts(place / RUN)
    assert {"ok": 48, "lost": 1} == outcomes(place)
    assert {"3.2 agent": 2} == {name: count for name, count in Counter(calls(place)).items() if count > 1}
    assert_numbered_without_gap(place)
    assert 6 == err.count("stopped   max_iters"), "every case is told of once"


@needs_dask
def test_a_case_that_its_workers_die_of_is_given_up_and_the_others_end(tmp_path: Path, in_order: dict[str, Any]) -> None:
    place = tmp_path / "place"
    write_pipeline(place, SCORES, run=APART)
    before_steps(place, ONCE)
    with cluster(tmp_path / "cluster", 2, SCHEDULER__ALLOWED_FAILURES="0") as made:
        with running(place, f"dask://{made.address}") as process:
            until((place / "once").exists)
            next(worker for worker in made.workers.values() if worker.pid == holder(place, 3)).kill()
            err = unwrapped(process.communicate(timeout=120)[1])
        assert 1 == process.returncode
        assert "Traceback" not in err
        assert "case 3: it could not be run by the executor: KilledWorker: " in err
        assert "of 6 cases failed, --resume runs them again" in err  # what was queued there counts too
        jumar(place, "cases", "run", "--json", "--resume", "--executor", f"dask://{made.address}", check=0)
    assert in_order == facts(place / RUN)
    assert {"ok": 48, "lost": 1} == outcomes(place)


@needs_dask
def test_a_scheduler_that_goes_away_is_a_clear_error(tmp_path: Path, in_order: dict[str, Any]) -> None:
    place = tmp_path / "place"
    write_pipeline(place, SCORES, run=APART)
    before_steps(place, ONCE)
    with cluster(tmp_path / "cluster", 1) as made:
        with running(place, f"dask://{made.address}") as process:
            until((place / "once").exists)
            made.scheduler.kill()
            _, err = process.communicate(timeout=120)
        assert 1 == process.returncode
        assert "Traceback" not in err
        said = " ".join(err.split())
        assert "case 3: it could not be run by the executor: CancelledError: it was taken back, as when a scheduler is" in said
    jumar(place, "cases", "run", "--json", "--resume", check=0)
    assert in_order == facts(place / RUN)


@needs_dask
def test_a_scheduler_without_workers_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    place = tmp_path / "place"
    write_pipeline(place, SCORES, run=APART)
    with cluster(tmp_path / "cluster", 0) as made:
        done = jumar(place, "cases", "run", "--executor", f"dask://{made.address}", check=1)
    assert f"the Dask scheduler at {made.address} has no workers; start some: dask worker {made.address}" in done.stderr
    assert not (place / RUN).exists()


@needs_dask
def test_no_scheduler_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    write_pipeline(tmp_path, SCORES, run=APART)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        done = jumar(tmp_path, "cases", "run", "--executor", f"dask://{address}", check=1)
    assert f"no Dask scheduler answers at {address}" in done.stderr
    assert not (tmp_path / RUN).exists()


def can_unshare() -> bool:
    """Whether this machine lets a process have mounts of its own."""
    return (
        0
        == subprocess.run(
            ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/tmp"], capture_output=True, check=False
        ).returncode
    )


@needs_dask
def test_a_worker_that_does_not_see_the_run_says_so(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or not can_unshare():
        pytest.skip("this machine does not let a process have mounts of its own")
    place = tmp_path / "place"
    write_pipeline(place, SCORES, run=APART)
    with cluster(tmp_path / "cluster", 0) as made:
        made.add_worker("blind", before=("unshare", "-rm", "sh", "-c", f"mount -t tmpfs tmpfs '{place}' && exec \"$@\"", "sh"))
        made.registered("blind")
        done = jumar(place, "cases", "run", "--executor", f"dask://{made.address}", check=2)
    assert "run_t is no run of cases: it has no run.json: a worker does not see what this process sees there" in done.stderr
    assert "6 of 6 cases failed, --resume runs them again" in done.stderr
    jumar(place, "cases", "run", "--json", "--resume", check=0)
