"""Steps of a case that write where only jumar writes: limits hold, nothing that they say is believed, and a resume goes on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
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


@pytest.mark.parametrize("where", [".", "elsewhere"])
def test_a_step_goes_on_with_neither_its_run_nor_a_copy_of_it(tmp_path: Path, where: str) -> None:
    said, command = tmp_path / "said", [sys.executable, "-m", "jumar.cli.entry", "cases", "run", "--resume", "--max-iters", "50"]
    act = f"import subprocess; os.kill(int(open('pid').read()), 9); time.sleep(0.3); os.chdir({str(tmp_path)!r})\n"
    act += f"where = {where!r} == '.' or shutil.copytree('.', {where!r}, ignore=lambda *_: ['locks'])\n"
    act += f"done = subprocess.run({command!r}, cwd={where!r}, capture_output=True, text=True)\n"
    act += f"open({str(said)!r}, 'w').write(f'{{done.returncode}} {{done.stderr}}')"
    prepare(tmp_path, act)
    killed = subprocess.run([sys.executable, "-c", WITH_PID], cwd=tmp_path, capture_output=True, timeout=30, check=False)
    assert -signal.SIGKILL == killed.returncode, killed.stderr
    deadline = time.monotonic() + 30
    while not said.exists() or not said.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert said.read_text().startswith("2 jumar: a step of this run, or of one that it is a copy of, called"), said.read_text()


def test_a_step_that_wrote_a_record_has_failed(tmp_path: Path) -> None:
    prepare(tmp_path, PLANTED["a best bundle"])
    jumar(tmp_path, "cases", "run", "--json", check=0)
    ok, *failed = [record for record in holds(tmp_path) if record.case == 1]
    assert "ok" == ok.status
    assert ["step_failed"] * 2 == [record.status for record in failed]
    assert "step agent: it changed what is not its own: case_01/best" in failed[0].reason
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


@pytest.mark.matrix
@pytest.mark.parametrize("limit", ["", "max_seconds = 600"])
@pytest.mark.parametrize("act", ENDED.values(), ids=ENDED)
def test_what_a_step_does_to_a_case_that_has_ended_is_mended_or_told(tmp_path: Path, act: str, limit: str) -> None:
    write_pipeline(tmp_path, {1: SCORES[:1], 2: SCORES[:1]}, extra=f"[stop]\n{limit}\n")
    act = f"import pathlib, shutil; first = pathlib.Path({str(tmp_path / RUN / 'case_01')!r}); {act}"
    (tmp_path / "act.py").write_text(act)
    before_steps(tmp_path, f'[ "$JUMAR_CASE_NUM $1" != "2 agent" ] || "{sys.executable}" act.py')
    done = jumar(tmp_path, "cases", "run", "--json", timeout=30)
    assert "Traceback" not in done.stderr
    said = " ".join(done.stderr.split())
    assert "quarantine/0001-" in said or "and is again what it was" in said
    jumar(tmp_path, "cases", "run", "--json", "--resume", timeout=30, check=done.returncode)
    jumar(tmp_path, "cases", "report", RUN, check=0)
    if "its" in [name.partition(" ")[0] for name, each in ENDED.items() if act.endswith(each)]:
        assert 0 == done.returncode, done.stderr
        assert () == verify_run(tmp_path / RUN).problems


# ------------------------------------------------------------------------------------- what a step is given, and what judges it

JUDGE_PY = """
import json, os, pathlib, sys
import weights
wanted = set(pathlib.Path(os.environ["JUMAR_IN_REPORT"]).read_text().split())
found = set(pathlib.Path(os.environ["JUMAR_IN_AGENT_REPORT"]).read_text().split())
score = weights.TOP * len(wanted & found) / max(1, len(wanted | found)) + len(pathlib.Path(sys.argv[1]).read_text())
named = [{"name": name, "score": score} for name in ("Root Cause Accuracy", "Causal Chain Completeness")]
pathlib.Path(os.environ["JUMAR_OUT_JUDGE"]).write_text(json.dumps({"composite_score": score, "dimensions": named}))
"""
AGENT_PY = """
import os, pathlib, shutil, signal, stat, sys, time
number, case = int(os.environ["JUMAR_ITERATION"]), int(os.environ["JUMAR_CASE_NUM"])
run = pathlib.Path(".jumar/runs/run_t").absolute()
first, making = run / "case_01", run / f"case_{{case:02d}}/pending/iter_{{number:04d}}"
open("calls.log", "a").write(f"{{case}}.{{number}}\\n")
honest = number == 1
pathlib.Path(os.environ["JUMAR_OUT_AGENT_REPORT"]).write_text(f"the pump of case {{case}}" if honest else "i do not know")
pathlib.Path(os.environ["JUMAR_OUT_CKG"]).write_text('{{"entities": ["%d.%d"]}}' % (case, number))
once = not pathlib.Path("done").exists()
if {when}:
    {act}
    if {kill}:
        pathlib.Path("done").touch()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(5)
