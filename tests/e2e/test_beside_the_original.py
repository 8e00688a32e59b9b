"""A directory that the original tracker and jumar write in turns: nothing of either is lost, and what both changed is named."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from commands import call, call_json

from jumar import BestOutputTracker
from jumar.errors import ConflictError, DuplicateIterationError, StoreDamagedError, StoreWriteError
from jumar.loop.report import views

SUPPORT = Path(__file__).parents[1] / "support"
DIMENSIONS = ("validation", "completeness", "correctness", "readability", "efficiency")
STORE = "store"
VIEW = Path(STORE) / "best-output-tracking.json"

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def node(script: str, *arguments: object) -> str:
    command = ["node", str(SUPPORT / script), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def theirs(number: int, score: float) -> None:
    Path("sad.md").write_text(f"theirs {number}\n")
    node("tracking_writer.mjs", STORE, number, score, "sad.md")


def record(number: int, score: float, tracker: BestOutputTracker) -> None:
    Path("sad.md").write_text(f"ours {number}\n")
    tracker.record_iteration(
        iteration_number=number,
        dimensions=dict.fromkeys(DIMENSIONS, score / 100),
        artifacts=["sad.md"],
        verification_status="passed",
    )


def ours(number: int, score: float, tracker: BestOutputTracker | None = None) -> None:
    found = tracker or BestOutputTracker("loop-001", storage_path=STORE)
    record(number, score, found)
    found.save()


def seen() -> dict[str, Any]:
    return json.loads(node("tracking_reader.mjs", VIEW))


def records() -> list[dict[str, Any]]:
    return json.loads(call("report", f"./{STORE}", "--format", "json", check=0).out)["records"]


def test_ten_turns_back_and_forth_lose_nothing(fresh_place: Path) -> None:
    scores = [60, 72, 85, 83, 90, 71, 95, 65, 92, 88]
    for number, score in enumerate(scores, 1):
        (ours if number % 2 == 0 else theirs)(number, score)
        if number > 1:
            assert [each["iteration"] for each in seen()["trajectory"]][: number - number % 2] == list(
                range(1, number + 1 - number % 2)
            )
    ours(11, 70)
    assert [each["quality"] for each in seen()["trajectory"]] == [*scores, 70]  # what the original reads has all of them
    assert (seen()["best"], seen()["selected"]) == (7, 7)
    found = records()
    assert [record["quality_score"] for record in found] == [*scores, 70]
    assert [record.get("origin") for record in found[2::2]][:4] == ["best-output-tracking.json"] * 4
    assert all("origin" not in record for record in found[1::2])
    assert found[2]["token_cost_usd"] is None  # it wrote 0: not reported
    for number in range(1, 12):
        kept = Path(STORE) / "iterations" / f"iteration-{number:03}" / "artifacts" / "sad.md"
        assert kept.read_text() == f"{'ours' if number % 2 == 0 or number == 11 else 'theirs'} {number}\n"
    assert (Path(STORE) / "final-output" / "sad.md").read_text() == "theirs 7\n"
    call("verify", f"./{STORE}", check=0)
    print(f"{len(found)} iterations in turns")


@pytest.mark.parametrize("command", ["show", "status", "report", "select", "verify"])
def test_every_command_takes_over_what_the_original_added(fresh_place: Path, command: str) -> None:
    ours(1, 80)
    theirs(2, 85)
    call(command, f"./{STORE}", check=0)
    assert [record["iteration_number"] for record in records()] == [1, 2]


def test_a_tracker_that_is_open_meanwhile_overwrites_nothing(fresh_place: Path) -> None:
    tracker = BestOutputTracker("loop-001", storage_path=STORE)
    ours(1, 80, tracker)
    theirs(2, 85)
    ours(3, 82, tracker)
    assert [each["iteration"] for each in seen()["trajectory"]] == [1, 2, 3]
    assert tracker.select_output().selected_iteration == 2


def test_in_turns_within_one_process_nothing_is_in_the_way(fresh_place: Path) -> None:
    tracker = BestOutputTracker("loop-001", storage_path=STORE)
    ours(1, 80, tracker)
    theirs(2, 85)
    record(3, 82, tracker)  # without saving first
    theirs(4, 90)
    with pytest.raises(DuplicateIterationError, match="iteration 4"):
        record(4, 70, tracker)
    tracker.save()
    assert sorted(each["iteration"] for each in seen()["trajectory"]) == [1, 2, 3, 4]
    assert [each["iteration_number"] for each in records()] == [1, 2, 3, 4]


@pytest.mark.parametrize("hours", [-2, 0, 2])
def test_what_a_clock_says_decides_nothing(fresh_place: Path, hours: int) -> None:
    ours(1, 80)
    theirs(2, 85)
    written = (Path(STORE) / "best-tracker.json").stat().st_mtime_ns + hours * 3_600_000_000_000
    os.utime(VIEW, ns=(written, written))
    assert [each["iteration_number"] for each in records()] == [1, 2]
    shutil.copytree(STORE, "copy")
    assert "ok" in call("verify", "./copy", check=0).out


def test_a_copy_that_the_original_was_cut_off_in_is_in_nobodys_way(fresh_place: Path) -> None:
    ours(1, 80)
    half = Path(STORE) / "iterations" / "iteration-002"
    half.mkdir()
    (half / "sad.md").write_text("half")
    call("show", f"./{STORE}", check=0)
    ours(2, 85)
    assert [each["iteration_number"] for each in records()] == [1, 2]
    assert [path.read_text() for path in Path(STORE).rglob("quarantine/**/sad.md")] == ["half"]
    call("verify", f"./{STORE}", check=0)


@pytest.mark.parametrize("instead", ["nothing", "a file", "a link"])
def test_an_iteration_whose_snapshot_is_none_has_its_record(fresh_place: Path, instead: str) -> None:
    ours(1, 80)
    theirs(2, 85)
    there = Path(STORE) / "iterations" / "iteration-002"
    shutil.rmtree(there)
    if instead == "a file":
        there.write_text("x")
    elif instead == "a link":
        there.symlink_to("/etc")
    assert [each["quality_score"] for each in records()] == [80, 85]
    call("verify", f"./{STORE}", check=0)


def test_what_both_recorded_is_a_conflict_that_names_the_iteration(fresh_place: Path) -> None:
    tracker = BestOutputTracker("loop-001", storage_path=STORE)
    ours(1, 80, tracker)
    before = VIEW.read_bytes()
    ours(2, 70, tracker)
    VIEW.write_bytes(before)  # as the original has it, which read the file before
    theirs(2, 85)
    with pytest.raises(ConflictError, match=r"iteration 2 was recorded twice.*70\.00.*85\.00.*another number"):
        BestOutputTracker("loop-001", storage_path=STORE)
    with pytest.raises(ConflictError, match="iteration 2"):
        tracker.save()
    told = call("show", f"./{STORE}", check=2).err
    assert "iteration 2 was recorded twice" in " ".join(told.split())
    VIEW.rename("theirs.json")  # the way out that it names
    call("show", f"./{STORE}", check=0)
    ours(3, 75)
    assert [each["quality"] for each in seen()["trajectory"]] == [80, 70, 75]


def test_a_file_that_is_half_written_or_has_a_number_twice_is_named(fresh_place: Path) -> None:
    ours(1, 80)
    theirs(2, 85)
    whole = VIEW.read_text()
    VIEW.write_text(whole[: len(whole) // 2])
    with pytest.raises(StoreDamagedError, match=r"best-output-tracking\.json.*mend it, or move it away"):
        BestOutputTracker("loop-001", storage_path=STORE)
    data = json.loads(whole)
    data["iterations"].append(data["iterations"][-1])
    VIEW.write_text(json.dumps(data))
    assert "have to be different" in " ".join(call("show", f"./{STORE}", check=14).err.split())
    VIEW.write_text(whole)
    assert [record["iteration_number"] for record in records()] == [1, 2]


def test_a_clone_that_has_no_empty_directories_is_taken_over(fresh_place: Path) -> None:
    ours(1, 80)
    theirs(2, 85)
    for place in Path(STORE).iterdir():
        if place.is_dir() and not os.listdir(place):
            place.rmdir()
    assert not (Path(STORE) / "pending").exists()
    assert [record["quality_score"] for record in records()] == [80, 85]


def test_a_file_that_is_just_being_written_is_waited_for(fresh_place: Path) -> None:
    ours(1, 80)
    theirs(2, 85)
    whole = VIEW.read_bytes()
    VIEW.write_bytes(b"")
    writer = threading.Timer(0.06, VIEW.write_bytes, [whole])
    writer.start()
    ours(3, 70)
    writer.join()
    assert [record["quality_score"] for record in records()] == [80, 85, 70]


def test_a_copy_that_nothing_was_added_to_is_not_written(fresh_place: Path) -> None:
    ours(1, 80)
    os.utime(VIEW)
    before = VIEW.read_bytes()
    call("show", f"./{STORE}", check=0)
    assert before == VIEW.read_bytes()


def test_what_the_original_adds_while_the_views_are_made_is_kept(fresh_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours(1, 80)
    meanwhile = [2]
    real = views.tracking_chunks

    def slow(report: Any, records: Any, **more: Any) -> Any:
        if meanwhile:
            theirs(meanwhile.pop(), 85)
        return real(report, records, **more)

    monkeypatch.setattr("jumar.loop.report.views.tracking_chunks", slow)
    ours(3, 70)
    assert [each["quality"] for each in seen()["trajectory"]] == [80, 85, 70]


def test_what_is_no_file_makes_way_and_a_link_is_followed(fresh_place: Path) -> None:
    ours(1, 80)
    theirs(2, 85)
    VIEW.rename("theirs.json")
    VIEW.symlink_to("../theirs.json")
    ours(3, 70)
    assert not VIEW.is_symlink()
    VIEW.unlink()
    os.mkfifo(VIEW)
    ours(4, 60)
    assert [each["quality"] for each in seen()["trajectory"]] == [80, 85, 70, 60]


def test_an_iteration_that_the_original_has_begun_is_no_damage(fresh_place: Path) -> None:
    tracker = BestOutputTracker("loop-001", storage_path=STORE)
    ours(1, 80, tracker)
    (Path(STORE) / "iterations" / "iteration-002").mkdir()
    call("verify", f"./{STORE}", check=0)
    ours(2, 70, tracker)
    assert [each["quality"] for each in seen()["trajectory"]] == [80, 70]


def test_a_file_that_shrank_takes_nothing_away(fresh_place: Path) -> None:
    ours(1, 80)
    ours(2, 85)
    data = json.loads(VIEW.read_text())
    del data["iterations"][0]
    VIEW.write_text(json.dumps(data))
    assert [record["iteration_number"] for record in records()] == [1, 2]
    ours(3, 70)
    assert [each["iteration"] for each in seen()["trajectory"]] == [1, 2, 3]


def test_cut_off_between_two_steps_the_next_command_goes_on(fresh_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours(1, 80)
    theirs(2, 85)
    theirs(3, 90)
    shutil.rmtree(Path(STORE) / "iterations" / "iteration-002")  # as the original's cleanup does
    stops = 0
    for call_number in range(1, 40):
        left = [call_number]

        def dying(source: Any, target: Any, left: list[int] = left, real: Any = os.rename) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            real(source, target)

        with monkeypatch.context() as patched:
            patched.setattr("os.rename", dying)
            try:
                BestOutputTracker("loop-001", storage_path=STORE)
            except KeyboardInterrupt:
                stops += 1
        if left[0] > 0:
            break
    assert [record["quality_score"] for record in records()] == [80, 85, 90]
    call("verify", f"./{STORE}", check=0)
    print(f"cut off {stops} times")


def test_in_the_loop_of_a_run_nothing_is_taken_over(fresh_place: Path) -> None:
    Path("text.md").write_text("a")
    call(
        "run",
        "--id",
        "t",
        "-n",
        "1",
        "--check",
        "true",
        "--keep-going",
        "--no-input",
        "--",
        "sh",
        "-c",
        "echo b >> text.md",
        check=0,
    )
    there = Path(".jumar/loops/t/best-output-tracking.json")
    data = json.loads(there.read_text())
    data["iterations"].append({**data["iterations"][-1], "iteration_number": 9, "quality_score": 100})
    there.write_text(json.dumps(data))
    os.utime(there)
    assert call_json("show", "t")["iterations"] is not None
    assert 9 not in [
        record["iteration_number"] for record in json.loads(call("report", "t", "--format", "json", check=0).out)["records"]
    ]


def test_a_full_disk_leaves_nothing_behind_and_the_next_command_goes_on(
    fresh_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours(1, 80)
    theirs(2, 85)

    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("jumar.core.files.sync_tree", full)
        with pytest.raises(StoreWriteError, match="disk is full"):
            BestOutputTracker("loop-001", storage_path=STORE)
    assert [] == os.listdir(Path(STORE) / "pending")
    assert [record["quality_score"] for record in records()] == [80, 85]
