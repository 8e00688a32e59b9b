"""Steps that go wrong in every way that programs have, and runs that cannot be: a clear reason, and what was good stays."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import unwrapped
from loops import jumar
from pipelines import AGENT, AUGMENT, FEEDBACK, JUDGE, RUN, before_steps, calls, facts, judged, write_pipeline
from steps_kit import is_gone

from jumar.cases.records import CaseIteration
from jumar.cases.run_store import RunReader
from jumar.cases.verify import verify_run

GOOD = (6, 6, 6)


def agent(bad: str, *, timeout: float = 60) -> str:
    """The agent's step; in case 1, from its second iteration on, it does ``bad`` first."""
    first = f'if [ "$JUMAR_CASE_NUM" = 1 ] && [ "$JUMAR_ITERATION" -ge 2 ]; then {bad}\nfi'
    return AGENT.replace('cat "$JUMAR_IN_PROMPT"', f'{first}; cat "$JUMAR_IN_PROMPT"') + f"timeout = {timeout}\n"


def run(directory: Path, *options: str, check: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(jumar(directory, "cases", "run", "--json", *options, check=check).stdout)
    return found


def iterations(directory: Path, case: int) -> tuple[CaseIteration, ...]:
    return RunReader(directory / RUN).case(case).iterations()


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "this took too long"
        time.sleep(0.02)


def hashes(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
        for path in sorted(directory.rglob("*"))
    }


def assert_the_good_survived(directory: Path, status: str, reason: str) -> None:
    """Case 1 kept its first iteration and ended after two failures in a row; case 2 went on from it."""
    records = iterations(directory, 1)
    assert ["ok", status, status] == [record.status for record in records]
    for record in records[1:]:
        assert reason.replace("ITER", f"iter_{record.number:04d}") in record.reason
        assert {None} == set(record.values.values())
    reader = RunReader(directory / RUN)
    end = reader.case(1).end()
    assert end is not None
    assert ("consecutive_failures", 3, 1) == (end.stopped_by, end.iterations, end.best_iter)
    assert reason.replace("ITER", "iter_0003") in end.detail
    best = (directory / RUN / "case_01/best/iter_0001/ckg/best_ckg.json").read_bytes()
    assert best == (directory / RUN / "inputs/base_ckg_snapshot_case_02.json").read_bytes()
    assert b"1.1" in best.splitlines()[-1]
    assert {"ok"} == {record.status for record in iterations(directory, 2)}
    assert () == verify_run(directory / RUN).problems
    jumar(directory, "cases", "verify", check=0)


# --------------------------------------------------------------------------------------------- steps that go wrong


@pytest.mark.parametrize(
    ("bad", "status", "reason"),
    [
        ("echo 'no such model' >&2; exit 3", "step_failed", "step agent: exit code 3: no such model"),
        ("kill -9 $$", "step_failed", "step agent: "),
        ("no-such-program", "step_failed", "no-such-program"),
        ("sleep 600", "step_timeout", "step agent: "),
        ("exit 0", "missing_output", "step agent: it did not write agent_report (agent_report_ITER_case_01.md)"),
        ('mkdir "$JUMAR_OUT_AGENT_REPORT"; exit 0', "missing_output", "it did not write agent_report"),
        ('ln -s /etc/hosts "$JUMAR_OUT_AGENT_REPORT"; exit 0', "missing_output", "it did not write agent_report"),
        ('mkfifo "$JUMAR_OUT_AGENT_REPORT"; exit 0', "missing_output", "it did not write agent_report"),
        ('rm -r "${JUMAR_OUT_AGENT_REPORT%/*}"; exit 0', "missing_output", "it did not write agent_report"),
    ],
    ids=["exits", "killed", "not there", "hangs", "writes nothing", "directory", "link", "fifo", "removes its folder"],
)
def test_a_step_that_fails_is_on_record_and_the_best_survives(tmp_path: Path, bad: str, status: str, reason: str) -> None:
    bad = bad if "no-such" not in bad else f"{bad} || exit"
    steps = (AUGMENT, agent(bad, timeout=0.7 if "sleep" in bad else 60), JUDGE, FEEDBACK)
    write_pipeline(tmp_path, {1: [GOOD] * 4, 2: [GOOD] * 4}, steps=steps, extra="[stop]\nconsecutive_failures = 2\n")
    assert [1, 1] == [case["best_iter"] for case in run(tmp_path)["cases"]]
    assert_the_good_survived(tmp_path, status, reason)
    again = [name for name in calls(tmp_path) if name.startswith("1.2")]
    assert ["1.2 augment", "1.2 agent"] == again, "what follows a failed step is not run"


DIMENSIONS = json.loads(judged(GOOD))["dimensions"]


def judge_file(**document: Any) -> bytes:
    return json.dumps({"composite_score": 6, "dimensions": DIMENSIONS} | document).encode()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"I would say nine out of ten.", "judge_result_ITER_case_01.json is not JSON: Expecting value in line 1"),
        (b"", "judge_result_ITER_case_01.json is empty"),
        (b'{"grade": "\xff"}', "judge_result_ITER_case_01.json is not UTF-8"),
        (b"[" * 100_000, "judge_result_ITER_case_01.json is nested too deeply"),
        (
            judge_file(dimensions=[]),
            "there is no dimensions[?name=='Root Cause Accuracy'].score | [0] in judge_result_ITER_case_01.json",
        ),
        (b"{}", "there is no dimensions[?name=='Root Cause Accuracy'].score | [0] in judge_result_ITER_case_01.json"),
        (b"[]", "there is no dimensions[?name=='Root Cause Accuracy'].score | [0] in judge_result_ITER_case_01.json"),
        (judge_file(composite_score=float("nan")), "nan, not a finite number"),
        (judge_file(composite_score=float("inf")), "inf, not a finite number"),
        (judge_file(composite_score="9"), "'9', not a number"),
        (judge_file(composite_score=True), "True, not a number"),
        (
            judge_file(dimensions=[{**DIMENSIONS[0], "score": None}, DIMENSIONS[1]]),
            "there is no dimensions[?name=='Root Cause Accuracy'].score | [0] in judge_result_ITER_case_01.json",
        ),
    ],
)
def test_a_judgement_that_cannot_be_used_is_never_the_best(tmp_path: Path, content: bytes, reason: str) -> None:
    scores = {1: [GOOD, content, content, GOOD], 2: [GOOD, GOOD, GOOD, GOOD]}
    write_pipeline(tmp_path, scores, extra="[stop]\nconsecutive_failures = 2\n")
    assert [1, 1] == [case["best_iter"] for case in run(tmp_path)["cases"]]
    records = iterations(tmp_path, 1)
    assert ["ok", "invalid_score", "invalid_score"] == [record.status for record in records]
    for record in records[1:]:
        assert reason.replace("ITER", f"iter_{record.number:04d}") in record.reason
    assert 2 == records[2].parent, "its steps did their work, so that the next iteration builds on it"
    assert (tmp_path / RUN / "case_01/best/iter_0001/ckg/best_ckg.json").read_bytes() == (
        tmp_path / RUN / "inputs/base_ckg_snapshot_case_02.json"
    ).read_bytes()
    assert () == verify_run(tmp_path / RUN).problems