"""
GIVEN_TOML = """
[run]
run_id = "t"
max_iters = 2
[start]
from_scratch = true
{cases}
[[steps]]
name = "agent"
command = ["{python}", "agent.py"]
inputs = ["prompt", "ckg"]
outputs = ["agent_report", "ckg"]
[[steps]]
name = "judge"
command = ["{python}", "judge.py", "bonus.txt"]
inputs = ["report", "agent_report"]
outputs = ["judge"]
{extra}
"""


def write_given(
    tmp_path: Path, act: str, *, when: str = "case == 1 and number == 2", cases: int = 2, kill: bool = False, extra: str = ""
) -> None:
    """Write a chain whose first iteration is honest (about 8 of 10) and whose second is useless (0), and does ``act``."""
    (tmp_path / "weights.py").write_text("TOP = 10\n")
    (tmp_path / "bonus.txt").write_text("")
    (tmp_path / "judge.py").write_text(JUDGE_PY)
    (tmp_path / "agent.py").write_text(AGENT_PY.format(when=when, act=act.replace("\n", "\n    "), kill=int(kill)))
    for case in range(1, cases + 1):
        (tmp_path / f"case{case}.txt").write_text(f"the pump of case {case} broke\n---\nE2E Test Query\nwhat broke?\n")
    listed = "".join(f'[[cases]]\nfile = "case{case}.txt"\n' for case in range(1, cases + 1))
    (tmp_path / "cases.toml").write_text(GIVEN_TOML.format(python=sys.executable, cases=listed, extra=extra))


def honest_is_best(tmp_path: Path, cases: int = 2) -> None:
    """In every case the honest iteration is the best, with its own score, and the next case starts from it."""
    run = RunReader(tmp_path / RUN)
    for number in range(1, cases + 1):
        best, inputs = run.case(number).best(), run.case(number).inputs()
        assert best is not None
        assert (1, True) == (best.best_iter, 8 < (best.values["accuracy"] or 0) < 9), best
        assert inputs is not None
        carried = json.loads((tmp_path / RUN / inputs.files["ckg"].path).read_text())["entities"]
        assert ([] if number == 1 else [f"{number - 1}.1"]) == carried
    assert () == verify_run(tmp_path / RUN).problems


GIVEN = {
    "the report of its case": "(run / 'inputs/human_report_case_01.txt').write_text('i do not know')",
    "the report of the next case": "(run / 'inputs/human_report_case_02.txt').write_text('i do not know')",
    "a query deleted": "(run / 'inputs/prompt_case_02.txt').unlink()",
    "a FIFO for a report": "path = run / 'inputs/human_report_case_02.txt'; path.unlink(); os.mkfifo(path)",
    "a base that no step writes": "(run / 'inputs/base_fix_db_snapshot.db').write_bytes(b'x')",
    "no inputs at all": "shutil.rmtree(run / 'inputs')",
    "the judge's script": "pathlib.Path('judge.py').write_text(pathlib.Path('judge.py').read_text() + '# mine')",
    "the judge's argument": "pathlib.Path('bonus.txt').write_text('x' * 10)",
    "the judge's script, a link": "os.rename('judge.py', 'other.py'); os.symlink('other.py', 'judge.py');"
    " pathlib.Path('other.py').write_text('')",
    "a module instead of json": "pathlib.Path('json.py').write_text('dumps = lambda _: 1 / 0')",
    "the copy of the judge's script": "next((run / 'judge').glob('*-judge.py')).write_text('')",
    "the configuration": "pathlib.Path('cases.toml').write_text('')",
    "an iteration closed": "os.chmod(first / 'iterations/iter_0001', 0)",
    "all runs closed": "os.chmod(run.parent, 0)",
}


@pytest.mark.matrix
@pytest.mark.parametrize("kill", [False, True], ids=["", "killed"])
@pytest.mark.parametrize("act", GIVEN.values(), ids=GIVEN)
def test_what_a_step_is_given_and_what_judges_it_is_what_it_was(tmp_path: Path, act: str, kill: bool) -> None:
    if "chmod" in act and os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root may enter what is closed")
    write_given(tmp_path, act, kill=kill, when="case == 1 and number == 2 and once")
    done = run_confined(tmp_path) if "chmod" in act else jumar(tmp_path, "cases", "run", "--json", timeout=60)
    if kill:
        assert done.returncode in {-signal.SIGKILL, 137}, done.stderr
        if "cases.toml" in act:
            return
        done = (run_confined if "chmod" in act else resumed)(tmp_path, "--resume")
    assert 0 == done.returncode, done.stderr
    assert "again" in done.stderr or "taken out" in done.stderr
    if not kill:
        (_, second) = RunReader(tmp_path / RUN).case(1).iterations()
        assert ("step_failed", True) == (second.status, "it changed what is not its own" in second.reason), second.reason
    honest_is_best(tmp_path)


@pytest.mark.parametrize("act", ["pass", "os.unlink('cases.toml'); pathlib.Path('cases.toml').write_text('')"])
def test_a_link_to_the_configuration_stays_one(tmp_path: Path, act: str) -> None:
    write_given(tmp_path, act)
    (tmp_path / "cases.toml").rename(tmp_path / "own.toml")
    (tmp_path / "cases.toml").symlink_to("own.toml")
    done = jumar(tmp_path, "cases", "run", "--json", timeout=60, check=0)
    assert (act != "pass") == ("cases.toml" in done.stderr)
    assert "own.toml" == str((tmp_path / "cases.toml").readlink())
    honest_is_best(tmp_path)


def resumed(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return jumar(tmp_path, "cases", "run", "--json", *options, timeout=60)


def run_confined(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run as a user for whom a closed directory is closed."""
    words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    argv = [*words, sys.executable, "-m", "jumar.cli.entry", "cases", "run", "--json", *options]
    return subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)


