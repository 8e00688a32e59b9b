"""Which loop is meant where none is named: held against a slow reference that reads the records one by one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jumar.core.lock import LoopLock
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.running import by_creation, newest_loop, running_loops

BEGIN = datetime(2026, 1, 28, 10, tzinfo=UTC)
HOLD = """
import sys, time
sys.argv = sys.argv[1:]
from pathlib import Path
from jumar.core.lock import LoopLock
with LoopLock(Path(sys.argv.pop(0))):
    print("held", flush=True)
    time.sleep(60)
"""


def at(minutes: int) -> str:
    return (BEGIN + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def make(
    root: Path, name: str, created: int, attempts: tuple[tuple[int, int | None], ...] = (), tracked: int | None = None
) -> Path:
    """Make the records of a loop that matter here; times are minutes, an attempt that runs has no end."""
    loop = root / "loops" / name
    (loop / "attempts").mkdir(parents=True)
    (loop / "loop.json").write_text(json.dumps({"created_at": at(created)}))
    for number, (start, end) in enumerate(attempts, start=1):
        (loop / f"attempts/{number:06d}.start.json").write_text(json.dumps({"started_at": at(start)}))
        if end is not None:
            (loop / f"attempts/{number:06d}.end.json").write_text(json.dumps({"ended_at": at(end)}))
    if tracked is not None:
        record = loop / "iterations/iteration-001/metrics.json"
        record.parent.mkdir(parents=True)
        record.write_text(json.dumps({"timestamp": at(tracked)}))
    return loop


Loops = list[tuple[int, int | None, bool]]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5) | st.none(), st.booleans()), min_size=1, max_size=12))
@example([(0, None, False)] * 11)  # equal times: calc-11, not calc-9
@example([(5, 1, True), (0, 3, True), (0, 3, False)])
def test_the_newest_is_the_one_that_worked_last_and_of_equals_the_highest_number(loops: Loops):
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        times: list[tuple[bool, int, int]] = []
        for number, (created, worked, ended) in enumerate(loops, start=1):
            attempts = () if worked is None else ((0, 1), (worked, worked + 1 if ended else None))
            make(root, f"calc-{number}", created, attempts)
            times.append((worked is not None, created if worked is None else worked + ended, number))
        assert root / f"loops/calc-{max(times)[2]}" == newest_loop([root])
        by_age = sorted(range(1, len(loops) + 1), key=lambda number: (loops[number - 1][0], number))
        assert tuple(f"calc-{number}" for number in by_age) == by_creation(root)


def test_a_copy_keeps_the_order_and_what_cannot_be_read_comes_first(tmp_path: Path):
    make(tmp_path, "a", 9)
    make(tmp_path, "b", 1, ((2, 3),))
    make(tmp_path, "tracked", 0, tracked=20)
    (make(tmp_path, "broken", 30) / "loop.json").write_text("{")
    (make(tmp_path, "undated", 30) / "loop.json").write_text('{"created_at": "soon"}')
    make(tmp_path, "naive", 0).joinpath("loop.json").write_text('{"created_at": "2026-01-28T10:00:30"}')
    for name in ("a", "tracked"):  # file times say nothing
        shutil.copytree(tmp_path / "loops" / name, tmp_path / "copy/loops" / name)
        os.utime(tmp_path / "copy/loops" / name / "loop.json", (2e9, 2e9) if name == "a" else (0, 0))
    assert tmp_path / "loops/tracked" == newest_loop([tmp_path])
    assert tmp_path / "copy/loops/tracked" == newest_loop([tmp_path / "copy"])
    assert ("broken", "undated", "tracked", "naive", "b", "a") == by_creation(tmp_path)


def test_the_first_root_comes_first_unless_a_loop_of_the_second_runs(tmp_path: Path):
    one, other = tmp_path / "one", tmp_path / "other"
    roots = [one, other]
    assert newest_loop(roots) is None
    late = make(other, "late", 9)
    assert late == newest_loop(roots)
    early = make(one, "early", 1)
    assert early == newest_loop(roots)
    (other / "locks").mkdir()
    with LoopLock(other / "locks/late"):
        assert late == newest_loop(roots)
        assert early == newest_loop(roots, ending=True)
        assert ((), ("late",)) == (running_loops(one), running_loops(other))
    assert early == newest_loop(roots)


@pytest.mark.parametrize(
    ("command", "runs"),
    [(["/usr/bin/jumar", "run"], True), (["mine.py"], True), (["jumar", "demo"], True), (["jumar", "apply", "x"], False)],
)
def test_a_command_that_holds_the_lock_for_a_moment_is_no_run(tmp_path: Path, command: list[str], runs: bool):
    make(tmp_path, "old", 1)
    make(tmp_path, "new", 2)
    (tmp_path / "locks").mkdir()
    words = [sys.executable, "-c", HOLD, str(tmp_path / "locks/old"), *command]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        found = newest_loop([tmp_path])
        holder.kill()
    assert ("old" if runs else "new") == (found and found.name)


def test_a_loop_that_a_program_of_another_began_is_meant_only_where_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mine = make(tmp_path, "mine", 5)
    monkeypatch.setenv("JUMAR_LOOP_ID", "mine")
    LoopStore.create(tmp_path / "loops/next", "next", {}, workdir=None, created_at=at(9))  # by its on_stop
    assert tmp_path / "loops/next" == newest_loop([tmp_path])
    monkeypatch.setenv("JUMAR_ITERATION", "3")
    LoopStore.create(tmp_path / "loops/inner", "inner", {}, workdir=None, created_at=at(99))
    shutil.rmtree(tmp_path / "loops/next")
    assert mine == newest_loop([tmp_path])
    (tmp_path / "locks").mkdir(exist_ok=True)
    with LoopLock(tmp_path / "locks/inner"):
        assert mine == newest_loop([tmp_path])
    shutil.rmtree(mine)
    assert tmp_path / "loops/inner" == newest_loop([tmp_path])


def test_a_loop_that_was_copied_to_where_one_was_begun_is_meant_only_where_that_is_gone(tmp_path: Path):
    mine = LoopStore.create(tmp_path / "loops/mine", "mine", {}, workdir=None, created_at=at(5)).paths.directory
    later = make(tmp_path, "later", 99, ((99, 100),))
    assert mine == newest_loop([tmp_path])
    shutil.copy(mine / "loop.json", later)  # with its mark, under another name
    assert mine == newest_loop([tmp_path])
    shutil.rmtree(mine)
    assert later == newest_loop([tmp_path])
