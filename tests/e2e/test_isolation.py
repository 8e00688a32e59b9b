"""Several loops in one repository at once, real processes and real git."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from loops import jumar, jumar_json

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

AGENT = """
import os, pathlib, subprocess, time
me, other = os.environ["JUMAR_LOOP_ID"], {"one": "two", "two": "one"}[os.environ["JUMAR_LOOP_ID"]]
n = os.environ["JUMAR_ITERATION"]
meeting = pathlib.Path(os.environ["JUMAR_MEETING"])
(meeting / f"{me}-{n}").touch()
until = time.monotonic() + 30
while not (meeting / f"{other}-{n}").exists() and time.monotonic() < until:
    time.sleep(0.01)
assert (meeting / f"{other}-{n}").exists(), "the loops do not run at once"
text = pathlib.Path("text.md")
text.write_text(text.read_text() + f"{me} {n}\\n")
pathlib.Path("score.txt").write_text(f"0.{n}")
subprocess.run(["git", "add", "-A"], check=True)
subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@x", "commit", "-q", "-m", me], check=True)
"""


def git(where: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=p", "-c", "user.email=p@x")
    return subprocess.run(["git", *identity, *arguments], cwd=where, check=True, capture_output=True, text=True).stdout.strip()


def write_loops(directory: Path, isolation: str) -> None:
    git(directory, "init", "-q", "-b", "main")
    (directory / "agent.py").write_text(AGENT)
    (directory / "text.md").write_text("start\n")
    (directory / "score.txt").write_text("0.0")
    for name in ("one", "two"):
        (directory / f"{name}.toml").write_text(
            f"""
[loop]
id = "{name}"
max_iterations = 3
isolation = "{isolation}"
[artifacts]
include = ["text.md", "score.txt"]
[generator]
command = [{json.dumps(sys.executable)}, "agent.py"]
[[scorers]]
dimension = "quality"
command = "cat score.txt"
"""
        )
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "-m", "first")
    (directory / "text.md").write_text("start, not committed\n")


def start(directory: Path, name: str, monkeypatch: pytest.MonkeyPatch, meeting: Path) -> subprocess.Popen[str]:
    monkeypatch.setenv("JUMAR_MEETING", str(meeting))
    return subprocess.Popen(
        [sys.executable, "-m", "jumar.cli.entry", "run", f"{name}.toml", "--json"],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("isolation", ["copy", "worktree"])
def test_two_loops_at_once_do_not_touch_each_other_or_the_tree(
    fresh_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    write_loops(fresh_place, isolation)
    before = (git(fresh_place, "rev-parse", "HEAD"), git(fresh_place, "status", "--porcelain"))
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    with start(fresh_place, "one", monkeypatch, meeting) as one, start(fresh_place, "two", monkeypatch, meeting) as two:
        ended = {"one": (*one.communicate(timeout=60), one.returncode), "two": (*two.communicate(timeout=60), two.returncode)}
    for name, (out, err, code) in ended.items():
        assert 0 == code, err
        assert 3 == json.loads(out)["selected_iteration"]
        first, last = (fresh_place / ".jumar" / "loops" / name / "iterations" / f"iteration-{n:03d}" for n in (0, 3))
        assert "start, not committed\n" == (first / "artifacts" / "text.md").read_text()
        assert f"start, not committed\n{name} 1\n{name} 2\n{name} 3\n" == (last / "artifacts" / "text.md").read_text()
        assert 1 == len(json.loads((last / "metrics.json").read_text())["commits"])

    assert before == (git(fresh_place, "rev-parse", "HEAD"), git(fresh_place, "status", "--porcelain"))
    assert "start, not committed\n" == (fresh_place / "text.md").read_text()
    assert (3 if isolation == "worktree" else 1) == len(git(fresh_place, "worktree", "list").splitlines())
    jumar(fresh_place, "apply", "two", check=0)
    assert "two 3" in (fresh_place / "text.md").read_text()


def test_a_second_loop_in_place_is_refused_and_told_the_way_out(
    fresh_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_loops(fresh_place, "none")
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    with start(fresh_place, "one", monkeypatch, meeting) as first:
        while not (meeting / "one-1").exists():
            assert first.poll() is None
        refused = jumar(fresh_place, "run", "two.toml", check=13)
        for n in (1, 2, 3):
            (meeting / f"two-{n}").touch()
        out, err = first.communicate(timeout=60)

    assert "--isolation copy or worktree" in refused.stderr
    assert 0 == first.returncode, err
    assert 3 == json.loads(out)["selected_iteration"]


def test_outside_of_a_repository_a_worktree_is_refused_before_anything_is_made(fresh_place: Path) -> None:
    (fresh_place / "a.txt").write_text("x")
    refused = jumar(fresh_place, "run", "--isolation", "worktree", "--check", "true", "--", "true", check=2)

    assert 'isolation = "copy"' in refused.stderr
    assert not (fresh_place / ".jumar" / "loops").exists()


@pytest.mark.parametrize("isolation", ["none", "copy", "worktree"])
def test_cleanup_removes_the_trees_of_a_loop_that_has_ended(fresh_place: Path, isolation: str) -> None:
    write_loops(fresh_place, isolation)
    (fresh_place / "agent.py").write_text(
        "import os, subprocess\n"
        "open('score.txt', 'w').write('0.' + os.environ['JUMAR_ITERATION'])\n"
        "if os.environ.get('JUMAR_FAIL'): os.kill(os.getppid(), 9)\n"
        "subprocess.run('git -c user.name=a -c user.email=a@x commit -qam a', shell=True, check=True)\n"
    )
    jumar(fresh_place, "run", "one.toml", env={"JUMAR_FAIL": "1"}, check=-9)
    refused = jumar(fresh_place, "cleanup", "one", "--keep", "1", "--trees", check=2)
    assert "has not ended" in refused.stderr
    jumar(fresh_place, "run", "one.toml", check=0)
    cleaned = jumar_json(fresh_place, "cleanup", "one", "--trees")
    refs = git(fresh_place, "for-each-ref", "--format=%(refname)", "refs/jumar").split()

    assert (None if isolation == "none" else str(fresh_place / ".jumar/work/one")) == cleaned["tree"]
    assert refs == cleaned["refs"]
    assert (1 if isolation == "worktree" else 0) == len(refs)
    assert 1 == len(git(fresh_place, "worktree", "list").splitlines())
    assert not (fresh_place / ".jumar/work/one").exists()
    assert "0.3" == (fresh_place / ".jumar/loops/one/final-output/score.txt").read_text()


@pytest.mark.parametrize("isolation", ["none", "copy", "worktree"])
def test_a_sparse_file_takes_no_more_room_anywhere(fresh_place: Path, isolation: str) -> None:
    with (fresh_place / "beside.img").open("wb") as file:
        file.truncate(300_000_000)
    (fresh_place / "n.txt").write_text("0")
    agent = "import os; n = os.environ['JUMAR_ITERATION']; open('n.txt', 'w').write(n); f = open('disk.img', 'wb'); "
    (fresh_place / "agent.py").write_text(f"{agent}f.seek(10**8); f.write(n.encode()); f.truncate(3 * 10**8)")
    (fresh_place / "jumar.toml").write_text(
        f"""