def test_a_changed_bundle_is_made_again_and_carried_as_it_was(tmp_path: Path) -> None:
    act = "[path.write_text('poison') for path in first.glob('best/iter_*/ckg/*')]; sys.exit(1)"
    write_given(tmp_path, act, when="case == 2", cases=3)
    done = jumar(tmp_path, "cases", "run", "--json", timeout=60, check=1)  # case 2 has no best
    inputs = RunReader(tmp_path / RUN).case(3).inputs()
    assert inputs is not None
    assert '{"entities": ["1.1"]}' == (tmp_path / RUN / inputs.files["ckg"].path).read_text()
    assert "case_01/best was not written by jumar, or was changed since" in done.stderr
    assert () == verify_run(tmp_path / RUN).problems


def test_a_choice_that_is_nowhere_any_more_is_not_carried_and_the_chain_goes_on(tmp_path: Path) -> None:
    act = (
        "[path.write_text('poison') for path in run.rglob('*ckg*') if path.is_file() and 'pending' not in str(path)]; sys.exit(1)"
    )
    write_given(tmp_path, act, when="case == 2", cases=3)
    done = jumar(tmp_path, "cases", "run", "--json", timeout=60, check=1)
    assert "base_ckg_snapshot_case_02.json was changed or deleted, and what it was is nowhere to be found" in done.stderr
    inputs, end = RunReader(tmp_path / RUN).case(3).inputs(), RunReader(tmp_path / RUN).case(3).end()
    assert inputs is not None
    assert inputs.carried_from is None
    assert (end and end.best_iter) == 1
    jumar(tmp_path, "cases", "run", "--json", "--resume", timeout=60, check=1)


@pytest.mark.parametrize("forge", ["beat.write_text('0.000')", "beat.unlink()", "beat.unlink(); os.mkfifo(beat)", "pass"])
def test_a_step_that_kills_jumar_counts_with_its_time(tmp_path: Path, forge: str) -> None:
    act = f"time.sleep(1.2); beat = making / 'logs/heartbeat'\n{forge}\nos.kill(os.getppid(), signal.SIGKILL); time.sleep(5)"
    write_given(tmp_path, act, when="True", cases=1, extra="[stop]\nmax_seconds = 2")
    jumar(tmp_path, "cases", "run", "--json", timeout=60)
    ended = [resumed(tmp_path, "--resume").returncode for _ in range(3)]
    assert 12 == ended[-1]
    assert 2 == len((tmp_path / "calls.log").read_text().splitlines())


def test_a_step_that_kills_jumar_five_times_has_failed(tmp_path: Path) -> None:
    write_given(tmp_path, "os.kill(os.getppid(), signal.SIGKILL); time.sleep(5)", when="number == 1", cases=1)
    jumar(tmp_path, "cases", "run", "--json", timeout=60)
    ended = [resumed(tmp_path, "--resume").returncode for _ in range(6)]
    assert 0 == ended[-1]
    first, second = RunReader(tmp_path / RUN).case(1).iterations()
    assert ("step_failed", "step agent: jumar was killed 5 times while it ran") == (first.status, first.reason)
    assert "ok" == second.status