def test_a_score_outside_of_its_scale_is_never_the_best_and_reaches_nothing(tmp_path: Path) -> None:
    wild = judge_file(composite_score=87)
    scale = '[ranking]\norder = [{key = "overall", min = 0, max = 10}, "accuracy"]\n'
    write_pipeline(tmp_path, {1: [GOOD, wild, GOOD], 2: [wild, GOOD, GOOD]}, extra=f"{scale}[stop]\noverall = 9.9\n")
    found = run(tmp_path)

    assert [(1, "max_iters"), (2, "max_iters")] == [(case["best_iter"], case["stopped_by"]) for case in found["cases"]]
    record = iterations(tmp_path, 1)[1]
    assert ("invalid_score", None) == (record.status, record.values["overall"])
    assert "overall is 87 in judge_result_iter_0002_case_01.json, outside of its scale: 0 to 10" == record.reason
    replayed = json.loads(jumar(tmp_path, "cases", "replay", str(RUN), "--json", check=0).stdout)
    assert [1, 2] == [case["best_iter"] for case in replayed["cases"]]


def test_a_case_without_a_valid_iteration_has_no_best_and_says_so(tmp_path: Path) -> None:
    write_pipeline(tmp_path, {1: [b"{}", b"{}"], 2: [GOOD, GOOD]})
    found = run(tmp_path, check=1)
    assert [None, 1] == [case["best_iter"] for case in found["cases"]]
    assert [None, None] == [case["carried_from"] for case in found["cases"]]
    assert not (tmp_path / RUN / "case_01" / "best").exists()
    write_pipeline(tmp_path, {1: [b"{}", b"{}"]})
    run(tmp_path, "--run-id", "none", check=12)


