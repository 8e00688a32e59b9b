"""What a process that was killed left in the making is gone after the next command: real processes, killed anywhere."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from loops import jumar, write_loop

from jumar.core.leftovers import sweep, temporary_name


def left(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*.tmp-*"))


def dead_name() -> str:
    gone = subprocess.Popen(["true"])
    gone.wait()
    return temporary_name().replace(f"-{os.getpid()}-", f"-{gone.pid}-")


def test_only_what_nobody_will_finish_is_swept(tmp_path: Path) -> None:
    ours, dead = temporary_name(), dead_name()
    elsewhere = dead.replace(dead[5:13], "0" * 8)
    for name in (ours, dead, f"rows.jsonl{dead}", elsewhere, ".tmp-mine", f"{dead}.txt"):
        (tmp_path / name).touch()
    (tmp_path / dead.replace(dead[-3:], "abc")).symlink_to("/etc")
    sweep(tmp_path)
    sweep(tmp_path / "nowhere")
    assert sorted([ours, elsewhere, ".tmp-mine", f"{dead}.txt"]) == left(tmp_path)
    assert Path("/etc/passwd").exists()


@pytest.mark.parametrize("isolation", ["none", "copy"])
def test_nothing_in_the_making_is_left_of_a_loop_by_the_next_run(tmp_path: Path, isolation: str) -> None:
    write_loop(tmp_path, [0.6, 0.7, 0.8], loop=f'isolation = "{isolation}"')
    jumar(tmp_path, "run", check=0)
    store = tmp_path / ".jumar"
    places = [store, *(path for path in store.rglob("*") if path.is_dir())]
    dead = dead_name()
    for place in places:
        frozen = {"iterations", "artifacts", "final-output"} & set(place.relative_to(store).parts)
        if not frozen and "work" not in place.relative_to(store).parts:
            (place / dead).write_text("half")
    jumar(tmp_path, "run", "-n", "4", check=0)
    assert [] == left(tmp_path)


def test_nothing_in_the_making_is_left_after_kills_at_any_time(tmp_path: Path) -> None:
    write_loop(tmp_path, [0.5 + number / 200 for number in range(60)])
    draw, kills = random.Random(14), 0
    jumar(tmp_path, "run", "-n", "1", check=0)
    for most in range(2, 14):
        command = [sys.executable, "-m", "jumar.cli.entry", "run", "-n", str(most), "--quiet"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(0.1 + 0.4 * draw.random())
            process.send_signal(signal.SIGKILL)
        kills += process.returncode == -signal.SIGKILL
    jumar(tmp_path, "run", "-n", "14", check=0)
    assert [] == left(tmp_path)
    assert kills >= 6, kills
