"""How long a long loop takes to go on: from the start of ``jumar run`` to its next run of the generator."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from timing import Row, milliseconds

from jumar.loop.store.loop_store import LoopStore

ROUNDS = 3


def resume_row(work: Path, iterations: int) -> Row:
    """Go on with the loop ``bench`` below ``work`` a few times; the peer reads the bytes of its records and no more."""
    peers, took = [], []
    for further in range(1, ROUNDS + 1):
        _write(work, iterations + further)
        peers.append(_reading(work / ".jumar" / "loops" / "bench"))
        started = time.time()
        _run(work, iterations + further)
        took.append(float((work / "began").read_text()) - started)
    found, peer = statistics.median(took), statistics.median(peers)
    return (
        f"resume at {iterations:,} iterations",
        milliseconds(found),
        f"{milliseconds(peer)} to read the bytes of its records: {found / peer:.1f}×",
        "≤ 1 s",
    )


def begun(work: Path) -> LoopStore:
    """Begin the loop ``bench`` below ``work`` as ``jumar run`` does, with one iteration; return its store."""
    work.mkdir()
    (work / "out.md").write_text("0\n")
    _write(work, 1)
    _run(work, 1)
    return LoopStore.open(work / ".jumar" / "loops" / "bench")


def _write(work: Path, iterations: int) -> None:
    (work / "jumar.toml").write_text(
        f"""
[loop]
id = "bench"
max_iterations = {iterations}
[artifacts]
include = ["out.md"]
[generator]
command = "date +%s.%N > began; echo $JUMAR_ITERATION > out.md"
[[scorers]]
dimension = "quality"
command = "echo 0.5"
"""
    )


def _run(work: Path, iterations: int) -> None:
    command = [sys.executable, "-m", "jumar.cli.entry", "run", "--json"]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode or json.loads(done.stdout)["final_iteration"] != iterations:
        raise SystemExit(f"the loop did not go on: exit {done.returncode}\n{done.stdout}{done.stderr}")


def _reading(loop: Path) -> float:
    """Return the seconds for reading every file that a resume has to look into, as bytes."""
    began = time.perf_counter()
    paths = [f"{loop}/iterations/{name}/metrics.json" for name in os.listdir(loop / "iterations")]
    paths += [f"{loop}/attempts/{name}" for name in os.listdir(loop / "attempts")]
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        while os.read(fd, 1 << 16):
            pass
        os.close(fd)
    return time.perf_counter() - began
