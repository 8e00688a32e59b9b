"""A directory of seed 2's original tool is opened as it lies, once, and survives being interrupted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from store_kit import Disk, Killed, Way, end, memory_place, put, record, stored_tree

from jumar.core.leftovers import remove_tree
from jumar.core.lock import LoopLock
from jumar.errors import ConflictError, LockedError, NotFoundError, StoreDamagedError, StoreWriteError
from jumar.loop.store.creation import is_foreign
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.verify import verify

TRACKING = """
{
  "loop_id": "loop-001",
  "config": {
    "storage_path": ".aiwg/ralph/loop-001",
    "selection": { "mode": "highest_quality_verified", "threshold": 70, "require_verification": true },
    "keep_all_iterations": true,
    "quality_weights": {
      "validation": 0.30, "completeness": 0.25, "correctness": 0.25, "readability": 0.10, "efficiency": 0.10
    }
  },
  "iterations": [
    {
      "iteration_number": 1,
      "timestamp": "2026-01-28T10:00:00Z",
      "quality_score": 72,
      "quality_delta": null,
      "dimensions": {
        "validation": 0.7, "completeness": 0.72, "correctness": 0.73, "readability": 0.72, "efficiency": 0.70
      },
      "tokens_used": 5000,
      "token_cost_usd": 0.05,
      "execution_time_ms": 30000,
      "verification_status": "passed",
      "snapshot_path": ".aiwg/ralph/loop-001/iterations/iteration-001",
      "artifacts": [".aiwg/ralph/loop-001/iterations/iteration-001/sad.md"],
      "reflections": ["Need to improve error handling section"]
    },
    {
      "iteration_number": 2,
      "timestamp": "2026-01-28T10:05:00Z",
      "quality_score": 85,
      "quality_delta": 13,
      "dimensions": {
        "validation": 0.87, "completeness": 0.85, "correctness": 0.85, "readability": 0.8, "efficiency": 0.85
      },
      "tokens_used": 6000,
      "token_cost_usd": 0.06,
      "execution_time_ms": 28000,
      "verification_status": "passed",
      "snapshot_path": ".aiwg/ralph/loop-001/iterations/iteration-002",
      "artifacts": [
        ".aiwg/ralph/loop-001/iterations/iteration-002/sad.md",
        ".aiwg/ralph/loop-001/iterations/iteration-002/adrs"
      ],
      "reflections": [],
      "an_extra_key": {"of": "a later version"}
    }
  ],
  "best_iteration_number": 2,
  "last_updated": "2026-01-28T10:15:00Z"
}
"""
FILES: dict[str, bytes | str] = {
    "iterations/iteration-001/sad.md": b"# first",
    "iterations/iteration-002/sad.md": b"# first",
    "iterations/iteration-002/adrs/001-auth.md": b"auth",
    "selection-report.md": b"their report",
}


@pytest.fixture
def directory(fresh_place: Path) -> Path:
    place = fresh_place / ".aiwg" / "ralph" / "loop-001"
    lay_out(place)
    return place


def lay_out(place: Path, **changes: Any) -> None:
    tracking = json.loads(TRACKING) | changes
    put(place, {**FILES, "best-output-tracking.json": json.dumps(tracking).encode()})


def edit_iteration(place: Path, index: int, **changes: Any) -> None:
    tracking = json.loads((place / "best-output-tracking.json").read_bytes())
    tracking["iterations"][index] |= changes
    (place / "best-output-tracking.json").write_text(json.dumps(tracking))


def test_everything_comes_over_as_it_was(directory: Path) -> None:
    assert is_foreign(directory)
    store = LoopStore.open(".aiwg/ralph/loop-001")
    assert (store.loop_id, store.created_at, store.workdir) == ("loop-001", "2026-01-28T10:00:00Z", None)
    assert dict(store.config) == json.loads(TRACKING)["config"]
    first, second = store.records()
    assert (first.iteration_number, first.quality_score, first.quality_delta) == (1, 72, None)
    assert [type(score) for score in (first.quality_score, second.quality_delta)] == [int, int]
    assert (second.quality_delta, second.verification_status, second.status) == (13, "passed", "ok")
    assert dict(first.dimensions) == json.loads(TRACKING)["iterations"][0]["dimensions"]
    assert (first.tokens_used, first.token_cost_usd, first.execution_time_ms) == (5000, 0.05, 30000)
    assert (first.usage.tokens_used, first.usage.token_cost_usd) == (5000, 0.05)
    assert first.reflections == ("Need to improve error handling section",)
    assert second.artifacts == (
        ".aiwg/ralph/loop-001/iterations/iteration-002/artifacts/adrs/001-auth.md",
        ".aiwg/ralph/loop-001/iterations/iteration-002/artifacts/sad.md",
    )
    assert Path(second.artifacts[0]).read_bytes() == b"auth"
    assert verify(store).problems == verify(store).notes == ()
    assert not is_foreign(directory)


def test_what_was_there_stays_there(directory: Path) -> None:
    before = (directory / "best-output-tracking.json").read_bytes()
    LoopStore.open(directory)
    kept = stored_tree(directory)
    assert kept["foreign-iterations/iteration-002/adrs/001-auth.md"] == b"auth"
    assert kept["foreign-best-output-tracking.json"] == kept["best-output-tracking.json"] == before
    assert kept["selection-report.md"] == b"their report"
    assert not any(name.startswith(".tmp-") for name in kept)
    one, two = (directory / f"iterations/iteration-00{number}/artifacts/sad.md" for number in (1, 2))
    assert one.read_bytes() == two.read_bytes() == (directory / "foreign-iterations/iteration-001/sad.md").read_bytes()


def test_the_loop_goes_on_where_the_other_tool_stopped(directory: Path, fresh_place: Path) -> None:
    store = LoopStore.open(directory)
    put(fresh_place, {"sad.md": b"# third"})
    record(store, 3, ("sad.md",), fresh_place, quality=83.25)
    assert [view.score for view in LoopStore.open(directory).views()] == [72, 85, 83.25]
    store.begin_attempt(4, 3, "n", "t")
    store.end_attempt(1, end())
    assert verify(store).problems == ()


def test_a_second_opening_imports_nothing_again(directory: Path) -> None:
    nonce = LoopStore.open(directory).nonce
    again = LoopStore.open(directory)
    assert (again.nonce, again.views()[0].score) == (nonce, 72)
    edit_iteration(directory, 0, quality_score=1)
    with pytest.raises(ConflictError, match="iteration 1 was recorded twice"):  # what is recorded stays as it is
        LoopStore.open(directory)


def test_snapshots_that_are_gone_are_written_down_as_cleaned_up(directory: Path) -> None:
    remove_tree(directory / "iterations" / "iteration-001")
    store = LoopStore.open(directory)
    assert [store.has_snapshot(number) for number in (1, 2)] == [False, True]
    assert store.record(1).artifacts == ()
    assert [(item.kind, item.by, dict(item.data)) for item in store.decisions()] == [("cleanup", "import", {"iterations": [1]})]
    assert verify(store).problems == ()


def test_no_iterations_at_all(fresh_place: Path) -> None:
    put(fresh_place / "x", {"best-output-tracking.json": b'{"loop_id": "free text!", "iterations": []}'})
    store = LoopStore.open("x")
    assert (store.loop_id, store.views(), dict(store.config)) == ("free text!", (), {})
    assert verify(store).problems == ()


def test_links_in_a_foreign_snapshot_are_not_followed(directory: Path) -> None:
    put(directory, {"iterations/iteration-001/out": "/etc"})
    remove_tree(directory / "iterations" / "iteration-002")
    put(directory, {"iterations/iteration-002": "/etc"})
    store = LoopStore.open(directory)
    assert stored_tree(store.artifacts(1)) == {"sad.md": b"# first", "out": "/etc"}
    assert not store.has_snapshot(2)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"quality_score": None}, (None, "invalid_score")),
        ({"quality_score": 101}, (None, "invalid_score")),
        ({"quality_score": -0.5}, (None, "invalid_score")),
        ({"quality_score": 0}, (0, "ok")),
        ({"quality_score": 99.5}, (99.5, "ok")),
    ],
)
def test_a_score_that_is_none_is_never_best(directory: Path, changes: dict[str, Any], expected: tuple[Any, str]) -> None:
    edit_iteration(directory, 1, **changes)
    view = LoopStore.open(directory).views()[1]
    assert (view.score, view.status) == expected


def test_what_is_missing_is_unknown(directory: Path) -> None:
    tracking = json.loads(TRACKING)
    tracking["iterations"] = [{"iteration_number": 1, "quality_score": 70}]
    (directory / "best-output-tracking.json").write_text(json.dumps(tracking))
    found = LoopStore.open(directory).record(1)
    assert (found.tokens_used, found.token_cost_usd, found.execution_time_ms, found.timestamp) == (None, None, None, "")
    assert (found.verification_status, dict(found.dimensions), found.reflections) == ("skipped", {}, ())
    assert [detail.path for detail in found.artifacts_detail] == ["sad.md"]


def test_a_view_of_ours_comes_back_as_it_went(directory: Path) -> None:
    """A tracking file that jumar wrote: zeros that are marked unknown, and the start state beside the iterations."""
    zeros = {"tokens_used": 0, "tokens_known": False, "token_cost_usd": 0, "token_cost_known": False}
    edit_iteration(directory, 0, **zeros, execution_time_ms=0, execution_time_known=False)
    tracking = json.loads((directory / "best-output-tracking.json").read_bytes())
    tracking["baseline"] = {"iteration_number": 0, "quality_score": 50.25, "snapshot_path": "iterations/iteration-000/artifacts"}
    (directory / "best-output-tracking.json").write_text(json.dumps(tracking))
    store = LoopStore.open(directory)
    assert [view.score for view in store.views()] == [50.25, 72, 85]
    first = store.record(1)
    assert (first.tokens_used, first.token_cost_usd, first.execution_time_ms) == (None, None, None)


def test_a_snapshot_under_another_name_is_found_by_its_path(directory: Path) -> None:
    (directory / "iterations" / "iteration-001").rename(directory / "iterations" / "first")
    edit_iteration(directory, 0, snapshot_path="somewhere/else/first/")
    assert stored_tree(LoopStore.open(directory).artifacts(1)) == {"sad.md": b"# first"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b'{"loop_id": "x", "iterations": [', "not readable as JSON"),
        (b"[]", "expected a JSON object"),
        (b'{"iterations": []}', "field 'loop_id' should be a string"),
        (b'{"loop_id": "x", "iterations": [1]}', "field 'iterations' should be a list of objects"),
        (b'{"loop_id": "x", "iterations": [{"quality_score": 1}]}', "field 'iteration_number' should be a whole number"),
        (b'{"loop_id": "x", "iterations": [{"iteration_number": -1}]}', "have to be different and not negative"),
        (
            b'{"loop_id": "x", "iterations": [{"iteration_number": 1}, {"iteration_number": 1}]}',
            r"have to be different and not negative, found \[1, 1\]",
        ),
        (b'{"loop_id": "x", "iterations": [{"iteration_number": 1, "verification_status": "maybe"}]}', "should be one of passed"),
        (b'{"loop_id": "x", "iterations": [{"iteration_number": 1, "quality_score": NaN}]}', "should be a finite number"),
    ],
)
def test_a_damaged_tracking_file_is_named_and_nothing_is_changed(directory: Path, content: bytes, message: str) -> None:
    (directory / "best-output-tracking.json").write_bytes(content)
    before = stored_tree(directory)
    with pytest.raises(StoreDamagedError, match=message) as caught:
        LoopStore.open(directory)
    assert "mend it, or move it away to begin a new loop here" in str(caught.value)
    after = stored_tree(directory)
    after.pop(".lock", None)
    assert after == before


def test_what_is_not_foreign(directory: Path, fresh_place: Path) -> None:
    assert not is_foreign(fresh_place)
    with pytest.raises(NotFoundError):
        LoopStore.open(fresh_place)
    store = LoopStore.open(directory)
    remove_tree(directory / "foreign-iterations")
    store.paths.loop_json.unlink()
    assert not is_foreign(directory)  # a loop of ours that lost its identity, although its tracking file looks foreign
    with pytest.raises(StoreDamagedError, match="restore it from a backup"):
        LoopStore.open(directory)


def test_two_importers_exclude_each_other(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopLock(directory / ".lock"), pytest.raises(LockedError):
        LoopStore.open(directory)
    first = LoopStore.open(directory)
    monkeypatch.setattr("jumar.loop.store.loop_store.is_foreign", lambda _: True)
    (directory / "loop.json").rename(directory / "hidden.json")

    class Late(LoopLock):
        """The other importer finished just before this one got the lock."""

        def acquire(self) -> None:
            super().acquire()
            (directory / "hidden.json").rename(directory / "loop.json")

    monkeypatch.setattr("jumar.loop.store.creation.LoopLock", Late)
    assert LoopStore.open(directory).nonce == first.nonce


@pytest.mark.parametrize("way", ["killed before", "killed after", "error", "answer lost"])
@pytest.mark.parametrize("with_iterations", [True, False])
def test_an_import_that_is_cut_off_anywhere_is_done_again(way: Way, with_iterations: bool) -> None:
    def lay(place: Path) -> Path:
        lay_out(place)
        if not with_iterations:
            remove_tree(place / "iterations")
        return place

    with memory_place() as root:
        calm, counted, cut = lay(root / "calm"), Disk(0, way, 5), 0
        with counted.failing():
            LoopStore.open(calm)
        for at in range(1, counted.count + 1):
            target = lay(root / "cut")
            try:
                with Disk(at, way, 5).failing():
                    LoopStore.open(target)
            except (Killed, StoreWriteError):
                cut += 1
            store = LoopStore.open(target)
            assert [view.score for view in store.views()] == [72, 85]
            assert [store.has_snapshot(number) for number in (1, 2)] == [with_iterations] * 2
            assert verify(store).problems == ()
            if with_iterations:
                assert stored_tree(target / "foreign-iterations") == {
                    path.removeprefix("iterations/"): data for path, data in FILES.items() if path.startswith("iterations/")
                }
            remove_tree(target)
        print(f"{way}: {counted.count} calls, {cut} imports cut off and done again")
        assert counted.count >= cut > 60
        assert cut == counted.count or not way.startswith("killed")
