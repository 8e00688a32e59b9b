"""One loop's directory, written and read."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from store_kit import AT, end, kept, new_store, put, record, score, stored_tree, unmarked

from jumar.errors import (
    ArtifactError,
    DuplicateIterationError,
    ForgedError,
    FormatTooNewError,
    NotFoundError,
    StoreDamagedError,
    StoreWriteError,
    UsageError,
)
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify
from jumar.model.selection import StopDecision


@pytest.fixture
def work(fresh_place: Path) -> Path:
    directory = fresh_place / "work"
    put(directory, {"a.txt": b"one", "sub/b.txt": b"two", "link": "a.txt"})
    return directory


def test_a_new_loop_is_what_it_was_created_as(work: Path) -> None:
    created = new_store("loops-of-mine/x", work)
    opened = LoopStore.open("loops-of-mine/x")
    assert (opened.loop_id, opened.created_at, opened.nonce) == ("loop-001", AT, created.nonce)
    assert dict(opened.config) == {"selection": {"mode": "highest_quality"}}
    assert opened.workdir == work
    assert opened.iteration_numbers() == ()
    assert opened.views() == ()
    assert opened.attempts() == ()
    assert opened.decisions() == ()
    assert opened.pending() is None
    assert list(opened.records()) == []


def test_a_loop_is_created_once(work: Path) -> None:
    new_store("x", work)
    with pytest.raises(UsageError, match="is a loop already"):
        new_store("x", work)


def test_an_existing_directory_becomes_a_loop_and_keeps_its_files(work: Path) -> None:
    put(Path("mine"), {"notes.md": b"hello"})
    store = new_store("mine", work)
    assert Path("mine/notes.md").read_bytes() == b"hello"
    record(store, 1, ("a.txt",), work)
    assert LoopStore.open("mine").iteration_numbers() == (1,)


def test_two_creators_of_one_loop(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is faster by the length of a rename; or it leaves something there that is no loop."""
    real, others = os.rename, [lambda: LoopStore.create("x", "theirs", {}, workdir=None, created_at=AT)]

    def late(source: Path, target: Path) -> None:
        if others:
            others.pop()()
        real(source, target)

    monkeypatch.setattr(os, "rename", late)
    with pytest.raises(UsageError, match="is a loop already"):
        LoopStore.create("x", "ours", {}, workdir=work, created_at=AT)
    assert LoopStore.open("x").loop_id == "theirs"
    others.append(lambda: put(Path("y"), {"notes.md": b""}) or LoopStore.open("x"))
    with pytest.raises(StoreWriteError, match="could not create"):
        LoopStore.create("y", "ours", {}, workdir=work, created_at=AT)
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["work", "x", "y"]


def test_a_loop_below_a_root_brings_the_root_with_it(work: Path) -> None:
    store = LoopStore.create(".jumar/loops/x", "x", {}, workdir=work, created_at=AT)
    assert Path(".jumar/.gitignore").read_text().endswith("by hand.\n*\n")
    assert store.paths.lock == Path.cwd() / ".jumar" / "locks" / "x"
    record(store, 0, ("a.txt",), work)
    assert sorted(path.name for path in store.paths.directory.iterdir()) == sorted(
        ["loop.json", *(directory.name for directory in store.paths.subdirectories)]
    )


@pytest.mark.parametrize("loop_id", ["", ".x", "-x", "a/b", "a b", "x" * 101, "a\n", "ä"])
def test_a_loop_id_that_cannot_be_a_name_is_refused(loop_id: str) -> None:
    with pytest.raises(UsageError, match="cannot be a loop id"):
        LoopStore.create("x", loop_id, {}, workdir=None, created_at=AT)
    assert not Path("x").exists()


def test_opening_what_is_no_loop(work: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no loop in nowhere"):
        LoopStore.open("nowhere")
    Path("empty").mkdir()
    with pytest.raises(NotFoundError):
        LoopStore.open("empty")
    store = new_store("x", work)
    record(store, 1, ("a.txt",), work)
    store.paths.loop_json.unlink()
    with pytest.raises(StoreDamagedError, match="restore it from a backup"):
        LoopStore.open("x")


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", StoreDamagedError, "the file is empty"),
        (b'{"format": 1, "loop_', StoreDamagedError, "not readable as JSON"),
        (b'{"format": 99}', FormatTooNewError, "Upgrade jumar"),
        (b'{"format": 1, "loop_id": 3}', StoreDamagedError, "field 'loop_id' should be a string"),
    ],
)
def test_a_damaged_identity_is_named(work: Path, content: bytes, error: type[Exception], message: str) -> None:
    store = new_store("x", work)
    store.paths.loop_json.write_bytes(content)
    with pytest.raises(error, match=message):
        LoopStore.open("x")


