"""A STOP file ends a loop after its step, keeps it from starting, and is no damage; with real processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from loops import calls, jumar, jumar_json, write_loop

from jumar.processes.control import StopSwitch, stop_file


def wait_for_calls(directory: Path, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(calls(directory)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def slow_loop(directory: Path, passes: int = 40) -> None:
    write_loop(directory, [0.6] * passes, generator="")
    agent = directory / "agent.py"
    agent.write_text(agent.read_text() + "\ntime.sleep(0.2)\n")


@pytest.mark.parametrize("where", ["loop", "root"])
def test_a_running_loop_ends_after_its_step_and_goes_on_when_the_file_is_gone(tmp_path: Path, where: str) -> None:
    slow_loop(tmp_path)
    running = subprocess.Popen(
        [sys.executable, "-m", "jumar.cli.entry", "run", "--json"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        wait_for_calls(tmp_path, 1)
        words = [] if where == "loop" else ["--all"]
        made = jumar_json(tmp_path, "stop", *words)
        out, err = running.communicate(timeout=30)
    finally:
        running.kill()
        running.wait()
    assert made["changed"]
    file = Path(tmp_path / made["file"])
    assert (tmp_path / ".jumar" / ("STOP" if where == "root" else "loops/t/STOP")) == file
    assert 130 == running.returncode, err
    assert b'"stop_reason": "stop_file"' in out
    done = len(calls(tmp_path))
    assert 40 > done

    refused = jumar(tmp_path, "run", check=2)
    assert (
        "STOP asks loops to stop: remove it to resume (`jumar stop --undo` does, with --all that of the root)" in refused.stderr
    )
    jumar(tmp_path, "verify", "t", check=0)
    assert "removed" in jumar(tmp_path, "stop", "--undo", *words, check=0).stdout
    (tmp_path / "agent.py").write_text((tmp_path / "agent.py").read_text().replace("time.sleep(0.2)", ""))
    ended = jumar_json(tmp_path, "run", "-n", str(done + 1))
    assert "max_iterations" == ended["stop_reason"]
    assert list(range(1, done + 2)) == calls(tmp_path)


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    assert "no loop is running; name a loop, or --all" in jumar(tmp_path, "stop", check=2).stderr
    assert "no loop is asked to stop; name a loop" in jumar(tmp_path, "stop", "--undo", check=2).stderr
    assert "name a loop, or --all" in jumar(tmp_path, "stop", "t", "--all", check=2).stderr
    assert "holds no loops" in jumar(tmp_path, "stop", "--all", check=2).stderr
    jumar(tmp_path, "stop", "nothing", check=2)
    assert not (tmp_path / ".jumar").exists()


def test_a_root_that_only_holds_a_stop_file_is_still_ours(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6])
    (tmp_path / ".jumar").mkdir()
    (tmp_path / ".jumar" / "STOP").touch()
    jumar(tmp_path, "run", check=2)
    (tmp_path / ".jumar" / "STOP").unlink()
    jumar(tmp_path, "run", check=0)
    (tmp_path / ".jumar" / "STOP").touch()
    jumar(tmp_path, "run", "--new", check=2)
    assert (tmp_path / ".jumar" / ".gitignore").read_text().endswith("\n*\n")
    assert ["t"] == [path.name for path in (tmp_path / ".jumar" / "loops").iterdir()]


def test_the_switch_says_which_file_asked_and_a_signal_beats_it(tmp_path: Path) -> None:
    switch = StopSwitch()
    assert not switch.requested
    switch.watch([tmp_path / "A", tmp_path / "B"])
    assert not switch.requested
    (tmp_path / "B").symlink_to("nowhere")
    assert tmp_path / "B" == stop_file([tmp_path / "A", tmp_path / "B"])
    assert switch.requested
    assert ("stop_file", True) == (switch.decision().reason, str(tmp_path / "B") in switch.decision().detail)
    switch.now("terminated")
    assert "terminated" == switch.decision().reason


@pytest.mark.parametrize("where", ["loop", "root"])
def test_a_directory_in_its_place_is_taken_back_too(tmp_path: Path, where: str) -> None:
    write_loop(tmp_path, [0.6, 0.7], generator="")
    jumar(tmp_path, "run", "-n", "1")
    (loop,) = (tmp_path / ".jumar/loops").iterdir()
    place = (loop if where == "loop" else tmp_path / ".jumar") / "STOP"
    (place / "inner").mkdir(parents=True)
    jumar(tmp_path, "run", "-n", "2", check=2)
    jumar(tmp_path, "stop", "--undo", loop.name if where == "loop" else "--all", check=0)
    assert (place.parent / "quarantine/0001-STOP/inner").is_dir()
    jumar(tmp_path, "run", "-n", "2", check=0)
