"""The views beside the records: what they hold, when they are written, and by whom."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jumar import BestOutputTracker, StoreWriteError
from jumar.loop.report import views
from jumar.loop.report.read import load_report
from jumar.loop.report.views import MOST_ARTIFACTS_NAMED, best_document, refresh_views, tracking_entry
from jumar.loop.snapshots.restore import restore
from jumar.loop.store.loop_store import LoopStore
from jumar.model import IterationRecord

AT = "2026-01-28T10:15:00Z"
READER = Path(__file__).parents[2] / "support" / "tracking_reader.mjs"
SEED_ENTRY = [
    "iteration_number",
    "timestamp",
    "quality_score",
    "quality_delta",
    "dimensions",
    "tokens_used",
    "token_cost_usd",
    "execution_time_ms",
    "verification_status",
    "snapshot_path",
    "artifacts",
    "reflections",
]


def recorded(scores: tuple[float, ...] = (0.72, 0.85, 0.83), **changes: Any) -> BestOutputTracker:
    """A tracker whose iterations each write two files, one of them executable, and a link."""
    tracker = BestOutputTracker("loop-001", storage_path="store/loop-001")
    for number, score in enumerate(scores, 1):
        add(tracker, number, score, **changes)
    return tracker


def add(tracker: BestOutputTracker, number: int, score: float, **changes: Any) -> IterationRecord:
    Path("docs").mkdir(exist_ok=True)
    Path("docs/guide.md").write_text(f"guide {number}\n")
    Path("tool.sh").write_text(f"echo {number}\n")
    Path("tool.sh").chmod(0o755)
    if not Path("link").is_symlink():
        Path("link").symlink_to("docs/guide.md")
    given: dict[str, Any] = {
        "tokens_used": 1000 * number,
        "token_cost_usd": 0.05,
        "execution_time_ms": 30000,
        "verification_status": "passed",
    }
    return tracker.record_iteration(
        iteration_number=number,
        dimensions=dict.fromkeys(("validation", "completeness", "correctness", "readability", "efficiency"), score),
        artifacts=["docs", "tool.sh", "link"],
        **(given | changes),
    )


def tracking(store: LoopStore) -> dict[str, Any]:
    return json.loads(store.paths.tracking_view.read_text("ascii"))


def contents(directory: Path) -> dict[str, tuple[str, int]]:
    """Relative path → content (a link's target) and mode."""
    found: dict[str, tuple[str, int]] = {}
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            found[str(path.relative_to(directory))] = (f"-> {path.readlink()}", 0)
        elif path.is_file():
            found[str(path.relative_to(directory))] = (path.read_text(), stat.S_IMODE(status.st_mode))
    return found


# ------------------------------------------------------------------------------------------------- what they hold


def test_the_tracking_view_is_the_seeds_format_field_for_field():
    tracker = recorded()
    tracker.select_output()
    view = tracking(tracker.store)
    assert list(view)[:5] == ["loop_id", "config", "iterations", "best_iteration_number", "last_updated"]
    assert set(view) == {"loop_id", "config", "iterations", "best_iteration_number", "last_updated", "derived_from"}
    assert view["config"] == {
        "storage_path": "store/loop-001",
        "selection": {"mode": "highest_quality_verified", "threshold": 70, "require_verification": True},
        "keep_all_iterations": True,
        "quality_weights": {"validation": 0.3, "completeness": 0.25, "correctness": 0.25, "readability": 0.1, "efficiency": 0.1},
    }
    assert [entry["quality_score"] for entry in view["iterations"]] == [72, 85, 83]
    assert all(list(entry)[:12] == SEED_ENTRY for entry in view["iterations"])
    assert view["best_iteration_number"] == 2
    second = view["iterations"][1]
    assert second["snapshot_path"] == "store/loop-001/iterations/iteration-002"
    inside = "store/loop-001/iterations/iteration-002/artifacts"
    assert second["artifacts"] == [f"{inside}/docs/guide.md", f"{inside}/link", f"{inside}/tool.sh"]
    assert all(os.path.lexists(path) for path in second["artifacts"])


def test_what_is_unknown_is_a_number_and_said_to_be_unknown():
    tracker = recorded((0.7,), tokens_used=None, token_cost_usd=None, execution_time_ms=None)
    tracker.save()
    (entry,) = tracking(tracker.store)["iterations"]
    assert (entry["tokens_used"], entry["token_cost_usd"], entry["execution_time_ms"]) == (0, 0, 0)
    assert (entry["tokens_known"], entry["token_cost_known"], entry["execution_time_known"]) == (False, False, False)


def test_what_is_known_needs_no_such_key():
    entry = tracking_entry(
        IterationRecord(iteration_number=1, timestamp="", quality_score=7, token_cost_usd=0.0, tokens_used=0), "x"
    )
    assert "token_cost_known" not in entry
    assert "tokens_known" not in entry
    assert entry["execution_time_known"] is False


def test_an_iteration_with_very_many_artifacts_lists_their_directory():
    here = "store/l/iterations/iteration-001"
    many = tuple(f"{here}/artifacts/{number}" for number in range(MOST_ARTIFACTS_NAMED + 1))
    entry = tracking_entry(
        IterationRecord(iteration_number=1, timestamp="", quality_score=7, artifacts=many, snapshot_path=here), "store/l"
    )
    assert entry["artifacts"] == [f"{here}/artifacts"]
    assert entry["artifacts_listed"] is False


def test_iteration_0_is_the_baseline_and_not_among_the_iterations():
    tracker = recorded(())
    add(tracker, 0, 0.9)
    add(tracker, 1, 0.7)
    tracker.select_output()
    view = tracking(tracker.store)
    assert [entry["iteration_number"] for entry in view["iterations"]] == [1]
    assert view["baseline"]["iteration_number"] == 0
    assert view["best_iteration_number"] == 1
    assert json.loads(tracker.store.paths.best_view.read_text())["current_best"]["iteration"] == 0


def test_best_tracker_is_seed_1s_and_says_where_the_artifacts_are():
    tracker = recorded()
    tracker.select_output()
    found = json.loads(tracker.store.paths.best_view.read_text())
    path = "store/loop-001/iterations/iteration-002/artifacts/"
    assert found["current_best"] == {"iteration": 2, "quality_score": 85.0, "artifacts_path": path}
    assert found["derived_from"] == {"iteration": 3, "decision": 1, "reading": None, "iterations": 3}
    assert found["derived_from"] == tracking(tracker.store)["derived_from"]
    assert Path(path).is_dir()


def test_the_running_best_ignores_verification_and_the_selection_does_not():
    tracker = recorded((0.72,))
    add(tracker, 2, 0.95, verification_status="failed")
    assert tracker.select_output().selected_iteration == 1
    found = json.loads(tracker.store.paths.best_view.read_text())
    assert found["current_best"]["iteration"] == 2
    assert found["final_output"] == 1


def test_an_empty_loop_has_views_without_a_best():
    tracker = recorded(())
    tracker.save()
    assert tracking(tracker.store)["iterations"] == []
    assert tracking(tracker.store)["best_iteration_number"] is None
    assert json.loads(tracker.store.paths.best_view.read_text())["current_best"] is None
    assert not tracker.store.paths.final_output.exists()
    assert "**Selected Iteration**: —" in tracker.store.paths.report_view.read_text()


def test_final_output_holds_the_chosen_files_as_copies_with_real_modes():
    tracker = recorded()
    tracker.select_output()
    out = tracker.store.paths.final_output
    assert contents(out) == {
        "docs/guide.md": ("guide 2\n", 0o644),
        "link": ("-> docs/guide.md", 0),
        "tool.sh": ("echo 2\n", 0o755),
    }
    assert all(path.stat().st_nlink == 1 for path in out.rglob("*") if path.is_file())
    (out / "tool.sh").write_text("changed\n")
    assert (tracker.store.artifacts(2) / "tool.sh").read_text() == "echo 2\n"


def test_final_output_follows_an_override():
    tracker = recorded()
    tracker.select_output()
    tracker.override("final", reason="keeps the API stable")
    assert contents(tracker.store.paths.final_output)["tool.sh"][0] == "echo 3\n"
    assert "Override (use_final) by" in tracker.store.paths.report_view.read_text()


# ------------------------------------------------------------------------------------------ when they are written


def stamps(store: LoopStore) -> dict[str, tuple[int, int]]:
    paths = store.paths
    files = [paths.tracking_view, paths.best_view, paths.report_view, *paths.final_output.rglob("*")]
    return {str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in files}


def test_fresh_views_are_not_written_again_and_need_no_lock(monkeypatch: pytest.MonkeyPatch):
    tracker = recorded()
    tracker.select_output()
    before = stamps(tracker.store)

    def no_lock(self: LoopStore) -> None:
        raise AssertionError("took the lock")

    monkeypatch.setattr(LoopStore, "lock", no_lock)
    assert refresh_views(tracker.store, at="later")
    assert refresh_views(LoopStore.open("store/loop-001"), at="later")
    assert stamps(tracker.store) == before


def test_a_decision_that_changes_nothing_leaves_final_output_alone():
    tracker = recorded()
    tracker.select_output()
    out = tracker.store.paths.final_output
    before = {path: path.lstat().st_ino for path in out.rglob("*")}
    tracker.override(2, reason="the same, on purpose")
    assert {path: path.lstat().st_ino for path in out.rglob("*")} == before
    assert tracking(tracker.store)["derived_from"]["decision"] == 2


@pytest.mark.parametrize("gone", ["tracking_view", "best_view", "report_view", "final_output"])
def test_a_view_that_is_missing_is_made_again(gone: str):
    tracker = recorded()
    tracker.select_output()
    path: Path = getattr(tracker.store.paths, gone)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert refresh_views(tracker.store, at=AT)
    assert path.exists()
    assert contents(tracker.store.paths.final_output)["tool.sh"][0] == "echo 2\n"


def test_a_damaged_view_is_made_again():
    tracker = recorded()
    tracker.select_output()
    for text in ("", "[]", "{not json"):
        tracker.store.paths.best_view.write_text(text)
        assert refresh_views(tracker.store, at=AT)
        assert json.loads(tracker.store.paths.best_view.read_text())["current_best"]["iteration"] == 2


def test_force_writes_what_is_fresh():
    tracker = recorded()
    tracker.select_output()
    (tracker.store.paths.final_output / "tool.sh").write_text("edited by hand\n")
    assert refresh_views(tracker.store, at=AT, force=True)
    assert contents(tracker.store.paths.final_output)["tool.sh"][0] == "echo 2\n"
    assert tracking(tracker.store)["last_updated"] == AT


def test_a_new_iteration_and_a_new_reading_make_them_stale():
    tracker = recorded()
    tracker.select_output()
    add(tracker, 4, 0.9)
    assert tracking(tracker.store)["derived_from"]["iteration"] == 3
    assert refresh_views(tracker.store, at=AT)
    assert tracking(tracker.store)["derived_from"]["iteration"] == 4
    (tracker.store.paths.readings / "0001-rescore.json").write_text("{}")
    assert refresh_views(tracker.store, at=AT)
    assert tracking(tracker.store)["derived_from"]["reading"] == "0001-rescore.json"


def test_an_iteration_that_is_recorded_late_makes_them_stale():
    tracker = recorded(())
    add(tracker, 1, 0.7)
    add(tracker, 3, 0.8)
    tracker.save()
    add(tracker, 2, 0.9)
    tracker.save()
    assert [entry["iteration_number"] for entry in tracking(tracker.store)["iterations"]] == [1, 2, 3]


HOLDER = """
import sys, time
from jumar.loop.store.loop_store import LoopStore
with LoopStore.open(sys.argv[1]).lock():
    print("held", flush=True)
    time.sleep(60)
"""


def test_while_another_process_writes_nothing_is_written():
    tracker = recorded()
    tracker.select_output()
    add(tracker, 4, 0.9)
    before = stamps(tracker.store)
    with subprocess.Popen([sys.executable, "-c", HOLDER, "store/loop-001"], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            assert not refresh_views(LoopStore.open("store/loop-001"), at=AT)
            assert stamps(tracker.store) == before
        finally:
            holder.kill()
    assert refresh_views(LoopStore.open("store/loop-001"), at=AT)
    assert tracking(tracker.store)["derived_from"]["iteration"] == 4


# ------------------------------------------------------------------------------------------------ when it goes wrong


WATCHER = """
import os, sys
from pathlib import Path

missing = mixed = looks = 0
print("on", flush=True)
while not Path("stop").exists():
    looks += 1
    try:
        fd = os.open(sys.argv[1], os.O_RDONLY)
    except FileNotFoundError:
        missing += 1
        continue
    texts = set()
    for name in ("tool.sh", "docs/guide.md"):
        try:
            file = os.open(name, os.O_RDONLY, dir_fd=fd)
        except FileNotFoundError:  # the old directory is being removed while it is open
            continue
        texts.add(os.read(file, 99).split()[-1])
        os.close(file)
    mixed += len(texts) > 1
    os.close(fd)
print(looks, missing, mixed)
"""


@pytest.mark.parametrize("exchange", [True, False])
def test_readers_of_final_output_never_see_a_mixture(monkeypatch: pytest.MonkeyPatch, *, exchange: bool):
    """Where the system can exchange two names there is no moment without the directory either."""
    if not exchange:
        monkeypatch.setattr(views, "_renameat2", lambda: None)
    tracker = recorded((0.7,))
    tracker.save()
    out = tracker.store.paths.final_output
    watcher = subprocess.Popen([sys.executable, "-c", WATCHER, str(out)], stdout=subprocess.PIPE, text=True)
    try:
        assert watcher.stdout is not None
        watcher.stdout.readline()
        until = time.monotonic() + 1.5
        number = 1
        while time.monotonic() < until:
            number += 1
            add(tracker, number, min(1.0, 0.7 + number / 1000))
            tracker.save()
    finally:
        Path("stop").touch()
        looks, missing, mixed = map(int, watcher.communicate(timeout=30)[0].split())
    print(f"exchanges: {number}, looks: {looks}, without the directory: {missing}")
    assert looks > 10
    assert mixed == 0
    if exchange:
        assert missing == 0


def test_a_full_disk_leaves_the_old_output_and_the_next_refresh_mends_it(monkeypatch: pytest.MonkeyPatch):
    tracker = recorded()
    tracker.select_output()
    add(tracker, 4, 0.95)
    real = restore

    def full(plan: Any) -> None:
        real(plan)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(views, "restore", full)
    with pytest.raises(StoreWriteError, match="the disk is full"):
        refresh_views(tracker.store, at=AT)
    assert contents(tracker.store.paths.final_output)["tool.sh"][0] == "echo 2\n"
    assert not list(tracker.store.paths.directory.glob(".tmp-*"))
    monkeypatch.setattr(views, "restore", real)
    assert refresh_views(tracker.store, at=AT)
    assert contents(tracker.store.paths.final_output)["tool.sh"][0] == "echo 4\n"


def test_leftovers_of_a_process_that_died_are_removed():
    tracker = recorded()
    left = tracker.store.paths.directory / ".tmp-final-output-dead"
    (left / "docs").mkdir(parents=True)
    tracker.select_output()
    assert not left.exists()


def test_a_tracking_view_that_could_not_be_written_whole_is_not_there(monkeypatch: pytest.MonkeyPatch):
    tracker = recorded()
    tracker.select_output()
    before = tracker.store.paths.tracking_view.read_bytes()
    add(tracker, 4, 0.95)

    def broken(*args: Any, **kwargs: Any) -> Any:
        yield b"{"
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(views, "tracking_chunks", broken)
    with pytest.raises(StoreWriteError):
        refresh_views(tracker.store, at=AT)
    assert tracker.store.paths.tracking_view.read_bytes() == before
    assert not list(tracker.store.paths.directory.glob(".tmp-*"))


def test_a_cleaned_up_iteration_keeps_what_final_output_holds():
    tracker = recorded()
    tracker.select_output()
    shutil.rmtree(tracker.store.artifacts(2))
    add(tracker, 4, 0.5)
    tracker.save()
    assert contents(tracker.store.paths.final_output)["tool.sh"][0] == "echo 2\n"
    report = tracker.store.paths.report_view.read_text()
    assert "- [ ] All iteration outputs preserved: iteration 2 missing, and no cleanup removed them; 3 of 4 stored" in report


def test_load_report_keeps_long_lists_of_artifacts_within_a_bound(monkeypatch: pytest.MonkeyPatch):
    tracker = recorded()
    monkeypatch.setattr("jumar.loop.report.read.MOST_ARTIFACTS", 3)
    bounded = load_report(tracker.store)
    assert [len(record.artifacts_detail) for record in bounded.records] == [3, 3, 0]
    assert not bounded.artifacts_complete
    whole = load_report(tracker.store, all_artifacts=True)
    assert [len(record.artifacts_detail) for record in whole.records] == [3, 3, 3]
    assert whole.artifacts_complete


def test_best_document_without_any_valid_score():
    tracker = recorded(())
    assert best_document(load_report(tracker.store), derived_from={}, output={})["current_best"] is None


# -------------------------------------------------------------------------------------------- read by another tool


def read_with_node(path: Path) -> dict[str, Any]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the tracking view was not read by JavaScript")
    done = subprocess.run([node, str(READER), str(path)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_javascript_tool_reads_the_view():
    tracker = recorded()
    tracker.select_output()
    found = read_with_node(tracker.store.paths.tracking_view)
    summary = tracker.get_summary()
    assert (found["best"], found["best_by_score"], found["selected"]) == (2, 2, 2)
    assert found["trajectory"] == [dict(point) for point in tracker.get_quality_trajectory()]
    assert found["total_tokens"] == summary["total_tokens"] == 6000
    assert found["total_cost"] == f"{summary['total_cost_usd']:.4f}" == "0.1500"
    assert found["average"] == f"{summary['average_quality']:.2f}"
    assert found["weight_sum"] == "1.00"
    assert found["keep_all_iterations"] is True
    inside = ["validation+completeness+correctness+readability+efficiency"]
    assert found["table"] == [
        [1, "72%", "-%", "1000", "$0.0500", "30000", 3, "", *inside, "iteration-001"],
        [2, "85%", "+13.0%", "2000", "$0.0500", "30000", 3, "", *inside, "iteration-002"],
        [3, "83%", "-2.0%", "3000", "$0.0500", "30000", 3, "", *inside, "iteration-003"],
    ]


def test_a_javascript_tool_reads_a_view_full_of_unknowns():
    tracker = recorded((0.72,), tokens_used=None, token_cost_usd=None, execution_time_ms=None)
    add(tracker, 0, 0.9)
    add(tracker, 2, 0.6, reflections=["\x1b[31m", "second"])
    tracker.save()
    found = read_with_node(tracker.store.paths.tracking_view)
    assert found["total_cost"] == "0.0500"
    assert found["best"] == 1
    assert [point["iteration"] for point in found["trajectory"]] == [1, 2]


def test_our_own_tracking_view_is_imported_without_loss():
    tracker = recorded()
    tracker.select_output()
    Path("copy").mkdir()
    shutil.copy(tracker.store.paths.tracking_view, "copy/best-output-tracking.json")
    again = LoopStore.open("copy")
    assert [record.quality_score for record in again.records()] == [72, 85, 83]
    assert [record.token_cost_usd for record in again.records()] == [0.05, 0.05, 0.05]
