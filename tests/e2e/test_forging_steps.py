"""Steps of a case that write where only jumar writes: limits hold, nothing that they say is believed, and a resume goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from loops import jumar
from pipelines import RUN, before_steps, calls, write_pipeline

from jumar.cases.run_store import RunReader
from jumar.cases.verify import verify_run

SCORES = [(3, 3, 3)] * 3
# What each attack does, in Python with: case and making (directories of the case and the iteration), number, mine (a person's).
PLANTED = {
    "the next iteration, empty": "(case / f'pending/iter_{number + 1:04d}').mkdir(parents=True, exist_ok=True)",
    "an iteration far away": "(case / 'pending/iter_0999').mkdir(parents=True, exist_ok=True)",
    "an iteration that is a file": "(case / f'iterations/iter_{number:04d}').touch()",
    "an iteration of the next number": "shutil.copytree(making, case / f'iterations/iter_{number + 1:04d}')",
    "a best bundle": "(case / 'best').mkdir(exist_ok=True); (case / 'best/best.json').write_text('{}')",
    "an end": "(case / 'case.json').write_text('{\"format\": 1, \"case\": 1}')",
    "an end of the judge": (
        "start = next(making.glob('steps/*-agent.start.json'), None)\n"
        "end = next((case / 'iterations').glob('*/steps/*-judge.end.json'), None)\n"
        "start and end and (shutil.copy(start, making / 'steps/0003-judge.start.json'),"
        " shutil.copy(end, making / 'steps/0003-judge.end.json'))"
    ),
    "a step of a huge number": "(making / 'steps/9999-judge.start.json').write_text('{}')",
    "better scores": (
        "for path in case.glob('iterations/*/iteration.json'):\n"
        "    path.write_text(path.read_text().replace('\"accuracy\": 3', '\"accuracy\": 9'))"
    ),
    "no iterations": "shutil.rmtree(case / 'iterations')",
    "no record of its own start": "[path.unlink() for path in making.glob('steps/*.start.json')]",
    "another run.json": "(case.parent / 'run.json').write_text('{}')",
    "other inputs": "(case.parent / 'inputs/inputs_case_01.json').write_text('{}')",
    "another base of the next": "[path.write_text('x') for path in case.glob('iterations/*/ckg/*')]",
    "a link for the scratch": "shutil.rmtree(case / 'scratch'); (case / 'scratch').symlink_to(mine)",
    "a link for a step's scratch": "(case / 'scratch/judge').symlink_to(mine)",
    "a link for pending": "shutil.copytree(case / 'pending', mine / 'p'); shutil.rmtree(case / 'pending');"
    " (case / 'pending').symlink_to(mine / 'p')",
    "a link for the logs": "shutil.rmtree(making / 'logs'); (making / 'logs').symlink_to(mine)",
    "a link for the judge's folder": "(making / 'judge').symlink_to(mine)",
    "a link for the next case": "(case.parent / 'case_02').symlink_to(mine)",
    "a link for the judge's log": "(making / 'logs/judge.log').symlink_to(mine / 'judge.log')",
    "a hard link for the judge's log": "os.link(mine / 'judge.log', making / 'logs/judge.log')",
    "a hard link for the heartbeat": "(making / 'logs/heartbeat').unlink(missing_ok=True);"
    " os.link(mine / 'judge.log', making / 'logs/heartbeat'); time.sleep(1.3)",
    "a FIFO for the judge's log": "os.mkfifo(making / 'logs/judge.log')",
    "a FIFO for the heartbeat": "os.mkfifo(making / 'logs/heartbeat'); time.sleep(1.3)",
}
FORGER = """
import json, os, pathlib, shutil, signal, sys, time
run, mine = pathlib.Path({run!r}), pathlib.Path({mine!r})
number, case = int(os.environ["JUMAR_ITERATION"]), run / "case_01"
making = case / f"pending/iter_{{number:04d}}"
if os.environ["JUMAR_CASE_NUM"] == "1" and sys.argv[1] == "agent" and number >= 2:
    try:
        {act}
    except FileExistsError:
        pass
    if {kill} and not os.path.exists(mine / "killed"):
        (mine / "killed").touch()
        os.kill(int(pathlib.Path("pid").read_text()), signal.SIGKILL)
"""


def prepare(tmp_path: Path, act: str, *, kill: bool = False) -> Path:
    write_pipeline(tmp_path, {1: SCORES, 2: SCORES[:1]}, extra="[stop]\naccuracy = 9\n")
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("judge.log", "agent.log", "judge_result_iter_0002_case_01.json"):
        (mine / name).write_text("precious " * 9)
    act = act.replace("\n", "\n        ")
    (tmp_path / "forger.py").write_text(FORGER.format(run=str(tmp_path / RUN), mine=str(mine), act=act, kill=int(kill)))
    before_steps(tmp_path, f'"{sys.executable}" forger.py $1')
    return mine


def holds(tmp_path: Path, most: int = 3) -> list[Any]:
    """No limit was passed, every score is what the judge gave, and nothing of the person's is gone."""
    for name in ("judge.log", "agent.log", "judge_result_iter_0002_case_01.json"):
        assert "precious " * 9 == (tmp_path / "mine" / name).read_text()
    made = [call for call in calls(tmp_path) if call.startswith("1.") and call.endswith("augment")]
    assert len(made) <= most, made
    cases = [RunReader(tmp_path / RUN).case(number) for number in (1, 2)]
    for case in cases:
        assert case.ended
        for record in case.iterations():
            assert dict.fromkeys(record.values, 3.0 if record.status == "ok" else None) == dict(record.values)
        best = case.best()
        assert best is None or {3.0} == set(best.values.values())
    return [record for case in cases for record in case.iterations()]


