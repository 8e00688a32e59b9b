"""``jumar evaluate`` and Ctrl-C: real processes, a judge that is a program, and nothing that is paid for twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from loops import deaf

from jumar.core.leftovers import temporary_name

# Says which item it is asked about, and answers when it may.
JUDGE = """
import json, os, sys, time
item = json.load(sys.stdin)["item"]
with open("asked.log", "a") as file:
    file.write(item["id"] + "\\n")
while not os.path.exists("go"):
    time.sleep(0.02)
print(json.dumps({"gestalt": 1 + int(item["id"]) % 5, "usage": {"cost_usd": 0.25}}))
"""
ITEMS = 20


def start(directory: Path, *options: str, ignoring: bool = False) -> subprocess.Popen[str]:
    (directory / "judge.py").write_text(JUDGE)
    lines = [json.dumps({"id": str(number), "text": f"text {number}"}) for number in range(ITEMS)]
    (directory / "in.jsonl").write_text("\n".join(lines))
    judge = f"command:{sys.executable} judge.py"
    command = [
        str(Path(sys.executable).with_name("jumar")),
        "evaluate",
        "in.jsonl",
        "--mode",
        "expensive",
        "--judge",
        judge,
        "--repeat",
        "1",
        *options,
    ]
    pipe = subprocess.PIPE
    return subprocess.Popen(deaf(command) if ignoring else command, cwd=directory, stdout=pipe, stderr=pipe, text=True)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)


def asked(directory: Path) -> list[str]:
    log = directory / "asked.log"
    return log.read_text().split() if log.exists() else []


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err


def test_the_calls_in_flight_are_waited_for_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    process = start(tmp_path, "--concurrency", "4", "--per-item", "scores.jsonl")
    until(lambda: len(asked(tmp_path)) == 4)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    (tmp_path / "go").touch()
    code, _, err = ended(process)

    assert 130 == code, err
    assert "waiting for the calls in flight" in err
    assert "interrupted; calls made: 4, for $1.0000" in err
    assert "replies kept in .jumar/replies: 4, which are not asked for again; run it again to resume" in " ".join(err.split())
    assert "Traceback" not in err
    scored = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    judged = {row["id"]: row["expensive"] for row in scored if row["expensive"] is not None}
    assert {one: 1.0 + int(one) % 5 for one in asked(tmp_path)} == judged

    code, out, err = ended(start(tmp_path, "--concurrency", "4", "--per-item", "scores.jsonl"))

    assert 0 == code, err
    assert "20 items scored · 20 calls, 4 cached · $5.00" in out
    assert Counter(str(number) for number in range(ITEMS)) == Counter(asked(tmp_path))


def test_under_a_limit_those_that_wait_for_a_first_cost_are_not_asked_either(tmp_path: Path) -> None:
    process = start(tmp_path, "--max-cost", "100")
    until(lambda: len(asked(tmp_path)) == 1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    (tmp_path / "go").touch()
    code, _, err = ended(process)

    assert (130, 1) == (code, len(asked(tmp_path)))
    assert "calls made: 1, for $0.2500" in err


def test_a_second_one_gives_up_the_calls_in_flight(tmp_path: Path) -> None:
    process = start(tmp_path, "--concurrency", "2")
    until(lambda: len(asked(tmp_path)) == 2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)

    assert 130 == code
    assert "Traceback" not in err
    assert [] == list((tmp_path / ".jumar").rglob("*.json"))


def test_without_a_cache_it_says_that_all_is_asked_again(tmp_path: Path) -> None:
    process = start(tmp_path, "--concurrency", "2", "--no-cache")
    until(lambda: len(asked(tmp_path)) == 2)
    process.send_signal(signal.SIGINT)
    (tmp_path / "go").touch()
    code, _, err = ended(process)

    assert 130 == code
    assert "there is no cache" in err


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_was_ignored_when_it_started_ends_nothing(tmp_path: Path, number: int) -> None:
    process = start(tmp_path, "--concurrency", "4", ignoring=True)
    until(lambda: len(asked(tmp_path)) == 4)
    process.send_signal(number)
    time.sleep(0.3)
    (tmp_path / "go").touch()
    code, out, err = ended(process)

    assert 0 == code, err
    assert "20 items scored" in out


@pytest.mark.parametrize("options", [("--mode", "expensive", "-o", "other", "--no-cache"), ("--mode", "cheap")])
def test_a_second_one_for_the_same_rows_says_who_writes_them(tmp_path: Path, options: tuple[str, ...]) -> None:
    process = start(tmp_path, "--concurrency", "4", "--per-item", "scores.jsonl")
    until(lambda: len(asked(tmp_path)) == 4)
    code, _, err = ended(start(tmp_path, *options, "--per-item", "./scores.jsonl"))
    assert 13 == code, err
    assert f"--per-item scores.jsonl is being written by process {process.pid}" in " ".join(err.split())
    assert 4 == len(asked(tmp_path)), "nobody was asked"
    (tmp_path / "go").touch()
    code, _, err = ended(process)
    assert 0 == code, err
    assert ITEMS == len((tmp_path / "scores.jsonl").read_text().splitlines())
    assert [] == [path.name for path in tmp_path.iterdir() if "lock" in path.name or ".tmp-" in path.name]


@pytest.mark.parametrize("mode", ["expensive", "cheap"])
def test_what_a_killed_one_left_goes_with_the_next(tmp_path: Path, mode: str) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    (tmp_path / "go").touch()
    options = ("--mode", mode, "--per-item", "scores.jsonl", "-o", "out")
    code, _, err = ended(start(tmp_path, *options))
    assert 0 == code, err
    name = temporary_name().replace(f"-{os.getpid()}-", f"-{gone.pid}-")
    ours = temporary_name()
    for place in (tmp_path, tmp_path / "out"):
        (place / name).write_text("half")
        (place / ours).write_text("in the making")
    (tmp_path / f"scores.jsonl{name}").write_text("half")
    (tmp_path / "out" / f"{name[:-12]}{0:012}").mkdir()
    code, _, err = ended(start(tmp_path, *options))
    assert 0 == code, err
    assert {ours} == {path.name for path in tmp_path.rglob("*.tmp-*")}
