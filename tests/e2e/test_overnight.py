"""A night in miniature: thousands of iterations of a trivial generator, its loop killed again and again, and what is left of it.

1,000 iterations by default; ``JUMAR_SWEEP=full`` runs all 10,000.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from loops import jumar

FULL = os.environ.get("JUMAR_SWEEP") == "full"
ITERATIONS = 10_000 if FULL else 1_000
KILLS = 40 if FULL else 5
GROWTH = 6_000  # bytes an iteration
# every 50th run leaves a daemon behind: a session of its own, no open file
GENERATOR = (
    "echo $JUMAR_ITERATION > out.md; [ $((JUMAR_ITERATION % 50)) != 0 ] || setsid -f sleep 600 </dev/null >/dev/null 2>/dev/null"
)

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(3000)]


@dataclass
class Night:
    """The loop of one night: ``memory`` is what it held at how many iterations, ``resumes`` seconds to the next attempt."""

    directory: Path
    memory: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    resumes: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    acknowledged: dict[str, bytes] = field(default_factory=dict[str, bytes])

    @property
    def loop(self) -> Path:
        return self.directory / ".jumar" / "loops" / "t"

    def done(self) -> int:
        """Return how many iterations are acknowledged."""
        iterations = self.loop / "iterations"
        return len(os.listdir(iterations)) if iterations.is_dir() else 0

    def attempts(self) -> int:
        attempts = self.loop / "attempts"
        return sum(name.endswith(".start.json") for name in os.listdir(attempts)) if attempts.is_dir() else 0

    def run_until(self, count: int | None) -> subprocess.Popen[str]:
        """Run the loop, until ``count`` iterations are there or to its end."""
        before, began = self.attempts(), time.time()
        process = subprocess.Popen(
            [sys.executable, "-m", "jumar.cli.entry", "run", "--json"],
            cwd=self.directory,
            env={**os.environ, "TMPDIR": str(self.directory / "tmp")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        there = psutil.Process(process.pid)
        while process.poll() is None and (count is None or self.done() < count):
            held = there.memory_info().rss
            if held:  # a process that has just ended holds nothing
                self.memory.append((self.done(), held))
            time.sleep(0.1)
        following = self.loop / "attempts" / f"{before + 1:06d}.start.json"
        if following.exists():
            self.resumes.append((self.done(), following.stat().st_mtime - began))
        return process

    def look(self) -> None:
        """Every iteration that was acknowledged before is as it was; remember those that are new."""
        names = set(os.listdir(self.loop / "iterations"))
        assert set(self.acknowledged) <= names, "an acknowledged iteration is gone"
        for name in names:
            content = (self.loop / "iterations" / name / "metrics.json").read_bytes()
            assert content == self.acknowledged.setdefault(name, content)

    def running(self) -> list[psutil.Process]:
        """Return what runs in the working directory or was started from it."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            try:
                if Path(process.cwd()).is_relative_to(self.directory) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found


def write(directory: Path) -> None:
    (directory / "tmp").mkdir(parents=True)
    (directory / "out.md").write_text("0\n")
    (directory / "jumar.toml").write_text(
        f"""
[loop]
id = "t"
max_iterations = {ITERATIONS}
[artifacts]
include = ["out.md"]
[generator]
command = {json.dumps(GENERATOR)}
[[scorers]]
dimension = "quality"
command = "echo 0.$((10 + $(cat out.md) % 80))"
"""
    )


def test_a_night_with_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "night"
    write(directory)
    night, rng = Night(directory), random.Random(2026)
    moments = sorted(rng.sample(range(1, ITERATIONS), KILLS))
    began = time.monotonic()
    for moment in moments:
        process = night.run_until(moment)
        time.sleep(rng.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        night.look()
    process = night.run_until(None)
    said = json.loads(process.communicate()[0])
    took = time.monotonic() - began
    night.look()

    assert "max_iterations" == said["stop_reason"]
    assert {f"iteration-{number:03d}" for number in range(ITERATIONS + 1)} == set(os.listdir(night.loop / "iterations"))
    lost = said["failures"].get("lost", 0)
    generated = said["spend"]["iterations"] - ITERATIONS
    assert 0 <= generated <= KILLS
    assert generated <= lost <= KILLS
    assert [79] == [said["selected_iteration"]]
    assert "79\n" == (directory / "out.md").read_text()
    _nothing_is_left(night)
    jumar(directory, "verify", "t", check=0, timeout=600)
    quarter = ITERATIONS // 4
    first = max(held for done, held in night.memory if 0 < done <= quarter)
    last = max(held for done, held in night.memory if done > 3 * quarter)
    # what every decision is made from (views of the records, attempts) stays in memory, and nothing else does
    assert last - first < 12e6 + GROWTH * ITERATIONS, f"{first / 1e6:.0f} MB became {last / 1e6:.0f} MB"
    with capsys.disabled():
        at, slowest = max(night.resumes[1:], key=lambda one: one[1])
        print(
            f"\nnight: {ITERATIONS:,} iterations in {took:.0f} s, {KILLS} kills, {lost} attempts lost; "
            f"memory {first / 1e6:.0f} MB in the first quarter, {last / 1e6:.0f} MB in the last; "
            f"slowest resume {slowest:.2f} s before {at:,} iterations, the last {night.resumes[-1][1]:.2f} s"
        )


def _nothing_is_left(night: Night) -> None:
    """No process, no temporary directory, no scratch, nothing half-written."""
    assert [] == [process.cmdline() for process in night.running()]
    assert [] == os.listdir(night.directory / "tmp")
    left = [path for name in ("pending", "scratch") for path in (night.loop / name).glob("*")]
    left += [path for path in night.loop.rglob("*") if path.name.startswith(".tmp")]
    left += list((night.loop / "attempts").glob("*beat*"))
    assert [] == left