@pytest.mark.parametrize("act", PLANTED.values(), ids=PLANTED)
def test_what_a_step_plants_is_set_aside_and_the_chain_comes_to_its_end(tmp_path: Path, act: str) -> None:
    prepare(tmp_path, act)
    done = jumar(tmp_path, "cases", "run", "--json", timeout=30)
    assert "Traceback" not in done.stderr
    holds(tmp_path)
    gone = "rmtree(case / 'iterations')" in act
    assert (1 if gone else 0) == done.returncode, done.stderr
    assert gone or () == verify_run(tmp_path / RUN).problems


WITH_PID = """
import os, runpy, sys
open("pid", "w").write(str(os.getpid()))
sys.argv = ["jumar", "cases", "run"]
runpy.run_module("jumar.cli.entry", run_name="__main__")
"""


@pytest.mark.parametrize("act", PLANTED.values(), ids=PLANTED)
def test_a_killed_run_believes_nothing_that_was_planted_and_goes_on(tmp_path: Path, act: str) -> None:
    mine = prepare(tmp_path, act, kill=True)
    killed = subprocess.run([sys.executable, "-c", WITH_PID], cwd=tmp_path, capture_output=True, timeout=30, check=False)
    assert -signal.SIGKILL == killed.returncode, killed.stderr
    assert (mine / "killed").exists()
    done = jumar(tmp_path, "cases", "run", "--json", "--resume", timeout=30)
    assert "Traceback" not in done.stderr
    if "run.json" in act:
        assert "restore it from a backup, or start another run" in done.stderr
        return
    assert (1 if "rmtree(case / 'iterations')" in act else 0) == done.returncode, done.stderr
    holds(tmp_path, most=5 if "iterations" in act else 4)


def test_a_step_that_wrote_a_record_has_failed(tmp_path: Path) -> None:
    prepare(tmp_path, PLANTED["a best bundle"])
    jumar(tmp_path, "cases", "run", "--json", check=0)
    ok, *failed = [record for record in holds(tmp_path) if record.case == 1]
    assert "ok" == ok.status
    assert ["step_failed"] * 2 == [record.status for record in failed]
    assert "step agent: it wrote where only jumar writes: case_01/best" in failed[0].reason
    assert json.loads((tmp_path / RUN / "case_01/quarantine/0001-best/best.json").read_text()) == {}


def test_an_output_that_is_too_large_is_never_read(tmp_path: Path) -> None:
    write_pipeline(tmp_path, {1: SCORES[:1]})
    config = (tmp_path / "cases.toml").read_text()
    (tmp_path / "cases.toml").write_text(config.replace('cat "$JUMAR_IN_PROMPT" "$JUMAR_IN_CKG" >', "truncate -s 300G"))
    jumar(tmp_path, "cases", "run", "--json", timeout=30, check=12)
    (record,) = RunReader(tmp_path / RUN).case(1).iterations()
    assert ("step_failed", "step agent: it wrote agent_report (322.1 GB)") == (record.status, record.reason.partition(",")[0])
    assert "[run] max_file_mb allows more" in record.reason


def test_a_judgement_that_is_nested_deeply_is_none(tmp_path: Path) -> None:
    deep = b'{"composite_score": 3, "dimensions": [{"name": "x", "explanation": ' + b"[" * 960 + b"]" * 960 + b"}]}"
    write_pipeline(tmp_path, {1: [deep]})
    done = jumar(tmp_path, "cases", "run", "--json", timeout=30)
    assert "Traceback" not in done.stderr
    (record,) = RunReader(tmp_path / RUN).case(1).iterations()
    assert "invalid_score" == record.status
    assert "is nested too deeply" in record.reason


ENDED = {
    "its iterations": "[path.write_text('{}') for path in first.glob('iterations/*/iteration.json')]",
    "its best": "(first / 'best/best.json').write_text('{}')",
    "its end": "(first / 'case.json').write_text('{}')",
    "its inputs": "(first.parent / 'inputs/inputs_case_01.json').write_text('{}')",
    "all of it": "shutil.rmtree(first); first.symlink_to('.')",
}


@pytest.mark.parametrize("limit", ["", "max_seconds = 600"])
@pytest.mark.parametrize("act", ENDED.values(), ids=ENDED)
def test_what_a_step_does_to_a_case_that_has_ended_is_mended_or_told(tmp_path: Path, act: str, limit: str) -> None:
    write_pipeline(tmp_path, {1: SCORES[:1], 2: SCORES[:1]}, extra=f"[stop]\n{limit}\n")
    act = f"import pathlib, shutil; first = pathlib.Path({str(tmp_path / RUN / 'case_01')!r}); {act}"
    (tmp_path / "act.py").write_text(act)
    before_steps(tmp_path, f'[ "$JUMAR_CASE_NUM $1" != "2 agent" ] || "{sys.executable}" act.py')
    done = jumar(tmp_path, "cases", "run", "--json", timeout=30)
    assert "Traceback" not in done.stderr
    assert "quarantine/0001-" in done.stderr
    jumar(tmp_path, "cases", "run", "--json", "--resume", timeout=30, check=done.returncode)
    jumar(tmp_path, "cases", "report", RUN, check=0)
    if "its" in [name.partition(" ")[0] for name, each in ENDED.items() if act.endswith(each)] and "iterations" not in act:
        assert 0 == done.returncode, done.stderr
        assert () == verify_run(tmp_path / RUN).problems