def test_what_a_step_does_to_its_inputs_is_done_to_copies(tmp_path: Path) -> None:
    spoil = 'echo spoilt >> "$JUMAR_IN_CKG"; rm "$JUMAR_IN_PROMPT"; mkdir -p "$JUMAR_IN_PROMPT/x"; chmod 0 "$JUMAR_IN_CKG"'
    spoiling = AGENT.replace('> "$JUMAR_OUT_AGENT_REPORT"', f'> "$JUMAR_OUT_AGENT_REPORT"; {spoil}')
    scores = {1: [GOOD, GOOD], 2: [GOOD, GOOD]}
    write_pipeline(tmp_path / "spoilt", scores, steps=(AUGMENT, spoiling, JUDGE, FEEDBACK))
    write_pipeline(tmp_path / "plain", scores)
    for name in ("spoilt", "plain"):
        run(tmp_path / name)
    assert facts(tmp_path / "plain" / RUN) == facts(tmp_path / "spoilt" / RUN)
    assert () == verify_run(tmp_path / "spoilt" / RUN).problems


def test_children_that_a_step_leaves_are_ended_with_it(tmp_path: Path) -> None:
    leave = "sleep 300 & echo $! >> children; setsid sleep 300 & echo $! >> children"
    write_pipeline(
        tmp_path,
        {1: [GOOD]},
        steps=(AUGMENT, AGENT.replace('cat "$JUMAR_IN_PROMPT"', f'{leave}; cat "$JUMAR_IN_PROMPT"'), JUDGE, FEEDBACK),
    )
    run(tmp_path)
    left = [int(line) for line in (tmp_path / "children").read_text().split()]
    assert (2, []) == (len(left), [pid for pid in left if not is_gone(pid)])


def test_directories_too_deep_to_be_named_beside_the_outputs_do_not_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text("import os\nfor name in ['d' * 200] * 40:\n    os.mkdir(name)\n    os.chdir(name)\n")
    deep = 'here=$PWD; cd "${JUMAR_OUT_AGENT_REPORT%/*}/.."; python3 "$here/deep.py"; cd "$here"'
    write_pipeline(tmp_path, {1: [GOOD] * 2}, steps=(AUGMENT, agent(deep), JUDGE, FEEDBACK))
    assert [2] == [case["iterations"] for case in run(tmp_path)["cases"]]
    assert {"ok"} == {record.status for record in iterations(tmp_path, 1)}


def test_a_flood_of_output_is_cut_off_in_the_log_and_in_the_record(tmp_path: Path) -> None:
    flood = "head -c 60000000 /dev/zero | tr '\\\\0' x; echo; echo the end"
    write_pipeline(tmp_path, {1: [GOOD]}, steps=(AUGMENT, AGENT.replace("'''\ninputs", f"; {flood}'''\ninputs"), JUDGE, FEEDBACK))
    run(tmp_path)
    record = iterations(tmp_path, 1)[0]
    step = next(step for step in record.steps if step.step == "agent")
    assert "ok" == record.status
    assert step.output_tail.endswith("the end\n")
    assert len(step.output_tail) < 20_000
    directory = tmp_path / RUN / "case_01/iterations/iter_0001"
    assert (directory / "logs/agent.log").stat().st_size < 2_000_000
    assert (directory / "iteration.json").stat().st_size < 100_000


