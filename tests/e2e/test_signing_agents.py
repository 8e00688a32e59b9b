"""Agents that have jumar itself vouch for them, and files that are nothing but large or deep: none wins or ends the loop."""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
from pathlib import Path

import pytest
from loops import jumar, jumar_json

from jumar import BestOutputTracker, UsageError

LOOP = """
[loop]
id = "l"
max_iterations = {iterations}
{more}
[artifacts]
include = ["out.txt"]
[generator]
command = {command}
"""
CHECK = """
[[checks]]
name = "good"
command = "grep -q good out.txt"
"""
STORE = ".jumar/loops/l"


def begin(act: str, *, iterations: int = 2, more: str = "", then: str = CHECK) -> None:
    """Write a loop whose generator writes something bad, and does ``act`` in its second iteration."""
    Path("out.txt").write_text("start\n")
    program = "import json, os, pathlib, shutil, subprocess\nnumber = os.environ['JUMAR_ITERATION']\n"
    program += "pathlib.Path('out.txt').write_text(f'bad {number}\\n')\n"
    Path("../agent.py").write_text(f"{program}if number == '2':\n    {act}\n")
    agent = shlex.quote(str(Path("../agent.py").resolve()))
    command = json.dumps(f"exec {shlex.quote(sys.executable)} {agent}")  # so that jumar is its parent
    Path("jumar.toml").write_text(LOOP.format(command=command, iterations=iterations, more=more) + then)


def test_a_tracker_records_into_no_loop_that_jumar_runs():
    begin("pass")
    jumar(Path.cwd(), "run", check=10)
    tracker = BestOutputTracker("l", storage_path=STORE)
    with pytest.raises(UsageError, match="`jumar run` runs the loop 'l'"):
        tracker.record_iteration(
            iteration_number=3, dimensions=dict.fromkeys(tracker.quality_weights, 1.0), artifacts=["out.txt"]
        )
    assert 3 == len(tracker.get_all_iterations())


def test_what_another_judge_says_at_an_agents_asking_is_not_taken():
    judge = "import json, sys\njson.load(sys.stdin)\nopen('../asked', 'a').write('x')\nprint(json.dumps({'gestalt': 1}))\n"
    Path("judge.py").write_text(judge)
    Path("out.txt").write_text("start\n")
    false = Path("../false")
    false.mkdir()
    (false / "python3").write_text("#!/bin/sh\ncat >/dev/null\necho '{\"gestalt\": 5}'\n")
    (false / "python3").chmod(0o755)
    asking = [str(Path(sys.executable).with_name("jumar")), "evaluate", "out.jsonl", "--mode", "expensive"]
    asking += ["--judge", "command:python3 judge.py", "--cache", ".jumar/replies", "--repeat", "1"]
    act = f"subprocess.run({asking!r}, env={{**os.environ, 'PATH': {str(false.resolve())!r} + ':' + os.environ['PATH']}})"
    begin(f"pathlib.Path('out.jsonl').write_text(json.dumps({{'id': 'a', 'text': 'bad 2'}})); {act}")
    then = """
[evaluator]
mode = "expensive"
items = "out.jsonl"
judge = "command:python3 judge.py"
repeat = 1
[evaluator.dimensions]
correctness = "gestalt"
"""
    text = Path("jumar.toml").read_text().replace(CHECK, then).replace('"out.txt"', '"out.txt", "out.jsonl"')
    Path("jumar.toml").write_text(text)
    Path("out.jsonl").write_text(json.dumps({"id": "a", "text": "start"}) + "\n")
    done = jumar_json(Path.cwd(), "run")
    assert 0 == done["quality_score"]
    told = json.loads(Path(STORE, "iterations/iteration-002/metrics.json").read_text())
    assert "failed" == told["verification_status"]
    assert "not written by jumar" in json.dumps(told)


@pytest.mark.parametrize("path", ["attempts/000002.start.json", "iterations/iteration-001/metrics.json", "loop.json"])
def test_a_file_that_is_nothing_but_large_is_changed_like_any_other(path: str):
    place = f"{STORE}/{path}"
    begin(f"os.unlink({place!r}); os.truncate(os.open({place!r}, os.O_CREAT | os.O_WRONLY), 9 << 40)")
    done = jumar(Path.cwd(), "run", check=10)
    assert "the store was written by somebody else" in done.stdout
    jumar(Path.cwd(), "repair", "l", "-y", check=0)
    assert 0 == jumar(Path.cwd(), "verify").returncode


def test_a_view_that_is_too_deep_to_be_read_is_made_again():
    begin(f"pathlib.Path({f'{STORE}/best-tracker.json'!r}).write_text('{{\"a\":' * 50_000)")
    done = jumar(Path.cwd(), "run", check=10)
    assert "Traceback" not in done.stderr
    assert 0 == json.loads(Path(STORE, "best-tracker.json").read_text())["current_best"]["quality_score"]


def test_nothing_is_written_through_a_link_in_the_place_of_an_iteration():
    victim = Path("../victim")
    victim.mkdir()
    (victim / "manifest.json").write_text("mine\n")
    place = f"{STORE}/iterations/iteration-000"
    begin(f"shutil.rmtree({place!r}); os.symlink({str(victim.resolve())!r}, {place!r})")
    jumar(Path.cwd(), "run", check=10)
    assert {"manifest.json": "mine\n"} == {path.name: path.read_text() for path in victim.iterdir()}


