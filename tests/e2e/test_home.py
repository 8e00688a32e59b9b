"""``jumar`` alone on a terminal says where you are and what to type; piped it prints its help."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

from chains import write_chain
from loops import calls, jumar, started_on_a_terminal, write_loop

from jumar.cli.table import render_help

LOADED = """
import sys
from jumar.cli.home import show_home
show_home()
print(sorted({"rich", "pydantic", "numpy", "jinja2", "jumar.cli.application"} & set(sys.modules)), file=sys.stderr)
"""


def home(place: Path) -> list[str]:
    """Return the lines that ``jumar`` draws on a terminal."""
    process, terminal = started_on_a_terminal(place)
    screen = b""
    try:
        while True:
            screen += os.read(terminal, 4096)
    except OSError:  # the other end is closed
        assert 0 == process.wait(30)
    finally:
        os.close(terminal)
    return screen.decode().splitlines()


def commands(lines: list[str]) -> list[str]:
    return [line.strip().split("   ")[0] for line in lines if line.startswith("  jumar")]


def test_without_a_loop_three_ways_to_begin(tmp_path: Path) -> None:
    lines = home(tmp_path)
    assert "There is no loop here yet. Three ways to begin:" == lines[0]
    ways = commands(lines)
    assert ["demo", "run", "init"] == [shlex.split(way)[1] for way in ways]
    jumar(tmp_path, *shlex.split(ways[2])[1:], check=0)
    assert "jumar run" == commands(home(tmp_path))[2], "the configuration that is there now"
    assert render_help() == jumar(tmp_path, check=0).stdout


def test_a_finished_loop_in_two_lines_and_every_command_works_as_it_is_drawn(tmp_path: Path) -> None:
    tests = "echo 1..12; i=1; while [ $i -le 12 ]; do echo ok $i - t$i; i=$((i+1)); done"
    write_loop(tmp_path, [0.9, 0.6], check=tests)
    jumar(tmp_path, "run", check=0)
    lines = home(tmp_path)
    assert [
        "t   finished: max iterations · 2 iterations",
        "    selected 90 at iteration 1 · 12/12 tests · cost not reported",
        "",
    ] == lines[:3]
    drawn = commands(lines)
    assert ["show", "diff", "report", "apply", "--help"] == [shlex.split(command)[1] for command in drawn]
    for command in drawn:
        jumar(tmp_path, *shlex.split(command)[1:], env={"BROWSER": "true"}, check=0)
    assert "0.6" == (tmp_path / "score.txt").read_text(), "the last command was an undo"
    again = next(command for command in commands(home(tmp_path)) if " apply" in command)
    jumar(tmp_path, *shlex.split(again)[1:], check=0)
    assert "0.9" == (tmp_path / "score.txt").read_text()


def test_one_that_runs_and_one_that_was_interrupted(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.7, "hang"])
    process = subprocess.Popen([sys.executable, "-m", "jumar.cli.entry", "run", "-q"], cwd=tmp_path)
    try:
        deadline = time.monotonic() + 30
        while calls(tmp_path) != [1, 2]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        lines = home(tmp_path)
        assert lines[0].startswith("t   running: generate iteration 2 for ")
        assert "    best 70 at iteration 1 · cost not reported" == lines[1]
        assert ["jumar watch", "jumar logs -f", "jumar stop", "jumar --help"] == commands(lines)
    finally:
        process.terminate()
        process.wait(30)
    lines = home(tmp_path)
    assert lines[0].startswith("t   interrupted · 1 iteration")
    assert "jumar run" == commands(lines)[0]
    told = " ".join(jumar(tmp_path, "show", check=0).stdout.split())
    assert (
        "Ended: interrupted. Iteration 2 was cut off and has no row; what it changed is set aside when the loop is resumed."
        in told
    )
    (tmp_path / "agent.py").write_text((tmp_path / "agent.py").read_text().replace("time.sleep(", "print("))
    resumed = jumar(tmp_path, "run", check=0).stdout
    assert "note      resumed at iteration 2 of at most 2, cost not reported so far" in resumed
    assert "was cut off" not in jumar(tmp_path, "show", check=0).stdout


def test_where_a_directory_above_has_the_loops_it_is_named(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.7])
    jumar(tmp_path, "run", check=0)
    below = tmp_path / "src" / "deep"
    below.mkdir(parents=True)
    assert "but ../../.jumar does: add `--root ../../.jumar`" in jumar(below, "show", check=2).stderr
    lines = home(below)
    assert ["jumar show --root ../../.jumar"] == commands(lines)
    assert "iteration" in jumar(below, *commands(lines)[0].split()[1:], check=0).stdout


def test_runs_of_cases_alone_are_told(tmp_path: Path) -> None:
    jumar(tmp_path, "cases", "run", str(write_chain(tmp_path, 1)), "--dry-run", check=0)
    lines = home(tmp_path)
    assert "There is no loop here yet, but 1 run of cases; the newest: run_" in lines[0]
    assert "jumar cases report " in commands(lines)[0]
    jumar(tmp_path, *commands(lines)[0].split()[1:], check=0)


def test_a_damaged_one_is_said_and_nothing_heavy_is_loaded(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.7])
    jumar(tmp_path, "run", check=0)
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "[]\n" == done.stderr
    (tmp_path / ".jumar/loops/t/loop.json").write_text("{")
    lines = home(tmp_path)
    assert lines[0].startswith("t   damaged: ")
    assert ["jumar verify", "jumar --help"] == commands(lines)