def test_a_step_that_is_stopped_after_it_made_a_directory_of_its_output_runs_again(tmp_path: Path) -> None:
    hang = 'if [ -e hang ]; then mkdir "$JUMAR_OUT_AGENT_REPORT"; touch hanging; sleep 600; fi'
    write_pipeline(tmp_path, {1: [GOOD, GOOD]}, steps=(AUGMENT, agent(hang), JUDGE, FEEDBACK))
    (tmp_path / "hang").touch()
    with running(tmp_path) as process:
        until((tmp_path / "hanging").exists)
        process.terminate()
        process.communicate(timeout=60)
    (tmp_path / "hang").unlink()
    run(tmp_path, "--resume")
    assert ["ok", "ok"] == [record.status for record in iterations(tmp_path, 1)]


def test_the_time_of_all_cases_counts_against_the_limit_of_the_run(tmp_path: Path) -> None:
    write_pipeline(tmp_path, {1: [GOOD, GOOD], 2: [GOOD, GOOD]})
    # only the second iteration takes long, and the first one has seconds: a busy machine is no reason to end earlier
    before_steps(tmp_path, 'case "$(tail -n 1 calls.log)" in "1.2 "*) [ -e slept ] || { touch slept; sleep 3.2; };; esac')
    found = run(tmp_path, "--max-seconds", "3", check=1)
    assert ["max_iters", "max_seconds"] == [case["stopped_by"] for case in found["cases"]]
    assert [2, 0] == [case["iterations"] for case in found["cases"]]


# --------------------------------------------------------------------------------------------- runs that cannot be