def test_a_snapshot_that_is_no_directory_is_damage_and_no_error():
    place = f"{STORE}/iterations/iteration-001/artifacts"
    begin(f"shutil.rmtree({place!r}); os.mkfifo({place!r})")
    jumar(Path.cwd(), "run", check=10)
    assert stat.S_ISFIFO(os.lstat(place).st_mode)
    done = jumar(Path.cwd(), "verify", check=14)
    assert "Not a directory" not in done.stdout + done.stderr


@pytest.mark.parametrize("put_there", ["symlink_to('/usr')", "mkdir()"])
def test_a_loop_goes_on_without_the_snapshot_of_its_start(put_there: str):
    begin("pass")
    start = Path(STORE, "iterations/iteration-000/artifacts")
    act = f"start = pathlib.Path({str(start)!r}); shutil.rmtree(start); start.{put_there}; os.kill(os.getppid(), 9)"
    with Path("../agent.py").open("a") as agent:
        agent.write(f"if not os.path.exists('../once'):\n    open('../once', 'w'); {act}\n")
    jumar(Path.cwd(), "run", check=-9)
    jumar(Path.cwd(), "run", check=14)
    assert 3 > len(jumar_json(Path.cwd(), "verify", "l", check=14)["loops"][0]["problems"])  # nothing behind a link is looked at
    assert "no snapshot is left to go on from" in jumar(Path.cwd(), "repair", "l", "-y").stdout
    jumar(Path.cwd(), "run", check=10)
    jumar(Path.cwd(), "verify", "l")
    assert [0, 1, 2] == [iteration["iteration_number"] for iteration in jumar_json(Path.cwd(), "show", "l")["iterations"]]


MEANWHILE = {
    "it stays": "other.write_text('good')\n    time.sleep(2)",
    "put back": "before = other.read_text()\n    other.write_text('good')\n    time.sleep(1.5)\n    other.write_text(before)",
    "put in the place of the tree, and back": (
        "tree, mine = other.parent.resolve(), other.parent.with_name('mine').resolve()\n    shutil.copytree(tree, mine)\n"
        "    (mine / 'out.txt').write_text('good')\n    tree.rename('../away')\n    mine.rename(tree)\n    time.sleep(1.5)\n"
        "    tree.rename(mine)\n    pathlib.Path('../away').rename(tree)"
    ),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_one_into_which_another_candidate_writes_is_scored_again_when_nothing_else_runs(meanwhile: str):
    wait = "test $JUMAR_ITERATION = 0 || { touch ../../../../checking; sleep 1; }; cd $PWD; grep"
    slow = CHECK.replace("grep", wait).replace("out.txt", "out.txt && sleep 1", 1)
    begin("pass", iterations=2, more="candidates = 2\nworkers = 2\nisolation = 'copy'", then=slow)
    with Path("../agent.py").open("a") as agent:
        agent.write(
            "import time\nother = pathlib.Path('../l@c01/out.txt')\n"
            "end = time.monotonic() + 20\n"
            "while os.environ['JUMAR_SLOT'] == '2' and time.monotonic() < end and not os.path.exists('../../../../checking'):\n"
            "    time.sleep(0.01)\n"
            f"if os.environ['JUMAR_SLOT'] == '2':\n    {MEANWHILE[meanwhile]}\n"
        )
    jumar(Path.cwd(), "run", check=10)
    first = jumar_json(Path.cwd(), "show", "l")["iterations"][1]
    assert ("ok", 0.0) == (first["status"], first["quality_score"])
    started = [json.loads(path.read_text()) for path in sorted(Path(STORE, "attempts").glob("*.start.json"))]
    assert 2 == sum((attempt["iteration"], attempt["purpose"]) == (1, "score") for attempt in started)
    jumar(Path.cwd(), "verify", "l")


SWAPS = """
import os, pathlib, shutil, signal
taken, kept = pathlib.Path(".jumar/loops/l/pending/iteration-001"), pathlib.Path("../kept")
if taken.exists() and not kept.exists():
    shutil.copytree(taken, kept, ignore=lambda *_: ["logs"])
    status = os.stat("out.txt")
    pathlib.Path("out.txt").write_text("good1\\n")
    os.utime("out.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    (taken / "stage.json").unlink()
    os.kill(os.getppid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("again", ["", "(into / 'metrics.json').write_text('{}')"], ids=["recorded", "recorded again"])
def test_a_score_is_that_of_the_snapshot_that_was_scored(again: str):
    Path("../swaps.py").write_text(SWAPS)
    runs = f"\n[[checks]]\nname = 'swaps'\ncommand = {json.dumps([sys.executable, '../swaps.py'])}\n"
    into = f"pathlib.Path('{STORE}/iterations/iteration-001')"
    copies = f"shutil.copytree('../kept', into, dirs_exist_ok=True, copy_function=shutil.copyfile); {again or 'pass'}"
    act = f"into, once = {into}, pathlib.Path('../once')\n    if not once.exists(): once.touch(); "
    act += f"[os.chmod(path, 0o644) for path in into.rglob('*.txt')]; {copies}; os.kill(os.getppid(), 9)"
    begin(act, more="apply = 'auto'", then=CHECK + runs)
    jumar(Path.cwd(), "run", "--keep-going", check=-9)
    jumar(Path.cwd(), "run", "--keep-going", check=-9)
    assert Path("../once").exists()
    jumar(Path.cwd(), "run", "--keep-going", check=None)
    jumar(Path.cwd(), "repair", "l", "-y", check=None)
    ended = jumar_json(Path.cwd(), "run", "--keep-going", "-n", "3", check=10)
    assert not ended["verified"]
    jumar(Path.cwd(), "verify", check=0)
