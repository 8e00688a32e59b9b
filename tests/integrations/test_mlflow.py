"""The listener for MLflow: one run a loop whatever interrupts it, nothing unknown as 0, no harm from a server that is away."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import call
from judge_server import Answer, JudgeServer
from loops import jumar, write_loop

pytest.importorskip("mlflow")

from jumar.integrations import mlflow as integration
from jumar.integrations.mlflow import MlflowListener
from jumar.loop.events import events
from jumar.model import CheckResult, IterationRecord, StopRules
from jumar.model.attempts import Spend
from jumar.model.records import SuiteCounts

pytestmark = pytest.mark.filterwarnings("ignore")  # what MLflow's own imports warn of

RECORD = IterationRecord(
    iteration_number=1,
    timestamp="2026-01-01T00:00:00Z",
    quality_score=81.5,
    dimensions={"quality/≥": 0.815},
    verification_status="failed",
    checks=(CheckResult(name="tests", passed=False, tests=SuiteCounts(passed=3, failed=1, missing=0, total=4)),),
)
STARTED = events.LoopStarted(loop_id="t", resumed=False, rules=StopRules(), recorded=0, weights={})
ENDED = events.LoopEnded(outcome={"stop_reason": "target", "selected_iteration": 1, "quality_score": 81.5, "exit_code": 0})


@pytest.fixture
def tracking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """MLflow's own store of files, which needs no server and no database."""
    kept = {
        "MLFLOW_TRACKING_URI": (tmp_path / "runs").as_uri(),
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    return kept


def client() -> Any:
    from mlflow import MlflowClient

    return MlflowClient()


def runs() -> list[Any]:
    found = client()
    return found.search_runs([found.get_experiment_by_name("jumar").experiment_id])


def steps(run: Any, metric: str = "score") -> list[tuple[int, float]]:
    return [(each.step, each.value) for each in client().get_metric_history(run.info.run_id, metric)]


def listener(tmp_path: Path, **options: Any) -> MlflowListener:
    return MlflowListener(client(), experiment="jumar", root=tmp_path / "root", **options)


def recorded(record: IterationRecord, **spend: Any) -> events.IterationRecorded:
    return events.IterationRecorded(record=record, best=1, spend=Spend(**spend))


def test_a_loop_is_a_run_with_its_iterations_as_steps_and_goes_on_in_it(fresh_place: Path, tracking: dict[str, str]):
    write_loop(fresh_place, (0.6, 0.9, 0.7), extra="[mlflow]\nenabled = true\n", loop='isolation = "copy"')
    jumar(fresh_place, "run", "-n", "2", check=0, env=tracking)
    jumar(fresh_place, "run", "-n", "3", check=0, env=tracking)
    [run] = runs()
    assert [(0, 50.0), (1, 60.0), (2, 90.0), (3, 70.0)] == steps(run)
    assert [(0, 0.5), (1, 0.6), (2, 0.9), (3, 0.7)] == steps(run, "dimension.quality")
    assert {"cost_usd", "tokens", "spent_usd", "tests_passed"}.isdisjoint(run.data.metrics), "what nobody reported is no 0"
    assert ("t", "FINISHED", "make it better") == (run.info.run_name, run.info.status, run.data.params["objective"])
    assert "agent.py" in run.data.params["agent"]
    assert "text: grep -q pass text.md" == run.data.params["checks"]
    assert ("t", "2") == (run.data.tags["jumar.loop"], run.data.tags["jumar.selected_iteration"])
    assert "Highest verified quality: 90%" == run.data.tags["jumar.selected_because"]
    from mlflow.artifacts import load_text

    assert "0.9" == load_text(f"{run.info.artifact_uri}/final-output/score.txt")
    assert load_text(f"{run.info.artifact_uri}/selection-report.md").startswith("# Output Selection Report")


def test_loops_of_one_name_are_told_apart_and_stdout_is_one_document(tmp_path: Path, tracking: dict[str, str]):
    for place in ("one", "two"):
        write_loop(tmp_path / place, (0.6, 0.9), extra="[mlflow]\nenabled = true\nartifacts = false\n")
        json.loads(jumar(tmp_path / place, "run", "--json", "-n", "1", check=0, env=tracking).stdout)
    jumar(tmp_path / "one", "run", "-n", "2", check=0, env=tracking)
    assert [2, 3] == sorted(len(steps(run)) for run in runs())
    assert [] == [each for run in runs() for each in client().list_artifacts(run.info.run_id)]


def test_what_an_earlier_run_missed_is_sent_again_and_nothing_twice(tmp_path: Path, tracking: dict[str, str]):
    first = listener(tmp_path)
    for event in (STARTED, recorded(RECORD), ENDED):
        first(event)
    missed = replace(RECORD, iteration_number=2, quality_score=None, status="scorer_broken")
    again = listener(tmp_path)
    for event in (
        replace(STARTED, resumed=True, latest=(RECORD, missed)),
        recorded(replace(RECORD, iteration_number=3, token_cost_usd=0.25), iterations=3, cost_usd=0.5),
        replace(ENDED, outcome={"stop_reason": "terminated", "exit_code": 143}),
    ):
        again(event)
    [run] = runs()
    assert [(1, 1.0), (2, 2.0), (3, 3.0)] == steps(run, "iteration")
    assert [(1, 81.5), (3, 81.5)] == steps(run), "what could not be scored has no score"
    assert [(3, 0.25)] == steps(run, "cost_usd")
    assert [(3, 0.5)] == steps(run, "spent_usd")
    assert (3.0, 4.0, 0.0) == tuple(run.data.metrics[name] for name in ("tests_passed", "tests_total", "verified"))
    assert 0.815 == run.data.metrics["dimension.quality/_"]
    assert "KILLED" == run.info.status


@contextmanager
def hanging() -> Iterator[str]:
    with JudgeServer(lambda _seen, _number: Answer(body="{}", delay=60)) as server:
        yield server.base


@contextmanager
def refusing() -> Iterator[str]:
    with JudgeServer(lambda _seen, _number: Answer(body="{}", status=403)) as server:
        yield server.base


@contextmanager
def closed() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize("server", [hanging, refusing, closed])
def test_a_server_that_is_away_is_told_of_once_and_holds_up_nothing(
    fresh_place: Path, monkeypatch: pytest.MonkeyPatch, server: Callable[[], Any]
):
    monkeypatch.setattr(integration, "PATIENCE", 0.5)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    write_loop(fresh_place, (0.6, 0.9), extra="[mlflow]\nenabled = true\n")
    with server() as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        call("doctor")  # what is loaded once
        began = time.monotonic()
        done = call("run", check=0)
        assert time.monotonic() - began < 15
    told = re.findall(r"MlflowListener failed and is passed over: ([^\n]*)", done.out + done.err)
    assert 1 == len(told), done
    assert "MLflow" in told[0]
    assert "score 50 → 90 at iteration 2 (all checks pass)" in done.out
    assert "Retrying" not in done.out + done.err


def test_the_process_ends_although_a_server_never_answers(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "60")
    write_loop(fresh_place, (0.9,), extra="[mlflow]\nenabled = true\n")
    program = "import jumar.integrations.mlflow as m; m.PATIENCE = 0.5; from jumar.cli.entry import main; main()"
    with hanging() as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        done = subprocess.run([sys.executable, "-c", program, "run"], capture_output=True, text=True, timeout=50, check=False)
    assert 0 == done.returncode, done.stderr
    assert "MLflow did not answer in 0.5 s; what was still to be sent is left out" in re.sub(r"\s+", " ", done.stdout)
    assert "Traceback" not in done.stderr


def test_secrets_and_long_texts_stay_here(tmp_path: Path, tracking: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    from jumar.core.redaction import Redactor, install

    install(Redactor({"KEY": "hunter2hunter2"}))
    try:
        sent = listener(tmp_path, params={"objective": "use hunter2hunter2 " + "x" * 9000, "checks": ""})
    finally:
        install(None)
    for event in (STARTED, recorded(RECORD), ENDED):
        sent(event)
    [run] = runs()
    assert ["objective"] == list(run.data.params)
    assert run.data.params["objective"].startswith("use [redacted: KEY] xxx")
    assert 500 >= len(run.data.params["objective"])


def test_a_place_to_send_to_and_the_extra_are_asked_for_before_anything_runs(fresh_place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    write_loop(fresh_place, (0.9,), extra="[mlflow]\nenabled = true\n")
    assert "[mlflow] needs to know where to: set MLFLOW_TRACKING_URI" in call("run", check=2).err
    assert "MLFLOW_TRACKING_URI" in call("doctor").out
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nonsense://x")
    assert "[mlflow] cannot be used:" in call("run", check=2).err
    monkeypatch.setattr("jumar.core.lazy.find_spec", lambda _name: None)
    assert "pip install 'jumar[mlflow]'" in call("run", check=2).err
    assert not (fresh_place / ".jumar").exists()