@contextmanager
def running(directory: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "jumar.cli.entry", "cases", "run", "--json"]
    process = subprocess.Popen(
        command, cwd=directory, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_two_runs_at_once(tmp_path: Path) -> None:
    write_pipeline(tmp_path, {1: [GOOD, GOOD]})
    before_steps(tmp_path, "while [ -e hang ]; do sleep 0.02; done")
    (tmp_path / "hang").touch()
    with running(tmp_path) as process:
        until(lambda: calls(tmp_path))
        second = jumar(tmp_path, "cases", "run", "--resume", check=13)
        assert f"is being written by process {process.pid}" in second.stderr
        third = jumar(tmp_path, "cases", "run", check=2)
        assert "run_t exists already; nothing in it was touched" in third.stderr
        (tmp_path / "hang").unlink()
        _, err = process.communicate(timeout=60)
        assert 0 == process.returncode, err
    assert 6 == len(calls(tmp_path)), "nobody ran a step for a second time"


def test_a_run_that_exists_is_left_alone(tmp_path: Path) -> None:
    write_pipeline(tmp_path, {1: [GOOD]})
    (tmp_path / RUN).mkdir(parents=True)
    (tmp_path / RUN / "mine").write_text("precious")
    done = jumar(tmp_path, "cases", "run", check=2)
    assert "run_t exists already; nothing in it was touched. Resume it (--resume), or choose another run id" in done.stderr
    assert {"mine": hashlib.sha256(b"precious").hexdigest()} == hashes(tmp_path / RUN)
    assert [] == calls(tmp_path)


def test_a_best_that_somebody_else_made_is_moved_away_whole(tmp_path: Path) -> None:
    write_pipeline(tmp_path, {1: [GOOD, GOOD], 2: [GOOD, GOOD]})
    before_steps(tmp_path, 'case "$JUMAR_CASE_NUM $1" in "2 augment") kill -9 $(cat pid);; esac')
    with running(tmp_path) as process:
        (tmp_path / "pid").write_text(str(process.pid))
        process.communicate(timeout=60)
        assert -signal.SIGKILL == process.returncode
    before_steps(tmp_path, "exit 0")
    mine = tmp_path / RUN / "case_02" / "best"
    mine.mkdir()
    (mine / "mine").write_text("precious")
    assert [1, 1] == [case["best_iter"] for case in run(tmp_path, "--resume")["cases"]]
    assert "precious" == (tmp_path / RUN / "case_02/quarantine/0001-best/mine").read_text()


SAME_NUMBER = "[start]\nfrom_scratch = true\n" + '[[cases]]\nnumber = 7\nfile = "case1.txt"\n' * 2


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, ("--best-order", "accuracy,speed"), "speed"),
        ({}, ("--best-tiebreak", "bigger_diff"), "bigger_diff"),
        ({}, ("--base-ckg", "nowhere.json"), "the base for ckg, "),
        ({}, ("--base-ckg", "cases.toml", "--start-from-scratch"), "exclude each other: keep one"),
        ({"case1.txt": "only a report\n"}, (), "case1.txt: no line with the marker 'E2E Test Query' in 1 line"),
        ({"case1.txt": "---\nE2E Test Query\nquery\n"}, (), "case1.txt:1: the expert's report is empty"),
        ({"case1.txt": "report\n---\nE2E Test Query\n\n"}, (), "case1.txt:3: the query is empty"),
        ({"cases.toml": SAME_NUMBER}, (), "two cases have the number 7: case1.txt and case1.txt"),
        ({}, ("--case", "9"), "--case 9: there is no such case"),
        ({}, ("--resume",), "no run called 't'"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_made(
    tmp_path: Path, changes: dict[str, str], options: tuple[str, ...], message: str
) -> None:
    write_pipeline(tmp_path, {1: [GOOD], 2: [GOOD]}, start="" if "--base-ckg" in options else "from_scratch = true")
    for name, text in changes.items():
        (tmp_path / name).write_text(text)
    done = jumar(tmp_path, "cases", "run", *options, check=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / RUN).exists()
    assert [] == calls(tmp_path)


# ------------------------------------------------------------------------------------------------ disks that refuse


def with_mount(options: str, target: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script with a file system of memory at ``target``, in a name space of its own."""
    mount = f"mount -t tmpfs -o {options} tmpfs '{target}' || exit 99; {script}"
    return subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True, text=True, check=False, cwd=target.parent)


def needs_mounts(directory: Path) -> None:
    if shutil.which("unshare") is None or 0 != with_mount("size=64k", directory, "exit 0").returncode:
        pytest.skip("this machine does not let a process have mounts of its own")


JUMAR = f"'{sys.executable}' -m jumar.cli.entry cases run --json --output-root runs"


SCORES = {1: [GOOD, (8, 8, 8)], 2: [GOOD, (5, 5, 5)]}


@pytest.fixture(scope="module")
def with_room(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run comes to whose disk has room."""
    directory = tmp_path_factory.mktemp("with-room")
    write_pipeline(directory, SCORES)
    run(directory)
    return facts(directory / RUN)


@pytest.mark.parametrize("size", ["24k", "120k", "200k", "280k"])
def test_a_full_disk_is_said_and_the_run_goes_on_when_there_is_room(tmp_path: Path, with_room: dict[str, Any], size: str) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    needs_mounts(runs)
    write_pipeline(tmp_path, SCORES)
    again = f"mount -o remount,size=10m runs; resume=--resume; [ -e runs/run_t ] || resume=; {JUMAR} $resume"
    done = with_mount(f"size={size}", runs, f"{JUMAR}; echo $? > code; {again}; echo $? > again; cp -r runs kept")
    assert ["1", "0"] == [(tmp_path / name).read_text().strip() for name in ("code", "again")], done.stderr
    assert "the disk is full: free some space and run the command again" in unwrapped(done.stderr)
    assert "Traceback" not in done.stderr
    assert with_room == facts(tmp_path / "kept" / "run_t")
    assert () == verify_run(tmp_path / "kept" / "run_t").problems


def test_a_place_that_cannot_be_written_is_said_and_nothing_is_paid_for(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    needs_mounts(runs)
    write_pipeline(tmp_path, {1: [GOOD]})
    done = with_mount("ro", runs, JUMAR)
    assert 1 == done.returncode, done.stderr
    assert "the file system is read-only: remount it or choose another folder" in unwrapped(done.stderr)
    assert [] == calls(tmp_path)