[loop]
id = "t"
isolation = "{isolation}"
max_iterations = 2
[artifacts]
include = ["disk.img", "n.txt"]
max_file_mb = 1000
[generator]
command = [{json.dumps(sys.executable)}, "agent.py"]
[[scorers]]
dimension = "n"
command = "echo 0.$(cat n.txt)"
"""
    )
    if isolation == "worktree":
        git(fresh_place, "init", "-q")
        git(fresh_place, "add", "n.txt", "agent.py")
        git(fresh_place, "commit", "-qm", "start")
    jumar(fresh_place, "run", check=0)
    jumar(fresh_place, "select", "--use", "1", "--reason", "smaller", check=0)
    jumar(fresh_place, "apply", check=0)
    jumar(fresh_place, "apply", "--undo", check=0)
    jumar(fresh_place, "verify", check=0)
    found = [path for path in (*fresh_place.rglob("*.img"), *fresh_place.glob(".jumar/objects/*")) if path.is_file()]
    assert len(found) >= (4 if isolation == "none" else 5)
    assert sum(path.stat().st_blocks * 512 for path in found) < 10_000_000, found


LINKED = """
[loop]
id = "t"
max_iterations = 1
workdir = "app"
[generator]
command = '''cd .. && mv app app.real && ln -s person app; if test -n "$JUMAR_FAIL"; then kill -9 $PPID; fi'''
[[scorers]]
dimension = "quality"
command = "grep -qx start text.md && echo 1 || echo 0"
"""


@pytest.mark.parametrize("kills", ["", "1"])
def test_in_place_a_link_in_the_place_of_the_working_directory_leads_to_nothing_of_the_loop(
    fresh_place: Path, kills: str
) -> None:
    for name in ("app", "person"):
        (fresh_place / name).mkdir()
    (fresh_place / "app/text.md").write_text("start\n")
    (fresh_place / "person/text.md").write_text("mine\n")
    (fresh_place / "person/notes.md").write_text("mine\n")
    (fresh_place / "jumar.toml").write_text(LINKED)
    jumar(fresh_place, "run", env={"JUMAR_FAIL": kills}, check=-9 if kills else 0)
    if kills:
        refused = jumar(fresh_place, "run", check=2)
        assert "app became a link to" in refused.stderr
    else:
        record = json.loads((fresh_place / ".jumar/loops/t/iterations/iteration-001/metrics.json").read_text())
        assert (record["status"], record["status_reason"]) == ("snapshot_failed", "the working directory was replaced by a link")
        assert (fresh_place / "app/text.md").read_text() == "start\n"

    assert {path.name: path.read_text() for path in (fresh_place / "person").iterdir()} == {
        "text.md": "mine\n",
        "notes.md": "mine\n",
    }