def test_a_limit_that_was_loosened_before_a_kill_needs_a_person(tmp_path: Path) -> None:
    act = "path = pathlib.Path('cases.toml'); path.write_text(path.read_text().replace('max_iters = 2', 'max_iters = 20'))"
    write_given(tmp_path, act, cases=1, kill=True, when="number == 2 and once")
    jumar(tmp_path, "cases", "run", "--json", timeout=60)
    done = jumar(tmp_path, "cases", "run", "--json", "--resume", timeout=60, check=2)
    assert "max_iters was 2 when run 't' was started and is 20 now" in done.stderr
    jumar(tmp_path, "cases", "run", "--json", "--resume", "--max-iters", "3", timeout=60, check=0)
    assert 3 == len(RunReader(tmp_path / RUN).case(1).iterations())


@pytest.mark.parametrize(
    ("to", "back"),
    [
        ("reserve_cost_usd = 0.01", "reserve_cost_usd = 0.1"),
        ("reserve_tokens = 1", "reserve_tokens = 10"),
        ('on_unknown_cost = "allow"', "on_unknown_cost"),
    ],
)
def test_what_a_silent_step_is_charged_is_loosened_by_no_step(tmp_path: Path, to: str, back: str) -> None:
    caps = "[budget]\nmax_cost_usd = 1\nmax_tokens = 100\nreserve_cost_usd = 0.1\nreserve_tokens = 10\n"
    put = f"'{back}', '{to}'" if "=" in back else f"'[budget]', '[budget]\\n{to}'"
    act = f"path = pathlib.Path('cases.toml'); path.write_text(path.read_text().replace({put}))"
    write_given(tmp_path, act, cases=1, kill=True, when="number == 2 and once", extra=caps)
    jumar(tmp_path, "cases", "run", "--json", timeout=60)
    assert to in (tmp_path / "cases.toml").read_text()
    done = jumar(tmp_path, "cases", "run", "--json", "--resume", timeout=60, check=2)
    assert f"{to.partition(' ')[0]} was " in done.stderr
    (tmp_path / "cases.toml").write_text((tmp_path / "cases.toml").read_text().replace(to, back if "=" in back else ""))
    jumar(tmp_path, "cases", "run", "--json", "--resume", timeout=60, check=0)


def test_larger_files_than_before_a_kill_are_refused_too(tmp_path: Path) -> None:
    act = (
        "path = pathlib.Path('cases.toml'); path.write_text(path.read_text().replace('[run]', '[run]\\nmax_file_mb = 90000', 1))"
    )
    write_given(tmp_path, act, cases=1, kill=True, when="number == 2 and once")
    before = (tmp_path / "cases.toml").read_text()
    jumar(tmp_path, "cases", "run", "--json", timeout=60)
    done = jumar(tmp_path, "cases", "run", "--json", "--resume", timeout=60, check=2)
    assert "max_file_mb was" in done.stderr
    (tmp_path / "cases.toml").write_text(before)
    jumar(tmp_path, "cases", "run", "--json", "--resume", timeout=60, check=0)


def test_another_judge_is_refused_at_a_resume_and_its_files_may_be_named(tmp_path: Path) -> None:
    write_given(tmp_path, "os.kill(os.getppid(), signal.SIGINT); time.sleep(1)", cases=1)
    text = (tmp_path / "cases.toml").read_text()
    (tmp_path / "cases.toml").write_text(text.rstrip() + '\nfiles = ["judge.py", "weights.py"]\n')
    jumar(tmp_path, "cases", "run", "--json", timeout=60, check=130)
    (tmp_path / "bonus.txt").write_text("not named")
    (tmp_path / "weights.py").write_text("TOP = 9\n")
    done = jumar(tmp_path, "cases", "run", "--json", "--resume", timeout=60, check=2)
    assert "what the judge runs is not what it was" in done.stderr
    assert "weights.py: a copy is" in done.stderr
    assert "bonus.txt" not in done.stderr
    (tmp_path / "weights.py").write_text("TOP = 10\n")
    jumar(tmp_path, "cases", "run", "--json", "--resume", timeout=60, check=0)


def test_what_a_judge_is_given_is_not_changed_by_another_case_beside_it(tmp_path: Path) -> None:
    act = "end = time.time() + 10\nwhile time.time() < end:\n"
    act += "    for path in (run / 'case_01/scratch/judge/in/agent_report').glob('*'):\n"
    act += "        path.write_text('the pump of case 1 broke'); end = 0\n    time.sleep(0.005)"
    write_given(tmp_path, f"import time\n{act}", when="case == 2 and number == 1")
    toml = tmp_path / "cases.toml"
    toml.write_text(toml.read_text().replace("[run]\n", "[run]\ncarry_forward = false\n", 1))
    slow = tmp_path / "judge.py"
    slow.write_text("import time\ntime.sleep(0.5)\n" + slow.read_text())
    jumar(tmp_path, "cases", "run", "--executor", "threads:2", timeout=60)
    first = RunReader(tmp_path / RUN).case(1).iterations()[0]
    assert "step_failed" == first.status
    assert "agent_report, which it was given, changed while it ran" in first.reason