def test_an_iteration_is_recorded_with_its_paths_as_they_were_given(work: Path) -> None:
    store = new_store("store/x", work)
    result = record(store, 7, (".",), work, quality=85, dimensions={"clarity": 0.85})
    again = LoopStore.open("store/x").record(7)
    assert again == result
    assert result.snapshot_path == "store/x/iterations/iteration-007/artifacts"
    assert result.artifacts == tuple(f"{result.snapshot_path}/{name}" for name in ("a.txt", "link", "sub/b.txt"))
    assert [detail.path for detail in result.artifacts_detail] == ["a.txt", "link", "sub/b.txt"]
    assert (result.quality_score, result.nonce, result.attempt) == (85, "n7", None)
    assert Path(result.artifacts[2]).read_bytes() == b"two"
    raw = json.loads((store.paths.iteration(7) / "metrics.json").read_bytes())
    assert raw["snapshot_path"] == "iterations/iteration-007/artifacts"
    assert raw["artifacts"][0] == "iterations/iteration-007/artifacts/a.txt"
    absolute = LoopStore.open(Path("store/x").resolve())
    assert absolute.record(7).snapshot_path == f"{Path.cwd()}/store/x/iterations/iteration-007/artifacts"


def test_a_later_change_of_directory_does_not_move_the_loop(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store("x", work)
    monkeypatch.chdir(work)
    record(store, 1, ("a.txt",), work)
    assert LoopStore.open("../x").iteration_numbers() == (1,)


def test_the_same_number_twice_is_refused_and_changes_nothing(work: Path) -> None:
    store = new_store("x", work)
    first = record(store, 1, ("a.txt",), work)
    (work / "a.txt").write_bytes(b"changed")
    with pytest.raises(DuplicateIterationError, match="iteration 1 of loop 'loop-001' is recorded already"):
        record(store, 1, ("a.txt",), work)
    with pytest.raises(DuplicateIterationError):
        store.add(score(1), source=work, paths=["a.txt"])
    assert store.record(1) == first
    assert list(store.paths.pending.iterdir()) == []


def test_numbers_may_come_in_any_order_but_not_below_zero(work: Path) -> None:
    store = new_store("x", work)
    for number in (5, 0, 1000, 3):
        record(store, number, ("a.txt",), work, quality=number / 10)
    assert store.iteration_numbers() == (0, 3, 5, 1000)
    assert [view.number for view in store.views()] == [0, 3, 5, 1000]
    assert [item.iteration_number for item in LoopStore.open("x").records()] == [0, 3, 5, 1000]
    assert store.paths.iteration(1000).name == "iteration-1000"
    with pytest.raises(UsageError, match="cannot be an iteration number"):
        record(store, -1, ("a.txt",), work)


def test_a_record_belongs_to_its_snapshot(work: Path) -> None:
    store = new_store("x", work)
    pending = store.stage(4, source=work, paths=["a.txt"], nonce="n", attempt=None, stage={}, logs=None)
    with pytest.raises(UsageError, match="of iteration 5, the snapshot of iteration 4"):
        store.commit(pending, score(5))
    with pytest.raises(NotFoundError, match="has no iteration 4"):
        store.record(4)
    with pytest.raises(NotFoundError, match="has no iteration 4"):
        store.manifest(4)


def test_an_artifact_error_leaves_nothing_behind(work: Path) -> None:
    store = new_store("x", work)
    for body in (
        lambda: store.stage(1, source=work, paths=["gone.txt"], nonce="n", attempt=None, stage={}, logs=None),
        lambda: store.add(score(1), source=work, paths=["a.txt", "gone.txt"]),
        lambda: store.set_aside(work, ["gone.txt"]),
    ):
        with pytest.raises(ArtifactError, match=r"'gone\.txt' does not exist"):
            body()
    assert store.iteration_numbers() == ()
    assert store.pending() is None
    assert list(store.paths.pending.iterdir()) == list(store.paths.set_aside.iterdir()) == []


def test_a_pending_snapshot_is_found_again_whole(work: Path) -> None:
    store = new_store("x", work)
    logs = store.paths.attempt_scratch(1)
    put(logs, {"prompt.md": b"do it", "checks/one.log": b"ok"})
    os.mkfifo(logs / "pipe")
    store.begin_attempt(3, 2, "nonce", AT)
    staged = store.stage(
        3, source=work, paths=["a.txt", "sub"], nonce="nonce", attempt=1, stage={"parent": 2, "deep": [1, {"a": None}]}, logs=logs
    )
    found = LoopStore.open("x").pending()
    assert found == staged
    assert found is not None
    assert (found.number, found.nonce, found.attempt, found.record) == (3, "nonce", 1, None)
    assert dict(found.stage) == {"parent": 2, "deep": [1, {"a": None}]}
    assert stored_tree(found.artifacts) == {"a.txt": b"one", "sub/b.txt": b"two"}
    assert stored_tree(found.logs) == {"prompt.md": b"do it", "checks/one.log": b"ok"}
    assert not logs.exists()
    done = LoopStore.open("x").commit(found, score(3))
    assert (done.attempt, done.nonce) == (1, "nonce")
    assert store.pending() is None
    assert stored_tree(store.paths.iteration(3) / "logs") == {"prompt.md": b"do it", "checks/one.log": b"ok"}


def test_a_scored_pending_snapshot_keeps_its_score(work: Path) -> None:
    store = new_store("x", work)
    pending = store.stage(1, source=work, paths=["a.txt"], nonce="n", attempt=None, stage={}, logs=None)
    record(new_store("other", work), 1, ("a.txt",), work, quality=33)
    shutil.copy("other/iterations/iteration-001/metrics.json", pending.directory / "metrics.json")
    with pytest.raises(ForgedError, match=r"pending/iteration-001/metrics\.json was not written by jumar"):
        store.pending()
    store = LoopStore.open(unmarked("x"))
    found = store.pending()
    assert found is not None
    assert found.record is not None
    assert found.record.quality_score == 33
    assert store.commit(found, score(1, 99.0)).quality_score == 33
    assert store.views()[0].score == 33


def test_only_an_unpaid_pending_snapshot_is_replaced(work: Path) -> None:
    store = new_store("x", work)
    store.stage(1, source=work, paths=["a.txt"], nonce="old", attempt=None, stage={}, logs=None)
    (work / "a.txt").write_bytes(b"newer")
    replaced = store.stage(1, source=work, paths=["a.txt"], nonce="new", attempt=None, stage={}, logs=None)
    assert stored_tree(replaced.artifacts) == {"a.txt": b"newer"}
    store.begin_attempt(2, None, "paid", AT)
    store.stage(2, source=work, paths=["a.txt"], nonce="paid", attempt=1, stage={}, logs=None)
    with pytest.raises(DuplicateIterationError, match="waits to be scored"):
        store.stage(2, source=work, paths=["a.txt"], nonce="x", attempt=None, stage={}, logs=None)
    with pytest.raises(DuplicateIterationError, match="waits to be scored"):
        store.add(score(2), source=work, paths=["a.txt"])


def test_several_pending_snapshots_are_taken_in_order(work: Path) -> None:
    store = new_store("x", work)
    for number in (2, 1):
        store.stage(number, source=work, paths=["a.txt"], nonce=f"n{number}", attempt=None, stage={}, logs=None)
    for number in (1, 2):
        pending = store.pending()
        assert pending is not None
        assert pending.number == number
        store.commit(pending, score(number))
    assert store.pending() is None


def test_what_another_object_writes_is_seen(work: Path) -> None:
    one, other = new_store("x", work), LoopStore.open("x")
    record(one, 1, ("a.txt",), work)
    assert other.iteration_numbers() == (1,)
    record(other, 2, ("a.txt",), work, quality=80.0)
    assert [view.score for view in one.views()] == [70.0, 80.0]
    with pytest.raises(DuplicateIterationError):
        record(one, 2, ("a.txt",), work)
    assert one.begin_attempt(3, 2, "n", AT).start.number == 1
    assert other.begin_attempt(3, 2, "n", AT).start.number == 2
    other.end_attempt(1, end())
    assert [attempt.end is not None for attempt in one.attempts()] == [True, False]
    assert other.add_decision("select", best_iteration=1).number == 1
    assert one.add_decision("select", best_iteration=2).number == 2
    assert [decision.best_iteration for decision in other.decisions()] == [1, 2]


def test_attempts_are_numbered_from_one_and_end_once(work: Path) -> None:
    store = new_store("x", work)
    first = store.begin_attempt(1, 0, "first", AT)
    assert (first.start.number, first.start.parent, first.start.pid, first.end) == (1, 0, os.getpid(), None)
    ended = end(outcome="failed", exit_code=3, output_tail="x" * 1000, detail="exit code 3")
    store.end_attempt(1, ended)
    with pytest.raises(UsageError, match="attempt 1 of loop 'loop-001' has ended already"):
        store.end_attempt(1, end())
    with pytest.raises(NotFoundError, match="has no attempt 2"):
        store.end_attempt(2, end())
    assert store.begin_attempt(1, 0, "second", AT).start.number == 2
    for found in (store, LoopStore.open("x")):
        light = found.attempts()[0].end
        assert light is not None
        assert (light.outcome, light.detail, light.output_tail) == ("failed", "exit code 3", "")
        assert found.attempt(1).end == ended
        assert found.attempt(2).end is None
    assert sorted(os.listdir(store.paths.attempts)) == ["000001.end.json", "000001.start.json", "000002.start.json"]


def test_an_earlier_attempt_may_end_later(work: Path) -> None:
    store = new_store("x", work)
    for number in (1, 2, 3):
        store.begin_attempt(number, None, f"n{number}", AT)
    assert store.last_attempt() == 3
    for number in (2, 3, 1):
        store.end_attempt(number, end(detail=f"{number}"))
    assert [attempt.end and attempt.end.detail for attempt in store.attempts()] == ["1", "2", "3"]
    assert store.attempts() == LoopStore.open("x").attempts()


def test_decisions_are_numbered_and_named(work: Path) -> None:
    store = new_store("x", work)
    store.add_decision(
        "select", best_iteration=2, final_iteration=3, delta=-2.5, decision="use_best", reason="best", by="a", at=AT
    )
    store.add_decision("cleanup", data={"iterations": [1]})
    assert sorted(os.listdir(store.paths.decisions)) == ["0001-select.json", "0002-cleanup.json"]
    first, second = LoopStore.open("x").decisions()
    assert (first.number, first.delta, first.decision, first.replaced) == (1, -2.5, "use_best", None)
    assert (second.kind, dict(second.data), second.reason) == ("cleanup", {"iterations": [1]}, "")
    with pytest.raises(TypeError, match="no field why"):
        store.add_decision("select", why="because")
    store.add_decision("redact", data={"files": 3})  # written by older versions, and read for ever
    assert LoopStore.open("x").decisions()[2].kind == "redact"


def test_what_was_set_aside_is_numbered(work: Path) -> None:
    store = new_store("x", work)
    assert [store.set_aside(work, [name]).name for name in ("a.txt", "sub", "link")] == ["0001", "0002", "0003"]
    assert stored_tree(store.paths.set_aside / "0002" / "artifacts") == {"sub/b.txt": b"two"}
    assert verify(store).problems == ()


def test_leftovers_go_and_nothing_else(work: Path) -> None:
    store = new_store("x", work)
    for number in (1, 2):
        store.begin_attempt(number, None, "n", AT)
        put(store.paths.attempt_scratch(number), {"usage.json": b"{}"})
    record(store, 1, ("a.txt",), work)
    store.stage(2, source=work, paths=["a.txt"], nonce="n", attempt=2, stage={}, logs=None)
    for directory in (store.paths.directory, *store.paths.subdirectories):
        put(directory, {".tmp-dead/x": b"", ".tmp-file": b""})
    os.symlink(work, store.paths.scratch / "link")
    put(store.paths.directory, {"report.md": b"mine"})
    store.discard_leftovers()
    left = {path for path in stored_tree(store.paths.directory) if ".tmp-" in path or path.startswith("scratch")}
    assert left == {"scratch/000002/usage.json"}
    assert (work / "a.txt").exists()
    assert (store.paths.directory / "report.md").exists()
    assert store.pending() is not None
    assert verify(store).notes[0].startswith("attempts/000001.start.json: has no end yet")


def test_a_loop_whose_empty_directories_are_gone_still_reads(work: Path) -> None:
    """An archive or a version control system that keeps no empty directories."""
    store = new_store("x", work)
    for directory in store.paths.subdirectories:
        directory.rmdir()
    again = LoopStore.open("x")
    assert (again.views(), again.attempts(), again.decisions(), again.pending()) == ((), (), (), None)
    assert verify(again).problems == ()
    again.begin_attempt(1, None, "n", AT)
    record(again, 1, ("a.txt",), work)
    assert verify(again).problems == ()


def test_logs_that_are_not_there_are_no_error(work: Path) -> None:
    store = new_store("x", work)
    pending = store.stage(1, source=work, paths=[], nonce="n", attempt=None, stage={}, logs=work / "nowhere")
    assert stored_tree(pending.logs) == {}
    assert store.commit(pending, score(1)).artifacts == ()


def test_the_loop_is_never_part_of_its_own_snapshot(work: Path) -> None:
    store = LoopStore.create(work / "store" / "x", "x", {}, workdir=work, created_at=AT)
    put(work, {".git/config": b"", ".jumar/loops/y/loop.json": b"", "store/other.txt": b"kept"})
    result = record(store, 1, (".",), work)
    assert [detail.path for detail in result.artifacts_detail] == ["a.txt", "link", "store/other.txt", "sub/b.txt"]
    assert record(store, 2, (".",), work).artifacts_detail == result.artifacts_detail


def test_a_project_that_moves_takes_its_loop_along(work: Path, fresh_place: Path) -> None:
    project = fresh_place / "project"
    put(project, {"src/a.txt": b"a"})
    store = LoopStore.create(project / ".jumar" / "loops" / "x", "x", {}, workdir=project / "src", created_at=AT)
    assert json.loads(store.paths.loop_json.read_bytes())["workdir"] == "../../../src"
    record(store, 1, ("a.txt",), project / "src")
    os.rename(project, fresh_place / "moved")
    moved = LoopStore.open(fresh_place / "moved" / ".jumar" / "loops" / "x")
    assert moved.workdir == fresh_place / "moved" / "src"
    assert Path(moved.record(1).artifacts[0]).read_bytes() == b"a"
    assert verify(moved).problems == ()


def test_a_work_directory_elsewhere_stays_where_it_is(tmp_path: Path, fresh_place: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    store = LoopStore.create(fresh_place / "p" / ".jumar" / "loops" / "x", "x", {}, workdir=tmp_path / "elsewhere", created_at=AT)
    assert json.loads(store.paths.loop_json.read_bytes())["workdir"] == str(tmp_path / "elsewhere")
    assert store.workdir == tmp_path / "elsewhere"
    inside = LoopStore.create(fresh_place / "mine" / "x", "x", {}, workdir=fresh_place, created_at=AT)
    assert json.loads(inside.paths.loop_json.read_bytes())["workdir"] == "../.."


def test_a_directory_that_did_not_change_is_not_listed_again(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store("x", work)
    for number in (1, 2):
        record(store, number, (), work)
    old = time.time() - 10
    os.utime(store.paths.iterations, (old, old))
    reader = LoopReader("x")
    assert len(reader.views()) == len(store.views()) == 2
    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", lambda _: pytest.fail("was listed"))
        assert len(reader.views()) == 2
        store.add(score(3), source=work, paths=[], stage={"who": "me"})  # the writer knows what it wrote
        assert len(store.views()) == 3
    assert len(reader.views()) == 3
    (store.paths.iteration(2)).rename(store.paths.iteration(4))
    (store.paths.iterations / "notes.txt").write_bytes(b"")
    assert reader.iteration_numbers() == (1, 3, 4)
    os.rename(store.paths.decisions, store.paths.directory / "old")
    assert reader.decisions() == ()


def test_the_end_of_a_loop_is_one_that_no_iteration_followed(work: Path) -> None:
    store = new_store("x", work)
    assert (store.last_end(), store.end(), store.recorded_stop()) == (None, None, None)
    record(store, 0, ("a.txt",), work)
    first = store.add_decision("end", final_iteration=0, reason="enough", data={"stop_reason": "target"})
    store.add_decision("apply", best_iteration=0, final_iteration=0)
    assert (store.last_end(), store.end()) == (first, first)
    assert store.recorded_stop() == StopDecision(reason="target", detail="enough")
    record(store, 1, ("a.txt",), work)
    assert (store.last_end(), store.end(), store.recorded_stop()) == (first, None, None)
    second = store.add_decision("end", final_iteration=1, reason="of a later version", data={"stop_reason": "bored"})
    assert (store.last_end(), store.end(), store.recorded_stop()) == (second, second, None)


def test_a_decision_that_was_renamed_by_hand_is_damage(work: Path) -> None:
    store = new_store("x", work)
    store.add_decision("select")
    put(store.paths.decisions, {"notes.txt": b""})
    os.rename(store.paths.decisions / "0001-select.json", store.paths.decisions / "0002-select.json")
    with pytest.raises(ForgedError, match=r"0002-select\.json was not written by jumar"):
        LoopStore.open("x").decisions()
    unmarked("x")
    with pytest.raises(StoreDamagedError, match="holds decision 1; was it renamed by hand"):
        LoopStore.open("x").decisions()


def test_reading_works_where_writing_does_not(work: Path) -> None:
    store = new_store("x", work)
    record(store, 1, ("a.txt",), work)
    store.paths.lock.unlink()
    before = sorted(path for path in Path("x").rglob("*"))
    reader = LoopReader("x")
    assert reader.record(1).iteration_number == 1
    assert [view.number for view in reader.views()] == [1]
    assert reader.attempts() == ()
    assert verify(reader).problems == ()
    assert sorted(path for path in Path("x").rglob("*")) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quality_score": "high"}, "field 'quality_score' should be a finite number"),
        ({"iteration_number": 2}, "holds iteration 2, its directory says 1"),
        ({"status": "great"}, "field 'status' should be one of"),
        ({"dimensions": {"a": None}}, "field 'a' should be a finite number"),
        ({"format": 2}, "format 2 was written by a newer jumar"),
        ({"checks": [3]}, "field 'checks' should be a list of objects"),
        ({"analysis": {"success": True, "completed": "yes"}}, "field 'completed' should be true or false"),
        ({"iteration_number": True}, "field 'iteration_number' should be a whole number"),
    ],
)
def test_a_damaged_record_is_named_by_file_and_field(work: Path, change: dict[str, object], message: str) -> None:
    store = new_store("x", work)
    record(store, 1, ("a.txt",), work)
    unmarked("x")
    path = store.paths.iteration(1) / "metrics.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | change))
    with pytest.raises(StoreDamagedError, match=message) as caught:
        LoopStore.open("x").views()
    assert "iteration-001/metrics.json" in str(caught.value)
    path.unlink()
    with pytest.raises(StoreDamagedError, match="is missing"):
        LoopStore.open("x").views()
    with pytest.raises(StoreDamagedError, match="is missing"):
        LoopStore.open("x").record(1)


def test_a_view_is_what_the_record_says(work: Path) -> None:
    from jumar.model import Analysis, CheckResult
    from jumar.model.records import SuiteCounts

    store = new_store("x", work)
    checks = (
        CheckResult(name="a", passed=True),
        CheckResult(name="b", passed=False, tests=SuiteCounts(passed=1, failed=1, missing=0, total=2)),
        CheckResult(name="c", passed=False, broken="x"),
    )
    record(store, 1, (), work, checks=checks, analysis=Analysis(completed=True), verification_status="failed")
    record(store, 2, (), work, quality=None, status="scorer_broken", status_reason="none")
    record(store, 3, (), work, quality=60, dimensions={"x": 0.5, "y": 1})
    read = LoopStore.open("x")
    assert read.views() == store.views() == tuple(item.view() for item in read.records())
    assert [view.failed_checks for view in read.views()] == [1, None, None]
    assert [view.counted for view in read.views()] == [("b",), (), ()]


def test_a_directory_that_is_renamed_while_it_is_read_is_read_again(work: Path) -> None:
    """A reader lists ``pending/`` while a writer acknowledges again and again."""
    store = new_store("x", work)
    reader, seen, stop = LoopReader("x"), set[int](), threading.Event()

    def read() -> None:
        while not stop.is_set():
            pending = reader.pending()
            if pending is not None:
                seen.add(pending.number)
            for view in reader.views():
                assert reader.record(view.number).iteration_number == view.number

    thread = threading.Thread(target=read)
    failures: list[BaseException] = []
    threading.excepthook, before = lambda caught: failures.append(caught.exc_value or Exception()), threading.excepthook
    try:
        thread.start()
        for number in range(40):
            record(store, number, ("a.txt", "sub"), work)
        stop.set()
        thread.join()
    finally:
        threading.excepthook = before
    assert failures == []
    assert len(reader.views()) == 40


def test_a_pending_directory_that_never_stands_still_is_given_up(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store("x", work)
    pending = store.stage(1, source=work, paths=["a.txt"], nonce="n", attempt=None, stage={}, logs=None)

    def gone(self: LoopReader, number: int) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(LoopReader, "pending_of", gone)
    with pytest.raises(StoreDamagedError, match="changes too quickly to be read"):
        store.pending()
    monkeypatch.undo()
    with pytest.raises(FileNotFoundError):
        store.pending_of(2)
    (pending.directory / "stage.json").unlink()
    with pytest.raises(StoreDamagedError, match=r"stage\.json is missing"):
        store.pending()
    with monkeypatch.context() as patch:  # it was acknowledged while it was read
        patch.setattr(Path, "is_dir", lambda path: False)
        with pytest.raises(FileNotFoundError):
            store.pending_of(1)


def test_a_large_tree_is_recorded_as_differences(work: Path) -> None:
    many = {f"many/{number:03}.txt": b"%d" % number for number in range(300)}
    put(work, many)
    store = new_store("x", work)
    expected: dict[int, dict[str, bytes | str]] = {}
    for number in range(40):
        put(work, {f"many/{number:03}.txt": b"changed in %d" % number})
        if number == 20:
            (work / "many" / "299.txt").unlink()
        record(store, number, (".",), work)
        expected[number] = stored_tree(work)
    raw = json.loads((store.paths.iteration(5) / "manifest.json").read_bytes())
    metrics = json.loads((store.paths.iteration(5) / "metrics.json").read_bytes())
    assert (raw["base"], raw["depth"], [item["path"] for item in raw["changed"]], raw["removed"]) == (4, 5, ["many/005.txt"], [])
    assert (raw["content"], metrics["artifacts_base"], metrics["artifacts"]) == ("objects", 5, [])
    depths = [json.loads((store.paths.iteration(number) / "manifest.json").read_bytes())["depth"] for number in range(40)]
    assert depths == [*range(33), *range(7)]
    fresh = LoopStore.open("x")
    for number in (39, 0, 32, 33, 20, 5):
        found = fresh.record(number)
        assert sorted(detail.path for detail in found.artifacts_detail) == sorted(expected[number])
        assert [path.removeprefix(found.snapshot_path + "/") for path in found.artifacts] == sorted(expected[number])
        assert kept(fresh, number) == expected[number]
        assert store.record(number) == found
    assert "many/299.txt" not in fresh.manifest(33).entries
    assert verify(fresh).problems == ()


def test_contents_of_a_large_tree_are_stored_once(work: Path) -> None:
    put(work, {f"many/{number:03}.txt": b"%d" % (number % 100) for number in range(300)})
    store = new_store("x", work)
    record(store, 1, (".",), work)
    put(work, {"a.txt": b"one!"})
    record(store, 2, (".",), work)
    store = LoopStore.open("x")
    record(store, 3, (".",), work)
    sizes = sorted(path.stat().st_size for path in store.paths.objects.glob("*.pack"))
    numbers = 10 + 2 * 90  # their letters
    assert sizes == [len(b"one!") + 40 + 16, numbers + len(b"onetwo") + 102 * 40 + 16]
    assert {number: kept(store, number) for number in (2, 3)} == {2: stored_tree(work), 3: stored_tree(work)}
    assert kept(store, 1)["a.txt"] == b"one"
    assert [path.name for path in store.artifacts(2).iterdir()] == ["READ-ME.txt"]


def test_an_iteration_after_one_without_snapshot_is_whole(work: Path) -> None:
    store = new_store("x", work)
    for number in (1, 2):
        record(store, number, (".",), work)
    shutil.rmtree(store.artifacts(2))
    assert not store.has_snapshot(2)
    result = record(store, 3, (".",), work)
    assert stored_tree(store.artifacts(3)) == stored_tree(work)
    shutil.rmtree(store.artifacts(1))
    shutil.rmtree(store.artifacts(3))
    assert record(store, 4, (".",), work).artifacts_detail == result.artifacts_detail
    assert store.record(2).artifacts_detail == result.artifacts_detail
