"""watch, status and logs, from other processes than the one that runs the loop; with loops that run, end, wait and die."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path

from loops import calls, jumar, jumar_json, read_terminal, started_on_a_terminal, write_loop

RUN = [sys.executable, "-m", "jumar.cli.entry", "run", "--quiet"]
GENERATOR = """
print("starting on", n, flush=True)
print("\\x1b[31mred\\x1b[0m", flush=True)
time.sleep({pause} if n >= {hold} else 0.05)
"""


def slow_loop(directory: Path, passes: int, pause: float, *, hold: int = 0) -> None:
    write_loop(directory, [round(0.5 + 0.01 * number, 2) for number in range(1, passes + 1)])
    agent = directory / "agent.py"
    agent.write_text(agent.read_text() + GENERATOR.format(pause=pause, hold=hold))


@contextlib.contextmanager
def running(directory: Path) -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(RUN, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()  # it ends what it started
        process.wait(timeout=30)


def wait_for_calls(directory: Path, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(calls(directory)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def snapshot(directory: Path) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        found[str(path.relative_to(directory))] = (status.st_mtime_ns, status.st_size)
    return found


def test_a_running_loop_is_seen_from_another_process(tmp_path: Path) -> None:
    slow_loop(tmp_path, 30, 60, hold=3)
    with running(tmp_path) as process:
        wait_for_calls(tmp_path, 3)
        time.sleep(0.3)
        document = jumar_json(tmp_path, "status", "t")
        frame = jumar(tmp_path, "watch", "--once", check=0).stdout
        logs = jumar(tmp_path, "logs", check=0).stdout
    assert ("running", process.pid) == (document["state"], document["pid"])
    assert ("generate", 3) == (document["phase"], document["iteration"])
    assert document["iterations"] == document["best"]["iteration"] == document["last"]["iteration"] == document["iteration"] - 1
    assert {"iterations": document["iteration"], "cost_usd": None} == {
        key: document["spend"][key] for key in ("iterations", "cost_usd")
    }
    assert 30 - document["iterations"] == document["budget_left"]["passes"]
    assert document["phase_seconds"]["generate"] > document["phase_seconds"]["verify"] > 0
    assert f"running: process {process.pid}" in frame
    assert "now       generating iteration" in frame
    assert 81 > max(len(line) for line in frame.splitlines())
    assert "\x1b" not in frame + logs
    assert rf"starting on {document['iteration']}" in logs
    assert r"\x1b[31mred" in logs


def test_looking_writes_nothing_and_takes_no_lock(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, 0.7])
    jumar(tmp_path, "run", check=0)
    before = snapshot(tmp_path / ".jumar")
    for words in (
        ["watch", "--once"],
        ["watch"],
        ["status"],
        ["status", "t"],
        ["logs", "t"],
        ["logs", "-f"],
        ["logs", "-i", "0"],
    ):
        jumar(tmp_path, *words, check=0)
    assert before == snapshot(tmp_path / ".jumar")


def test_a_killed_loop_is_seen_as_dead_and_resumable(tmp_path: Path) -> None:
    slow_loop(tmp_path, 5, 30)
    with running(tmp_path) as process:
        wait_for_calls(tmp_path, 1)
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
    document = jumar_json(tmp_path, "status", "t")
    assert ("dead", None, True, "generate", 1) == tuple(
        document[key] for key in ("state", "pid", "resumable", "phase", "iteration")
    )
    assert f"process {process.pid} ended in the middle of iteration 1" in document["detail"]
    seen = jumar(tmp_path, "watch", "--once", check=0).stdout
    assert "interrupted: process" in seen
    assert "last step generating iteration 1, cut off" in seen
    assert "state     interrupted (process" in jumar(tmp_path, "status", "t", check=0).stdout
    assert "last step generate iteration 1, cut off" in jumar(tmp_path, "status", "t", check=0).stdout
    followed = jumar(tmp_path, "logs", "-f", check=0)
    assert "starting on 1" in followed.stdout
    assert "interrupted: process" in followed.stderr
    (tmp_path / "agent.py").write_text((tmp_path / "agent.py").read_text().replace("time.sleep(30 if", "time.sleep(0 if"))
    jumar(tmp_path, "run", check=0)
    assert ("finished", "max_iterations") == tuple(jumar_json(tmp_path, "status", "t")[key] for key in ("state", "stop_reason"))


def test_logs_follow_a_loop_over_its_iterations_to_its_end(tmp_path: Path) -> None:
    slow_loop(tmp_path, 6, 0.4)
    with running(tmp_path) as process:
        wait_for_calls(tmp_path, 1)
        followed = jumar(tmp_path, "logs", "-f", "--which", "generator", check=0)
        assert 0 == process.wait(timeout=20)
    numbers = [int(line.split()[-1]) for line in followed.stdout.splitlines() if line.startswith("starting")]
    assert list(range(numbers[0], 7)) == numbers
    assert 4 >= numbers[0]
    assert len(numbers) == followed.stdout.count("==> iteration")
    assert "max iterations" in followed.stderr


def test_watch_draws_on_a_terminal_until_ctrl_c_and_ends_with_the_loop(tmp_path: Path) -> None:
    slow_loop(tmp_path, 8, 0.4)
    with running(tmp_path):
        wait_for_calls(tmp_path, 2)
        code, shown = on_a_terminal(tmp_path, interrupt_after=1.5)
        assert 0 == code
        assert shown.count("\x1b[H") > 2, "drawn again and again"
        assert "generating iteration" in shown
        code, shown = on_a_terminal(tmp_path)
    assert 0 == code
    assert "finished: max iterations" in shown
    assert shown.rstrip().endswith("\x1b[0m") or "\x1b[?1049l" in shown
    while_it_ran = shown[shown.index("\x1b[?1049h") : shown.index("\x1b[?1049l")]
    assert {"█", "◆", "Δ"} <= set(while_it_ran), "a terminal that says everything gets the drawing"


def test_watch_draws_plainly_where_the_encoding_lacks_the_signs(tmp_path: Path) -> None:
    slow_loop(tmp_path, 8, 0.4)
    with running(tmp_path):
        wait_for_calls(tmp_path, 2)
        code, shown = on_a_terminal(tmp_path, env={"PYTHONIOENCODING": "ascii"})
    assert 0 == code
    assert shown.isascii()
    assert shown.count("\x1b[H") > 2
    assert "+/-" in shown


def test_watch_says_one_frame_where_the_cursor_cannot_move(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6])
    jumar(tmp_path, "run", check=0)
    process, ours = started_on_a_terminal(tmp_path, "watch", term="dumb")
    shown = read_terminal(ours, process)
    assert "\x1b" not in shown
    assert "finished" in shown
    assert "stdout is no terminal to draw on" in shown


def on_a_terminal(directory: Path, interrupt_after: float | None = None, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    process, ours = started_on_a_terminal(directory, "watch", "--interval", "0.2", term="xterm-256color", env=env)
    begun = ""
    if interrupt_after is not None:
        begun = read_terminal(ours, process, until="\x1b[?1049h")
        time.sleep(interrupt_after)
        process.send_signal(signal.SIGINT)
    shown = begun + read_terminal(ours, process, seconds=120)
    return process.returncode, shown


def test_a_frame_fits_the_width_and_the_encoding(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, "fail", 0.9, 0.3])
    jumar(tmp_path, "run", check=0)
    for encoding, columns in itertools.product(("utf-8", "ascii", "latin-1"), (80, 120)):
        frame = subprocess.run(
            [sys.executable, "-m", "jumar.cli.entry", "watch", "t", "--once"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": str(columns)},
            capture_output=True,
            check=True,
        ).stdout.decode(encoding)
        assert columns >= max(len(line) for line in frame.splitlines())
        assert ("█" in frame) == (encoding == "utf-8"), (encoding, columns)
        assert "generator failed" in frame
        assert "finished: max iterations" in frame


def test_without_a_terminal_one_frame_and_a_note(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6])
    jumar(tmp_path, "run", check=0)
    shown = jumar(tmp_path, "watch", check=0)
    assert "finished" in shown.stdout
    assert "stdout is no terminal" in shown.stderr


def test_the_newest_loop_is_meant_when_none_is_named(tmp_path: Path) -> None:
    for _ in range(2):
        write_loop(tmp_path, [0.6])
        jumar(tmp_path, "run", "--new", check=0)
    assert "t-2   finished" in jumar(tmp_path, "watch", "--once", check=0).stdout
    assert ["t", "t-2"] == [loop["loop_id"] for loop in jumar_json(tmp_path, "status")["loops"]]


def test_events_that_are_torn_or_gone_take_nothing_from_the_figures(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.6, 0.7])
    jumar(tmp_path, "run", check=0)
    whole = jumar_json(tmp_path, "status", "t")
    events = tmp_path / ".jumar/loops/t/events.jsonl"
    numbers = [json.loads(line)["seq"] for line in events.read_bytes().splitlines()]
    assert list(range(1, len(numbers) + 1)) == numbers
    events.write_bytes(b'{"seq": 3, "type"' + events.read_bytes()[:-40])
    torn = jumar_json(tmp_path, "status", "t")
    events.unlink()
    gone = jumar_json(tmp_path, "status", "t")
    kept = ("state", "best", "last", "spend", "failures", "stop_reason", "budget_left")
    assert [whole[key] for key in kept] == [torn[key] for key in kept] == [gone[key] for key in kept]


def test_what_cannot_be_meant_is_said(tmp_path: Path) -> None:
    for words in (["watch"], ["logs"], ["status", "x"], ["watch", "x", "--once"]):
        assert "holds no loops" in jumar(tmp_path, *words, check=2).stderr
    assert {"root": str(tmp_path / ".jumar"), "loops": []} == jumar_json(tmp_path, "status")
    write_loop(tmp_path, [0.6])
    jumar(tmp_path, "run", check=0)
    assert "no iteration 9" in jumar(tmp_path, "logs", "t", "-i", "9", check=2).stderr
    assert "takes no --json" in jumar(tmp_path, "logs", "-f", "--json", check=2).stderr
    assert "did you mean 't'" in jumar(tmp_path, "status", "tt", check=2).stderr
    (tmp_path / ".jumar/loops/bad").mkdir()
    (tmp_path / ".jumar/loops/bad/loop.json").write_text("{")
    states = {loop["loop_id"]: loop["state"] for loop in jumar_json(tmp_path, "status")["loops"]}
    assert {"bad": "damaged", "t": "finished"} == states
    jumar(tmp_path, "watch", "bad", "--once", check=14)
