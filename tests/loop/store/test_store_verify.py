"""Verify finds what was changed behind the store's back, says what to do, and calls nothing else damage."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from damage import DAMAGE, rewrite, sample
from store_kit import AT, end, new_store, put, record, score, unmarked

from jumar.core import files
from jumar.core.findings import VerifyReport
from jumar.loop.store.loop_reader import LoopReader
from jumar.loop.store.loop_store import LoopStore
from jumar.loop.store.reading import cleaned_iterations
from jumar.loop.store.verify import verify


@pytest.fixture
def store(fresh_place: Path) -> LoopStore:
    return sample(fresh_place)


def found(store: LoopStore) -> list[tuple[str, str]]:
    return [(problem.path, problem.what) for problem in verify(store).problems]


def test_a_sound_loop_has_no_problem(store: LoopStore) -> None:
    report = verify(store)
    assert report == VerifyReport(problems=(), files=6, bytes=3 + 3 + 3 + 7 + 7 + 7, iterations=2, notes=())
    assert report.to_json() == {"ok": True, "iterations": 2, "files": 6, "bytes": 30, "problems": [], "notes": [], "planted": []}


@pytest.mark.parametrize(("damage", "path", "what"), [pytest.param(*case[1:], id=case[0]) for case in DAMAGE])
def test_every_kind_of_damage_is_found(store: LoopStore, damage: Callable[[Path], object], path: str, what: str) -> None:
    store = LoopStore.open(unmarked(store.paths.directory))
    store.views()
    store.manifest(1)
    damage(store.paths.directory)
    problems = {(problem.path, problem.what) for problem in verify(store).problems}
    assert any(where == path and what in said for where, said in problems), problems
    assert all(problem.fix for problem in verify(store).problems)


def test_an_iteration_that_was_paid_for_or_gone_on_from_is_missed(fresh_place: Path) -> None:
    work = fresh_place / "work"
    put(work, {"a.txt": b"one"})
    store = new_store("x", work)
    for number in (1, 2):
        store.begin_attempt(number, number - 1 or None, f"n{number}", AT)
        store.end_attempt(number, end())
        pending = store.stage(number, source=work, paths=["."], nonce=f"n{number}", attempt=number, stage={}, logs=None)
        store.commit(pending, score(number, parent=number - 1 or None))
    shutil.rmtree(store.paths.iteration(1))
    assert found(store) == [("iterations/iteration-001", "is missing: iteration 2 started from it")]
    record(store, 3, (), work, parent=None)
    shutil.rmtree(store.paths.iteration(2))
    assert ("iterations/iteration-001", "is missing: attempt 1 ended and was paid for") in found(store)


def test_one_change_is_one_problem(store: LoopStore) -> None:
    rewrite(store.artifacts(2) / "a.txt", b"CHANGED")
    assert found(store) == [("iterations/iteration-002/artifacts/a.txt", "has another content than was recorded")]


def test_what_cannot_be_read_is_a_problem_and_no_crash(store: LoopStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise OSError(5, os.strerror(5))

    monkeypatch.setattr("jumar.core.files.chunks_of", refuse)
    assert all(problem.what == "cannot be read: Input/output error" for problem in verify(store).problems)
    assert len(verify(store).problems) > 3


def test_leftovers_are_notes(store: LoopStore) -> None:
    directory = store.paths.directory
    put(
        directory,
        {".tmp-1/x": b"", "attempts/.tmp-2": b"", "iterations/iteration-001/.trash-0003/x": b"", "best-tracker.json": b"?"},
    )
    put(store.artifacts(1).parent / "logs", {"anything.log": b""})
    store.begin_attempt(3, 2, "n", AT)
    store.stage(3, source=directory.parent / "work", paths=["a.txt"], nonce="n", attempt=3, stage={}, logs=None)
    report = verify(store)
    assert report.problems == ()
    assert sorted(note.split(":")[0] for note in report.notes) == [
        ".tmp-1",
        "attempts/.tmp-2",
        "attempts/000003.start.json",
        "iterations/iteration-001/.trash-0003",
        "pending/iteration-003",
    ]


def test_a_cleanup_explains_a_missing_snapshot(store: LoopStore) -> None:
    store.add_decision("cleanup", data={"iterations": [1]})
    shutil.rmtree(store.artifacts(1))
    assert found(store) == []
    shutil.rmtree(store.artifacts(2))
    assert found(store) == [("iterations/iteration-002/artifacts", "the snapshot is missing, and no cleanup was decided")]


def test_a_second_attempt_is_fine_after_a_lost_one(store: LoopStore) -> None:
    store.begin_attempt(3, 2, "n3", AT)
    store.end_attempt(3, end(outcome="lost", seconds=None))
    store.begin_attempt(3, 2, "n3b", AT)
    store.end_attempt(4, end())
    assert found(store) == []


def test_a_pending_copy_of_a_recorded_iteration_is_a_problem(store: LoopStore) -> None:
    shutil.copytree(store.paths.iteration(2), store.paths.pending / "iteration-002", symlinks=True)
    assert found(store) == [("pending/iteration-002", "iteration 2 is recorded already")]


def test_a_cleanup_that_happens_meanwhile_is_no_damage(store: LoopStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = cleaned_iterations
    calls = 0

    def deciding(decisions: Any) -> frozenset[int]:
        nonlocal calls
        calls += 1
        seen = real(decisions)
        if calls == 1:
            store.add_decision("cleanup", data={"iterations": [1]})
            shutil.rmtree(store.artifacts(1))
        return seen

    monkeypatch.setattr("jumar.loop.store.verify.cleaned_iterations", deciding)
    assert found(store) == []


def test_a_commit_that_happens_meanwhile_is_no_damage(store: LoopStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put(Path("work"), {"a.txt": b"third"})
    store.stage(3, source=Path("work").resolve(), paths=["a.txt"], nonce="n3", attempt=None, stage={}, logs=None)
    real = LoopReader.pending_of

    def committing(self: LoopReader, number: int) -> Any:
        monkeypatch.setattr(LoopReader, "pending_of", real)
        store.commit(store.pending_of(number), score(3))
        return real(self, number)

    monkeypatch.setattr(LoopReader, "pending_of", committing)
    assert found(store) == []
    assert store.iteration_numbers() == (1, 2, 3)


@pytest.mark.parametrize("recorded", [True, False])
def test_an_iteration_that_is_made_meanwhile_is_no_damage(
    store: LoopStore, monkeypatch: pytest.MonkeyPatch, recorded: bool
) -> None:
    put(Path("work"), {"a.txt": b"third"})
    real = cleaned_iterations

    def making(decisions: Any) -> frozenset[int]:  # which is asked for between the attempts and the iterations
        monkeypatch.setattr("jumar.loop.store.verify.cleaned_iterations", real)
        number = store.begin_attempt(3, 2, "n3", AT).start.number
        store.end_attempt(number, end())
        work = Path("work").resolve()
        pending = store.stage(3, source=work, paths=["a.txt"], nonce="n3", attempt=number, stage={}, logs=None)
        if recorded:
            store.commit(pending, score(3))
        return real(decisions)

    monkeypatch.setattr("jumar.loop.store.verify.cleaned_iterations", making)
    assert found(store) == []


@pytest.mark.parametrize("way", ["vanishes before", "vanishes while it is read"])
def test_a_pending_snapshot_that_is_renamed_while_it_is_read_is_no_damage(
    store: LoopStore, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(Path("work"), {"a.txt": b"third", "sub/b.txt": b"third too"})
    pending = store.stage(3, source=Path("work").resolve(), paths=["."], nonce="n3", attempt=None, stage={}, logs=None)
    real = files.walk

    def walking(root: Path, **options: Any) -> Any:
        listing = real(root, **options)
        if root == pending.artifacts:
            if way == "vanishes while it is read":
                yield next(listing)
            store.commit(pending, score(3))
        yield from listing

    monkeypatch.setattr(files, "walk", walking)
    assert found(store) == []


def test_records_that_nobody_scored_are_fine(store: LoopStore) -> None:
    record(store, 7, (), Path("work").resolve(), quality=None, status="scorer_broken")
    assert found(store) == []
